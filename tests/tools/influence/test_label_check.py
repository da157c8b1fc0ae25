"""Wrong labels are found, also in rare classes, and what cannot be checked is told."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from planted import cancer_with_four, shapes_with_five, wine_with_five

import rarefy
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.tools.influence import class_probabilities, label_check
from rarefy.tools.influence.class_probabilities import mixture, numbers_of
from rarefy.tools.influence.edges import edge_histograms, edges_of
from rarefy.tools.influence.label_check import check_labels, judged
from rarefy.tools.samples.opening import as_samples

CPU = torch.device("cpu")


def clouds(sizes: tuple[int, ...], apart: float = 6.0, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Normal clouds of these sizes around corners of a simplex."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centres = apart * np.eye(len(sizes), 4)
    return np.random.default_rng(seed).normal(centres[labels], 1), labels


# ------------------------------------------------------------------------- the cases of the review


def test_wine_with_five_wrong_labels() -> None:
    X, given_, true, wrong = wine_with_five()
    table = rarefy.influence(X, given_)
    assert table["label_issue"][wrong].all() and table["label_issue"].sum() <= 7
    assert (table["suggested_label"][wrong] == true[wrong].astype(str)).all()
    assert (table["triage"][wrong] == "maybe mislabelled").all()
    assert table["rule"][wrong].str.startswith("label check: ").all()
    unchecked = rarefy.influence(X, given_, check_labels=False)
    for scored in (table, unchecked):  # one number: in doubt, its word, a suggestion
        doubted = scored["label_issue"]
        assert doubted.any() and doubted.equals(scored["triage"] == "maybe mislabelled")
        assert doubted.equals(scored["suggested_label"] != scored["label"])


@pytest.mark.slow
def test_five_circles_among_squares_in_an_imbalanced_set() -> None:
    images, kinds, wrong = shapes_with_five()
    assert [kinds.count(kind) for kind in ("square", "circle", "triangle", "cross")] == [
        *(200, 60, 20, 8)
    ]
    table = rarefy.influence(images, kinds)
    assert (table["triage"][wrong] == "maybe mislabelled").all()
    assert (table["suggested_label"][wrong] == "circle").all()
    assert table["label_issue"].sum() <= 10


@pytest.mark.slow
def test_imbalanced_breast_cancer_with_four_wrong_labels() -> None:
    X, given_, wrong = cancer_with_four()
    found = check_labels(as_samples(X, given_), CPU)
    assert found.issue[wrong].sum() >= 3 and found.issue.sum() <= 8


# ----------------------------------------------------------------------------------- small classes


@pytest.mark.slow
def test_wrong_labels_in_a_class_of_three() -> None:
    X, labels = clouds((60, 40, 3))
    labels[[0, 70]] = 2
    found = check_labels(as_samples(X, labels), CPU)
    assert np.flatnonzero(found.issue).tolist() == [0, 70]
    assert found.suggested[[0, 70]].tolist() == [0, 1] and found.notes == ()
    assert (found.suggested_probability[[0, 70]] > found.given_probability[[0, 70]]).all()


@pytest.mark.usefixtures("quick")
def test_a_class_of_one_sample_is_left_out_and_told() -> None:
    X, labels = clouds((30, 30, 1, 1))
    found = check_labels(as_samples(X, labels), CPU)
    np.testing.assert_array_equal(np.isnan(found.given_probability), labels >= 2)
    assert not found.issue.any() and (found.suggested == labels).all()
    (note,) = found.notes
    assert note.startswith("label check is off for 2 classes: 2; 3 (one sample")
    table = rarefy.influence(X, labels)
    assert note in table.attrs["notes"]
    assert any("neighbour rule is off" in told for told in table.attrs["notes"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rows", "labels", "off"),
    [
        (np.eye(3)[np.arange(60) % 3], np.arange(60) % 3, [0, 1, 2]),  # leaked
        (np.ones((60, 2)), np.arange(60) % 3, [0, 1, 2]),
        (np.r_[np.zeros((59, 2)), [[1, 1]]], np.arange(60) % 3, [0, 1, 2]),
        (np.r_[clouds((30, 30))[0], np.ones((9, 4))], np.repeat([0, 1, 2], [30, 30, 9]), [2]),
        (clouds((30, 30))[0], np.arange(60) // 2, []),  # of two samples each
    ],
)
def test_copies_of_one_sample_say_no_more_than_one(
    rows: np.ndarray, labels: np.ndarray, off: list[int]
) -> None:
    """Classifiers that have not seen it have not seen its class."""
    found = check_labels(as_samples(rows, labels), CPU)
    unknown = np.isin(labels, off)
    np.testing.assert_array_equal(np.isnan(found.given_probability), unknown)
    assert not found.issue[unknown].any()
    names = "; ".join(map(str, off))
    assert (f" {names} (one sample or copies" in " ".join(found.notes)) == bool(off)


@pytest.mark.usefixtures("quick")
def test_a_class_that_cannot_be_told_from_another_is_named() -> None:
    X, labels = clouds((80, 6), apart=0.0)
    found = check_labels(as_samples(X, labels), CPU)
    assert found.issue[labels == 1].mean() > 0.5 and not found.issue[labels == 0].any()
    assert found.notes[0].startswith("label check says little about class 1 (most labels in doubt")


def test_one_sample_per_class_cannot_be_checked() -> None:
    X = np.eye(3)
    with pytest.raises(UsageError, match="labels are not checked: no class has two samples"):
        check_labels(as_samples(X, list("abc")), CPU)
    table = rarefy.influence(X, list("abc"))
    assert "labels are not checked: no class has two" in " ".join(table.attrs["notes"])
    assert table["given_probability"].isna().all() and not table["label_issue"].any()


def test_too_many_samples_and_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels = clouds((40, 30))
    for limit, least in (("MOST", 100), ("MOST_CLASSES", 1)):
        with monkeypatch.context() as patched:
            patched.setattr(label_check, limit, least)
            with pytest.raises(UsageError, match="70 samples of 2 classes are too many"):
                check_labels(as_samples(X, labels), CPU)


# --------------------------------------------------------------------------------------- the pieces


@pytest.mark.usefixtures("quick")
def test_classifiers_are_fitted_to_part_of_large_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_probabilities, "TRAINED", 60)
    X, labels = clouds((300, 200, 5))
    labels[0] = 1
    found = check_labels(as_samples(X, labels), CPU)
    assert found.issue[0] and found.issue.sum() == 1


@pytest.mark.usefixtures("quick")
def test_the_order_of_samples_does_not_matter() -> None:
    X, labels = clouds((30, 20, 4), apart=2.0)
    order = np.random.default_rng(1).permutation(len(X))
    here, there = (check_labels(as_samples(X[rows], labels[rows]), CPU) for rows in (..., order))
    np.testing.assert_allclose(here.given_probability[order], there.given_probability, atol=1e-6)
    np.testing.assert_array_equal(here.issue[order], there.issue)


@pytest.mark.usefixtures("quick")
def test_units_do_not_matter() -> None:
    X, labels = clouds((30, 20), apart=2.0)
    plain = check_labels(as_samples(X, labels), CPU)
    scaled = check_labels(as_samples(X * [1, 1e4, 1e-3, 7], labels), CPU)
    # (other content, other folds)
    assert np.corrcoef(plain.given_probability, scaled.given_probability)[0, 1] > 0.95


@pytest.mark.usefixtures("quick")
def test_time_is_told_and_kept() -> None:
    X, labels = clouds((30, 20))
    told: list[float] = []
    check_labels(as_samples(X, labels), CPU, progress=told.append)
    assert sum(told) == pytest.approx(1)
    with pytest.raises(OutOfTime, match="stopped while checking labels"):
        check_labels(as_samples(X, labels), CPU, deadline=lambda: time.monotonic() > 0)


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_what_is_judged(classes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, 20)])
    chances = random.dirichlet(np.full(classes, 0.3), len(labels))
    alone = np.bincount(labels) < 2
    suggested, issue, _ = judged(chances, labels, [str(place) for place in range(classes)], alone)
    rows = np.arange(len(labels))
    np.testing.assert_array_equal(issue, suggested != labels)
    assert (suggested[issue] == chances[issue].argmax(axis=1)).all()
    assert (chances[rows, suggested] >= chances[rows, labels])[issue].all()
    # certain of the given label, and nothing is in doubt
    assert not judged(np.eye(classes)[labels], labels, [""] * classes, alone)[1].any()


@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_mixture_is_no_less_likely_than_even_weights(count: int, seed: int) -> None:
    own = np.random.default_rng(seed).random((count, 30))
    weights = mixture(own, even=0.0)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert np.log(weights @ own).sum() >= np.log(own.mean(axis=0)).sum() - 1e-9
    np.testing.assert_allclose(mixture(own, even=1e12), 1 / count, atol=1e-6)


def test_edges_know_directions_and_no_brightness() -> None:
    ramp = torch.arange(16.0).expand(1, 1, 16, 16)
    cells = edge_histograms(ramp).view(8, 4, 4)
    assert (cells[0] > 0).all() and cells[1:].abs().max() < 1e-6
    turned = edge_histograms(ramp.transpose(2, 3)).view(8, 4, 4)
    torch.testing.assert_close(turned[2], cells[0])
    torch.testing.assert_close(edge_histograms(3 * ramp + 5), edge_histograms(ramp))
    assert edge_histograms(torch.ones(2, 3, 1, 5)).abs().max() == 0
    images = np.random.default_rng(0).random((3, 2, 6, 7), dtype=np.float32)
    first = edges_of(images.reshape(3, -1), (2, 6, 7), False)
    last = edges_of(images.transpose(0, 2, 3, 1).reshape(3, -1), (2, 6, 7), True)
    np.testing.assert_allclose(first, last, atol=1e-6)


def test_many_features_are_seen_by_their_principal_components() -> None:
    X = np.random.default_rng(0).normal(size=(20, 300)).astype(np.float32)
    labels = np.arange(20) % 2
    assert numbers_of(as_samples(X, labels), CPU).shape == (20, 20)  # of 20 samples
    pixels = np.random.default_rng(0).integers(0, 255, (200, 20, 20)).astype(np.uint8)
    assert numbers_of(as_samples(pixels, np.arange(200) % 2), CPU).shape == (200, 128 + 128)


def test_copies_of_a_sample_are_not_what_it_is_judged_by() -> None:
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 60)
    features = draws.normal(size=(180, 6)) + 3 * np.eye(6)[labels]
    wrong = [0, 70, 130]
    given = labels.copy()
    given[wrong] = (given[wrong] + 1) % 3
    copied = np.concatenate([np.arange(180), *[wrong] * 4])
    table = rarefy.influence(features[copied], given[copied])
    assert table["label_issue"].to_numpy()[wrong].all()
