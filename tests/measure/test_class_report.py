"""The judging table: against scikit-learn, against what is planted, and its warnings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from rarefy.core.errors import UsageError
from rarefy.measure.class_report import (
    COLUMNS,
    ENOUGH,
    balanced_accuracy,
    balanced_interval,
    class_report,
    confusion_of,
    wilson,
)

NAMES = ["a", "b", "c"]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=6, max_size=60))
def test_as_scikit_learn_has_it(pairs: list[tuple[int, int]]) -> None:
    pairs = [*pairs, (0, 0), (1, 1), (2, 2)]  # every class is asked for
    y, answers = map(list, zip(*pairs, strict=True))
    found = class_report(confusion_of(y, answers, 3), [30, 20, 10], NAMES)
    told = found.summary
    assert told.accuracy == pytest.approx(100 * metrics.accuracy_score(y, answers))
    assert told.balanced_accuracy == pytest.approx(
        100 * metrics.balanced_accuracy_score(y, answers)
    )
    assert told.macro_f1 == pytest.approx(100 * metrics.f1_score(y, answers, average="macro"))
    recall = metrics.recall_score(y, answers, average=None)
    np.testing.assert_allclose(found.table["recall"], 100 * recall)
    assert list(found.table.columns) == list(COLUMNS)


def test_seeds_are_averaged_and_share_their_images() -> None:
    good, bad = np.diag([40, 10, 10]), np.array([[40, 0, 0], [10, 0, 0], [10, 0, 0]])
    both = class_report(np.stack([good, bad]), [400, 100, 100], NAMES)
    assert both.table["n"].tolist() == [40, 10, 10]
    assert both.table["recall"].tolist() == [100, 50, 50]
    np.testing.assert_allclose(balanced_accuracy(np.stack([good, bad])), [100, 100 / 3])
    low, high = wilson(0.5, 10)
    assert both.table["recall_low"].iloc[1] == pytest.approx(100 * low) and 0.2 < low < high < 0.8
    # a seed that failed is left out
    lost = np.stack([good.astype(float), np.full((3, 3), np.nan)])
    assert class_report(lost, [400, 100, 100], NAMES).summary.balanced_accuracy == 100


def test_rare_classes_are_the_tail() -> None:
    found = class_report(np.diag([40, 30, 30]), [10, 300, 60], NAMES)
    assert found.table["class"].tolist() == ["b", "c", "a"]
    assert found.table["group"].tolist() == ["head", "middle", "tail"]
    alike = class_report(np.diag([40, 30, 30]), [50, 50, 50], NAMES)
    assert set(alike.table["group"]) == {""} and alike.summary.tail is None


def test_a_network_that_answers_the_largest_class_is_told() -> None:
    always = np.array([[40, 0, 0], [12, 0, 0], [6, 0, 0]])
    found = class_report(always, [200, 60, 20], NAMES)
    assert found.summary.accuracy == found.summary.majority_accuracy
    first, second, third = found.warnings
    assert first.startswith("no better than always answering 'a', which is right on 69.0 %")
    assert second == "never answered: 'c', 'b'"  # the rarest first
    assert "'c', 'b': test images are few (from 6 on)" in third and f"{ENOUGH} per class" in third
    assert not class_report(np.diag([40, 30, 30]), [200, 60, 20], NAMES).warnings


def test_who_finds_rare_classes_is_not_called_no_better() -> None:
    # right less often than the largest class is there, and far better than guessing
    found = class_report(np.array([[60, 30], [0, 10]]), [900, 100], NAMES[:2])
    assert found.summary.accuracy < found.summary.majority_accuracy
    assert not any("no better" in words for words in found.warnings)


def test_a_class_without_test_images() -> None:
    found = class_report(np.diag([40, 30, 0]), [200, 60, 20], NAMES)
    assert "without test images: 'c'; nothing is known of them" in found.warnings
    assert found.summary.balanced_accuracy == 100 and found.summary.worst_class != "c"
    assert found.summary.described()["tail"] is None


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="train_counts=2: must be one for each of 3 classes"):
        class_report(np.diag([1, 1, 1]), [1, 1], NAMES)
    with pytest.raises(UsageError, match="confusion=.*must have the shape"):
        class_report(np.ones((2, 3)), [1, 1], NAMES)


def test_balanced_accuracy_is_known_as_well_as_its_smallest_class() -> None:
    few, many = (balanced_interval(np.diag([400, 40, count])) for count in (2, 200))
    assert few[0] == many[0] == 100 and few[2] == many[2] == 100
    assert few[1] < many[1] < 100  # right every time, of two images
    mean, low, high = balanced_interval([[50, 50, 0], [50, 50, 0], [0, 0, 0]])
    assert mean == 50  # a class without test images does not count
    ends = wilson(0.5, 100)  # of both classes, so that the sum's is wider by a root of two
    assert (high - low) == pytest.approx(100 * (ends[1] - ends[0]) / np.sqrt(2))


@pytest.mark.parametrize("count", [1, 2, 5, 20, 60])
def test_the_interval_of_balanced_accuracy_holds_what_it_says(count: int) -> None:
    """At least nine in ten of two hundred repeats: it is for 95 %."""
    random = np.random.default_rng(count)
    recall = random.uniform(0.2, 0.95, 3)
    n = np.array([count, count + 5, 200])
    held = 0
    for right in random.binomial(n, recall, (200, 3)):
        confusion = np.diag(right) + np.roll(np.diag(n - right), 1, axis=1)
        _, low, high = balanced_interval(confusion)
        held += low <= 100 * recall.mean() <= high
    assert held >= 180
