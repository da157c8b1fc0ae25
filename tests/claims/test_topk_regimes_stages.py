"""The study of stage lengths: what is varied, how a stage is timed, and the verdicts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import coordinates_of

from rarefy.core.contracts import Context, Verdict
from rarefy.ledger.claims import load_claims
from rarefy.measure.coefficients import accumulated_coefficients
from rarefy.studies import get_study
from rarefy.studies.topk.stages.claims import SYMBOLS
from rarefy.sweep.grid import grid_of
from rarefy.theory.topk import noise_threshold_order, signal_threshold_order
from rarefy.train.patch_classifier import PatchClassifier

TopKStages: Any = get_study("topk-stages")

pytestmark = pytest.mark.usefixtures("eager")
STUDY = TopKStages()
QUANTITIES = STUDY.varied
EXPONENTS = {
    "signal": {"filters": 1, "classes": 1, "lr": -1, "mu": -2},  # m T/(eta mu^2)
    "noise": {"filters": 1, "samples": 1, "lr": -1, "sigma": -2, "d": -1},  # m n/(eta sigma_p^2 d)
}


def test_one_quantity_at_a_time_is_varied_and_the_learning_rate_stays() -> None:
    base = STUDY.sizes("noise", "mu", 1.0)
    for varied in QUANTITIES:
        here = STUDY.sizes("noise", varied, 2.0)
        for name in QUANTITIES:
            factor = 2.0 if name == varied else 1.0
            assert getattr(here, name) == factor * getattr(base, name)


def test_every_cell_is_in_its_regime() -> None:
    for varied in QUANTITIES:
        for factor in STUDY.factor:
            for regime in STUDY.regime:
                at = STUDY.sizes(regime, varied, factor)
                snr = at.mu / (at.sigma * at.d**0.5)
                if regime == "signal":
                    assert snr >= signal_threshold_order(at.classes, float(at.samples))
                else:
                    assert snr <= noise_threshold_order(float(at.samples))


def test_a_stage_ends_when_the_last_positive_filter_has_reached_the_level() -> None:
    study = TopKStages.at(
        "tiny", seeds=1, factor=(1.0,), varied=("mu",), steps=90, levels=(1.0, 3.0)
    )
    context = Context(dtype=torch.float64)
    grid = grid_of(study)
    cells = grid.cells(np.arange(2))
    found = study.simulate(cells, context)
    experiment = study.prepare(cells, context)
    problem = PatchClassifier.of(experiment.samples, experiment.scale)
    filters = experiment.initial
    held = filters.new_zeros(*filters.shape[:3], len(experiment.samples) + 4)
    first: dict[tuple[str, int, float], int] = {}
    for step in range(1, 91):
        _, moved = problem.gradients({"filters": filters, "coefficients": held})
        rate = experiment.lr[:, None, None, None]
        filters, held = filters - rate * moved["filters"], held - rate * moved["coefficients"]
        seen = accumulated_coefficients(held, experiment.samples)
        rho = seen.own_rho(experiment.samples.one_hot())
        for run in range(2):
            for level in study.levels:
                if bool((seen.own_gamma[run][experiment.seen_signal()[run]] >= level).all()):
                    first.setdefault(("gamma", run, level), step)
                if bool((rho[run][experiment.seen_noise()[run]] >= level).all()):
                    first.setdefault(("rho", run, level), step)
    for what in ("gamma", "rho"):
        for run in range(2):
            for at, level in enumerate(study.levels):
                expected = first.get((what, run, level), np.nan)
                assert np.array_equal(found[f"{what}_stage"][run, at], expected, equal_nan=True)
    assert ("gamma", 0, 3.0) in first and ("rho", 1, 3.0) in first
    assert ("gamma", 1, 1.0) not in first  # in the noise regime no signal is learnt


# ---------------------------------------------------------------------------------------- verdicts


def results(**off: float) -> xr.Dataset:
    """Stage lengths with the lemmas' exponents, plus ``off`` for some quantity."""
    factor = np.array(STUDY.factor)[None, :, None, None]
    jitter = np.exp(
        0.01 * np.random.default_rng(0).normal(size=(2, 7, 4, STUDY.seeds, len(STUDY.levels)))
    )
    data = {}
    for name, regime in (("gamma_stage", "signal"), ("rho_stage", "noise")):
        powers = np.array([EXPONENTS[regime].get(q, 0) + off.get(q, 0.0) for q in STUDY.varied])
        values = 200 * factor ** powers[:, None, None, None] * np.array(STUDY.levels)
        data[name] = ((*STUDY.axes, "seed", "level"), values[None] * jitter)
    data["nonfinite_step"] = ((*STUDY.axes, "seed"), np.full(jitter.shape[:-1], -1.0))
    return xr.Dataset(data, coordinates_of(STUDY))


