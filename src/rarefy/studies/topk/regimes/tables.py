"""Tables of ``topk-regimes``: the boundary's exponents, what the coefficients come to in each
regime, and Condition 4.1 line by line."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import Slope
from rarefy.studies.topk.regimes.boundary import boundary, exponent_in
from rarefy.studies.topk.regimes.claims import in_regimes
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
from rarefy.theory.conditions import COLUMNS, table_rows
from rarefy.theory.unpruned_limit import limit_boundary

MEANS = {
    "gamma": "gamma",
    "rho": "rho",
    "gamma_all": "largest gamma",
    "rho_all": "largest rho",
    "noise_active": "noise seen by",
    "balance": "balance",
    "train_loss": "training loss",
    "test_loss": "test loss",
    "test_error": "test error",
}
"""Outputs and their columns."""


def tables(experiment: RegimesExperiment, results: xr.Dataset) -> list[Table]:
    return [
        _exponents(results),
        _against_closed_form(results),
        _coefficients(results),
        _conditions(experiment, results),
    ]


def _shown(slope: Slope) -> str:
    if not np.isfinite(slope.value):
        return "no boundary on the grid"
    ends = f" [{slope.low:.3g}, {slope.high:.3g}]" if np.isfinite(slope.low) else ""
    return f"{slope.value:.3g}{ends}, {slope.n_points} points"


def _exponents(results: xr.Dataset) -> Table:
    rows = []
    for what, d in product(("test_loss", "test_error"), results["d"].values):
        where = boundary(results.sel(d=d).isel(read=-1), what)
        slopes = [_shown(exponent_in(where, axis)) for axis in ("samples", "classes")]
        rows.append([what.replace("_", " "), f"{float(d):g}", *slopes])
    return Table(
        "exponents",
        "How the boundary moves with n and T",
        "Exponents of the SNR at which test loss or error is half of guessing's, with 95 % "
        "intervals over runs. Theorem 4.2's threshold T n^(-1/4) has -0.25 and 1, Theorem 4.3's "
        "1/n has -1 and 0, the line gamma = rho, sqrt(T/n), -0.5 and 0.5. The error should turn "
        "where the signal equals what fresh noise does to the scores, of order (T/(n d))^(1/4).",
        ("boundary of", "d", "exponent in n", "exponent in T"),
        rows,
    )


def _against_closed_form(results: xr.Dataset) -> Table:
    at = results.isel(d=-1)
    rows = []
    for read, classes in product(*(results[name].values for name in ("read", "classes"))):
        here = at.sel(read=read, classes=[classes])
        loss, active = float(here["train_loss"].mean()), float(here["noise_active"].mean())
        unit = float(limit_boundary(1, classes, loss, active))
        ratio = (boundary(here) * np.sqrt(here["samples"]) / unit).values
        found = ratio[np.isfinite(ratio)]
        rows.append(
            [
                int(read),
                int(classes),
                f"{loss:.2g}",
                f"{unit:.3g}/sqrt(n)",
                f"{found.mean():.3g} ± {found.std():.2g}" if found.size else "no boundary",
                int(found.size),
            ]
        )
    return Table(
        "closed-form",
        "The boundary goes on moving while the training loss falls",
        "SNR of half of log T against its closed form for endless d at the training loss reached "
        "and the share of filters that respond to a sample's noise at the end (largest d; mean "
        "and standard deviation over n and runs). The longer one trains, the lower the SNR that "
        "is enough.",
        ("step", "T", "training loss", "closed form", "measured / closed form", "boundaries"),
        rows,
    )


def _coefficients(results: xr.Dataset) -> Table:
    rows = []
    signal, noise = in_regimes(results)
    regimes = {"noise": noise, "between": ~(signal | noise), "signal": signal}
    for d, (name, among) in product(results["d"].values, regimes.items()):
        end = results.sel(d=d).isel(read=-1)[list(MEANS)].where(among)
        if count := int(end["gamma"].notnull().sum()):
            means = [f"{float(end[each].mean()):.3g}" for each in MEANS]
            rows.append([f"{float(d):g}", name, *means, count])
    return Table(
        "coefficients",
        "What training comes to in each regime",
        "Means over all runs of a regime at the end. gamma, rho: over filters that began on the "
        "positive side; largest: over all filters in absolute value; noise seen by: share of a "
        "sample's own filters that respond to its noise; balance: largest over "
        "smallest residual of training samples, which Lemmas E.7 and G.2 bound by a constant.",
        ("d", "regime", *MEANS.values(), "runs"),
        rows,
    )


def _conditions(experiment: RegimesExperiment, results: xr.Dataset) -> Table:
    rows = [
        [f"{float(d):g}", *row]
        for d in results["d"].values
        for row in table_rows(experiment.conditions(int(d)))
    ]
    return Table(
        "conditions",
        "Condition 4.1 where the grid is farthest from it",
        "Each line at the n, T and SNR that miss it most; delta = 0.1, T* the number of steps, the "
        "constant of Theta in d read as 1, that of O in the learning rate as 4.",
        ("at d", *COLUMNS),
        rows,
    )
