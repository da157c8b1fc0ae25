"""SET and RigL against a slow plain loop, and the share that moves by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.pruning.masks import keep_largest
from rarefy.pruning.regrowth import SET, Regrowth, RigL


def slow(kept: list[bool], magnitude: list[float], growth: list[float], number: int) -> list[bool]:
    """Drop the smallest kept ones (of equal ones the last), then grow the best of those that were
    left out before (of equal ones the first)."""
    inside = [place for place, each in enumerate(kept) if each]
    outside = [place for place, each in enumerate(kept) if not each]
    dropped = sorted(inside, key=lambda place: (magnitude[place], -place))[:number]
    grown = sorted(outside, key=lambda place: (-growth[place], place))[:number]
    after = (set(inside) - set(dropped)) | set(grown)
    return [place in after for place in range(len(kept))]


VALUES = st.sampled_from([0.0, 0.25, 1.0, 1.5, 2.0])


@given(
    st.integers(1, 3), st.integers(1, 9), st.sampled_from([0.1, 0.3, 0.9]), st.integers(0, 12),
    st.data(),
)  # fmt: skip
def test_moved_masks_are_those_of_a_plain_loop(
    rows: int, width: int, share: float, step: int, data: st.DataObject
) -> None:
    total = data.draw(st.integers(0, width))
    table = st.lists(VALUES, min_size=rows * width, max_size=rows * width)
    magnitude, growth, order = (
        torch.tensor(data.draw(table)).reshape(rows, width) for _ in range(3)
    )
    kept = keep_largest(order, total)
    found = RigL(10, share).moved(kept, magnitude, growth, step)
    part = 0.0 if step >= 10 else share / 2 * (1 + math.cos(math.pi * step / 10))
    number = min(math.floor(part * total), width - total)
    for row in range(rows):
        expected = slow(kept[row].tolist(), magnitude[row].tolist(), growth[row].tolist(), number)
        assert found[row].tolist() == expected
    assert torch.equal(found.sum(dim=1), kept.sum(dim=1))


def test_one_move_by_hand() -> None:
    """Four of six kept, a half of them move at step 0: the smallest two kept (0.1 and 0.2) go, the
    two outside come, whatever their magnitude."""
    kept = torch.tensor([[True, True, True, True, False, False]])
    magnitude = torch.tensor([[0.1, 3.0, 0.2, 4.0, 9.0, 0.0]])
    growth = torch.tensor([[8.0, 0.0, 0.0, 0.0, 0.5, 0.6]])
    found = RigL(10, 0.5).moved(kept, magnitude, growth, 0)
    assert found.tolist() == [[False, True, False, True, True, True]]
    # at step 5 half as many move: one goes, and the better one comes
    found = RigL(10, 0.5).moved(kept, magnitude, growth, 5)
    assert found.tolist() == [[False, True, True, True, False, True]]
    # at the end none
    assert torch.equal(RigL(10, 0.5).moved(kept, magnitude, growth, 10), kept)


def test_the_share_that_moves_falls_by_a_cosine() -> None:
    rule = SET(until=6, share=0.4)
    found = [rule.moving(step) for step in (0, 2, 3, 4, 6, 7)]
    assert found == pytest.approx([0.4, 0.3, 0.2, 0.1, 0.0, 0.0], abs=1e-15)


def test_only_rigl_looks_at_gradients() -> None:
    assert RigL(5).needs_gradient and not SET(5).needs_gradient
    assert RigL(5) == Regrowth("rigl", 5, 0.3) and SET(5, 0.2) == Regrowth("set", 5, 0.2)


def test_nothing_moves_where_everything_is_kept() -> None:
    kept = torch.ones(2, 4, dtype=torch.bool)
    assert torch.equal(SET(5, 0.9).moved(kept, torch.rand(2, 4), torch.rand(2, 4), 0), kept)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("SET", 5), "kind='SET': must be one of set, rigl"),
        (("set", 0), "until=0: must be at least 1 update"),
        (("rigl", 5, 0.0), "share=0.0: must lie in (0, 1)"),
        (("rigl", 5, 1.0), "share=1.0: must lie in (0, 1)"),
    ],
)
def test_impossible_regrowth_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Regrowth(*arguments)  # type: ignore[arg-type]
    assert str(error.value) == message
