"""Random changes of images against PyTorch's own padding and against slices cut by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from rarefy.train.augment import crop_windows, draw_shifts, random_flip, reflect_pad

SIZES = st.integers(1, 6)


def images(count: int, channels: int, height: int, width: int) -> Tensor:
    """Every pixel has a value of its own, as long as there are at most 256 of them."""
    pixels = torch.arange(count * channels * height * width) % 256
    return pixels.to(torch.uint8).reshape(count, channels, height, width)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(height=st.integers(2, 9), width=st.integers(2, 9), data=st.data())
def test_the_border_is_mirrored_as_pytorch_mirrors_floats(
    height: int, width: int, data: st.DataObject
) -> None:
    shift = data.draw(st.integers(0, min(height, width) - 1))  # more PyTorch does not take
    stored = images(2, 3, height, width)
    expected = functional.pad(stored.double(), [shift] * 4, mode="reflect")
    found = reflect_pad(stored, shift)
    assert found.dtype == torch.uint8
    assert torch.equal(found.double(), expected)


@given(height=SIZES, width=SIZES, shift=st.integers(0, 20))
def test_a_shift_beyond_the_image_goes_on_mirroring(height: int, width: int, shift: int) -> None:
    """As a ball between two walls: the walls are the first and the last pixel."""

    def walk(size: int) -> list[int]:
        place, step = 0, 1
        seen = []
        for _ in range(shift + size + shift + 1):
            seen.append(place)
            if not 0 <= place + step < size:
                step = -step
            place = min(max(place + step, 0), size - 1)
        return seen

    stored = images(1, 1, height, width)
    found = reflect_pad(stored, shift)
    assert found.shape == (1, 1, height + 2 * shift, width + 2 * shift)
    # to the right and down from the image's first pixel, and to the left and up from it
    rows, columns = walk(height), walk(width)
    assert torch.equal(
        found[0, 0, shift:, shift:],
        stored[0, 0][rows[: height + shift]][:, columns[: width + shift]],
    )
    assert torch.equal(
        found[0, 0, : shift + 1, : shift + 1].flip(0, 1),
        stored[0, 0][rows[: shift + 1]][:, columns[: shift + 1]],
    )


def test_without_a_shift_nothing_is_copied() -> None:
    stored = images(2, 1, 3, 3)
    assert reflect_pad(stored, 0) is stored
    chosen = torch.tensor([1, 0, 1])
    assert torch.equal(crop_windows(stored, chosen, None, (3, 3)), stored[chosen])


@given(
    height=SIZES, width=SIZES, shift=st.integers(1, 5), channels=st.integers(1, 3), data=st.data()
)
def test_every_window_is_the_slice_at_its_corner(
    height: int, width: int, shift: int, channels: int, data: st.DataObject
) -> None:
    larger = reflect_pad(images(4, channels, height, width), shift)
    count = data.draw(st.integers(1, 7))
    draws = generator(data.draw(st.integers(0, 1000)))
    chosen = torch.randint(0, 4, (count,), generator=draws)
    corners = draw_shifts(count, shift, draws)
    found = crop_windows(larger, chosen, corners, (height, width))
    by_hand = [
        larger[image, :, top : top + height, left : left + width]
        for image, top, left in zip(
            chosen.tolist(), corners[0].tolist(), corners[1].tolist(), strict=True
        )
    ]
    assert torch.equal(found, torch.stack(by_hand))


@pytest.mark.parametrize("corner", [(0, 0), (0, 4), (4, 0), (4, 4), (2, 2), (1, 3)])
def test_a_corner_says_down_first_and_right_second(corner: tuple[int, int]) -> None:
    stored = images(1, 1, 5, 7)
    larger = reflect_pad(stored, 2)
    found = crop_windows(larger, torch.tensor([0]), torch.tensor(corner)[:, None], (5, 7))
    down, right = corner
    assert torch.equal(found[0, 0], larger[0, 0, down : down + 5, right : right + 7])
    if corner == (2, 2):
        assert torch.equal(found, stored)


def test_corners_are_uniform_over_all_places() -> None:
    corners = draw_shifts(20_000, 2, generator(0))
    assert corners.shape == (2, 20_000)
    for row in corners:
        shares = torch.bincount(row, minlength=5) / len(row)
        assert len(shares) == 5
        # 0.2 with a standard error of 0.003: five of them
        assert (shares - 0.2).abs().max() < 0.015
    # down and right are drawn apart: as often equal as by chance
    assert abs(float((corners[0] == corners[1]).double().mean()) - 0.2) < 0.015


def test_an_image_is_mirrored_left_to_right_or_left_alone() -> None:
    stored = images(400, 1, 2, 3)
    found = random_flip(stored, generator(1))
    turned = stored.flip(3)
    as_it_was = (found == stored).flatten(1).all(dim=1)
    as_mirrored = (found == turned).flatten(1).all(dim=1)
    assert bool((as_it_was ^ as_mirrored).all())
    # 200 of 400, a standard error of 10: five of them
    assert abs(int(as_mirrored.sum()) - 200) < 50
    assert torch.equal(found, random_flip(stored, generator(1)))
    assert not torch.equal(found, random_flip(stored, generator(2)))
