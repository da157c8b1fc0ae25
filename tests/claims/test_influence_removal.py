"""Verdicts, tables and pictures of removal on made-up results, and shared trainings of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Context
from rarefy.studies import get_study
from rarefy.studies.influence.removal import experiment as influence_removal
from rarefy.studies.influence.removal.tables import spoken
from rarefy.sweep.grid import grid_of

InfluenceRemoval = get_study("influence-removal")
STUDY: Any = InfluenceRemoval.at("quick", seeds=4, within=("class", "all"))


def made(study: Any, loss: dict[str, float], spread: float = 0.001) -> xr.Dataset:
    """Accuracy falls by ``loss`` times the fraction, otherwise as at random (0.05)."""
    generator = np.random.default_rng(0)
    falls = xr.DataArray([loss.get(by, 0.05) for by in study.by], dims="by")
    results = fabricated(study, study.seeds, {}, rest=0.95).map(
        lambda full: full + spread * generator.normal(0, 1, full.shape)
    )
    return results - falls * results["fraction"]


def outcomes(results: xr.Dataset) -> set[str]:
    return {each.outcome for each in STUDY.verdicts(results, "quick")}


def test_high_scores_that_cost_more_hold_and_those_that_cost_less_fail() -> None:
    assert outcomes(made(STUDY, {"high": 0.5, "low": 0.01})) == {"holds"}
    assert outcomes(made(STUDY, {"high": 0.01, "low": 0.5})) == {"fails"}
    assert "inconclusive" in outcomes(made(STUDY, {}, spread=0.05))


def test_the_mean_over_fractions_is_judged_and_by_the_papers_protocol_each() -> None:
    verdicts = STUDY.verdicts(made(STUDY, {"high": 0.5}), "quick")
    # two places, all test samples and the farthest; four fractions of the paper's protocol
    assert len(verdicts) == 2 * 2 + 4 == len({each.identity for each in verdicts})
    first = verdicts[0]
    assert "mean over fractions" in first.setting and first.n == 4
    assert first.setting.startswith("digits, logistic, same share of every class, all test")
    low, high = first.interval or (0.0, 0.0)
    assert low < 45 * 0.4 < high
    single = [each for each in verdicts if "left out" in each.setting]
    assert all("sorted over the whole set, all test" in each.setting for each in single)


@pytest.mark.parametrize(("scale", "claim"), [("paper", "B13.1"), ("cifar10", "B13.2")])
def test_the_papers_protocol_on_its_sets_is_primary(scale: str, claim: str) -> None:
    study = InfluenceRemoval.at(scale)
    assert study.seeds >= 5
    (first,) = [
        each for each in study.verdicts(made(study, {"high": 0.5}), scale) if each.role == "primary"
    ]
    assert first.claim == claim
    assert "sorted over the whole set, all test samples: mean over fractions" in first.setting


def test_without_one_of_the_two_nothing_is_asked() -> None:
    study = InfluenceRemoval.at("quick", by=("high", "random"))
    assert study.verdicts(made(study, {}), "quick") == []


def test_tables_show_differences_from_random_removal() -> None:
    tables = {table.name: table for table in STUDY.tables(made(STUDY, {"high": 0.5}, 0.0))}
    assert list(tables) == ["removed-class", "removed-all", "shares"]
    row = next(row for row in tables["removed-all"].rows if row[1] == "highest influence")
    assert row[2] == "95.00" and row[3] == "90.00 (-4.50 ±0.00*)"
    random = next(row for row in tables["removed-all"].rows if row[1] == "at random")
    assert random[3] == "94.50"
    only = InfluenceRemoval.at("quick", within=("class",))
    assert [table.name for table in only.tables(made(only, {}))] == ["removed-class"]


def test_pictures_have_a_curve_a_way() -> None:
    (picture,) = STUDY.picture(made(STUDY, {"high": 0.5}))
    assert len(picture.panels) == 6
    assert [curve.label for curve in picture.panels[0].curves] == [spoken(by) for by in STUDY.by]
    assert spoken("norm-low") == "lowest by norm"


def test_what_leaves_nothing_out_is_trained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = InfluenceRemoval.at("tiny", seeds=2)
    trained: list[Any] = []
    real = influence_removal.train_without

    def counted(removal: Any, *arguments: Any) -> Any:
        trained.append(removal)
        return real(removal, *arguments)

    monkeypatch.setattr(influence_removal, "train_without", counted)
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context(scratch=tmp_path))
    assert sum(one.fraction == 0 for one in trained) == 2 < len(grid) / 3
    assert found["test_accuracy"].shape == (len(grid),)
