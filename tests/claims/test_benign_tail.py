"""B4: the verdicts on errors made up, the weighted test samples of the study."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Context, Verdict
from rarefy.core.picture import Lines
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.tail_noise import TailSamples
from rarefy.measure.tails import CRITERIA, tail_errors
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

BenignTail: Any = get_study("benign-tail")

pytestmark = pytest.mark.usefixtures("eager")

# ------------------------------------------------------------------------------------- the verdicts

GAMMA, LENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 40.0), (0.0, 0.5, 1.0, 2.0)
STUDY = BenignTail(schedule=("trained",), gamma=GAMMA, lengths=LENGTHS)
SEEDS = 6
AT = np.meshgrid(GAMMA, LENGTHS, indexing="ij")


def made_up(error: np.ndarray, loss: float = 0.01, seen: float = 100.0) -> xr.Dataset:
    """Errors (gamma, length), 1 % scatter over seeds."""
    scatter = 1 + 0.01 * np.random.default_rng(0).normal(size=(SEEDS, *error.shape, 2))
    tail = (("seed", "gamma", "length", "criterion"), error[None, :, :, None] * scatter)
    values = {"tail_error": tail, "tail_share": 0.1, "errors_seen": seen, "train_loss": loss}
    return fabricated(STUDY, SEEDS, {**values, "stopped_at": 0.0})


def bounded(c: float = 0.3) -> np.ndarray:
    """Errors of the form of 2(b)."""
    return np.minimum(0.8, 4 * np.exp(-c * AT[0] * AT[1] ** 2))


def judged(results: xr.Dataset) -> dict[str, Verdict]:
    return {v.claim: v for v in STUDY.verdicts(results, "paper") if v.role == "primary"}


def test_an_error_of_the_form_of_the_bound_holds() -> None:
    found = judged(made_up(bounded()))
    assert found["B4.1"].outcome == "holds"
    # the rate has a premise: one special direction is too few for Condition 1 (a)
    rate = found["B4.2"]
    assert rate.outcome == "premise-not-met" and rate.value == pytest.approx(1.0, rel=0.05)
    assert "c_2 by Gamma: 0.3" in rate.note and "Condition 1 (a)" in rate.note


def test_the_best_classifier_holds() -> None:
    """Its constant fades with Gamma, and stays well within what is allowed."""
    ratio = special_ratio(AT[0], STUDY.d - STUDY.classes)
    found = judged(made_up(least_noise_error(ratio, STUDY.classes, "gaussian", AT[1])))
    assert found["B4.2"].value is not None
    assert 0.35 < found["B4.2"].value < 0.5


def test_an_error_that_selection_alone_makes_small_fails_both() -> None:
    """It falls with L, and does not know Gamma."""
    found = judged(made_up(0.8 * np.exp(-AT[1])))
    assert found["B4.1"].outcome != "holds"
    assert found["B4.2"].value == pytest.approx(4 / 40, rel=0.1)


def test_an_error_that_rises_with_gamma_fails() -> None:
    assert judged(made_up(0.1 + 0.01 * AT[0]))["B4.1"].outcome == "fails"


def test_without_enough_errors_or_a_small_loss_nothing_is_decided() -> None:
    assert judged(made_up(bounded(), seen=1.0))["B4.2"].outcome == "inconclusive"
    verdicts = STUDY.verdicts(made_up(bounded(), loss=1.5), "paper")
    assert {v.outcome for v in verdicts} == {"premise-not-met"} and len(verdicts) == 4
    assert all("premise not met: training loss 1.5" in verdict.note for verdict in verdicts)


def test_the_tail_that_asks_no_network_is_robustness() -> None:
    rest = [v for v in STUDY.verdicts(made_up(bounded()), "paper") if v.role != "primary"]
    assert [v.claim for v in rest] == ["B4", "B4"]
    assert all(v.setting.startswith("trained, tail by |zeta| >= L: ") for v in rest)


def test_the_control_is_shown_and_cells_with_too_few_errors_are_not() -> None:
    results = made_up(bounded())
    results["tail_error"].loc[{"gamma": 1.0}] = 0.5
    results["errors_seen"].loc[{"length": 2.0, "gamma": 8.0}] = 0.5  # 3 in all, 10 are needed
    control = next(p for p in STUDY.picture(results) if p.name == "control")
    assert isinstance(control.panels[0], Lines)
    curves = {curve.label: curve for curve in control.panels[0].curves}
    assert curves["Gamma 1 (control)"].style == "dashed"
    assert (curves["Gamma 1 (control)"].y == 0.5).all()
    assert np.isfinite(curves["Gamma 8"].y).tolist() == [True, True, True, False]


# --------------------------------------------------------------------------------------- simulation

TINY: Any = BenignTail.at("tiny", test_samples=20_000)


def test_weighted_samples_say_the_same_as_the_data_s_own_law() -> None:
    """The study's errors against plain samples of the same trained network: 4.5 standard errors."""
    study = TINY
    context = Context(dtype=torch.float64)
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    rows = (np.array(cells.values["schedule"]) == "trained") & (cells.values["seed"] == 0)
    chosen = cells.take(np.flatnonzero(rows))
    found = study.simulate(chosen, context)
    noise = Spectrum.joined([study.spectrum(float(g)) for g in chosen.values["gamma"]])
    trial = study.setup(
        chosen,
        context,
        spectrum=noise,
        strength=torch.full((len(chosen),), study.strength, dtype=torch.float64),
        sizes=torch.full((1, 3), study.samples),
        schedule="trained",
        zeta_axes="rotated",
    )
    filters = trial.fit(context, study.training("trained")).filters
    table, axes = noise.table(), trial.data.special_axes()
    lam = table[:, torch.arange(3), axes]

    def plain(count: int, chunk: int) -> TailSamples:
        labels = (torch.arange(count) % 3)[None]
        samples = trial.data.sample(trial.draws, labels, "plain", chunk)
        there = axes[samples.labels].expand(len(samples.noise), -1)[:, :, None]
        z = samples.noise.gather(2, there)[:, :, 0] / lam[:, labels[0]]
        zero = torch.zeros(1, count, dtype=torch.float64)
        return TailSamples(samples, z, zero.long(), zero)

    expected = tail_errors(filters, plain, 60_000, study.lengths, table, trial.scale)
    for place, name in enumerate(CRITERIA):
        other = expected.by[name].beyond(overall=True)
        error, share, errors = (
            found[output][:, place] for output in ("tail_error", "tail_share", "errors_seen")
        )
        worth = errors / np.maximum(error, 1e-9)  # samples of equal weight
        plainly = other.spread.numpy() ** 2
        allowed = 4.5 * np.sqrt(error * (1 - error) / np.maximum(worth, 1) + plainly) + 1e-9
        assert (np.abs(error - other.error.numpy()) <= allowed).all(), name
        assert (np.abs(share - other.probability.numpy()) <= 0.05).all(), name
