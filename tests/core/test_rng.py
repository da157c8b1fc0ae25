"""Draws depend on (cell, stream, step, index) alone, and keys on what they spell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from drawn_cells import CELLS, drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.rng import Draws, key

pytestmark = pytest.mark.usefixtures("drawn_by_numpy")

KINDS = ("uniform", "normal", "sign", "integers")


# --------------------------------------------------------------------- the same cell, the same bits


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_draws_the_same_bits_alone_in_7_and_in_500_in_any_order(kind: str) -> None:
    shape, step = (3, 5), 4
    everyone = drawn(Draws(CELLS), kind, shape, step)
    assert everyone.shape == (500, *shape)
    seven = drawn(Draws(CELLS[100:107]), kind, shape, step)
    assert torch.equal(seven, everyone[100:107])
    for place in (0, 103, 499):
        assert torch.equal(drawn(Draws(CELLS[[place]]), kind, shape, step)[0], everyone[place])
    shuffled = np.random.default_rng(0).permutation(500)
    assert torch.equal(drawn(Draws(CELLS[shuffled]), kind, shape, step), everyone[shuffled])


@settings(deadline=None, max_examples=25)
@given(
    keys=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6),
    kind=st.sampled_from(KINDS),
    count=st.integers(1, 40),
    step=st.integers(0, 10**6),
    stream=st.text(max_size=8),
)
def test_neither_company_nor_history_changes_a_draw(
    keys: list[int], kind: str, count: int, step: int, stream: str
) -> None:
    together = Draws(keys)
    drawn(together, "normal", (3,), step + 1, "another")  # a draw in between leaves no trace
    batch = drawn(together, kind, (count,), step, stream)
    for row, one in enumerate(keys):
        assert torch.equal(drawn(Draws([one]), kind, (count,), step, stream)[0], batch[row])


@pytest.mark.parametrize("kind", KINDS)
def test_a_shape_is_only_a_way_to_lay_out_the_same_numbers(kind: str) -> None:
    draws = Draws(CELLS[:3])
    flat = drawn(draws, kind, (24,))
    assert torch.equal(drawn(draws, kind, (2, 3, 4)).reshape(3, 24), flat)


@pytest.mark.parametrize("kind", ["uniform", "sign", "integers"])
def test_a_shorter_draw_is_the_beginning_of_a_longer_one(kind: str) -> None:
    draws = Draws(CELLS[:3])
    assert torch.equal(drawn(draws, kind, (10,)), drawn(draws, kind, (25,))[:, :10])


@pytest.mark.parametrize("count", [1, 3, 7, 501])
def test_an_odd_number_of_normals_is_the_even_number_without_its_last(count: int) -> None:
    draws = Draws(CELLS[:4])
    odd, even = draws.normal("s", (count,)), draws.normal("s", (count + 1,))
    assert odd.shape == (4, count) and torch.equal(odd, even[:, :count])


@pytest.mark.parametrize("kind", ["uniform", "normal", "sign"])
def test_float64_sees_the_numbers_of_float32(kind: str) -> None:
    single = drawn(Draws(CELLS[:5]), kind, (33,))
    double = drawn(Draws(CELLS[:5], dtype=torch.float64), kind, (33,))
    assert single.dtype == torch.float32 and double.dtype == torch.float64
    assert torch.equal(single.double(), double)


# --------------------------------------------------------------------------------------------- keys


def test_one_number_has_one_spelling() -> None:
    ones = [1, 1.0, np.float32(1), np.float64(1), np.int64(1), np.array(1.0)]
    assert len({key("study", one) for one in ones}) == 1
    assert key(np.str_("word")) == key("word") and key(np.bool_(True)) == key(True)
    assert key((1, 2)) == key([1.0, 2.0]) == key(np.array([1, 2]))


def test_what_differs_has_another_key() -> None:
    different: list[tuple[object, ...]] = [
        ("a",),
        ("b",),
        ("A",),
        ("a", "b"),
        ("ab",),
        (("a", "b"),),
        ("a\x1fb",),
        ("a'\x1f'b",),
        (1,),
        ("1",),
        ("1.0",),
        (True,),
        (None,),
        (1, 2),
        ((1, 2),),
        ((1,), 2),
        (12,),
        (0.1,),
        (np.nextafter(0.1, 1),),
        (-1,),
    ]
    assert len({key(*parts) for parts in different}) == len(different)


def test_long_arrays_are_spelled_out_in_full() -> None:
    long = np.zeros(5000)
    other = long.copy()
    other[2500] = 1  # in the part that numpy prints as "..."
    assert key(long) != key(other)


def test_keys_and_draws_stay_what_they_were() -> None:
    """Pinned: a change here makes every stored result unrepeatable."""
    pinned = -7927188553827826406
    assert key("contrast-alignment", 0, 0.03, 0.1) == pinned
    draws = Draws([pinned])
    whole = draws.integers("pin", 2**31, (3,), step=5)[0]
    assert whole.tolist() == [513015009, 1923001042, 1068848929]
    share = draws.uniform("pin", (2,), step=5)[0]
    assert share.tolist() == [0.23889121413230896, 0.8954671621322632]
    normal = draws.normal("pin", (3,), step=5)[0]
    assert normal.tolist() == [-0.9564658999443054, 0.2995055317878723, -1.395946979522705]
    some = draws.sign_with_chance("pin", torch.tensor([0.5]), (12,), 5)[0]
    assert some.tolist() == [-1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, -1]
    assert draws.spawn("pin").keys.tolist() == [-6283605913694725366]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.one_of(st.text(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False))))
def test_a_key_is_a_signed_64_bit_number_and_repeatable(parts: list[object]) -> None:
    found = key(*parts)
    assert -(2**63) <= found < 2**63 and found == key(*parts)
