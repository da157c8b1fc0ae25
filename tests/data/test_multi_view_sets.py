"""Fresh batches and stored sets of multi-view samples, and their labels."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView
from rarefy.data.multi_view_sets import Batch, FreshSamples, StoredSamples

DATA = MultiView(d=14, patches=9, plus=3, minus=3, feature_patches=2, spread=0.1)


def draws(runs: int = 3, first: int = 0) -> Draws:
    return Draws(range(first, first + runs), dtype=torch.float64)


def same(left: Batch, right: Batch, run: int) -> bool:
    """Whether a batch of one run is that run of another batch, bit for bit."""
    parts = ("subclass", "patches", "feature")
    return (
        all(torch.equal(getattr(left.views, n)[0], getattr(right.views, n)[run]) for n in parts)
        and torch.equal(left.views.noise()[0], right.views.noise()[run])
        and torch.equal(left.label[0], right.label[run])
    )


# ------------------------------------------------------------------------------------------- fresh


def test_fresh_batches_are_balanced_and_new() -> None:
    batches = FreshSamples(DATA, Labels(DATA, 3), draws(), 12)
    first, second = batches(0), batches(1)
    for batch in (first, second):
        assert batch.views.patches.shape == (3, 12, 4, 14)
        for run in range(3):
            assert torch.bincount(batch.views.subclass[run]).tolist() == [2] * 6
        assert torch.equal(batch.label, batch.views.subclass)
    assert not bool((first.views.patches == second.views.patches).any())
    again = batches(0)
    assert torch.equal(first.views.patches, again.views.patches)


def test_coarse_and_fine_networks_of_a_seed_see_the_same_samples() -> None:
    coarse, fine = (FreshSamples(DATA, Labels(DATA, each), draws(), 12)(4) for each in (1, 3))
    assert torch.equal(coarse.views.patches, fine.views.patches)
    assert torch.equal(coarse.label, fine.label // 3)


def test_a_fresh_cell_alone_is_that_of_a_batch() -> None:
    labels = Labels(DATA, 3, noise=0.3)
    together = FreshSamples(DATA, labels, draws(4), 12)(5)
    for run in (0, 3):
        alone = FreshSamples(DATA, labels, draws(1, run), 12)(5)
        assert same(alone, together, run)


# ------------------------------------------------------------------------------------------ stored


def test_a_small_set_is_the_batch() -> None:
    batches = StoredSamples(DATA, Labels(DATA, 3), draws(), each=2, size=12)
    first, second = batches(0), batches(7)
    assert first.views.patches.shape == (3, 12, 4, 14)
    assert torch.equal(first.views.patches, second.views.patches)
    assert torch.equal(first.views.noise(), second.views.noise())
    assert torch.bincount(first.views.subclass[0]).tolist() == [2] * 6


def test_batches_of_a_stored_set_are_balanced_draws_from_it() -> None:
    batches = StoredSamples(DATA, Labels(DATA, 6), draws(), each=5, size=12)
    stored, noise = batches.views, batches.views.noise()
    seen = set()
    for step in range(40):
        batch = batches(step)
        rest = batch.views.noise()
        for run in range(3):
            assert torch.bincount(batch.views.subclass[run]).tolist() == [2] * 6
            for place in range(12):
                mine = batch.views.patches[run, place]
                origin = (stored.patches[run] == mine).all(dim=2).all(dim=1).nonzero().flatten()
                assert len(origin) == 1  # patches, noise and label go together
                index = int(origin)
                assert torch.equal(rest[run, place], noise[run, index])
                assert int(batch.label[run, place]) == int(batches.label[run, index])
                seen.add((run, index))
    assert len(seen) == 3 * 30  # every sample is drawn sooner or later


def test_pieces_of_a_stored_set_have_one_label_each() -> None:
    """The finest: one label per sample."""
    batches = StoredSamples(DATA, Labels(DATA, 6), draws(), each=2, size=12)
    assert sorted(batches.label[0].tolist()) == list(range(12))


def test_wrong_labels_of_a_stored_set_stay_wrong() -> None:
    batches = StoredSamples(DATA, Labels(DATA, 3, noise=0.5), draws(), each=2, size=12)
    assert torch.equal(batches(0).label, batches(3).label)
    assert not torch.equal(batches.label, batches.views.subclass)


@pytest.mark.parametrize("each", [2, 5])
def test_a_stored_cell_alone_is_that_of_a_batch(each: int) -> None:
    labels = Labels(DATA, 3, noise=0.3)
    together = StoredSamples(DATA, labels, draws(4), each, 12)(9)
    for run in (0, 3):
        alone = StoredSamples(DATA, labels, draws(1, run), each, 12)(9)
        assert same(alone, together, run)


# ---------------------------------------------------------------------------------------- bad input


def test_what_fresh_samples_cannot_do_is_named() -> None:
    with pytest.raises(UsageError, match="per_side=6: finer than subclasses needs a stored set"):
        FreshSamples(DATA, Labels(DATA, 6), draws(), 12)
    with pytest.raises(UsageError, match="batch=8: must be a multiple of 2 k = 6"):
        FreshSamples(DATA, Labels(DATA, 3), draws(), 8)(0)


UNEVEN = MultiView(d=14, patches=9, plus=2, minus=4, feature_patches=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"each": 0}, "samples=0: every subclass needs at least 1 sample"),
        (
            {"data": UNEVEN, "labels": Labels(UNEVEN, 2)},
            r"minus=4: a stored set needs k_- = k_\+ = 2",
        ),
        ({"labels": Labels(DATA, 12), "each": 3}, "per_side=12: at most 9, one label per sample"),
        ({"each": 5, "size": 8}, "batch=8: must be a multiple of 2 k = 6"),
    ],
)
def test_what_a_stored_set_cannot_do_is_named(wrong: dict[str, Any], message: str) -> None:
    setting = {"data": DATA, "labels": Labels(DATA, 3), "draws": draws(), "each": 2, "size": 12}
    with pytest.raises(UsageError, match=message) as caught:
        StoredSamples(**{**setting, **wrong})
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------- labels


def model(plus: int = 4, minus: int = 4) -> MultiView:
    return MultiView(d=20, patches=10, plus=plus, minus=minus, feature_patches=2)


def everyone(data: MultiView, each: int, runs: int = 3) -> tuple[Tensor, Tensor]:
    """``each`` samples of every subclass, and their numbers in it."""
    subclass = torch.arange(data.subclasses).repeat_interleave(each).expand(runs, -1)
    number = torch.arange(each).repeat(data.subclasses).expand(runs, -1)
    return subclass, number


@given(st.sampled_from([1, 2, 4, 8, 12]), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_labels_nest_in_sides_and_are_nested_with_subclasses(per_side: int, each: int) -> None:
    data = model()
    labels = Labels(data, per_side)
    subclass, number = everyone(data, each)
    label = labels.of(subclass, number, draws())
    assert labels.outputs == 2 * per_side
    assert int(label.min()) >= 0 and int(label.max()) < labels.outputs
    assert torch.equal(labels.side()[label], data.superclass(subclass))
    for left in range(data.subclasses):
        own = set(label[0][subclass[0] == left].tolist())
        if per_side <= 4:  # a subclass is never cut
            assert len(own) == 1
        else:  # and never shares a piece
            others = set(label[0][subclass[0] != left].tolist())
            assert not own & others and len(own) == min(each, per_side // 4)


def test_granularities_by_name() -> None:
    data = model()
    subclass, number = everyone(data, 2, 1)
    assert Labels(data, 1).of(subclass, number, draws(1)).tolist() == [[0] * 8 + [1] * 8]
    assert torch.equal(Labels(data, 4).of(subclass, number, draws(1)), subclass)
    merged = Labels(data, 2).of(subclass, number, draws(1))[0]
    assert merged.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    one_each = Labels(data, 8).of(subclass, number, draws(1))[0]
    assert one_each.tolist() == list(range(16))


def test_sides_may_have_different_numbers_of_subclasses() -> None:
    data = model(2, 4)
    subclass, number = everyone(data, 4, 1)
    label = Labels(data, 4).of(subclass, number, draws(1))[0]
    # two pieces of each subclass of +, the subclasses of - themselves
    assert label[:8].tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
    assert label[8:].tolist() == [4] * 4 + [5] * 4 + [6] * 4 + [7] * 4


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_noise_gives_a_share_of_samples_any_label(noise: float) -> None:
    data = model()
    subclass, number = everyone(data, 500, 8)
    label = Labels(data, 4, noise=noise).of(subclass, number, draws(8))
    wrong = (label != subclass).double()
    expected = noise * 7 / 8  # one label in eight is the right one by chance
    assert abs(float(wrong.mean()) - expected) < 5 * math.sqrt(0.25 / wrong.numel())
    others = torch.bincount(label[label != subclass], minlength=8).double()
    assert float((others / others.mean() - 1).abs().max()) < 0.1


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_misaligned_subclasses_are_tossed_to_their_counterparts(share: float) -> None:
    data = model()
    subclass, number = everyone(data, 400, 4)
    label = Labels(data, 4, misaligned=share).of(subclass, number, draws(4))
    crossed = subclass % 4 < round(4 * share)
    assert torch.equal(label % 4, subclass % 4)  # never to another pair
    assert torch.equal(label[~crossed], subclass[~crossed])
    other = (label[crossed] != subclass[crossed]).double()
    assert abs(float(other.mean()) - 0.5) < 5 * math.sqrt(0.25 / len(other))


def test_a_cell_alone_has_the_labels_it_has_in_a_batch() -> None:
    data = model()
    subclass, number = everyone(data, 5, 6)
    labels = Labels(data, 4, noise=0.4, misaligned=0.5)
    together = labels.of(subclass, number, draws(6), step=2)
    for run in (0, 5):
        alone = labels.of(subclass[:1], number[:1], draws(1, first=run), step=2)
        assert torch.equal(alone[0], together[run])
    later = labels.of(subclass, number, draws(6), step=3)
    assert not torch.equal(later, together)


def test_labels_of_coarse_and_fine_runs_share_the_tosses() -> None:
    """The same seed: who is tossed does not depend on the granularity above subclasses."""
    data = model()
    subclass, number = everyone(data, 6)
    fine, finer = (
        Labels(data, per_side, misaligned=0.5).of(subclass, number, draws()) for per_side in (4, 8)
    )
    assert torch.equal(fine // 4, finer // 8)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"per_side": 0}, "per_side=0: must be at least 1"),
        ({"per_side": 3}, "per_side=3: must divide k=4 or be a multiple of it"),
        ({"per_side": 6}, "per_side=6: must divide k=4 or be a multiple of it"),
        ({"noise": 1.5}, r"noise=1.5: must be in \[0, 1\]: it is a share"),
        ({"noise": -0.5}, r"noise=-0.5: must be in \[0, 1\]: it is a share"),
        ({"misaligned": 2.0}, r"misaligned=2.0: must be in \[0, 1\]: it is a share"),
        (
            {"misaligned": 0.5, "per_side": 2},
            "misaligned=0.5: needs k_[+] = k_-, and labels as fine as subclasses",
        ),
        (
            {"misaligned": 0.5, "data": model(2, 4)},
            "misaligned=0.5: needs k_[+] = k_-, and labels as fine as subclasses",
        ),
    ],
)
def test_labels_that_make_no_sense_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Labels(**{"data": model(), "per_side": 4, **wrong})
    assert "\n" not in str(caught.value)
