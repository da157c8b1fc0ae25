"""Influence and label check as scikit-learn's estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from planted import wine_with_five
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import rarefy

ESTIMATORS = [rarefy.InfluenceScorer(), rarefy.LabelCheck()]
OFTEN_FITTED = {
    *("estimators_dtypes", "fit_score_takes_y", "fit_idempotent", "fit2d_1feature"),
    *("positive_only_tag_during_fit", "estimators_nan_inf", "pipeline_consistency"),
    *("dont_overwrite_parameters", "n_features_in_after_fitting"),
}
"""Slow with trees; what our two estimators share is asked of the quicker one."""


def checks() -> Iterator[Any]:
    for estimator in ESTIMATORS:
        for _, check in estimator_checks_generator(estimator):
            name, asked = type(estimator).__name__, check.func.__name__
            slow = name == "LabelCheck" and asked.removeprefix("check_") in OFTEN_FITTED
            marks = [pytest.mark.slow] if slow else []
            yield pytest.param(name, check, id=f"{name}-{asked}", marks=marks)


@pytest.mark.parametrize(("name", "check"), [*checks()])
@pytest.mark.usefixtures("quick")
def test_the_contract_of_scikit_learn(name: str, check: object) -> None:
    check(getattr(rarefy, name)())  # type: ignore[operator]


@pytest.mark.slow
def test_wrong_labels_are_found() -> None:
    X, labels, true, wrong = wine_with_five()
    names = np.array(["red", "white", "rose"])
    check = rarefy.LabelCheck().fit(X, names[labels])
    assert check.label_issues_[wrong].all() and check.label_issues_.sum() <= 7
    assert (check.suggested_labels_[wrong] == names[true[wrong]]).all()
    assert (check.given_probability_[wrong] < 0.2).all() and check.notes_ == []
    assert (check.suggested_probability_ >= check.given_probability_).all()
    first = np.argsort(check.given_probability_)[:5]
    assert set(first) == set(wrong)


def test_minus_one_is_what_to_look_at() -> None:
    X, labels, _, wrong = wine_with_five()
    assert (rarefy.LabelCheck().fit_predict(X, labels)[wrong] == -1).all()
    scorer = rarefy.InfluenceScorer(contamination=0.1)
    atypical = scorer.fit_predict(X, labels) == -1
    for label in range(3):
        own = labels == label
        assert atypical[own].sum() == pytest.approx(0.1 * own.sum(), abs=1)
        highest = scorer.influence_[own & ~atypical].max()
        assert scorer.influence_[own & atypical].min() > highest


def test_the_numbers_are_those_of_the_table() -> None:
    X, labels, _, _ = wine_with_five()
    for standardize in (True, False):
        table = rarefy.influence(X, labels, standardize=standardize, check_labels=False)
        scorer = rarefy.InfluenceScorer(standardize=standardize).fit(X, labels)
        np.testing.assert_allclose(scorer.influence_, table["influence"])
        np.testing.assert_allclose(scorer.percentile_, table["percentile"])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (rarefy.LabelCheck(folds=1), "folds=1: must be a whole number, at least 2"),
        (rarefy.InfluenceScorer(contamination=0.7), "contamination=0.7: must be above 0, at most"),
        (rarefy.InfluenceScorer(ddof=2), "ddof=2: must be 0 or 1"),
    ],
)
def test_wrong_parameters(estimator: rarefy.LabelCheck, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_wrong_data(estimator: rarefy.LabelCheck) -> None:
    X = np.arange(8.0).reshape(4, 2)
    for labels, message in (
        ([1, 1, 1, 1], "all 4 samples have the label '1': at least 2 classes"),
        ([0, 1, 1], "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
        ([0.5, 0.1, 0.2, 0.7], "Unknown label type"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(X, labels)
    with pytest.raises(ValueError, match="contains NaN"):
        clone(estimator).fit(X * np.nan, [0, 1, 1, 0])
    with pytest.raises(ValueError, match="no class has two samples"):
        rarefy.LabelCheck().fit(X, [0, 1, 2, 3])
