"""The grid: every combination once, seeds slowest, keys as the study gives them."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from toy_study import Toy

from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.sweep.parse import parse_settings


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


# ------------------------------------------------------------------------------------------ parsing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr=2", 2.0),
        ("lr = 1e-3", 1e-3),
        ("steps=1e2", 100),
        ("reflect=yes", True),
        ("reflect=False", False),
        ("rule=a,b=c", "a,b=c"),
        ("sigma=1", (1.0,)),
        ("sigma=0.1,0.2", (0.1, 0.2)),
        ("sigma=0:0.5:0.1", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        ("sigma=9,3:1:-1", (9.0, 3.0, 2.0, 1.0)),
        ("drift=1:3", (1.0, 2.0, 3.0)),
    ],
)
def test_values_take_the_type_of_their_field(text: str, value: Any) -> None:
    (settled,) = parse_settings(Toy, [text]).values()
    assert settled == value
    assert type(settled) is type(value)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["lr"], "--set='lr': must be name=value"),
        (["lr="], "must be name=value"),
        (["lrr=1"], "unknown parameter of toy 'lrr'; did you mean 'lr'?"),
        (["lr=fast"], "lr='fast': must be a number"),
        (["steps=1.5"], "steps='1.5': must be a whole number"),
        (["steps=nan"], "must be a whole number"),
        (["reflect=maybe"], "reflect='maybe': must be true or false"),
        (["lr=0.1,0.2"], "lr='0.1,0.2': takes one value; those with many are drift, sigma"),
        (["lr=1", "lr=2"], "lr is set twice"),
        (["sigma=0:1:0"], "this range is empty"),
        (["sigma=1:0:0.1"], "this range is empty"),
        (["sigma=0:1:1e-9"], "values, at most"),
        (["sigma=a:b"], "must be a number"),
        (["sigma=,"], "needs at least one value"),
    ],
)
def test_wrong_values_are_named(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_settings(Toy, texts)
    assert said in str(caught.value)


def test_a_text_may_have_a_colon() -> None:
    """Names of variations do; only numbers have ranges."""
    kind = get_study("granularity-ablation")
    found = parse_settings(kind, ["variation=as chosen,hard: no distraction"])
    assert found == {"variation": ("as chosen", "hard: no distraction")}