def judged(data: xr.Dataset) -> dict[str, Verdict]:
    """By id; S11 is what reads T too."""
    return {verdict.claim: verdict for verdict in STUDY.verdicts(data, "paper")}


PRIMARIES = ("S11.1", "S11.2", "S11.3")


def test_the_lemmas_exponents_hold_and_every_cell_has_the_same_constant() -> None:
    said = judged(results())
    assert sorted(said) == ["S11", *PRIMARIES]
    assert {verdict.outcome for verdict in said.values()} == {"holds"}
    for name in ("S11.1", "S11.2"):
        interval = said[name].interval
        assert interval is not None and interval[1] < 1.1 and "in 28 cells" in said[name].note


@pytest.mark.parametrize("varied", QUANTITIES)
def test_another_exponent_fails(varied: str) -> None:
    other = "mu" if varied != "mu" else "lr"
    said = judged(results(**{varied: 0.5}).sel(varied=[varied, other]))
    wrong = {name for name, verdict in said.items() if verdict.outcome == "fails"}
    assert wrong == ({"S11"} if varied == "classes" else {"S11.3", "S11"})
    assert f", {varied}: " in said["S11"].note


def test_a_reading_names_the_quantities_that_it_reads_and_those_are_the_declared_ones() -> None:
    """S11.3 once read T, which its declaration leaves out, and said contradicted for it."""
    (declared,) = (p for claim in load_claims() for p in claim.primaries if p.id == "S11.3")
    asked = re.search(r"the exponent in (.*) that is most off", declared.asks)
    said = judged(results())
    for name, symbols in (("S11.3", {*SYMBOLS.values()} - {"T"}), ("S11", {*SYMBOLS.values()})):
        named = said[name].setting.removeprefix("exponents in ").split(": ")[0]
        assert set(named.split(", ")) == symbols
        assert f"of {2 * len(symbols)} exponents" in said[name].note
    assert asked and set(re.split(", | or ", asked[1])) == {*SYMBOLS.values()} - {"T"}


def test_constants_that_differ_too_much_fail() -> None:
    said = judged(results(d=1.5))
    assert {said[name].outcome for name in PRIMARIES} == {"fails"}


def test_a_stage_that_was_not_reached_is_missing_and_said_to_be() -> None:
    data = results().sel(varied=["mu", "lr"])
    data["gamma_stage"] = data["gamma_stage"].where(data["seed"] > 2)
    said = judged(data)
    assert said["S11.1"].outcome == "inconclusive"
    assert "24 runs were too short for it" in said["S11.1"].note
    assert said["S11.2"].outcome == "holds"
    # one that was lost is not one that was too short
    data = results().sel(varied=["mu", "lr"])
    lost = (data["seed"] == 2) & (data["factor"] == 4.0)
    data = data.where(~lost).assign(nonfinite_step=data["nonfinite_step"].where(~lost, 5))
    assert {judged(data)[name].outcome for name in PRIMARIES} == {"holds"}


def test_what_the_cells_miss_of_condition_4_1_is_in_a_table() -> None:
    tables = {table.name: table for table in STUDY.tables(results())}
    missed = [(row[0], row[2]) for row in tables["conditions"].rows if row[5] == "no"]
    # sigma_p^2 d = (mu/SNR)^2 is below 1 where the SNR is above mu
    assert missed == [("signal", "d >= sigma_p^-2")]


def test_runs_that_were_too_slow_at_one_factor_bend_no_exponent() -> None:
    data = results().sel(varied=["filters"], regime=["signal"])
    slow = (data["seed"] < 5) & (data["factor"] == 4.0)
    data["gamma_stage"] = xr.where(data["seed"] < 5, 3.0, 1.0) * data["gamma_stage"]
    data["gamma_stage"] = data["gamma_stage"].where(~slow)
    verdict = judged(data)["S11.3"]
    assert verdict.outcome == "holds" and verdict.n == STUDY.seeds - 5
