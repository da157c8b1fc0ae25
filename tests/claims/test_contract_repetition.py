"""A cell of a registered study gives the same again, alone and in any company."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from registered_studies import (
    STUDIES,
    TOGETHER,
    TRAININGS,
    assert_declared,
    every_study,
    tiny_batches,
)

from rarefy.core.contracts import Context, Study
from rarefy.sweep.grid import grid_of
from rarefy.train.optimisers import Sgd

FLOAT64 = Context(dtype=torch.float64)
SAME = 1e-10
"""float64: how far the same cell may differ between batches, relative to an output's largest"""

pytestmark = pytest.mark.usefixtures("eager")


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        finite = values[np.isfinite(values)]
        largest = np.abs(finite).max() if finite.size else 0.0
        np.testing.assert_allclose(
            found[name], values, rtol=SAME, atol=SAME * largest, err_msg=name, equal_nan=True
        )


def part(found: dict[str, np.ndarray], runs: Any) -> dict[str, np.ndarray]:
    return {name: values[runs] for name, values in found.items()}


def company(kind: type[Study]) -> Study:
    """With the fewest seeds, two to four, that give more than seven cells."""
    sizes = (kind.at("tiny", seeds=seeds) for seeds in (2, 3, 4))
    return next((study for study in sizes if len(grid_of(study)) > 7), kind.at("tiny", seeds=4))


@pytest.mark.quick(
    "granularity-transfer",
    "influence-gallery",
    "influence-removal",
    "influence-scoreboard",
    "pretrain-images",
    "sparse-cifar10",
    "sparse-cifar100-noise",
    "sparse-mnist",
    "sparse-vit-mnist",
    "train-images",
)
@pytest.mark.parametrize("kind", TRAININGS.values(), ids=list(TRAININGS))
def test_trainings_give_the_same_again_and_in_company(kind: type[Study]) -> None:
    """To the last bit: those of the first and the last batch of a run, now two in one batch."""
    _, (first, *_, last) = tiny_batches(kind)
    both = last.with_another(first)
    again = both.again(kind.at("tiny"))
    for name, values in both.found.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)


together = pytest.mark.parametrize("kind", TOGETHER.values(), ids=list(TOGETHER))


@together
def test_a_cell_gives_the_same_alone_and_in_a_batch_of_7(kind: type[Study]) -> None:
    """One in the middle: what is taken from the first or the last of a batch is another's then."""
    grid = grid_of(study := kind.at("tiny"))
    some = np.random.default_rng(0).permutation(len(grid))[:7]
    place = slice(len(some) // 2, len(some) // 2 + 1)
    seven = study.simulate(grid.cells(some), FLOAT64)
    assert_same(study.simulate(grid.cells(some[place]), FLOAT64), part(seven, place))


@pytest.mark.quick("contrast-alignment", "topk-phase", "benign-tail", "granularity-labels")
@together
def test_seven_give_the_same_again_and_among_all(kind: type[Study]) -> None:
    """Again: to the last bit."""
    study = company(kind)
    grid = grid_of(study)
    runs = np.arange(len(grid))
    everyone = study.simulate(grid.cells(runs), FLOAT64)
    assert_declared(study, len(grid), everyone)
    some = np.random.default_rng(0).permutation(runs)[:7]
    seven, again = (study.simulate(grid.cells(some), FLOAT64) for _ in range(2))
    assert_same(seven, part(everyone, some))
    for name, values in seven.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)


@every_study
def test_a_cell_draws_the_same_bits_alone_and_among_all(kind: type[Study]) -> None:
    study = kind.at("tiny")
    grid = grid_of(study)
    runs = np.arange(len(grid))
    everyone = grid.cells(runs).draws(Context()).normal("noise", (9,), step=3)
    for one in (0, len(grid) - 1):
        alone = grid.cells(runs[[one]]).draws(Context()).normal("noise", (9,), step=3)
        assert torch.equal(alone[0], everyone[one])


@every_study
def test_cells_share_their_draws_along_the_axes_that_are_not_random(kind: type[Study]) -> None:
    study = kind.at("tiny")
    grid = grid_of(study)
    random = [grid.values["seed"], *(grid.values[axis] for axis in study.random_axes)]
    groups: dict[tuple[Any, ...], set[int]] = {}
    for parts, cell_key in zip(zip(*random, strict=True), grid.keys.tolist(), strict=True):
        groups.setdefault(parts, set()).add(cell_key)
    assert all(len(keys) == 1 for keys in groups.values())
    assert len(set.union(*groups.values())) == len(groups)


@pytest.mark.slow
def test_one_cell_alone_in_7_and_in_500_gives_the_same_to_1e_10() -> None:
    """The project's promise (issue 2, 'Done when'), on the alignment study made small."""
    study = STUDIES["contrast-alignment"].at(
        "tiny", seeds=125, d1=24, batch=16, steps=24, reads=(0, 12, 24), figure_read=24
    )
    grid = grid_of(study)
    runs = np.arange(len(grid))
    assert len(runs) == 500
    everyone = study.simulate(grid.cells(runs), FLOAT64)
    assert (everyone["t1"] > 0).mean() > 0.5  # the bias is at work in most of them
    for start in (0, 250, 493):
        seven = runs[start : start + 7]
        assert_same(study.simulate(grid.cells(seven), FLOAT64), part(everyone, seven))
        alone = seven[:1]
        assert_same(study.simulate(grid.cells(alone), FLOAT64), part(everyone, alone))
    some = grid.cells(runs[::50])
    every = grid.cells(runs).draws(FLOAT64)
    for stream, shape in (("dictionary", (24, 9)), ("weights", (24, 24)), ("noise", (16, 24))):
        alike = some.draws(FLOAT64).normal(stream, shape, step=5)
        assert torch.equal(every.normal(stream, shape, step=5)[::50], alike)


UNTRAINED = {"contrast-init", "contrast-pruning-rates"}


@pytest.mark.quick(
    *("benign-homogeneous", "benign-tail", "benign-topk", "benign-training", "contrast-alignment"),
    *("granularity-labels", "regimes-at-scale", "topk-phase"),
)
@together
def test_runs_that_are_lost_are_marked_in_their_cells_and_leave_the_others_alone(
    kind: type[Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third update of every training loses its first run."""
    study, update = kind.at("tiny"), Sgd.update
    cells = (grid := grid_of(study)).cells(np.arange(len(grid)))
    monkeypatch.setattr(Sgd, "plain", False)  # (or weights are moved in place)
    before = study.simulate(cells, FLOAT64)
    made: Counter[tuple[int, str]] = Counter()
    trainings = []  # kept, so that no other gets its id

    def losing(self: Sgd, name: str, parameter: torch.Tensor, gradient: torch.Tensor) -> Any:
        moved = update(self, name, parameter, gradient).clone()
        trainings.append(self)
        made[id(self), name] += 1
        if made[id(self), name] == 3:
            moved[0] = torch.nan
        return moved

    monkeypatch.setattr(Sgd, "update", losing)
    after = study.simulate(cells, FLOAT64)
    if kind.name in UNTRAINED:
        return assert_same(after, before)
    lost = after.pop("nonfinite_step") >= 0
    assert lost.any() and not lost.all()
    others = {name: before[name] for name in after}
    assert_same(part(after, ~lost), part(others, ~lost))
