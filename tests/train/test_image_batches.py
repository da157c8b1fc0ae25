"""Batches of images: each image once per epoch, the same tensors wherever a training goes on."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.train import image_batches
from rarefy.train.image_batches import (
    Augmentation,
    ImageBatches,
    Scaling,
    generator_for,
    unit_pixels,
)

PLAIN = Scaling((0.0,), (1.0,))
CHANGES = {
    "nothing": Augmentation(),
    "moved": Augmentation(shift=2),
    "mirrored": Augmentation(flip=True),
    "noisy": Augmentation(noise=0.3),
    "noisy for good": Augmentation(noise=0.3, fresh=False),
    "all": Augmentation(2, True, 0.3),
    "all for good": Augmentation(2, True, 0.3, False),
}


def numbered(count: int, size: int = 4) -> Tensor:
    """Images that say which one they are: the value of all their pixels."""
    return torch.arange(count, dtype=torch.uint8).reshape(-1, 1, 1, 1).expand(-1, 1, size, size)


def textured(count: int, size: int = 4) -> Tensor:
    draws = torch.Generator().manual_seed(5)
    return torch.randint(0, 256, (count, 1, size, size), generator=draws, dtype=torch.uint8)


def batches(images: Tensor, batch: int = 4, run_key: int = 7, **options: Any) -> ImageBatches:
    scaling = options.pop("scaling", PLAIN)
    return ImageBatches(images, torch.arange(len(images)), scaling, batch, run_key, **options)


def same(first: list[tuple[Tensor, Tensor]], second: list[tuple[Tensor, Tensor]]) -> bool:
    pairs = list(zip(first, second, strict=True))
    return all(torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) for a, b in pairs)


def test_an_epoch_shows_every_image_at_most_once_and_the_next_leaves_out_others() -> None:
    made = batches(numbered(22), batch=4)
    assert made.steps == 5
    left_out = []
    for number in range(30):
        shown = torch.cat([y for _, y in made.epoch(number)])
        assert len(shown) == len(shown.unique()) == 20
        left_out.append(frozenset(range(22)) - set(shown.tolist()))
    assert len(set(left_out)) > 15
    # an image is never left out with a chance of (20/22)^30 = 6 %: 20.7 of 22 are expected
    assert len(frozenset[int]().union(*left_out)) >= 18


@pytest.mark.parametrize("name", CHANGES)
def test_an_image_keeps_its_label(name: str) -> None:
    """Constant images are still themselves when moved and mirrored, and nearly so with noise."""
    made = batches(numbered(200, size=12), batch=20, changes=CHANGES[name])
    for x, y in made.epoch(3):
        told = 255 * x.mean(dim=(1, 2, 3))
        # the noise's mean over 144 pixels has a std of 255 * 0.3 / 12 = 6.4, a little more where
        # some are mirrored: five of them
        assert torch.allclose(told, y.float(), atol=40 if CHANGES[name].noise else 1e-3)


@pytest.mark.parametrize("part_batches", [1, 2, 3, 1000])
@pytest.mark.parametrize("name", CHANGES)
def test_going_on_at_any_batch_gives_the_very_same_tensors(
    name: str, part_batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_batches, "PART_BYTES", part_batches * 4 * 16 * 4)
    made = batches(textured(30), changes=CHANGES[name])
    for number in (0, 2):
        whole = list(made.epoch(number))
        assert len(whole) == made.steps == 7
        for begin in range(made.steps + 1):
            anew = batches(textured(30), changes=CHANGES[name])
            assert same(list(anew.epoch(number, begin)), whole[begin:])


def test_parts_of_an_epoch_draw_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were all parts drawn with one key, their noise would be the same."""
    monkeypatch.setattr(image_batches, "PART_BYTES", 4 * 16 * 4)
    black = torch.zeros(8, 1, 4, 4, dtype=torch.uint8)
    for fresh in (True, False):
        first, second = batches(black, changes=Augmentation(noise=1.0, fresh=fresh)).epoch(0)
        assert not torch.isclose(first[0], second[0]).any()


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "nothing"])
def test_two_runs_and_two_epochs_differ(name: str) -> None:
    changes = CHANGES[name]
    made = batches(textured(40), batch=40, changes=changes)
    other = batches(textured(40), batch=40, run_key=8, changes=changes)
    shown = [next(made.epoch(0)), next(made.epoch(1)), next(other.epoch(0))]
    assert not torch.equal(shown[0][1], shown[1][1])  # the order
    assert not torch.equal(shown[0][1], shown[2][1])
    in_order = [x[y.argsort()] for x, y in shown]  # and what was done to the images
    assert not torch.equal(in_order[0], in_order[2])
    assert torch.equal(in_order[0], in_order[1]) == (name == "noisy for good")


@pytest.mark.parametrize("noise", [0.1, 2.0])
@pytest.mark.parametrize("fresh", [True, False])
def test_noise_has_the_std_it_was_asked_for(noise: float, fresh: bool) -> None:
    grey = torch.full((64, 1, 32, 32), 51, dtype=torch.uint8)
    made = batches(grey, batch=64, changes=Augmentation(noise=noise, fresh=fresh))
    x = next(made.epoch(0))[0].double()
    # 65536 draws: relative standard error of the std 0.0028, of the mean 0.0039: five of them
    assert float(x.std()) == pytest.approx(noise, rel=0.014)
    assert float(x.mean()) == pytest.approx(0.2, abs=0.02 * noise)


