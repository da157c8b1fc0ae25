"""B11: sorting within classes, classifiers that have not seen what they are asked, verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.studies.influence.gallery.claims import RIVALS
from rarefy.studies.influence.gallery.experiment import (
    COMPARED,
    DECILES,
    SIGNALS,
    by_tenth,
    ranks_within,
    rho_within,
)
from rarefy.studies.influence.gallery.study import InfluenceGallery
from rarefy.studies.influence.out_of_fold import (
    CLASSIFIERS,
    LOGISTIC,
    NEIGHBOURS,
    folds_of,
    isolation,
    out_of_fold,
)
from rarefy.tools.samples.arrays import from_arrays

STUDY: Any = InfluenceGallery.at("quick")


def test_folds_hold_a_part_of_every_class() -> None:
    labels = np.repeat(np.arange(3), [10, 25, 50])
    fold = folds_of(Draws([1]), labels, 5)
    for label, count in enumerate((2, 5, 10)):
        assert np.bincount(fold[labels == label]).tolist() == [count] * 5


def test_a_sample_that_is_asked_was_not_learnt_from() -> None:
    """Labels at random: whoever had seen the asked sample among its ten neighbours, or had 40
    features for 60 samples to fit, would be right more often than chance."""
    generator = np.random.default_rng(0)
    samples = from_arrays(generator.normal(size=(600, 40)), generator.integers(0, 2, 600))
    hard = out_of_fold(samples, folds_of(Draws([1]), samples.labels, 10), 40)
    for name in CLASSIFIERS:
        assert hard[name].wrong.mean() == pytest.approx(0.5, abs=0.1)


def test_classifiers_find_what_is_easy_and_mark_a_wrong_label() -> None:
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    features = generator.normal(size=(120, 5)) + 10 * labels[:, None]
    labels[7] = 2
    hard = out_of_fold(from_arrays(features, labels), folds_of(Draws([1]), labels, 4), 5)
    for name in CLASSIFIERS:
        assert np.flatnonzero(hard[name].wrong).tolist() == [7]
        assert hard[name].loss.argmax() == 7
    assert hard[NEIGHBOURS].loss[7] == 1.0
    assert hard[LOGISTIC].loss[7] > 1.0


def test_isolation_is_the_mean_distance_to_the_nearest_of_the_class() -> None:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(50, 3))
    labels = np.repeat([0, 1], 25)
    found = isolation(from_arrays(features, labels), torch.device("cpu"))
    for label in (0, 1):
        own = features[labels == label]
        apart = np.sort(np.linalg.norm(own[:, None] - own[None], axis=2), axis=1)
        expected = apart[:, 1:11].mean(axis=1)
        np.testing.assert_allclose(found[labels == label], expected / expected.mean(), rtol=1e-5)


def test_ranks_are_within_classes() -> None:
    values = np.array([5.0, 1.0, 100.0, 300.0, 200.0, 1.0])
    labels = np.array([0, 0, 1, 1, 1, 0])
    assert ranks_within(values, labels).tolist() == [2 / 3, 0, 0, 2 / 3, 1 / 3, 1 / 3]


def test_tenths_are_of_equal_size_and_their_means_are_right() -> None:
    ranks = ranks_within(np.arange(40.0)[::-1], np.repeat([0, 1], 20))
    tenth = (DECILES * ranks).astype(np.int64)
    assert np.bincount(tenth).tolist() == [4] * 10
    values = np.stack([ranks, -ranks])
    found = by_tenth(values, tenth[None])
    assert found.shape == (2, 1, 10)
    np.testing.assert_allclose(found[0, 0], 0.1 * np.arange(10) + 0.025)
    np.testing.assert_allclose(found[1], -found[0])


def test_rho_is_taken_within_classes_and_leaves_out_what_does_not_vary() -> None:
    labels = np.repeat([0, 1, 2], 10)
    one = np.tile(np.arange(10.0), 3) - 100 * labels
    assert rho_within(one, np.tile(np.arange(10.0), 3) + 50 * labels, labels) == pytest.approx(1)
    assert rho_within(one, np.where(labels == 0, 1.0, -one), labels) == pytest.approx(-1)
    assert np.isnan(rho_within(one, np.ones(30), labels))


# ----------------------------------------------------------------------------------------- verdicts


def made_up(influence: float, distance: float, norm: float) -> xr.Dataset:
    """Errors and isolation that rise by so much from the lowest to the highest tenth."""
    generator = np.random.default_rng(0)
    rise = {"influence": influence, "distance": distance, "norm": norm}
    slopes = np.array([rise.get(signal, 0.0) for signal in SIGNALS])
    curve = 0.3 + slopes[:, None] * np.linspace(0, 1, DECILES)
    seeds = STUDY.seeds
    shape = (1, seeds, len(CLASSIFIERS), len(SIGNALS), DECILES)
    values = curve + 0.01 * generator.normal(size=shape)
    asked = ("data", "seed", "classifier", "signal", "decile")
    data = {
        "error": (asked, values),
        "loss": (asked, values),
        "isolation": (("data", "seed", *asked[3:]), values[:, :, 0]),
        "mistakes": (asked[:4], values.mean(axis=4)),
        "alike": (("data", "seed", "compared"), np.full((1, seeds, len(COMPARED)), 0.5)),
        "share": (("data", "seed"), np.full((1, seeds), 0.5)),
    }
    return xr.Dataset(data, {"data": ["digits"], "seed": np.arange(seeds), **STUDY.coordinates()})


@pytest.mark.parametrize(
    ("rises", "expected"),
    [
        ((0.3, 0.1, 0.1), ["holds", "holds", "holds"]),
        ((0.2, 0.4, 0.0), ["holds", "fails", "holds"]),
        ((-0.2, 0.0, 0.0), ["fails", "fails", "fails"]),
        ((0.0, 0.0, 0.0), ["inconclusive", "inconclusive", "inconclusive"]),
    ],
)
def test_verdicts_follow_the_tenths(rises: tuple[float, float, float], expected: list[str]) -> None:
    verdicts = STUDY.verdicts(made_up(*rises), "quick")
    assert len(verdicts) == (len(CLASSIFIERS) + 1) * (1 + len(RIVALS))
    assert [verdict.outcome for verdict in verdicts] == expected * (len(CLASSIFIERS) + 1)
    assert all(verdict.n == STUDY.seeds for verdict in verdicts)


def test_the_measured_difference_is_that_of_the_tenths_in_points() -> None:
    first = STUDY.verdicts(made_up(0.3, 0.1, 0.1), "quick")[0]
    assert first.interval is not None
    assert first.interval[0] < 30 < first.interval[1]
    assert "points of error" in first.note


def test_pictures_and_tables_have_every_signal() -> None:
    results = made_up(0.3, 0.1, 0.1)
    pictures = STUDY.picture(results)
    assert [picture.name for picture in pictures] == ["error", "loss", "isolation"]
    assert [len(picture.panels) for picture in pictures] == [2, 2, 1]
    assert all(len(panel.curves) == len(SIGNALS) for one in pictures for panel in one.panels)
    tenths, confounders = STUDY.tables(results)
    assert len(tenths.rows) == 3 * len(SIGNALS) and len(confounders.rows) == len(COMPARED)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"data": ("digit",)}, "unknown data set 'digit'.*digits"),
        ({"samples": 100}, "samples=100: must be at least 200"),
        ({"components": 0}, "components=0: must be at least 1"),
        ({"folds": 1}, r"folds=1: must be in 2\.\.20"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        InfluenceGallery.at("tiny", **wrong)
