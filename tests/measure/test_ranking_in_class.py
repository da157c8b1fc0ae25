"""Ranks within classes, means by tenth, and what the highest find, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rarefy.measure.ranking_in_class import (
    DECILES,
    mean_by_decile,
    ranks_within,
    recall,
    rho_within,
)


def test_ranks_are_within_classes() -> None:
    values = np.array([5.0, 1.0, 100.0, 300.0, 200.0, 1.0])
    labels = np.array([0, 0, 1, 1, 1, 0])
    assert ranks_within(values, labels).tolist() == [2 / 3, 0, 0, 2 / 3, 1 / 3, 1 / 3]


def test_tenths_are_of_equal_size_and_their_means_are_right() -> None:
    ranks = ranks_within(np.arange(40.0)[::-1], np.repeat([0, 1], 20))
    tenth = (DECILES * ranks).astype(np.int64)
    assert np.bincount(tenth).tolist() == [4] * 10
    values = np.stack([ranks, -ranks])
    found = mean_by_decile(values, tenth[None])
    assert found.shape == (2, 1, 10)
    np.testing.assert_allclose(found[0, 0], 0.1 * np.arange(10) + 0.025)
    np.testing.assert_allclose(found[1], -found[0])


def test_rho_is_taken_within_classes_and_leaves_out_what_does_not_vary() -> None:
    labels = np.repeat([0, 1, 2], 10)
    one = np.tile(np.arange(10.0), 3) - 100 * labels
    assert rho_within(one, np.tile(np.arange(10.0), 3) + 50 * labels, labels) == pytest.approx(1)
    assert rho_within(one, np.where(labels == 0, 1.0, -one), labels) == pytest.approx(-1)
    assert np.isnan(rho_within(one, np.ones(30), labels))


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
