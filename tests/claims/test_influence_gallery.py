"""B11: verdicts, pictures and tables of what a score puts first, on numbers made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

from rarefy.studies import get_study

STUDY: Any = get_study("influence-gallery").at("quick")
CLASSIFIERS, SIGNALS, COMPARED = (
    STUDY.coordinates()[name].tolist() for name in ("classifier", "signal", "compared")
)
DECILES = 10


def made_up(influence: float, distance: float, norm: float) -> xr.Dataset:
    """Errors and isolation that rise by so much from the lowest to the highest tenth."""
    rise = {"influence": influence, "distance": distance, "norm": norm}
    slopes = np.array([rise.get(signal, 0.0) for signal in SIGNALS])
    curve = 0.3 + slopes[:, None] * np.linspace(0, 1, DECILES)
    shape = (STUDY.seeds, len(CLASSIFIERS), len(SIGNALS), DECILES)
    values = curve + 0.01 * np.random.default_rng(0).normal(size=shape)
    asked = ("seed", "classifier", "signal", "decile")
    data = {
        "error": (asked, values),
        "loss": (asked, values),
        "isolation": (("seed", *asked[2:]), values[:, 0]),
        "mistakes": (asked[:3], values.mean(axis=3)),
    }
    return fabricated(STUDY, STUDY.seeds, {**data, "alike": 0.5, "share": 0.5})


@pytest.mark.parametrize(
    ("rises", "harder", "more"),
    [
        ((0.3, 0.1, 0.1), "holds", "holds"),
        ((0.2, 0.4, 0.0), "holds", "fails"),
        ((-0.2, 0.0, 0.0), "fails", "fails"),
        ((0.0, 0.0, 0.0), "inconclusive", "inconclusive"),
    ],
)
def test_verdicts_follow_the_tenths(
    rises: tuple[float, float, float], harder: str, more: str
) -> None:
    verdicts = STUDY.verdicts(made_up(*rises), "quick")
    assert [verdict.claim for verdict in verdicts] == ["B11", "B11", "B11", "", "B11"]
    assert [verdict.outcome for verdict in verdicts] == [*[harder] * 3, more, harder]
    assert all(verdict.n == STUDY.seeds for verdict in verdicts)


def test_the_sets_of_the_paper_are_primary_and_the_least_isolation() -> None:
    more, less = made_up(0.3, 0.1, 0.1), made_up(0.3, 0.1, 0.1)
    less["isolation"] = less["isolation"] - 0.2 * (less["decile"] - 1) / 9
    less["error"].loc[{"classifier": CLASSIFIERS[0]}] -= 0.4 * (less["decile"] - 1) / 9
    both = xr.concat([more, less], "data").assign_coords(data=["cifar10", "mnist"])
    found = {one.claim: one for one in STUDY.verdicts(both, "paper") if one.role == "primary"}
    assert sorted(found) == ["B11.1", "B11.2", "B11.3"]
    assert found["B11.3"].setting.startswith("the set where least so (mnist): ")
    values = {claim: one.value or 0.0 for claim, one in found.items()}
    # mean of a classifier that finds them harder by 30 points and one that finds them easier by 10
    assert values == pytest.approx({"B11.1": 10, "B11.2": 30, "B11.3": 10}, abs=1)


def test_the_measured_difference_is_that_of_the_tenths_in_points() -> None:
    first = STUDY.verdicts(made_up(0.3, 0.1, 0.1), "quick")[0]
    assert first.interval is not None
    assert first.interval[0] < 30 < first.interval[1]
    assert "points of error" in first.note


def test_pictures_and_tables_have_every_signal() -> None:
    results = made_up(0.3, 0.1, 0.1)
    pictures = STUDY.picture(results)
    assert [picture.name for picture in pictures] == ["error", "isolation"]
    assert [len(picture.panels) for picture in pictures] == [2, 1]
    assert all(len(panel.curves) == len(SIGNALS) for one in pictures for panel in one.panels)
    tenths, confounders = STUDY.tables(results)
    assert len(tenths.rows) == 3 * len(SIGNALS) and len(confounders.rows) == len(COMPARED)