def test_noise_is_in_units_of_pixels_before_they_are_scaled() -> None:
    grey = torch.full((16, 1, 32, 32), 51, dtype=torch.uint8)
    made = batches(grey, 16, changes=Augmentation(noise=0.1), scaling=Scaling((0.2,), (0.25,)))
    x = next(made.epoch(0))[0].double()
    # 16384 draws, as above
    assert float(x.std()) == pytest.approx(0.4, rel=0.03)
    assert abs(float(x.mean())) < 0.02


def test_noise_drawn_once_is_the_same_every_epoch_and_moves_with_its_image() -> None:
    black = torch.zeros(6, 1, 5, 5, dtype=torch.uint8)
    still = batches(black, batch=6, changes=Augmentation(noise=1.0, fresh=False))
    x, y = next(still.epoch(0))
    again, order = next(still.epoch(9))
    own = x[y.argsort()]
    assert torch.equal(own, again[order.argsort()])
    moving = batches(black, batch=6, changes=Augmentation(2, True, 1.0, False))
    x, y = next(moving.epoch(4))
    larger = torch.nn.functional.pad(own, [2] * 4, mode="reflect")
    for image, label in zip(x, y.tolist(), strict=True):
        windows = [
            larger[label, :, down : down + 5, right : right + 5]
            for down in range(5)
            for right in range(5)
        ]
        assert any(torch.equal(image, one) or torch.equal(image, one.flip(2)) for one in windows)


def test_pixels_are_scaled_by_hand() -> None:
    images = torch.tensor([[[[0, 255]], [[51, 102]]]], dtype=torch.uint8)
    scaling = Scaling((0.5, 0.2), (0.25, 0.1))
    made = ImageBatches(images, torch.tensor([0]), scaling, 1, 0, dtype=torch.float64)
    expected = torch.tensor([[[[-2.0, 2.0]], [[0.0, 2.0]]]], dtype=torch.float64)
    torch.testing.assert_close(next(made.epoch(0))[0], expected, rtol=0, atol=1e-14)


def test_a_channel_that_never_changes_spoils_nothing() -> None:
    images = torch.tensor([[[[0, 255]], [[51, 51]]]], dtype=torch.uint8)
    x = Scaling((0.5, 0.2), (0.5, 0.0))(unit_pixels(images, torch.float32), torch.float32)
    torch.testing.assert_close(x, torch.tensor([[[[-1.0, 1.0]], [[0.0, 0.0]]]]), atol=1e-7, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_batches_are_of_the_type_and_layout_asked_for(dtype: torch.dtype) -> None:
    images = torch.randint(0, 256, (12, 3, 4, 4), dtype=torch.uint8)
    options: dict[str, Any] = {
        "scaling": Scaling((0.3, 0.4, 0.5), (0.2, 0.3, 0.1)),
        "changes": Augmentation(1, True, 0.1),
    }
    last = torch.channels_last
    made = batches(images, dtype=dtype, memory_format=last, **options)
    exact = batches(images, dtype=torch.float32, **options)
    for (x, _), (wanted, _) in zip(made.epoch(0), exact.epoch(0), strict=True):
        assert x.dtype == dtype and x.is_contiguous(memory_format=last)
        if dtype != torch.float64:  # which draws other noise
            assert torch.equal(x, wanted.to(dtype))


def test_float64_is_exact_to_the_last_places() -> None:
    made = batches(textured(8), dtype=torch.float64, scaling=Scaling((1 / 3,), (1 / 7,)))
    for x, y in made.epoch(0):
        torch.testing.assert_close(
            x, (textured(8)[y].double() / 255 - 1 / 3) * 7, rtol=1e-14, atol=1e-14
        )


def test_a_batch_larger_than_the_set_is_the_set() -> None:
    made = batches(numbered(5), batch=100)
    assert (made.batch, made.steps) == (5, 1)
    ((_, y),) = made.epoch(0)
    assert sorted(y.tolist()) == [0, 1, 2, 3, 4]


def test_a_generator_is_known_by_its_parts_alone() -> None:
    def draw(*parts: object) -> Tensor:
        return torch.rand(3, generator=generator_for(torch.device("cpu"), *parts))

    assert torch.equal(draw(1, "noise", 2), draw(1, "noise", 2))
    others = [draw(1, "noise", 3), draw(1, "order", 2), draw(2, "noise", 2), draw(-1, "noise", 2)]
    assert not any(torch.equal(draw(1, "noise", 2), one) for one in others)


def test_batches_draw_from_no_global_generator() -> None:
    before = torch.get_rng_state()
    list(batches(textured(8), changes=CHANGES["all"]).epoch(0))
    list(batches(textured(8), changes=CHANGES["all for good"]).epoch(0))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("noise", [-0.1, math.inf, math.nan])
def test_what_makes_no_batch_is_refused(noise: float) -> None:
    with pytest.raises(UsageError, match="noise=.*must be finite and at least 0"):
        Augmentation(noise=noise)
    with pytest.raises(UsageError, match="shift=-1: must be at least 0 pixels"):
        Augmentation(shift=-1)
    with pytest.raises(UsageError, match="batch=0: must be at least 1"):
        batches(numbered(5), batch=0)
