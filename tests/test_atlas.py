"""The pages of claims: tiles, margins and plots of made-up answers; and the committed pages are
what the ledger says."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pages import DOCS, ROOT, claim, claims
from pages.margins import forest, margin, multiverse
from pages.markdown import MARKS, tile
from rarefy.cli import claiming
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.core.verdict import Verdict
from rarefy.ledger.answers import Answer, compute_answers
from rarefy.ledger.api import current_answers
from rarefy.ledger.claims import STATES, Claim, Primary

READING = Verdict(
    "B6.1", "toy", "paper", "sum over filters", "at least 1", "mean 2 [1.5, 2.5]", (1.5, 2.5), 20,
    "none", "holds", value=2.0, allowed=(1.0, float("inf")),
)  # fmt: skip
PRIMARY = Primary(
    "B6.1", "toy", "paper", "mean", "at least 1", "none", "a bound", 20, "", "0: told apart",
)  # fmt: skip
CLAIM = Claim(
    "B6", "003", "Fig. 3a, 3b", "Noise | can_classify", "d = 1000", "", datetime.date(2026, 1, 2),
    "after", "supported", "Noise alone classifies", "all", "2 [1.5, 2.5]", "It does", "less", "",
    "", primaries=(PRIMARY,),
)  # fmt: skip


def other(setting: str, outcome: str, value: float) -> Verdict:
    interval = (value - 0.1, value + 0.1)
    return replace(
        READING, claim="B6", setting=setting, outcome=outcome, value=value, interval=interval
    )


OTHERS = [other("b | mean", "fails", 0.5), other("a: d = 500", "holds", 3.0)]


def answered(*verdicts: Verdict, **changed: object) -> dict[str, Answer]:
    asked = replace(CLAIM, **changed)  # type: ignore[arg-type]
    rest = replace(CLAIM, id="B7", where="Fig. 4a; Thm 2", primaries=(), not_run="costs a week")
    return compute_answers([asked, rest], verdicts)


# ------------------------------------------------------------------------------------------ margins


@pytest.mark.parametrize(
    ("allowed", "value", "interval", "p", "expected"),
    [
        ((0.8, 1.2), 1.1, (1.0, 1.15), None, (0.5, 0.25, 1.0)),  # in half widths of 0.2
        ((0.8, 1.2), 1.3, (1.25, 1.35), None, (-0.5, -0.75, -0.25)),
        ((-float("inf"), 0.05), 0.15, (0.1, 0.2), None, (-2.0, -3.0, -1.0)),  # in edges
        ((4.0, float("inf")), 6.0, (5.0, float("inf")), None, (0.5, 0.25, float("inf"))),
        ((0.0, float("inf")), 2.0, (1.5, 2.5), None, (4.0, 3.0, 5.0)),  # in half intervals
        ((0.0, 1.0), 0.9, (0.8, 1.0), 0.001, (9.0, 8.0, 10.0)),  # rho: 1 is no edge
        ((-1.0, -0.5), -0.9, (-1.0, -0.8), 0.001, (0.8, 0.6, 1.0)),
        ((2.0, 2.0), 3.0, (2.5, 3.5), None, (-0.5, -0.75, -0.25)),
        ((4.0, float("inf")), 6.0, None, None, (0.5, 0.5, 0.5)),
    ],
)
def test_margin_is_the_distance_from_the_nearest_edge(
    allowed: tuple[float, float],
    value: float,
    interval: tuple[float, float] | None,
    p: float | None,
    expected: tuple[float, float, float],
) -> None:
    verdict = replace(READING, allowed=allowed, value=value, interval=interval, p=p)
    assert margin(verdict) == pytest.approx(expected)


def test_no_margin_without_numbers() -> None:
    assert margin(replace(READING, value=None)) is None
    assert margin(replace(READING, allowed=None)) is None
    assert margin(replace(READING, allowed=(0.0, float("inf")), interval=None)) is None


def test_plots_are_small_the_same_each_time_and_left_out_where_there_is_nothing() -> None:
    plot = multiverse([READING, *OTHERS])
    assert plot is not None and plot == multiverse([READING, *OTHERS])
    assert len(plot) < 60_000
    assert multiverse([READING]) is None
    assert forest([READING, *OTHERS]) is None
    known = replace(READING, published=7.07)
    assert forest([known, *OTHERS]) is not None
    # far away, and open at one end
    far = replace(READING, value=500.0, interval=(400.0, float("inf")))
    assert multiverse([far, *OTHERS]) is not None


# -------------------------------------------------------------------------------------------- tiles


def test_a_strip_has_the_answer_then_the_others_by_condition() -> None:
    page = claims.page(answered(READING, *OTHERS))
    (row,) = (line for line in page.splitlines() if line.startswith("| [B6]"))
    assert row.count(" | ") == 2  # a condition with a bar in it splits no cell
    tiles = re.findall(r'<span class="tile ([a-z -]+)" title="([^"]+)">(.)</span>', row)
    assert tiles == [
        ("answer supported", "supported", "✓"),
        ("holds", "a: d = 500", "✓"),
        ("fails", "b &#124; mean", "✗"),
    ]
    assert row.endswith("| Noise alone classifies |")
    assert "](claims/B6.md) Fig. 3a, 3b |" in row


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "supported"),
        ({"outcome": "fails", "value": 0.5, "interval": (0.4, 0.6)}, "contradicted"),
        ({"published": 5.0}, "smaller than published"),
        ({"outcome": "premise-not-met"}, "premise not met"),
        ({"outcome": "inconclusive"}, "undecided"),
        ({"claim": "B6.2"}, "not run"),
    ],
)
def test_every_state_has_its_tile(change: dict[str, object], state: str) -> None:
    answers = answered(replace(READING, **change))  # type: ignore[arg-type]
    assert tile(state) in claims.page(answers).split("## Xu & Chen")[1].split("[B7]")[0]
    text = claim.page(answers["B6"], Path("nowhere"))
    assert f"{tile(state)} **{state[0].upper()}{state[1:]}.**" in text
    assert text.count(f"{tile(state)} {state} |") == 1  # of its one primary


def test_marks_are_those_of_the_terminal() -> None:
    assert {state: MARKS[state] for state in STATES} == {
        state: mark for state, (mark, _) in claiming.MARKS.items()
    }


def test_figures_lead_to_claims() -> None:
    answers = answered(READING)
    links = "**Fig. 3** [B6 ✓](claims/B6.md) · **Fig. 4** [B7 –](claims/B7.md) · **Theorem 2** [B7"
    assert links in claims.page(answers)
    start = "<!-- answers: made by docs/make.py claims -->\n"
    first = claims.with_answers(f"before\n{start}old\n<!-- end -->\nafter\n", answers)
    assert first.startswith(f"before\n{start}\n| paper |") and first.endswith(
        "<!-- end -->\nafter\n"
    )
    assert f"[Xu & Chen](claims.md#xu-chen) | {links}" in first and "old" not in first
    assert claims.with_answers(first, answers) == first


# ----------------------------------------------------------------------------------- a claim's page


def test_a_page_says_it_all() -> None:
    text = claim.page(answered(READING, *OTHERS)["B6"], Path("nowhere"))
    assert text.startswith("# B6: Noise alone classifies\n")
    assert r"**Paper says.** Noise \| can_classify" in text
    assert "**Left open.**" not in text  # empty
    assert "Declared on 2026-01-02, after results were seen." in text
    for row in (
        "|  | B6.1 |",
        "| tolerance | none. a bound |",
        "| interval, 95 % | 1.5 to 2.5 |",
        "| n | 20 (at least 20 needed) |",
        "| a trivial model | 0: told apart |",
    ):
        assert f"\n{row}\n" in text
    assert "1 of 2 readings under other choices agree.\n\nThe others:" in text
    assert re.search(r"^- <span .*✗</span> b \\\| mean$", text, re.MULTILINE)
    assert "rarefy run toy --scale paper\n" in text and "](../studies/toy.md)" in text


def test_pages_show_the_pictures_that_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy-paper.parquet").touch()
    panels = [Lines(curves=[Curve("a", np.arange(2), np.arange(2))], x_label="x", y_label="y")]
    drawn = [Picture(name, name, "", panels) for name in ("first", "second")]
    toy = SimpleNamespace(name="toy", picture=lambda results: drawn)
    monkeypatch.setattr(claim, "read_results", lambda path: (toy, "paper", None))
    known = replace(READING, published=2.1)

    def shown(answer: Answer) -> set[str]:
        found = set(re.findall(r"!\[[^]]*\]\(([^)]+)\)", claim.page(answer, tmp_path)))
        assert found == set(claim.pictures(answer, tmp_path))
        return found

    figure = {"figure": "rises", "picture": "second"}
    everything = shown(answered(known, *OTHERS, **figure)["B6"])
    assert everything == {"B6.png", "B6-published.png", "toy-paper-second.png"}
    assert shown(answered(READING, figure="rises")["B6"]) == {"toy-paper.png"}
    assert shown(answered(READING, *OTHERS)["B6"]) == {"B6.png"}
    assert shown(answered()["B7"]) == set()
    with pytest.raises(SystemExit, match=r"B6: picture='third'; toy has first, second"):
        claim.pictures(answered(READING, figure="rises", picture="third")["B6"], tmp_path)


# ------------------------------------------------------------------------------------ the real ones


def test_the_atlas_is_short_and_has_every_claim() -> None:
    answers = current_answers()
    page = claims.page(answers)
    assert len(page.splitlines()) <= 300
    assert all(page.count(f"\n| [{name}](claims/{name}.md) ") == 1 for name in answers)


def test_pages_are_what_the_ledger_says() -> None:
    texts = claims.texts(current_answers(), ROOT / "results")
    old = [name for name, text in texts.items() if _read(DOCS / name) != text]
    assert not old, "the ledger has changed: python docs/make.py claims"
    shown = {
        f"claims/{image}"
        for name, text in texts.items()
        if name.startswith("claims/")
        for image in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    }
    there = {f"claims/{path.name}" for path in (DOCS / "claims").iterdir()}
    assert there == shown | {name for name in texts if name.startswith("claims/")}


def _read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""
