"""A batch taken apart and put together again, and rows of a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rarefy.core.contracts import Cells, Context
from rarefy.sweep.batches import split_by_axis

KEYS = np.array([11, 22, 33, 44, 55], dtype=np.int64)
CELLS = Cells(
    {
        "seed": np.arange(5),
        "how": np.array(["b", "a", "b", "c", "a"]),
        "size": np.array([9, 16, 9, 32, 16]),
        "eps_min": np.array([0.1, 0.2, 0.3, 0.4, 0.5]),
    },
    KEYS,
)


# --------------------------------------------------------------------------------------- Cells.take


def test_take_gives_the_rows_asked_for_in_the_order_asked_for() -> None:
    taken = CELLS.take(np.array([3, 0, 0]))
    assert len(taken) == 3 and isinstance(taken, Cells)
    assert taken.keys.tolist() == [44, 11, 11]
    assert {name: column.tolist() for name, column in taken.values.items()} == {
        "seed": [3, 0, 0],
        "how": ["c", "b", "b"],
        "size": [32, 9, 9],
        "eps_min": [0.4, 0.1, 0.1],
    }
    assert CELLS.keys.tolist() == [11, 22, 33, 44, 55]


def test_take_by_mask_and_none_and_from_columns_that_are_lists() -> None:
    assert CELLS.take(np.array([False, True, False, False, True])).keys.tolist() == [22, 55]
    assert len(CELLS.take(np.empty(0, dtype=np.int64))) == 0
    listed = Cells({"eps_min": [0.1, 0.2, 0.3]}, KEYS[:3])  # type: ignore[dict-item]
    assert listed.take(np.array([2, 1])).column("eps_min", Context()).tolist() == pytest.approx(
        [0.3, 0.2]
    )


def test_a_taken_cell_draws_what_it_draws_in_its_batch() -> None:
    rows = np.array([4, 1])
    whole = CELLS.draws(Context()).normal("noise", (6,), step=2)
    assert torch.equal(CELLS.take(rows).draws(Context()).normal("noise", (6,), step=2), whole[rows])


# ----------------------------------------------------------------------------------- split_by_axis


def test_each_value_once_with_its_own_cells_and_outputs_in_batch_order() -> None:
    asked: list[tuple[object, list[int]]] = []

    def simulate(value: object, part: Cells) -> dict[str, np.ndarray]:
        assert set(part.values["how"]) == {value}
        asked.append((value, part.keys.tolist()))
        keys = part.keys.astype(np.float64)
        return {"key": part.keys, "path": keys[:, None, None] * np.arange(6).reshape(2, 3)}

    found = split_by_axis(CELLS, "how", simulate)
    assert asked == [("b", [11, 33]), ("a", [22, 55]), ("c", [44])]
    assert found["key"].tolist() == KEYS.tolist() and found["key"].dtype == np.int64
    assert found["path"].shape == (5, 2, 3) and found["path"].dtype == np.float64
    np.testing.assert_array_equal(found["path"][:, 1, 2], 5.0 * KEYS)


def test_numbers_arrive_as_plain_python_numbers() -> None:
    kinds = []

    def simulate(value: object, part: Cells) -> dict[str, np.ndarray]:
        kinds.append(type(value))
        return {"double": 2 * np.asarray(part.values["size"])}

    assert split_by_axis(CELLS, "size", simulate)["double"].tolist() == [18, 32, 18, 64, 32]
    assert kinds == [int, int, int]
    kinds.clear()
    split_by_axis(CELLS, "eps_min", simulate)
    assert kinds == [float] * 5


def test_one_value_is_one_call_and_the_order_of_the_cells_does_not_matter() -> None:
    def simulate(value: object, part: Cells) -> dict[str, np.ndarray]:
        noise = part.draws(Context()).normal("noise", (3,))
        return {"noise": noise.numpy() + len(str(value))}

    same = Cells({**CELLS.values, "how": np.array(["a"] * 5)}, KEYS)
    expected = simulate("a", same)["noise"]
    np.testing.assert_array_equal(split_by_axis(same, "how", simulate)["noise"], expected)
    order = np.array([2, 4, 0, 3, 1])
    turned = split_by_axis(CELLS.take(order), "how", simulate)["noise"]
    np.testing.assert_array_equal(turned, split_by_axis(CELLS, "how", simulate)["noise"][order])
