"""The grid: every combination once, seeds slowest, keys as the study gives them."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np
import pytest
from toy_study import Toy

from rarefy.core.errors import UsageError
from rarefy.sweep.grid import grid_of


def test_every_combination_once_and_seeds_slowest() -> None:
    study = Toy.at("tiny", drift=(0.0, 0.5), sigma=(0.1, 0.2, 0.3), seeds=2)
    grid = grid_of(study)
    cells = list(zip(*(grid.values[name] for name in ("seed", "drift", "sigma")), strict=True))
    assert cells == list(itertools.product((0, 1), study.drift, study.sigma))
    assert grid.shape == (2, 2, 3) and grid.points == 6


def test_more_seeds_only_append() -> None:
    few, many = grid_of(Toy.at("tiny", seeds=2)), grid_of(Toy.at("tiny", seeds=5))
    assert np.array_equal(many.keys[: len(few)], few.keys)


def test_keys_are_the_studys() -> None:
    study = Toy.at("tiny")
    grid = grid_of(study)
    for run in range(len(grid)):
        values = {name: column[run] for name, column in grid.values.items()}
        assert grid.keys[run] == study.cell_key(values)
    # drift is no random axis: its cells share their draws
    assert len(np.unique(grid.keys)) == len(study.sigma) * study.seeds


def test_a_study_with_its_own_keys() -> None:
    class Own(Toy):
        def cell_key(self, values: object) -> int:
            return int(values["seed"] * 1000 + values["drift"] * 10)  # type: ignore[index]

    assert grid_of(Own.at("tiny", seeds=2)).keys.tolist()[-1] == 1010


def test_an_axis_of_texts_or_tuples() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Words(Toy):
        axes = ("rule", "drift", "sigma")
        drift: tuple[tuple[float, ...], ...] = ((0.0,),)

    grid = grid_of(Words.at("tiny", rule=("plain", "odd"), drift=((0.1, 0.2), (0.3, 0.4))))
    assert grid.values["rule"][4] == "odd" and grid.values["drift"][2] == (0.3, 0.4)


def test_a_hundred_thousand_cells_are_laid_out_quickly() -> None:
    begun = time.perf_counter()
    assert len(grid_of(Toy.at("tiny", drift=tuple(np.arange(1000.0)), seeds=50))) == 100_000
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize("sigma", [(), (0.1, 0.1), (1, 1.0)])
def test_an_empty_axis_or_a_value_twice_is_refused(sigma: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="sigma"):
        grid_of(Toy.at("tiny", sigma=sigma))
