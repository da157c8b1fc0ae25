"""How results of ``contrast-pruning`` are read: which cells, which step, which quantity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from pruning_results import START, pruning

from rarefy.pruning.masks import kept_count
from rarefy.studies.contrastive.pruned_pairs import (
    RESTLESS,
    at_rest,
    early_read,
    growth_constant,
    judged_quantity,
    permitted,
    pruned_number,
    state_read,
    used,
)
from rarefy.theory.contrastive import stage_1_growth, uniform_attention_moment


@pytest.mark.parametrize(
    ("begin", "start", "judged", "early"),
    [
        ("theorem", 0, 0, 4),
        ("random", 0, 4, 4),  # never untrained random weights
        ("random", 4, 4, START),
        ("theorem", 5, START, START),
        ("random", 11, 12, 12),
    ],
)
def test_the_state_that_is_judged(begin: str, start: int, judged: int, early: int) -> None:
    here = xr.Dataset(coords={"begin": begin, "start": start})
    assert state_read(pruning(), here) == judged
    assert early_read(pruning(), start) == early
    assert state_read(pruning(reads=(0, 4), start=(0,)), here) == min(judged, 4)


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("loss_form", ["plain", "times-tau"])
def test_the_growth_constant_is_that_of_stage_1_for_either_form_of_the_loss(
    loss_form: str, tau: float
) -> None:
    study = pruning(tau=tau, loss_form=loss_form)
    moment = uniform_attention_moment(1.0, study.activation, study.tokens, study.spread)
    factor = tau if loss_form == "times-tau" else 1.0
    growth = stage_1_growth(moment, study.lr, tau, study.batch, factor)
    assert growth_constant(study) == pytest.approx((growth - 1) / study.lr)


def cells(begin: str, alpha: list[float], eps_min: list[float]) -> xr.Dataset:
    return xr.Dataset(coords={"begin": begin, "alpha": alpha, "eps_min": eps_min})


@pytest.mark.parametrize(
    ("begin", "alpha", "left"),
    [
        ("theorem", [0.0, 0.1, 4 / 9, 0.45, 0.6], [0.1, 4 / 9]),  # up to the rare features' share
        ("random", [0.0, 0.1, 4 / 9, 0.45, 0.6], [0.1, 4 / 9, 0.45, 0.6]),
        ("theorem", [0.0, 0.5, 0.6], [0.5, 0.6]),  # all where none is left
    ],
)
def test_the_permitted_cells(begin: str, alpha: list[float], left: list[float]) -> None:
    found = permitted(pruning(), cells(begin, alpha, [0.2, 0.8, 1.0]))
    assert found["alpha"].values.tolist() == left
    assert found["eps_min"].values.tolist() == [0.2, 0.8]
    assert permitted(pruning(), cells(begin, alpha, [1.0]))["eps_min"].values.tolist() == [1.0]


def test_at_rest_is_a_comparison_with_the_unpruned_twin() -> None:
    """Frequent features only, at most ten times as much; a lost run is not at rest."""
    frequent = np.array([[1.0, 2.0, 3.0, 4.0], [9.9, 20.2, np.nan, 4.0]])
    energy = np.stack([frequent, [[1.0] * 4, [1e6] * 4]], axis=2)[None]
    coordinates = {"read": [5], "alpha": [0.0, 0.3], "group": ["majority", "minority"]}
    data = xr.DataArray(energy, dims=("read", "alpha", "seed", "group"), coords=coordinates)
    found = at_rest(xr.Dataset({"energy": data}), 0.3)
    assert RESTLESS == 10
    assert found.sel(read=5).values.tolist() == [True, False, False, True]
    assert set(found.dims) == {"read", "seed"} and "alpha" not in found.coords


def test_the_quantity_and_its_power_of_eps() -> None:
    assert judged_quantity("theorem") == ("weight", "weight of own neurons", 1)
    assert judged_quantity("random") == ("energy", "energy", 2)


@pytest.mark.parametrize("neurons", [10, 24, 36, 98])
def test_the_pruned_number_is_that_of_the_mask(neurons: int) -> None:
    alpha = np.array([0.0, 0.05, 0.1, 0.25, 0.3, 0.35, 0.7, 2.5 / 10])
    found = pruned_number(
        pruning(neurons=neurons, alpha=(0.0, 0.2)), xr.DataArray(alpha, dims="alpha")
    )
    for dtype in (torch.float32, torch.float64):
        kept = kept_count(torch.tensor(alpha, dtype=dtype), neurons)
        assert found.values.tolist() == (neurons - kept).tolist()


def test_it_is_said_at_which_eps_there_was_something() -> None:
    values = xr.DataArray(
        [[1.0, np.nan, 2.0], [np.nan, np.nan, 3.0]],
        dims=("seed", "eps_min"),
        coords={"eps_min": [0.1, 0.2, 0.8]},
    )
    assert used(values) == "mean over eps_min 0.1, 0.8"
