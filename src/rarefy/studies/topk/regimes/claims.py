"""Verdicts of ``topk-regimes``: S1 and S2, a verdict for each part of the theorem and dimension,
and S3; then what the text around the theorems says of the boundary and of generalisation.

The theorems hold "with probability at least 1 - delta": a part holds when it does so in at least
that share of the cells whose SNR is in its regime (constants of Theta read as 1). The cells of one
seed share their draws, so that a seed is one sample: its share of cells. They speak where
Condition 4.1 is met, at the largest dimension; the others show how far they reach beyond it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    judge_bound,
    judge_slope,
    loglog_slope,
)
from rarefy.studies.topk.regimes.boundary import boundary, exponent_in, of_chance, on_grid
from rarefy.studies.topk.regimes.conditions import worst_condition
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
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


def regimes_verdicts(study: RegimesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for d in results["d"].values:
        here = results.sel(d=d)
        where = f"d={float(d):g}, {study.setting}"
        note = worst_condition(study, int(d))

        def identity(claim: str, what: str, where: str = where) -> Identity:
            return (claim, study.name, scale, f"{what}, {where}")

        found += [
            _share(identity(claim, what), holds, among, note)
            for claim, what, holds, among in _parts(study, here)
        ]
        found += [
            _slope_of_ratio(
                identity("S3", "slope of gamma/rho in n SNR^2/T at the end"), here, note
            )
        ]
        found += _boundaries(identity, here, note)
    return found


Part = tuple[str, str, xr.DataArray, xr.DataArray]
"""Claim, what it says, in which cells it is true, and the cells it speaks of."""


def in_regimes(results: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Cells of the signal regime and of the noise regime, (samples, classes, snr)."""
    n, classes, snr = results["samples"], results["classes"], results["snr"]
    everywhere = xr.ones_like(n * classes * snr, dtype=bool)
    high = snr >= on_grid(signal_threshold_order, classes, n)
    low = snr <= on_grid(noise_threshold_order, n)
    return high & everywhere, low & everywhere


def _parts(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    n, classes, snr = here["samples"], here["classes"], here["snr"]
    signal, noise = in_regimes(here)
    end = here.isel(read=-1)
    chance = np.log(classes)
    # the logarithm that O-tilde hides is log T*: alpha = 4 log T* in (13) to (16)
    logarithm = BIG_O * float(np.log(study.steps))
    order = on_grid(coefficient_ratio_order, snr, classes, n)
    rho_bound = logarithm * on_grid(noise_coefficient_order, snr, classes, n)
    ceiling = on_grid(signal_test_loss_ceiling, end["train_loss"], classes, n)
    floor = on_grid(noise_test_loss_floor, classes)
    fitted = end["train_loss"] <= study.epsilon
    spread = here["gamma"] / here["rho"]
    lowest, highest = here["gamma_low"] / here["rho_high"], here["gamma_high"] / here["rho_low"]
    everywhere = xr.ones_like(signal)
    return [
        ("S1", f"1: signal learnt, gamma >= {OMEGA:g}", end["signal_learnt"] >= OMEGA, signal),
        (
            "S1",
            f"2: noise not memorised, |rho| <= {BIG_O:g} log(T*) T/(n SNR^2)",
            end["rho_all"] <= rho_bound,
            signal,
        ),
        ("S1", f"3: training loss <= {study.epsilon:g}", fitted, signal),
        (
            "S1",
            "4: test loss <= 8 e^4 T L_S + exp(-n^2), where that is below log T",
            end["test_loss"] <= ceiling,
            signal & (ceiling < chance),
        ),
        ("S1", f"4: test loss <= {SMALL:g} log T", end["test_loss"] <= SMALL * chance, signal),
        ("S2", f"1: noise memorised, rho >= {OMEGA:g}", end["noise_learnt"] >= OMEGA, noise),
        (
            "S2",
            f"2: signal not learnt, |gamma| <= {BIG_O:g} log(T*) n SNR^2/T",
            end["gamma_all"] <= logarithm * order,
            noise,
        ),
        ("S2", f"3: training loss <= {study.epsilon:g}", fitted, noise),
        (
            "S2",
            "4: test loss >= 0.5 log(1 + (T-1)/e)",
            end["test_loss"] >= floor,
            noise,
        ),
        (
            "S2",
            "text: generalises poorly, test error at least half of guessing's",
            of_chance(end, "test_error") >= 0.5,
            noise,
        ),
        (
            "S3",
            f"gamma/rho constant in time, largest over smallest read <= {BIG_O:g}",
            spread.max("read", skipna=False) <= BIG_O * spread.min("read", skipna=False),
            everywhere,
        ),
        (
            "S3",
            f"gamma/rho of all pairs in {OMEGA:g}..{BIG_O:g} n SNR^2/T at all reads",
            ((lowest >= OMEGA * order) & (highest <= BIG_O * order)).all("read"),
            everywhere,
        ),
    ]


def _share(identity: Identity, holds: xr.DataArray, among: xr.DataArray, note: str) -> Verdict:
    holds, among = xr.broadcast(holds, among)
    cells = [dim for dim in among.dims if dim != "seed"]
    count = among.sum(cells)
    shares = (holds & among).sum(cells) / count.where(count > 0)
    seen = f"{int(among.sum())} runs" if bool(among.any()) else "no run is in its regime"
    return judge_bound(
        identity, shares.values, 1 - DELTA, "at_least", note=f"share of cells, {seen}; {note}"
    )


def _slope_of_ratio(identity: Identity, here: xr.Dataset, note: str) -> Verdict:
    end = here.isel(read=-1)
    order = on_grid(coefficient_ratio_order, end["snr"], end["classes"], end["samples"])
    ratio = (end["gamma"] / end["rho"]).stack(point=("samples", "classes", "snr"))
    flat = order.stack(point=("samples", "classes", "snr"))
    slope = loglog_slope(flat.values, ratio.transpose("seed", "point").values)
    return judge_slope(identity, slope, 1.0, EXPONENT, note=note)


def _boundaries(
    identity: Callable[[str, str], Identity], here: xr.Dataset, note: str
) -> list[Verdict]:
    """Half of chance in the test loss: how that SNR moves with n and T."""
    where = boundary(here.isel(read=-1))
    in_n, in_classes = exponent_in(where, "samples"), exponent_in(where, "classes")
    half = "SNR of half of log T"
    ours = f"not a claim of the paper, which says nothing between its thresholds; {note}"
    return [
        judge_slope(
            identity("S1", f"sharpness: {half} moves with n like T n^(-1/4)"),
            in_n,
            -0.25,
            EXPONENT,
            note=note,
        ),
        judge_slope(
            identity("S3", f"{half} moves with n like sqrt(T/n), where gamma = rho"),
            in_n,
            -0.5,
            EXPONENT,
            note=ours,
        ),
        judge_slope(
            identity("S3", f"{half} moves with T like sqrt(T/n), where gamma = rho"),
            in_classes,
            0.5,
            EXPONENT,
            note=ours,
        ),
    ]
