"""B12: verdicts and pictures of class covariances, on numbers made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

from rarefy.studies import get_study

STUDY: Any = get_study("influence-covariance").at("quick")


def made_up(own: list[float], told: float, scatter: float = 0.005) -> xr.Dataset:
    """Own overlaps as given where all others are 1; residuals of length 1 told so well."""
    generator = np.random.default_rng(0)
    seeds = STUDY.seeds
    overlaps = np.ones((seeds, 10, 10))
    overlaps[:, range(10), range(10)] = own
    overlaps = overlaps * np.exp(scatter * generator.normal(size=overlaps.shape))
    shares = np.array([0.1, told, 0.1]) + scatter * generator.normal(size=(seeds, 3))
    first = xr.DataArray([0.0, *[np.nan] * (STUDY.points - 1)], dims="point")
    values = dict.fromkeys(("overlaps", "across"), (("seed", "class_a", "class_b"), overlaps))
    told_of = {"told": (("seed", "residual"), shares), "points_at": first, "points_class": first}
    return fabricated(STUDY, seeds, {**values, **told_of})


def outcomes(results: xr.Dataset) -> list[str]:
    return [verdict.outcome for verdict in STUDY.verdicts(results, "quick")]


def test_verdicts_follow_the_diagonal_and_the_residuals() -> None:
    assert outcomes(made_up([3.0] * 10, 0.5)) == ["holds", "holds", "holds"]
    assert outcomes(made_up([3.0] * 9 + [0.5], 0.5))[:2] == ["fails", "holds"]
    assert outcomes(made_up([0.5] * 10, 0.05)) == ["fails", "fails", "fails"]
    assert outcomes(made_up([3.0] * 10, 0.1))[2:] == ["inconclusive"]


def test_the_set_of_the_paper_is_primary() -> None:
    found = made_up([3.0] * 10, 0.5)
    assert {one.claim for one in STUDY.verdicts(found, "quick")} == {"B12"}
    theirs = STUDY.verdicts(found.assign_coords(data=["mnist"]), "paper")
    assert [one.claim for one in theirs] == ["B12.1", "B12", "B12"]
    assert "in every class" in theirs[0].setting


def test_the_class_that_breaks_the_rule_is_named() -> None:
    verdict = STUDY.verdicts(made_up([3.0] * 9 + [0.5], 0.5), "quick")[0]
    assert "another class's is larger for 9" in verdict.note
    assert verdict.n == STUDY.seeds


def test_pictures_show_overlaps_as_they_are_and_as_cosines() -> None:
    first, last = STUDY.picture(made_up([4.0] * 10, 0.5, scatter=0.0))
    raw, cosine = first.panels
    assert raw.values[0, 0] == pytest.approx(4) and cosine.values[0, 0] == pytest.approx(1)
    assert cosine.values[0, 1] == pytest.approx(0.25)
    assert len(last.panels) == 1
