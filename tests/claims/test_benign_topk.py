"""Q2: verdicts on accuracies made up, pruned trainings against what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Cells, Context, Verdict
from rarefy.data.noise_spectrum import Spectrum
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignTopK: Any = get_study("benign-topk")

pytestmark = pytest.mark.usefixtures("eager")

FLOAT64 = Context(dtype=torch.float64)
TINY: Any = BenignTopK.at("tiny")

# ------------------------------------------------------------------------------------- the verdicts

STUDY = BenignTopK(gamma=(1.0, 10.0, 100.0))
SEEDS = 6


def made_up(rotated: float, aligned: float, tail: float) -> xr.Dataset:
    """Accuracies that fall in equal steps as less is kept, by so much in all; Gamma = 1 at
    chance."""
    step = np.linspace(0, 1, len(STUDY.keep))
    fall = np.array([[rotated, tail], [aligned, aligned]])  # (basis, kind)
    accuracy = 0.9 - fall[:, None, None, None, :] * step[:, None]
    accuracy = np.repeat(np.repeat(accuracy, 2, axis=1), 3, axis=2)  # (basis, reading, gamma, ..)
    accuracy[:, :, 0] = 0.2
    scatter = 0.003 * np.random.default_rng(0).normal(size=(SEEDS, *accuracy.shape))
    dims = ("seed", "basis", "reading", "gamma", "keep", "kind")
    values = {"accuracy": (dims, accuracy + scatter), "train_loss": 0.125}
    return fabricated(STUDY, SEEDS, values)


def judged(*falls: float) -> dict[str, Verdict]:
    found = STUDY.verdicts(made_up(*falls), "paper")
    assert [v.claim for v in found].count("Q2") == 3
    assert all(v.setting.startswith("fixed: ") for v in found if v.claim == "Q2")
    return {v.claim: v for v in found if v.role == "primary"}


def outcomes(*falls: float) -> list[str]:
    found = judged(*falls)
    return [found[f"Q2.{place}"].outcome for place in (1, 2, 3)]


def test_what_theory_says_holds() -> None:
    assert outcomes(0.3, 0.0, 0.1) == ["holds"] * 3
    note = judged(0.3, 0.0, 0.1)["Q2.1"].note
    assert note.endswith("training loss 0.12 with the fewest kept")
    assert "at keep 1, 0.60" in note.replace("0.599", "0.600")  # without the control Gamma = 1


def test_pruning_that_changes_nothing_is_told_apart() -> None:
    assert outcomes(0.0, 0.0, 0.0)[::2] != ["holds", "holds"]


def test_the_opposite_fails() -> None:
    assert outcomes(-0.08, 0.3, 0.05) == ["fails"] * 3


# --------------------------------------------------------------------------------------- simulation


def cells_of(study: Any, basis: str) -> Cells:
    grid = grid_of(study)
    return grid.cells(np.flatnonzero(grid.values["basis"] == basis))


def test_unpruned_networks_are_those_of_the_other_studies() -> None:
    """In the rotated basis, written in other coordinates."""
    study = BenignTopK.at("tiny", keep=(1.0,), reading=("revive",), seeds=1)
    cells = cells_of(study, "rotated")
    found = study.simulate(cells, FLOAT64)
    noise = Spectrum.joined([study.spectrum(float(g)) for g in cells.values["gamma"]])
    trial = study.without_features(cells, FLOAT64, noise, [study.samples] * 3, "trained")
    fitted = trial.fit(FLOAT64, study.training("trained"))
    accuracy, special = study._test(trial, fitted.filters)
    np.testing.assert_allclose(found["accuracy"], accuracy, rtol=1e-9)
    np.testing.assert_allclose(found["special"], special, rtol=1e-6)


@pytest.mark.parametrize("reading", ["revive", "fixed", "random"])
def test_pruned_filters_have_k_coordinates_of_the_basis(reading: str) -> None:
    study = BenignTopK.at("tiny", keep=(0.1,), reading=(reading,), gamma=(100.0,), seeds=1)
    kept = {}
    plain = study._test

    def spy(trial: Any, filters: torch.Tensor) -> Any:
        kept[here] = (filters, trial.data.rotation)
        return plain(trial, filters)

    object.__setattr__(study, "_test", spy)
    for here in ("rotated", "aligned"):
        study.simulate(cells_of(study, here), FLOAT64)
    filters, turn = kept["rotated"]
    in_space = filters @ turn.mT
    assert ((in_space.abs() > 1e-9).sum(dim=3) == 4).all()  # a tenth of 40
    assert ((filters.abs() > 1e-9).sum(dim=3) > 30).all()
    filters, _ = kept["aligned"]
    assert ((filters != 0).sum(dim=3) == 4).all()


def test_special_directions_on_coordinates_are_kept() -> None:
    study = BenignTopK.at("tiny", keep=(1.0, 0.1), reading=("revive",), gamma=(100.0,), seeds=1)
    dense, pruned = study.simulate(cells_of(study, "aligned"), FLOAT64)["special"]
    assert pruned > dense > 0.3


def test_a_share_is_at_least_one_coordinate() -> None:
    assert [TINY.kept(share) for share in (1.0, 0.1, 1e-6)] == [40, 4, 1]
