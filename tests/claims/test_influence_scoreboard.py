"""The scoreboard: verdicts on numbers made up, and the page in docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

import make
import rarefy
from pages import scoreboard
from rarefy.studies import get_study
from rarefy.sweep.results import write_results
from rarefy.tools.influence.signals import SIGNALS, WORDS

InfluenceScoreboard = get_study("influence-scoreboard")
STUDY: Any = InfluenceScoreboard.at("quick", injection=("flips-0.1", "rare-modes-0.1"))


# ----------------------------------------------------------------------------------------- verdicts


def made_up(**levels: float) -> xr.Dataset:
    """AUROC of each signal, 0.5 unless given."""
    shape = (2, STUDY.seeds, len(SIGNALS))
    values = np.full(shape, 0.5) + 0.002 * np.random.default_rng(0).normal(size=shape)
    for signal, level in levels.items():
        values[..., SIGNALS.index(signal)] += level - 0.5
    dims = ("injection", "seed", "signal")
    data = {"auroc": (dims, values), "recall": (dims, values / 2)}
    counts = {"injected": 100.0, "asked": 1000.0, "share": 0.2}
    results = fabricated(STUDY, STUDY.seeds, {**data, **counts})
    return results.assign_attrs(provenance='{"date": "2030-01-02T03:04:05"}')


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"percentile": 0.7, "distance": 0.9}, "holds"),
        ({"percentile": 0.4}, "fails"),
        ({}, "inconclusive"),
    ],
)
def test_verdicts_are_about_rare_modes(levels: dict[str, float], expected: str) -> None:
    (verdict,) = STUDY.verdicts(made_up(**levels), "quick")
    assert (verdict.claim, verdict.outcome) == ("B11", expected)
    assert verdict.setting.startswith("digits, rare modes, 10 %: ")


def test_the_verdict_names_the_baseline_that_wins() -> None:
    results = made_up(percentile=0.7, mahalanobis=0.95)
    assert "score 0.70" in STUDY.verdicts(results, "quick")[0].note
    assert "best mahalanobis 0.9" in STUDY.verdicts(results, "quick")[0].note
    assert starred(results) == ["mahalanobis"]
    assert starred(made_up(mahalanobis=0.95, distance=0.945)) == ["distance", "mahalanobis"]


def starred(results: xr.Dataset) -> list[str]:
    """The signals that find flipped labels best, as the table marks them."""
    (table,) = STUDY.tables(results)
    return [signal for signal, row in zip(SIGNALS, table.rows, strict=False) if "*" in row[1]]


# ----------------------------------------------------------------------------------------- the page


def test_the_page_is_made_of_results_and_begins_with_where_the_score_loses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = rarefy.run(InfluenceScoreboard, scale="tiny", device="cpu")
    write_results(InfluenceScoreboard.at("tiny"), "tiny", results, tmp_path)
    out = tmp_path / "scoreboard.md"
    make.main(["scoreboard", "--results", str(tmp_path), "--out", str(tmp_path)])
    text = out.read_text(encoding="utf-8")
    assert str(out) in capsys.readouterr().out
    first = text.split("\n\n")[2]
    assert (
        "none of 3 searches for injected samples come out best" in first
        and "no detector of label errors" in first
    )
    assert "no training `disagreement`" in first
    assert text.count("\n## ") == 6
    for words in WORDS.values():
        assert text.count(f"| {words} |") == 3
    assert "n = 3 draws" in text and "influence-scoreboard --scale tiny" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_the_page_says_so_where_the_score_is_best() -> None:
    text = scoreboard.page(STUDY, "quick", made_up(percentile=0.9, distance=0.7))
    first = text.split("\n\n")[2]
    assert "2 of 2 searches for injected samples come out best" in first and "in 0 another" in first
    assert "Where it comes out best" in first and "no detector" not in first


def test_without_results_the_page_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no results of influence-scoreboard in .*rarefy run"):
        make.main(["scoreboard", "--results", str(tmp_path), "--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())
