"""B1, B2, B10: verdicts on results made up, wrong values, and the study at a small size."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.errors import UsageError
from rarefy.studies import get_study

BenignTraining: Any = get_study("benign-training")

pytestmark = pytest.mark.usefixtures("eager")

STUDY = BenignTraining(gamma=(1.0, 10.0), strength=(0.01, 4.0, 8.0))
SEEDS = 6
ENDS = ("printed", "trained", "small start", "wide", "wide large start")
"""Cases at whose end Lemmas 3-7 are looked at."""
AS_CLAIMED: dict[str, Any] = {
    "lr": 1.0,
    "constant": (0.8, 1.0, 1.2),
    "bend": 0.9,
    "left": 1.0,
    "falls": 1.0,
    "gain_least": 1.2,
    "gain_enough": 1.0,
    "first_drop": 1.0,
    "start": 10.0,
    "bound_worst": 0.5,
    "average_slope": -1.0,
    "loss_slope": -1.0,
    "kappa_slope": 0.0,
    "rank_share": 1.0,
    "largest_over_order": 1.0,
    "numbered_over_floor": 5.0,
    "active_least": 0.2,
    "active_enough": 1.0,
    "memory_worst": 10.0,
    "memory_pairs": 1.0,
    "memory_pairs_strong": 1.0,
    "still_active": 1.0,
    "tail_share": 0.3,
    "tail_own": (0.5, 1.0, 2.0),
    "tail_other": 1.0,
    "log_kappa": 0.3,
    "train_loss": 0.01,
}
OTHERWISE: dict[str, Any] = AS_CLAIMED | {
    "constant": (0.1, 1.0, 9.0),
    "bend": 0.1,
    "falls": 0.9,
    "gain_least": -3.0,
    "bound_worst": 1.5,
    "average_slope": -0.5,
    "loss_slope": -0.5,
    "kappa_slope": 0.5,
    "rank_share": 0.5,
    "largest_over_order": 9.0,
    "numbered_over_floor": 0.2,
    "active_enough": 0.7,
    "memory_worst": 0.5,
    "still_active": 0.5,
    "tail_own": (0.01, 1.0, 9.0),
    "tail_other": 9.0,
    "log_kappa": 3.0,
}


def results(values: dict[str, Any], exponents: tuple[float, float, float, float]) -> xr.Dataset:
    """Rates are |u|^a |S|^b m^c eta^d; every value has a little noise over seeds."""
    a, b, c, d = exponents
    noise = np.random.default_rng(0)
    coordinates: dict[str, Any] = {name: list(getattr(STUDY, name)) for name in STUDY.axes}
    coordinates |= {"seed": np.arange(SEEDS), **STUDY.coordinates()}
    shape = (len(STUDY.case), 2, 3, SEEDS)
    data = {}
    for output in STUDY.outputs():
        full = np.full((*shape, *(len(coordinates[dim]) for dim in output.dims)), np.nan)
        if output.name in values:
            full[...] = values[output.name]
            if output.name not in ("falls", "rank_share", "still_active", "active_enough"):
                full *= 1 + 0.001 * noise.normal(size=full.shape)
        data[output.name] = ((*STUDY.axes, "seed", *output.dims), full)
    data["train_loss"][1][STUDY.case.index("printed")] = 1.5  # hardly begun
    rate, lr = data["class_rate"][1], data["lr"][1]
    for i, name in enumerate(STUDY.case):
        eta = 4.0 if name == "slow 4eta" else 1.0
        lr[i] = eta
        if name.startswith("slow"):
            sizes, m = np.array(STUDY.sizes_of(name)), STUDY.at_case(name).filters
            u = np.array(STUDY.strength)[None, :, None, None]
            rate[i] = u**a * sizes**b * float(m) ** c * eta**d
            rate[i] *= 1 + 0.001 * noise.normal(size=rate[i].shape)
    return xr.Dataset(data, coordinates)


CLAIMED_EXPONENTS, OTHER_EXPONENTS = (2.0, 1.0, -1.0, 1.0), (1.0, 0.0, 0.0, 0.5)


@cache
def verdicts(as_claimed: bool) -> list[Verdict]:
    values = AS_CLAIMED if as_claimed else OTHERWISE
    exponents = CLAIMED_EXPONENTS if as_claimed else OTHER_EXPONENTS
    return STUDY.verdicts(results(values, exponents), "paper")


def trained(found: list[Verdict]) -> list[Verdict]:
    """Without those of the printed training, whose loss is not small."""
    return [verdict for verdict in found if "as printed" not in verdict.setting]


def test_everything_holds_where_it_is_as_claimed() -> None:
    for verdict in verdicts(True):
        wanted = "inconclusive" if "premise not met" in verdict.note else "holds"
        assert verdict.outcome == wanted, verdict


def test_everything_fails_where_it_is_not() -> None:
    for verdict in verdicts(False):
        wanted = "inconclusive" if "premise not met" in verdict.note else "fails"
        assert verdict.outcome == wanted, verdict


def test_a_premise_is_missed_by_the_printed_training_and_by_few_filters_only() -> None:
    missed = [v for v in verdicts(True) if "premise not met" in v.note]
    assert {v.claim for v in missed} == {"B2", "B10"}
    for verdict in missed:
        printed = "as printed" in verdict.setting
        assert printed or (verdict.n == 0 and "singular value min{m,d,rank A}-n" in verdict.setting)
        assert not printed or verdict.outcome == "inconclusive"
    assert not any(v.setting.startswith("K=2") for v in missed)  # there are filters enough


def test_both_trainings_are_judged_and_every_lemma_for_each_end() -> None:
    for claim in ("B1", "B10"):
        settings = [v.setting for v in verdicts(True) if v.claim == claim]
        assert any("as printed" in setting for setting in settings)
    settings = [v.setting.partition(": ") for v in verdicts(True) if v.claim == "B10"]
    ends = {case for case, _, _ in settings if "trained on and on" not in case}
    assert len(ends) == len(ENDS)
    for end in ends:
        said = " ".join(what for case, _, what in settings if case == end)
        assert all(f"Lemma {number}" in said for number in (3, 4, 5, 6, 7)) and "(86)" in said


def test_the_worst_gamma_decides_and_the_note_has_all() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["log_kappa"].loc[{"gamma": 10.0}] = 2.0
    found = [v for v in STUDY.verdicts(data, "paper") if "Lemma 7: log10" in v.setting]
    assert len(found) == len(ENDS) and all(v.outcome == "fails" for v in trained(found))
    assert all("at Gamma 1, 10: 0.3" in v.note for v in found)


def test_the_worst_strength_decides() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["active_enough"].loc[{"strength": 0.01}] = 0.5
    found = [v for v in STUDY.verdicts(data, "paper") if "Lemma 4" in v.setting]
    assert found and all(v.outcome == "fails" for v in trained(found))


def test_a_fall_like_1_over_t_is_not_geometric() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["bend"][...] = 0.5
    (found,) = (v for v in STUDY.verdicts(data, "paper") if "nearer to geometric" in v.setting)
    assert found.outcome == "fails" and "0.5 at 0.01" in found.note


def test_noise_can_lead_where_features_are_small() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["constant"].loc[{"strength": 0.01}] = 1e4
    found = {
        v.setting: v for v in STUDY.verdicts(data, "paper") if "none falls faster" in v.setting
    }
    assert len(found) == 4
    for setting, verdict in found.items():
        led = "features lead" in setting
        assert verdict.outcome == ("holds" if led else "fails")
        assert ("|u| = 4, 8" if led else "|u| = 0.01") in verdict.note
    rates = next(table for table in STUDY.tables(data) if table.name == "rates")
    column = list(rates.columns).index("features' share, predicted")
    assert [row[column] for row in rates.rows[:3]] == ["0.00", "0.87", "0.96"]


def test_few_seeds_or_a_wide_spread_decide_nothing() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    one = STUDY.verdicts(data.isel(seed=[0]), "paper")
    assert all(v.outcome == "inconclusive" for v in one), [v for v in one if v.outcome == "holds"]
    data["bound_worst"][...] = np.random.default_rng(1).uniform(0, 2, data["bound_worst"].shape)
    bound = [v for v in STUDY.verdicts(data, "paper") if "Lemma 2's bound" in v.setting]
    assert [v.outcome for v in bound] != ["holds"]


def test_filters_that_see_nothing_of_their_own_class_fail_lemma_5() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    data["memory_worst"][...] = 0.0  # would be infinite the other way round, and so missing
    data["class_rate"][...] = -data["class_rate"]  # losses that rise have no logarithm
    data["bend"][...] = np.nan
    data["start"][...] = np.nan
    found = STUDY.verdicts(data, "paper")
    assert all(v.outcome == "fails" for v in trained(found) if "Lemma 5" in v.setting)
    assert not any(v.outcome == "holds" for v in found if "exponent of the rate" in v.setting)
    assert STUDY.tables(data)


def test_axes_may_be_short_and_cases_few() -> None:
    data = results(AS_CLAIMED, CLAIMED_EXPONENTS)
    for cases in (["slow"], ["long"], ["printed"], ["wide"], ["slow", "slow m/4"]):
        some = data.sel(case=cases)
        found = dataclasses.replace(STUDY, case=tuple(cases)).verdicts(some, "paper")
        assert found and all(v.outcome in ("holds", "inconclusive") for v in found)
    one = data.sel(strength=[8.0], gamma=[1.0])
    slopes = [v for v in STUDY.verdicts(one, "paper") if "rate in |u|" in v.setting]
    assert all(v.outcome == "inconclusive" for v in slopes)


# ------------------------------------------------------------------------------------ wrong values


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"case": ("slow", "fast")}, "case='fast': must be one of slow, slow m/4"),
        ({"strength": (1.0, 0.0)}, "strength=0.0: must be positive and finite"),
        ({"gamma": (0.5,)}, "gamma=0.5: must be finite and at least 1"),
        ({"size": 0}, "size=0: must be at least 1"),
        ({"slow_steps": 0}, "slow_steps=0: must be at least 1"),
        ({"long_steps": -1}, "long_steps=-1: must be at least 1"),
        ({"wide_size": 0}, "wide_size=0: must be at least 1"),
        ({"small_sigma_0": 0.0}, "small_sigma_0=0.0: must be positive"),
        ({"wide_classes": 1}, "wide_classes=1: must be at least 2"),
        ({"wide_classes": 31}, "wide_classes=31: must be at most wide_d/2=30"),
    ],
)
def test_wrong_values_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        BenignTraining.at("tiny", **wrong)
    assert "\n" not in str(caught.value)
