"""Verdicts of ``topk-regimes``: S1 and S2, a verdict for each part of the theorem and dimension,
and S3; then what the text around the theorems says of the boundary and of generalisation.

The theorems hold "with probability at least 1 - delta": a part holds when it does so in at least
that share of the cells whose SNR is in its regime (constants of Theta read as 1). The cells of one
seed share their draws, so that a seed is one sample: its share of cells. They speak where
Condition 4.1 is met, at the largest dimension; the others show how far they reach beyond it.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, OMEGA, Identity, judge_bound, judge_slope, loglog_slope
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.regimes.boundary import boundary, exponent_in, of_chance, on_grid
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
from rarefy.theory.conditions import worst
from rarefy.theory.topk import (
    coefficient_ratio_order,
    noise_coefficient_order,
    noise_test_loss_floor,
    noise_threshold_order,
    signal_test_loss_ceiling,
    signal_threshold_order,
)

DELTA = 0.1
"""Chance with which the theorems may fail; the paper leaves it open, the formulas' default."""
EXPONENT = 0.1
"""How far an exponent may be off: half of the least difference between those in question (-1/4,
-1/2 and -1 in n) would be 0.125."""
SMALL = OMEGA
"""A test loss is small up to this share of log T, and of order 1 from it on."""
OURS = "not a claim of the paper, which says nothing between its thresholds"


def verdicts(experiment: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for d in results["d"].values.tolist():
        here = results.sel(d=d)
        named = Naming(experiment, scale, after=f", d={float(d):g}, {experiment.setting}")
        note = _condition(experiment, d)
        for claim, parts in _parts(experiment, here).items():
            found += [
                _share(named(claim, what), holds, among, note) for what, holds, among in parts
            ]
        slope = named("S3", "slope of gamma/rho in n SNR^2/T at the end")
        found += [_slope_of_ratio(slope, here, note), *_boundaries(named, here, note)]
    return found


def _condition(experiment: RegimesExperiment, d: int) -> str:
    """One phrase on how far dimension d is from Condition 4.1."""
    missed = worst(experiment.conditions(d))
    if missed.holds:
        return "Condition 4.1 is met at every point of the grid"
    return f"Condition 4.1 is not met: {missed.name} misses by up to {missed.ratio:.2g} times"


def in_regimes(results: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Cells of the signal regime and of the noise regime, (samples, classes, snr)."""
    n, classes, snr = results["samples"], results["classes"], results["snr"]
    everywhere = xr.ones_like(n * classes * snr, dtype=bool)
    high = snr >= on_grid(signal_threshold_order, classes, n)
    low = snr <= on_grid(noise_threshold_order, n)
    return high & everywhere, low & everywhere


Part = tuple[str, xr.DataArray, xr.DataArray]
"""What is said, in which cells it is true, and the cells it is said of."""


def _parts(experiment: RegimesExperiment, here: xr.Dataset) -> dict[str, list[Part]]:
    """By claim."""
    n, classes, snr = here["samples"], here["classes"], here["snr"]
    signal, noise = in_regimes(here)
    everywhere = xr.ones_like(signal)
    end = here.isel(read=-1)
    loss, chance = end["test_loss"], np.log(classes)
    # the logarithm that O-tilde hides is log T*: alpha = 4 log T* in (13) to (16)
    logarithm = BIG_O * float(np.log(experiment.steps))
    order = on_grid(coefficient_ratio_order, snr, classes, n)
    rho_bound = logarithm * on_grid(noise_coefficient_order, snr, classes, n)
    ceiling = on_grid(signal_test_loss_ceiling, end["train_loss"], classes, n)
    fitted = f"3: training loss <= {experiment.epsilon:g}"
    is_fitted = end["train_loss"] <= experiment.epsilon
    ratio = here["gamma"] / here["rho"]
    level = ratio.max("read", skipna=False) <= BIG_O * ratio.min("read", skipna=False)
    lowest, highest = here["gamma_low"] / here["rho_high"], here["gamma_high"] / here["rho_low"]
    of_order = ((lowest >= OMEGA * order) & (highest <= BIG_O * order)).all("read")
    ceiling_text = "4: test loss <= 8 e^4 T L_S + exp(-n^2), where that is below log T"
    poorly = "text: generalises poorly, test error at least half of guessing's"
    in_time = f"gamma/rho constant in time, largest over smallest read <= {BIG_O:g}"
    of_pairs = f"gamma/rho of all pairs in {OMEGA:g}..{BIG_O:g} n SNR^2/T at all reads"
    no_noise = f"2: noise not memorised, |rho| <= {BIG_O:g} log(T*) T/(n SNR^2)"
    no_signal = f"2: signal not learnt, |gamma| <= {BIG_O:g} log(T*) n SNR^2/T"
    floor = on_grid(noise_test_loss_floor, classes)
    return {
        "S1": [
            (f"1: signal learnt, gamma >= {OMEGA:g}", end["signal_learnt"] >= OMEGA, signal),
            (no_noise, end["rho_all"] <= rho_bound, signal),
            (fitted, is_fitted, signal),
            (ceiling_text, loss <= ceiling, signal & (ceiling < chance)),
            (f"4: test loss <= {SMALL:g} log T", loss <= SMALL * chance, signal),
        ],
        "S2": [
            (f"1: noise memorised, rho >= {OMEGA:g}", end["noise_learnt"] >= OMEGA, noise),
            (no_signal, end["gamma_all"] <= logarithm * order, noise),
            (fitted, is_fitted, noise),
            ("4: test loss >= 0.5 log(1 + (T-1)/e)", loss >= floor, noise),
            (poorly, of_chance(end, "test_error") >= 0.5, noise),
        ],
        "S3": [(in_time, level, everywhere), (of_pairs, of_order, everywhere)],
    }


def _share(identity: Identity, holds: xr.DataArray, among: xr.DataArray, note: str) -> Verdict:
    holds, among = xr.broadcast(holds, among)
    cells = [dim for dim in among.dims if dim != "seed"]
    count = among.sum(cells)
    shares = (holds & among).sum(cells) / count.where(count > 0)
    seen = f"{int(among.sum())} runs" if bool(among.any()) else "no run is in its regime"
    said = joined(f"share of cells, {seen}", note)
    return judge_bound(identity, shares.values, 1 - DELTA, "at_least", note=said)


def _slope_of_ratio(identity: Identity, here: xr.Dataset, note: str) -> Verdict:
    end, point = here.isel(read=-1), ("samples", "classes", "snr")
    order = on_grid(coefficient_ratio_order, end["snr"], end["classes"], end["samples"])
    ratio = (end["gamma"] / end["rho"]).stack(point=point)
    slope = loglog_slope(order.stack(point=point).values, by_seed(ratio, "point"))
    return judge_slope(identity, slope, 1.0, EXPONENT, note)


def _boundaries(named: Naming, here: xr.Dataset, note: str) -> list[Verdict]:
    """Half of chance in the test loss: how that SNR moves with n and T."""
    where = boundary(here.isel(read=-1))
    in_n, in_classes = exponent_in(where, "samples"), exponent_in(where, "classes")
    half, ours = "SNR of half of log T moves with", joined(OURS, note)
    meet = "like sqrt(T/n), where gamma = rho"
    return [
        judge_slope(named(claim, what), slope, power, EXPONENT, said)
        for claim, what, slope, power, said in (
            ("S1", f"sharpness: {half} n like T n^(-1/4)", in_n, -0.25, note),
            ("S3", f"{half} n {meet}", in_n, -0.5, ours),
            ("S3", f"{half} T {meet}", in_classes, 0.5, ours),
        )
    ]
