"""What is put into a set is what is said of it, and nothing else is changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.tools.influence.injections import KINDS, NOISE, InjectedSamples, Injection


def some(classes: int = 6, each: int = 40, width: int = 9) -> tuple[np.ndarray, np.ndarray, int]:
    generator = np.random.default_rng(3)
    labels = generator.permutation(np.repeat(np.arange(classes), each))
    features = generator.integers(0, 256, (len(labels), width), dtype=np.uint8)
    return features, labels, classes


def put(text: str, key: int = 1, **shape: int) -> InjectedSamples:
    return Injection.parse(text).into(*some(**shape), Draws([key]))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_given_is_changed_and_the_same_draws_give_the_same(kind: str) -> None:
    features, labels, classes = some()
    before = features.copy(), labels.copy()
    found = [
        Injection(kind, 0.1).into(features, labels, classes, Draws([key])) for key in (5, 5, 6)
    ]
    assert (features == before[0]).all() and (labels == before[1]).all()
    assert (found[0].positive == found[1].positive).all()
    assert (found[0].labels == found[1].labels).all()
    assert (found[0].features == found[1].features).all()
    differs = [
        getattr(found[0], name).shape != getattr(found[2], name).shape
        or bool((getattr(found[0], name) != getattr(found[2], name)).any())
        for name in ("labels", "features", "rows")
    ]
    assert any(differs)


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 10_000), st.floats(0.01, 0.5), st.integers(4, 9), st.integers(5, 30))
@settings(max_examples=15, deadline=None)
def test_all_that_is_not_put_in_is_as_it_was(
    kind: str, key: int, share: float, classes: int, each: int
) -> None:
    features, labels, _ = some(classes, each)
    found = Injection(kind, share).into(features, labels, classes, Draws([key]))
    assert len(found.features) == len(found.labels) == len(found.positive) == len(found.rows)
    assert len(found.asked) == len(found.labels) and found.asked[found.positive].all()
    assert found.labels.min() >= 0 and found.labels.max() < found.classes
    assert 0 < found.positive.sum() < len(labels)
    rest = ~found.positive
    assert (found.features[rest] == features[found.rows[rest]]).all()
    if kind == "rare-modes":
        return
    assert (found.labels[rest] == labels[found.rows[rest]]).all()
    assert (found.labels[found.positive] != labels[found.rows[found.positive]]).all()


def test_flips_are_as_many_as_asked_for_and_go_everywhere() -> None:
    features, labels, classes = some(classes=5, each=400)
    found = Injection("flips", 0.3).into(features, labels, classes, Draws([2]))
    assert found.positive.sum() == 600
    steps = (found.labels - labels)[found.positive] % classes
    counts = np.bincount(steps, minlength=classes)
    assert counts[0] == 0
    # each other class 150 times, std about 10.6
    assert (np.abs(counts[1:] - 150) < 5 * 10.6).all()
    assert found.features is features


def test_paired_flips_go_one_way_between_two_classes() -> None:
    _, labels, classes = some(classes=7, each=50)
    found = put("paired-flips-0.1", classes=7, each=50)
    moved = {
        (int(before), int(after))
        for before, after in zip(labels[found.positive], found.labels[found.positive], strict=True)
    }
    assert len(moved) == 3  # pairs of seven classes, one left over
    names = [name for pair in moved for name in pair]
    assert len(set(names)) == 6
    for before, _ in moved:
        assert (found.positive & (labels == before)).sum() == 10  # twice the share of 50


def test_rare_modes_are_few_samples_of_a_second_class_under_one_label() -> None:
    _, labels, _ = some(classes=7, each=90)
    found = put("rare-modes-0.1", classes=7, each=90)
    assert found.classes == 3
    for label in range(3):
        mine = found.labels == label
        common, rare = (
            np.unique(labels[found.rows[mine & which]])
            for which in (~found.positive, found.positive)
        )
        assert len(common) == len(rare) == 1 and common != rare
        assert (mine & ~found.positive).sum() == 90 and (mine & found.positive).sum() == 10
    assert (np.diff(found.rows) > 0).all()  # in the order of the data, which tells nothing


@pytest.mark.parametrize("kind", ["copies", "near-copies"])
def test_copies_come_last_and_their_originals_are_not_asked(kind: str) -> None:
    features, labels, classes = some(width=200)
    found = Injection(kind, 0.1).into(features, labels, classes, Draws([1]))
    assert found.positive.sum() == 24 and found.positive[-24:].all()
    originals = found.rows[found.positive]
    assert not found.asked[originals].any() and (~found.asked).sum() == 24
    apart = found.features[-24:].astype(float) - features[originals]
    if kind == "copies":
        assert (apart == 0).all()
    else:
        # less what clipping at both ends of the range takes away
        std = NOISE * features.std()
        assert 0.8 * std < apart.std() < std
        assert found.features.dtype == np.uint8


def test_noise_of_real_numbers_is_neither_rounded_nor_clipped() -> None:
    features, labels, classes = some(width=300)
    real = features.astype(np.float32) / 255
    found = Injection("near-copies", 0.5).into(real, labels, classes, Draws([1]))
    apart = found.features[len(real) :] - real[found.rows[len(real) :]]
    assert found.features.dtype == np.float32
    assert apart.std() == pytest.approx(NOISE * real.std(), rel=0.02)
    assert found.features.min() < 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("flops-0.1", "unknown kind of injection 'flops'.*flips"),
        ("flips-much", "injection='flips-much': must be a kind and a share, as flips-0.1"),
        ("flips", "injection='flips': must be a kind and a share"),
        ("flips-0", "share=0.0: must be above 0 and at most 0.5"),
        ("flips-0.6", "share=0.6: must be above 0 and at most 0.5"),
        ("flips-nan", "share=nan: must be above 0"),
    ],
)
def test_what_cannot_be_put_in_is_named(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        Injection.parse(text)
    assert "\n" not in str(caught.value)


def test_samples_that_do_not_fit_are_named() -> None:
    features, labels, classes = some()
    injection = Injection("rare-modes", 0.1)
    with pytest.raises(UsageError, match="labels=.*must be one for each of 240 rows"):
        injection.into(features, labels[:-1], classes, Draws([1]))
    with pytest.raises(UsageError, match="classes=1: must be at least 2"):
        injection.into(features, labels * 0, 1, Draws([1]))
    with pytest.raises(UsageError, match="classes=3: must be at least 4 for rare modes"):
        injection.into(features, labels % 3, 3, Draws([1]))
    with pytest.raises(UsageError, match="draws=2: must be those of one run"):
        injection.into(features, labels, classes, Draws([1, 2]))
