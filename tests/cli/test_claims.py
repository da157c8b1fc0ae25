"""Answers where people meet them: ``claims``, the end of ``run``, ``verify``, ``report``."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_ledger import SENTENCE, Declared, claim, made_up_ledger
from toy_study import only

from rarefy import cli
from rarefy.ledger.claims import SIGNS
from rarefy.ledger.verdicts import load_verdicts

pytestmark = pytest.mark.usefixtures("eager")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def ledger(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("COLUMNS", "80")
    only(monkeypatch, Declared)
    not_run = {"answer": "not run", "not_run": "needs a telescope", "primary": None}
    with made_up_ledger(
        here,
        claim(),
        claim("T2", where="Theorem 1", line="Nobody looked at the moon.", **not_run),
        claim("T3", paper="own", where="here", line="A question of ours.", **not_run),
    ) as folder:
        yield folder


@pytest.fixture
def judged(ledger: Path, capsys: Capture) -> Path:
    """The declared run, its results and its verdicts in the ledger."""
    assert cli.main(["run", "toy", "--scale", "quick", "--results", "results"]) == 0
    assert cli.main(["verify", "--update"]) == 0
    capsys.readouterr()
    return ledger


def moved(monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    """From here on walks end elsewhere."""
    simulate = Declared.simulate

    def changed(study, cells, context):  # type: ignore[no-untyped-def]
        outputs = simulate(study, cells, context)
        return {**outputs, "end": outputs["end"] + by}

    monkeypatch.setattr(Declared, "simulate", functools.partialmethod(changed))


# claims


def test_claims_are_a_line_each_under_their_papers(judged: Path, capsys: Capture) -> None:
    assert cli.main(["claims"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Xu, Chen: Rethinking Benign Overfitting in Two-Layer Neural Networks"
    assert lines[1].startswith("✓ T1  Walks with drift") and lines[2].startswith("      every")
    assert lines[3:5] == ["– T2  Nobody looked at the moon.", "Our own questions"]
    assert "✓ supported 1   – not run 2" in lines
    assert cli.main(["claims", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["answer"] for one in told] == ["supported", "not run", "not run"]
    assert told[0]["results"] == "declared before they were seen"


@pytest.mark.quick("words1")
@pytest.mark.parametrize("words", [["t1"], ["Xu", "Chen", "figure", "3"], ["--figure", "Fig. 3"]])
def test_one_claim_is_shown_whole(words: list[str], judged: Path, capsys: Capture) -> None:
    assert cli.main(["claims", *words]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "✓ T1 supported  (Fig. 3a, 3b)" in said and SENTENCE in " ".join(said.split())
    for part in (
        "paper says       A walk with drift",
        "we saw           7.85 with n 60",
        "mind changed by  a walk that does not",
        "declared 2026-11-17, before results were seen",
        "  ✓ T1.1  the mean end",
        "expected 8; 7.85; n 60",
        "a trivial model: a walk without drift",
        "premise: steps are independent",
        "run it: rarefy run toy --scale quick",
    ):
        assert part in said
    assert "left open" not in said, "what is empty is not named"


def test_what_is_not_run_says_why(ledger: Path, capsys: Capture) -> None:
    assert cli.main(["claims", "T2"]) == 0
    said = capsys.readouterr().out
    assert "– T2 not run  (Theorem 1)" in said and "needs a telescope" in said


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["T9"], "T1 ("),
        (["--paper", "Xuu"], "003 (Xu & Chen)"),
        (["--figure", "Fig. 33"], "T1 (Fig. 3a, 3b)"),
        (["wlaks"], "T1 ("),
    ],
)
def test_what_nobody_claims_has_three_nearest(
    words: list[str], nearest: str, ledger: Path, capsys: Capture
) -> None:
    assert cli.main(["claims", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"error: .*\n", shown.err)
    named = re.findall(r"\w+ \([^()]*(?:\([^()]*\)[^()]*)*\)", shown.err.partition("nearest: ")[2])
    assert len(named) == 3 and named[0].startswith(nearest)


def test_help_explains_every_mark(capsys: Capture) -> None:
    assert cli.main(["claims", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(sign in said for sign in SIGNS.values()) and 'rarefy claims "Xu Chen' in said


# run


def rows(said: str) -> list[str]:
    """A table's rows, each with the lines it goes on in."""
    table = said.split("─\n")[-1]
    return re.findall(r"^\S.*(?:\n .*)*", table, re.MULTILINE)


