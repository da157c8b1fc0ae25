"""B1, B2, B10: verdicts on results made up, wrong values, and the study at a small size."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import coordinates_of

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

BenignTraining: Any = get_study("benign-training")

pytestmark = pytest.mark.usefixtures("eager")

STUDY = BenignTraining(gamma=(1.0, 10.0), strength=(0.01, 4.0, 8.0))
SEEDS = 6
AS_CLAIMED: dict[str, Any] = {
    "lr": 1.0,
    "constant": (0.8, 1.0, 1.2),
    "bend": 0.9,
    "start": 10.0,
    "bound_worst": 0.5,
    "average_slope": -1.0,
    "loss_slope": -1.0,
    "rank_share": 1.0,
    "active_least": 0.2,
    "active_enough": 1.0,
    "memory_worst": 10.0,
    "memory_pairs": 1.0,
    "tail_own": (0.5, 1.0, 2.0),
    "tail_other": 1.0,
    "log_kappa": 0.3,
    "train_loss": 0.01,
}
OTHERWISE: dict[str, Any] = AS_CLAIMED | {
    "constant": (0.1, 1.0, 9.0),
    "bend": 0.5,
    "bound_worst": 1.5,
    "average_slope": -0.5,
    "loss_slope": -0.5,
    "rank_share": 0.5,
    "active_enough": 0.7,
    "memory_worst": 0.5,
    "log_kappa": 3.0,
}
PRIMARIES = ["B1.1", "B1.2", "B1.3", "B10.1", "B10.2", "B10.3", "B2.1", "B2.2"]


def results(values: dict[str, Any], exponents: tuple[float, float] = (2.0, 1.0)) -> xr.Dataset:
    """Rates are |u|^a |S|^b; every value has a little noise over seeds."""
    a, b = exponents
    noise = np.random.default_rng(0)
    coordinates = coordinates_of(STUDY, SEEDS)
    shape = (len(STUDY.case), 2, 3, SEEDS)
    data = {}
    for output in STUDY.outputs():
        full = np.full((*shape, *(len(coordinates[dim]) for dim in output.dims)), np.nan)
        if output.name in values:
            full[...] = values[output.name]
            if output.name not in ("rank_share", "active_enough"):
                full *= 1 + 0.001 * noise.normal(size=full.shape)
        data[output.name] = ((*STUDY.axes, "seed", *output.dims), full)
    rate = data["class_rate"][1]
    for i, name in enumerate(STUDY.case):
        if name.startswith("slow"):
            u = np.array(STUDY.strength)[None, :, None, None]
            rate[i] = u**a * np.array(STUDY.sizes_of(name)) ** b
            rate[i] *= 1 + 0.001 * noise.normal(size=rate[i].shape)
    return xr.Dataset(data, coordinates)


@cache
def verdicts(as_claimed: bool) -> list[Verdict]:
    data = results(AS_CLAIMED) if as_claimed else results(OTHERWISE, (1.0, 0.0))
    return STUDY.verdicts(data, "paper")


def primaries(found: list[Verdict]) -> dict[str, Verdict]:
    return {v.claim: v for v in found if v.role == "primary"}


@pytest.mark.parametrize(("as_claimed", "wanted"), [(True, "holds"), (False, "fails")])
def test_everything_is_judged_as_it_is(as_claimed: bool, wanted: str) -> None:
    found = verdicts(as_claimed)
    assert sorted(primaries(found)) == PRIMARIES
    for verdict in found:
        if verdict.outcome != "premise-not-met":
            assert verdict.outcome == wanted, verdict
    assert all(v.outcome == wanted for v in primaries(found).values())


def test_lemmas_outside_their_conditions_decide_nothing() -> None:
    """More samples than filters, or initial weights that no size allows."""
    missed = [v for v in verdicts(True) if v.outcome == "premise-not-met"]
    assert {v.claim for v in missed} == {"B10"}
    for verdict in missed:
        few = verdict.setting.startswith(("trained", "carried on"))
        assert few or "Lemma 6" in verdict.setting
        assert ("Condition 1 (b) asks for at most 0.1 m = 10" in verdict.note) == few
    assert len(missed) == 10


def test_lemmas_need_a_small_training_loss() -> None:
    data = results(AS_CLAIMED)
    data["train_loss"][...] = 0.5
    found = primaries(STUDY.verdicts(data, "paper"))
    assert {found[f"B10.{i}"].outcome for i in (1, 2, 3)} == {"premise-not-met"}


def test_the_worst_strength_at_the_smallest_gamma_decides() -> None:
    data = results(AS_CLAIMED)
    data["log_kappa"].loc[{"gamma": 10.0}] = 2.0
    assert primaries(STUDY.verdicts(data, "paper"))["B10.3"].outcome == "holds"
    data["log_kappa"].loc[{"gamma": 1.0, "strength": 0.01}] = 2.0
    assert primaries(STUDY.verdicts(data, "paper"))["B10.3"].outcome == "fails"


def test_the_worst_cell_decides_about_stage_1() -> None:
    data = results(AS_CLAIMED)
    data["constant"].loc[{"gamma": 10.0, "strength": 4.0}] = 0.1
    data["bend"].loc[{"gamma": 10.0, "strength": 8.0}] = 0.5
    found = primaries(STUDY.verdicts(data, "paper"))
    assert found["B1.1"].outcome == found["B1.2"].outcome == "fails"
    assert "0.1 at 4" in found["B1.1"].note and found["B1.3"].note.endswith("|u| = 4, 8")


def test_noise_that_leads_does_not_count_against_features() -> None:
    """Lemma 1 bounds the loss from above: a faster fall is no breach."""
    data = results(AS_CLAIMED)
    data["constant"].loc[{"strength": 0.01}] = 1e4
    assert primaries(STUDY.verdicts(data, "paper"))["B1.1"].outcome == "holds"


def test_one_seed_decides_nothing() -> None:
    one = STUDY.verdicts(results(AS_CLAIMED).isel(seed=[0]), "paper")
    assert {v.outcome for v in one} == {"inconclusive", "premise-not-met"}


def test_filters_that_see_nothing_of_their_own_class_fail_lemma_5() -> None:
    data = results(AS_CLAIMED)
    data["memory_worst"][...] = 0.0  # would be infinite the other way round, and so missing
    data["start"][...] = np.nan
    found = STUDY.verdicts(data, "paper")
    assert primaries(found)["B10.2"].outcome == "fails"
    assert "T_0 never came" in primaries(found)["B2.1"].note
    assert STUDY.tables(data)


def test_axes_may_be_short_and_cases_few() -> None:
    data = results(AS_CLAIMED)
    for cases in (["slow"], ["long"], ["wide"], ["slow", "slow uneven"]):
        some = data.sel(case=cases)
        found = dataclasses.replace(STUDY, case=tuple(cases)).verdicts(some, "paper")
        assert found and all(v.outcome in ("holds", "premise-not-met") for v in found)
    one = data.sel(strength=[8.0], gamma=[1.0])
    assert primaries(STUDY.verdicts(one, "paper"))["B1.3"].outcome == "premise-not-met"
