"""The scoreboard: signals and shares against brute force, verdicts made up, the page in docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import make
import rarefy
from pages import scoreboard
from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.measure.influence.neighbours import nearest
from rarefy.studies.influence.scoreboard.claims import winners
from rarefy.studies.influence.scoreboard.study import InfluenceScoreboard
from rarefy.studies.influence.signals import SIGNALS, WORDS, recall, signals_of
from rarefy.sweep.results import write_results
from rarefy.tools.influence.injections import Injection

CPU = torch.device("cpu")
STUDY: Any = InfluenceScoreboard.at("quick", injection=("flips-0.1", "rare-modes-0.1"))


# ------------------------------------------------------------------------------------------ signals


def test_signals_are_high_for_what_they_are_about() -> None:
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    features = np.clip(generator.normal(size=(100, 8)) * 5 + 60 + 100 * labels[:, None], 0, 255)
    features = features.astype(np.uint8)
    given = Injection("copies", 0.02).into(features, labels, 2, Draws([1]))
    values = signals_of(given, 1 / 255, nearest(given.features), Draws([1]), CPU)
    assert values.shape == (len(SIGNALS), 102) and np.isfinite(values).all()
    by = dict(zip(SIGNALS, values, strict=True))
    copied = given.positive
    for signal in ("influence", "percentile", "own", "distance", "disagreement", "conflict"):
        assert by[signal][copied].min() > np.median(by[signal][given.asked]), signal
    assert by["conflict"].sum() == 4  # both of each pair
    assert (by["isolation"][copied] == 0).all()
    assert by["percentile"].min() == 0 and by["percentile"].max() == 100


def test_recall_counts_the_highest_and_shares_the_last_places_among_equals() -> None:
    positive = np.array([True, True, False, False, False])
    values = np.array(
        [
            [5.0, 4, 3, 2, 1],
            [5.0, 1, 4, 3, 2],
            [1.0, 2, 3, 4, 5],
            [1.0, 1, 1, 1, 1],
            [9.0, 1, 1, 0, 0],
        ]
    )
    # drawn lots: two of five places hold the positives; one of two equals is the second one
    np.testing.assert_allclose(recall(values, positive), [1, 0.5, 0, 0.4, 0.75])
    assert np.isnan(recall(values, np.zeros(5, dtype=bool))).all()


# ----------------------------------------------------------------------------------------- verdicts


def made_up(**levels: float) -> xr.Dataset:
    """AUROC of each signal, 0.5 unless given."""
    seeds = STUDY.seeds
    shape = (1, 2, seeds, len(SIGNALS))
    values = np.full(shape, 0.5) + 0.002 * np.random.default_rng(0).normal(size=shape)
    for signal, level in levels.items():
        values[..., SIGNALS.index(signal)] += level - 0.5
    cell = ("data", "injection", "seed")
    data = {
        "auroc": ((*cell, "signal"), values),
        "recall": ((*cell, "signal"), values / 2),
        "injected": (cell, np.full(shape[:3], 100.0)),
        "asked": (cell, np.full(shape[:3], 1000.0)),
        "share": (cell, np.full(shape[:3], 0.2)),
    }
    axes = {"data": ["digits"], "injection": list(STUDY.injection), "seed": np.arange(seeds)}
    attributes = {"provenance": '{"date": "2030-01-02T03:04:05"}'}
    return xr.Dataset(data, {**axes, **STUDY.coordinates()}, attributes)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"percentile": 0.9, "distance": 0.8}, ["holds", "holds"]),
        ({"percentile": 0.7, "distance": 0.9}, ["holds", "fails"]),
        ({"percentile": 0.4}, ["fails", "fails"]),
        ({}, ["inconclusive", "inconclusive"]),
    ],
)
def test_verdicts_are_about_rare_modes(levels: dict[str, float], expected: list[str]) -> None:
    verdicts = STUDY.verdicts(made_up(**levels), "quick")
    assert [verdict.outcome for verdict in verdicts] == expected
    assert [verdict.setting.split(":")[0] for verdict in verdicts] == [
        "digits, rare modes, 10 %",
        "digits, rare modes, 10 %",
    ]


def test_the_verdict_names_the_baseline_that_wins() -> None:
    results = made_up(percentile=0.7, mahalanobis=0.95)
    assert "score 0.70" in STUDY.verdicts(results, "quick")[0].note
    assert "best mahalanobis 0.9" in STUDY.verdicts(results, "quick")[0].note
    assert winners(results, "digits", "flips-0.1") == ["mahalanobis"]
    both = made_up(mahalanobis=0.95, distance=0.945)
    assert winners(both, "digits", "flips-0.1") == ["mahalanobis", "distance"]


def test_without_rare_modes_nothing_is_decided() -> None:
    study: Any = InfluenceScoreboard.at("tiny", injection=("copies-0.1",))
    results = made_up().isel(injection=[0]).assign_coords(injection=["copies-0.1"])
    (verdict,) = study.verdicts(results, "tiny")
    assert (verdict.outcome, verdict.n) == ("inconclusive", 0)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"data": ("digitz",)}, "unknown data set 'digitz'.*digits"),
        ({"injection": ("flips",)}, "injection='flips': must be a kind and a share"),
        ({"injection": ("flops-0.1",)}, "unknown kind of injection 'flops'"),
        ({"samples": 10}, "samples=10: must be at least 100"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        InfluenceScoreboard.at("tiny", **wrong)


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
    assert "use `disagreement`" in first
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
