"""Q1: whom each mask leaves out, networks with one past, verdicts with known answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import Made, fabricated
from pruning_results import by_group, simulated

from rarefy.measure.alignment import squared_cosines
from rarefy.studies import get_study
from rarefy.studies.contrastive.masking.experiment import MASKS, ChosenNeurons
from rarefy.sweep.grid import Grid

ContrastMasking = get_study("contrast-masking")
pytestmark = pytest.mark.usefixtures("eager")
SMALL: dict[str, Any] = {
    "seeds": 2,
    "eps_min": (0.5,),
    "alpha": (0.25,),
    "d1": 24,
    "batch": 16,
    "steps": 16,
    "start": 8,
    "reads": (4, 8, 16),
}


@cache
def measured() -> tuple[ContrastMasking, Grid, dict[str, np.ndarray]]:
    study = ContrastMasking.at("tiny", **SMALL)
    return study, *simulated(study)


def test_each_mask_leaves_out_as_many_and_the_ones_it_names() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(4, 8, 6, generator=generator, dtype=torch.float64)
    chance = torch.rand(4, 8, generator=generator, dtype=torch.float64)
    atoms = torch.eye(6, dtype=torch.float64)[:, :2].expand(4, -1, -1)
    chosen = ChosenNeurons(MASKS, torch.full((4,), 0.25), 0, chance)
    chosen.rare = atoms
    out = ~chosen.mask(weights)
    assert out.sum(dim=1).tolist() == [0, 2, 2, 2]
    cosine = squared_cosines(weights, atoms).amax(dim=2)
    for run, score in ((1, weights.norm(dim=2)), (2, chance), (3, -cosine)):
        expected = set(score[run].argsort()[:2].tolist())
        assert set(torch.nonzero(out[run])[:, 0].tolist()) == expected


def test_all_masks_share_the_network_up_to_the_first_masked_step() -> None:
    _, grid, found = measured()
    for seed in range(2):
        rows = [
            np.flatnonzero((grid.values["mask"] == mask) & (grid.values["seed"] == seed))[0]
            for mask in MASKS
        ]
        for name in ("best", "aligned"):
            for row in rows[1:]:
                np.testing.assert_array_equal(found[name][row][:2], found[name][rows[0]][:2])
        last = found["best"][rows][:, -1, 1]
        assert len(np.unique(last)) == 4


def test_the_oracle_hits_rare_features_and_nothing_masked_changes_nothing() -> None:
    _, grid, found = measured()
    none, rare, small = (grid.values["mask"] == mask for mask in ("none", "rare", "smallest"))
    assert np.isnan(found["hit"][none]).all() and (found["fall"][none] == 0).all()
    assert found["hit"][rare].mean() > found["hit"][small].mean()
    assert (np.abs(found["fall"][rare]) > 0).all()


def results(best: Made, study: ContrastMasking) -> xr.Dataset:
    values: dict[str, Made] = {
        "best": by_group(best, lambda c: 0.5),
        "aligned": by_group(lambda c: 10 * best(c), lambda c: 0.5),
        "hit": lambda c: 0.5,
        "fall": lambda c: xr.where(c["contains"] == "contains", 0.2, 0.1),
    }
    return fabricated(study, 6, values)


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        ({"rare": 0.2, "smallest": 0.0, "random": 0.1}, ("holds", "holds", "holds")),
        ({"rare": 0.2, "smallest": 0.3, "random": 0.1}, ("holds", "fails", "holds")),
        ({"rare": -0.2, "smallest": 0.0, "random": 0.0}, ("fails", "fails", "fails")),
        ({"rare": 0.0, "smallest": 0.0, "random": -0.1}, ("fails", "fails", "holds")),
    ],
)
def test_the_right_neurons_must_beat_nothing_the_smallest_and_random_ones(
    gain: dict[str, float], expected: tuple[str, ...]
) -> None:
    study = ContrastMasking.at("tiny", alpha=(0.1, 0.2, 0.3), bias_scale=(0.0, 1.0))

    def best(c: xr.Dataset) -> xr.DataArray:
        here = (c["alpha"] == 0.2) & (c["bias_scale"] == 1) & (c["read"] == 40)
        return 0.5 + here * sum((c["mask"] == mask) * by for mask, by in gain.items())

    found = study.verdicts(results(best, study), "tiny")
    primary = {v.claim: v.outcome for v in found if v.role == "primary"}
    assert primary == dict(zip(("Q1.1", "Q1.2", "Q1.3"), expected, strict=True))
    others = {v.setting.partition(":")[0]: v.outcome for v in found if v.claim == "Q1"}
    conditions = ("alpha=0.1", "alpha=0.3", "no bias")
    assert [others[words] for words in conditions] == ["fails"] * 3  # no effect at all


def test_a_lost_run_takes_its_twin_along_and_no_other() -> None:
    study = ContrastMasking.at("tiny", eps_min=(0.25, 0.5, 1.0))

    def best(c: xr.DataArray) -> xr.DataArray:
        lost = (c["mask"] == "rare") & (c["eps_min"] == 1) & (c["seed"] == 1)
        return (c["eps_min"] + 0.125 * (c["mask"] == "rare")).where(~lost)

    (gain,) = (v for v in study.verdicts(results(best, study), "tiny") if v.claim == "Q1.1")
    assert gain.value == 0.125 and gain.n == len(results(best, study)["seed"])
