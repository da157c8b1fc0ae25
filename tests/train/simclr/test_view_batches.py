"""Pairs of views: the same whenever they are asked for, whoever asks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pretrainings import BATCH, IMAGES, SIZE, STEPS, batches, images
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.train.image_batches import Scaling
from rarefy.train.simclr import view_batches
from rarefy.train.simclr.data_parallel import World
from rarefy.train.simclr.view_batches import ViewBatches
from rarefy.train.views.views import Views

PLAIN = Views(
    SIZE,
    scale=(1.0, 1.0),
    ratio=(1.0, 1.0),
    flip=0.0,
    jitter=(0.0, 0.0, 0.0, 0.0),
    jitter_share=0.0,
    grey=0.0,
)
"""Views that are the image itself."""


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return len(first) == len(second) and all(map(torch.equal, first, second))


@pytest.fixture
def two_batches_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts: an epoch has two, as one of a large set has."""
    monkeypatch.setattr(view_batches, "PART_BYTES", 2 * (2 * BATCH * SIZE**2 * 4))


def test_shapes_and_what_is_left_out() -> None:
    shown = batches()
    assert shown.steps == STEPS == 4
    found = list(shown.epoch(0))
    assert [one.shape for one in found] == [(2, BATCH, 1, SIZE, SIZE)] * STEPS
    assert all(one.dtype == torch.float32 for one in found)
    assert all(not torch.equal(one[0], one[1]) for one in found)


def test_every_image_is_shown_at_most_once_an_epoch() -> None:
    pixels = images()
    shown = ViewBatches(pixels, PLAIN, Scaling((0.0,), (1.0,)), BATCH, 17)
    left_out = []
    for epoch in range(2):
        found = torch.cat(list(shown.epoch(epoch)), dim=1)
        assert torch.equal(found[0], found[1])
        there = (found[0] * 255).round().to(torch.uint8)[:, None] == pixels[None]
        which = there.flatten(2).all(dim=2).nonzero()[:, 1]
        assert len(which) == STEPS * BATCH == len(which.unique())
        left_out.append(sorted(set(range(IMAGES)) - set(which.tolist())))
    assert left_out[0] != left_out[1]


@pytest.mark.usefixtures("two_batches_a_part")
def test_the_same_draws_whenever_asked() -> None:
    shown = batches()
    assert shown._part == 2
    later = list(shown.epoch(5))
    first = list(shown.epoch(0))
    torch.manual_seed(99)  # nothing is drawn from the global generator
    assert same(list(shown.epoch(0)), first) and same(list(shown.epoch(5)), later)
    assert same(list(batches().epoch(0)), first)
    assert not same(first, later)
    assert not same(list(batches(run_key=18).epoch(0)), first)
    assert not torch.equal(first[0], first[2])  # the two parts have draws of their own


@pytest.mark.usefixtures("two_batches_a_part")
@pytest.mark.parametrize("begin", range(STEPS + 1))
def test_from_the_middle_of_an_epoch_the_views_are_those_of_the_whole(begin: int) -> None:
    whole = list(batches().epoch(3))
    assert same(list(batches().epoch(3, begin)), whole[begin:])


@settings(deadline=None, max_examples=15)
@given(size=st.sampled_from([1, 2, 3, 4]), mine=st.integers(1, 3), epoch=st.integers(0, 5))
def test_shares_of_several_processes_joined_are_the_whole_batch(
    size: int, mine: int, epoch: int
) -> None:
    batch = max(2, size * mine)
    shares = [
        list(batches(batch=batch, world=World(rank, size)).epoch(epoch)) for rank in range(size)
    ]
    joined = [torch.cat(parts, dim=1) for parts in zip(*shares, strict=True)]
    assert same(joined, list(batches(batch=batch).epoch(epoch)))


@pytest.mark.parametrize(
    ("batch", "processes", "said"),
    [
        (1, 1, "batch=1: must be at least 2: the others are what is told apart"),
        (0, 1, "batch=0: must be at least 2: the others are what is told apart"),
        (27, 1, "batch=27: must be at most the number of images, 26"),
        (6, 4, "batch=6: must be a multiple of the 4 processes"),
        (3, 2, "batch=3: must be a multiple of the 2 processes"),
    ],
)
def test_batches_that_cannot_be(batch: int, processes: int, said: str) -> None:
    with pytest.raises(UsageError) as error:
        batches(batch=batch, world=World(0, processes))
    assert str(error.value) == said


def test_a_batch_may_be_the_whole_set() -> None:
    shown = batches(batch=IMAGES)
    assert shown.steps == 1 and len(list(shown.epoch(0))) == 1


def test_types_of_views() -> None:
    exact = next(batches(dtype=torch.float64).epoch(0))
    assert exact.dtype == torch.float64
    # float32 has seven digits; values are at most 3.4
    torch.testing.assert_close(next(batches().epoch(0)), exact.float(), atol=2e-6, rtol=0)
    half = next(batches(dtype=torch.bfloat16).epoch(0))
    assert half.dtype == torch.bfloat16
    # bfloat16 has eight bits: 2^-8 of the value
    torch.testing.assert_close(half.double(), exact, atol=0.01, rtol=2**-8)
