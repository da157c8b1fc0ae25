"""Fresh batches and stored sets of multi-view samples."""

from __future__ import annotations

from typing import Any

import pytest
import torch

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
