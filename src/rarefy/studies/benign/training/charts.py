"""Pictures of ``benign-training``."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import OMEGA
from rarefy.studies.benign.training.cases import ENDS
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.words import seeds_in_words
from rarefy.theory.benign import first_loss_drop

SHOWN = 2.0
"""The |u| (the nearest on the axis) of pictures that show one: the middle of the paper's range."""


def pictures(study: TrainingExperiment, results: xr.Dataset) -> list[Picture]:
    cases = texts(results, "case")
    found = []
    if "slow" in cases:
        found.append(_losses(study, results))
    if "long" in cases:
        found.append(_stage_2(study, results))
    ends = [case for case in ENDS if case in cases]
    return [*found, _memory(results, ends)] if ends else found


def power_of_ten(exponent: float) -> str:
    """10^exponent as a text, beyond what a float can hold too."""
    return f"{10**exponent:.3g}" if exponent < 300 else f"1e+{exponent:.0f}"


def _notes(values: np.ndarray, text: Callable[[float], str]) -> list[tuple[int, int, str]]:
    """The values of a heat map as texts in its cells."""
    return [(row, column, text(value)) for (row, column), value in np.ndenumerate(values)]


def _nearest(values: np.ndarray, wanted: float) -> float:
    return float(values[np.abs(np.asarray(values) - wanted).argmin()])


def _losses(study: TrainingExperiment, results: xr.Dataset) -> Picture:
    """Losses of single samples in stage 1, with the fall that features alone would give."""
    slow = results.sel(case="slow").sel(gamma=results["gamma"].values.min())
    strength = results["strength"].values
    shown = strength[np.unique(np.linspace(0, len(strength) - 1, 3).round().astype(int))]
    panels: list[Lines | HeatMap] = []
    for u in shown:
        here = slow.sel(strength=u)
        step = here["step_at"].isel(seed=0).values
        there = np.isfinite(step)
        step = step[there]
        loss = here["loss_at"].mean("seed").transpose("spread", "time").values[:, there]
        lr = float(here["lr"].mean("seed"))
        start = math.log(study.classes)
        n = study.classes * study.size
        rate = first_loss_drop(study.size, u, 0.0, n, study.classes, lr, study.filters, study.scale)
        fall = start * np.exp(-float(rate) / start * step)
        samples, end = "samples: median, least to most", np.full(len(step), OMEGA * start)
        panels.append(
            Lines(
                [
                    Curve(samples, step, loss[1], loss[0], loss[2], "sample"),
                    Curve("features alone, geometric", step, fall, role="theory", style="dashed"),
                    Curve("end of stage 1: a quarter", step, end, role="level", style="dotted"),
                ],
                x_label=f"updates, at a rate of {lr:.2g}",
                y_label="loss of a training sample",
                title=f"|u| = {u:g}",
                y_log=True,
            )
        )
    panels.append(_constants(results))
    return Picture(
        "stage-1",
        "Stage 1: losses of single samples, and what sets their pace",
        "First panels: the losses of single training samples while training begins, Gamma = "
        f"{results['gamma'].values.min():g}, {seeds_in_words(results)}; the learning rate is "
        "such that the first step takes a fortieth of the loss. Dashed: the geometric fall of "
        "Lemma 1, with the constant of the first step in closed form. Last panel: each sample's "
        "rate in units of that constant, median with the range from slowest to fastest sample. At "
        "1 the feature explains it; above, each sample's own noise does.",
        panels,
    )


def _constants(results: xr.Dataset) -> Lines:
    curves = []
    strength = results["strength"].values
    for gamma in results["gamma"].values:
        values = results["constant"].sel(case="slow", gamma=gamma).mean("seed")
        low, middle, high = values.transpose("spread", "strength").values
        curves.append(
            Curve(f"Gamma = {gamma:g}", strength, middle, low, high, role=f"Gamma {gamma:g}")
        )
    curves.append(Curve("Lemma 1", strength, np.ones(len(strength)), role="theory", style="dashed"))
    y_label = "rate of a sample over that of features alone"
    return Lines(curves, "feature norm |u|", y_label, "What drives the fall", True, True)


def _stage_2(study: TrainingExperiment, results: xr.Dataset) -> Picture:
    long = results.sel(case="long")
    u = _nearest(results["strength"].values, SHOWN)
    loss_curves, kappa_curves = [], []
    for gamma in results["gamma"].values:
        here = long.sel(gamma=gamma, strength=u)
        step = here["step_at"].isel(seed=0).values
        there = np.isfinite(step) & (step > 0)
        role = f"Gamma {gamma:g}"
        average = by_seed(here["average_at"])[:, there]
        loss_curves.append(mean_curve(f"average, Gamma = {gamma:g}", step[there], average, role))
        bound = here["bound_at"].mean("seed").values[there]
        label = f"Lemma 2's bound, Gamma = {gamma:g}"
        loss_curves.append(Curve(label, step[there], bound, role=role, style="dashed"))
        kappa = 10 ** here["kappa_at"].transpose("seed", "time").values[:, there]
        kappa_curves.append(mean_curve(f"Gamma = {gamma:g}", step[there], kappa, role))
    start = float(long["start"].sel(strength=u).mean())
    marks = [(start, "T_0")] if np.isfinite(start) else []
    loss_label = "training loss averaged since T_0"
    kappa_label = "largest over smallest residual, kappa"
    panels = [
        Lines(loss_curves, "updates", loss_label, f"|u| = {u:g}", True, True, marks),
        Lines(kappa_curves, "updates", kappa_label, "Balance of the residuals", True, True),
    ]
    return Picture(
        "stage-2",
        "Stage 2: the averaged training loss against Lemma 2's bound, and the balance of residuals",
        f"{seeds_in_words(results)}, 95 % bands. Left: training loss averaged since T_0 (its first "
        "step below log(K)/4) against Lemma 2's right-hand side with the measured distance to W*. "
        "Right: Lemma 7 asks for a constant.",
        panels,
    )


def _memory(results: xr.Dataset, ends: list[str]) -> Picture:
    u = _nearest(results["strength"].values, SHOWN)
    at = results.sel(case=ends, strength=u)
    own, other = (
        at[f"memory_{whose}"].mean("seed").transpose("case", "gamma").values
        for whose in ("own", "other")
    )
    # filters that see nothing at all of other classes: as if they saw a millionth
    quotient = np.log10(own / np.maximum(other, 1e-6 * own))
    gamma = [float(value) for value in results["gamma"].values]
    of_own = "log10 of own over other response"
    unequal = at["log_kappa"].mean("seed").transpose("case", "gamma").values
    return Picture(
        "memory",
        "What filters remember of training noise, and how equal the residuals are",
        f"Left, |u| = {u:g}: mean response of a class's filters to the training noise of their own "
        "class over that to other classes' noise (Lemma 5); over a million is shown as a "
        "million. Right: largest over smallest residual of the samples at its worst (Lemma 7 asks "
        f"for a constant). {seeds_in_words(results)}.",
        [
            HeatMap(
                values,
                gamma,
                ends,
                "noise correlation ratio Gamma",
                "training",
                colour_label,
                title,
                _notes(values, text),
            )
            for values, colour_label, title, text in (
                (quotient, of_own, "Memory of training noise", lambda value: f"{10**value:.3g}"),
                (unequal, "log10 kappa", "Imbalance of residuals", power_of_ten),
            )
        ],
    )