@pytest.mark.quick("80")
@pytest.mark.parametrize("width", ["80", "120"])
def test_a_run_ends_with_the_claims_it_touched(
    width: str, judged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert cli.main(["run", "toy", "--scale", "tiny"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= int(width)
    row, *rest = rows(said)
    # (beside the ledger's answer "1 of 1 hold" would look like one)
    assert re.match(r"T1 +too small to tell +✓ Walks with drift", row) and row.count("\n") <= 1
    assert rest == [
        "too small to tell: the answer stands on other runs, which rarefy claims ID names",
        "12 cells in runs/toy-tiny",
        "next: rarefy report runs/toy-tiny --open",
    ]


def test_every_reading_takes_two_lines_at_most(judged: Path, capsys: Capture) -> None:
    assert cli.main(["run", "toy", "--scale", "tiny", "--all"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    first, second, signs = rows(said.partition("\n\n")[0])
    assert first.startswith("✓ T1.1 ") and second.startswith("✓ T1 ")
    assert second.strip().count("\n") == 1 and "…" in second
    assert "✗ fails" in signs


def test_a_declared_run_computes_the_answer_again(
    judged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = ["run", "toy", "--scale", "quick", "--overwrite"]
    assert cli.main(again) == 0
    assert "✓ Walks with drift" in capsys.readouterr().out
    moved(monkeypatch, by=3)
    assert cli.main(again) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "T1 0 of 1 hold, n 60 ✗ changed: supported in the ledger" in said
    # not the run that was declared: the ledger's answer stands
    assert cli.main([*again, "--set", "lr=0.5"]) == 0
    said = capsys.readouterr().out
    assert "changed" not in said and re.search(r"T1 +another setting +✓", said)


def test_an_answer_under_review_says_so_and_why(here: Path, capsys: Capture) -> None:
    why = "the size is another"
    with made_up_ledger(here, claim(review=why), claim("T2")):
        assert cli.main(["claims"]) == 0
        assert capsys.readouterr().out.count("Under review: ") == 1
        assert cli.main(["claims", "T1"]) == 0
        assert f"under review     {why}" in capsys.readouterr().out
        assert cli.main(["claims", "T1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["review"] == f"under review: {why}"


# verify


def test_verify_says_which_answer_changed_and_why(
    judged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["verify"]) == 0
    assert capsys.readouterr().out == "1 answers and 2 readings are as in the ledger\n"
    moved(monkeypatch, by=3)
    assert cli.main(["run", "toy", "--scale", "quick", "--overwrite", "--out", "other"]) == 0
    capsys.readouterr()
    assert cli.main(["verify", "other", "--all"]) == 1
    said = capsys.readouterr().out
    assert "T1: supported -> contradicted\n" in said
    assert re.search(r"  T1\.1: holds, 7\.85, n 60 -> fails, 10\.9, n 60\n", said)
    assert "T1, the words: it says supported, the rule gives contradicted\n" in said
    assert "2 of 2 readings differ from the ledger\n" in said
    assert "T1.1 in toy, default: holds -> fails\n" in said
    # what is written into the ledger is the new standing; the words are still a person's to mend
    assert cli.main(["verify", "other", "--update"]) == 1
    said = capsys.readouterr().out
    assert "T1: supported -> contradicted" in said and "the words: it says supported" in said
    assert {verdict.outcome for verdict in load_verdicts()} == {"fails"}


def test_verify_sees_words_that_no_longer_fit(judged: Path, capsys: Capture) -> None:
    from rarefy.ledger.claims import load_claims

    (judged / "003.toml").write_text(claim(saw="8.77 with n 60"), "utf-8")
    load_claims.cache_clear()
    assert cli.main(["verify"]) == 1
    said = capsys.readouterr().out
    assert said == "T1, the words: saw quotes 8.77, which no primary measured\n"


def test_verify_needs_something_to_compare_with(ledger: Path, capsys: Capture) -> None:
    assert cli.main(["run", "toy", "--scale", "tiny"]) == 0
    assert cli.main(["verify", "runs/toy-tiny"]) == 2
    assert "the ledger has no verdict of toy at scale tiny" in capsys.readouterr().err
    assert cli.main(["verify", "nowhere"]) == 2
    assert "no store at nowhere" in capsys.readouterr().err
    assert cli.main(["verify"]) == 2
    assert "no committed results here (results/ is missing)" in capsys.readouterr().err


# report


@pytest.mark.slow
def test_the_report_opens_with_the_answers(
    judged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not opened.append(address))
    assert cli.main(["report", "runs/toy-quick", "results", "--open"]) == 0
    assert opened == [Path("report.html").absolute().as_uri()]
    page = Path("report.html").read_text("utf-8")
    finding = page[: page.index('<section class="group"')]
    assert "supported</span> Walks with drift" in finding and "Xu &amp; Chen, Fig. 3a" in finding
    assert "<img" in finding and "answered by other runs" not in page
    assert cli.main(["run", "toy", "--scale", "tiny"]) == 0  # which decides nothing
    assert cli.main(["report", "runs/toy-tiny", "--out", "tiny.html"]) == 0
    assert "tiny scale, this run; answered by other runs" in Path("tiny.html").read_text("utf-8")
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert cli.main(["report", "results", "--out", "b.html", "--open"]) == 0
    assert "note: there is no browser here" in capsys.readouterr().err
