"""Tables of ``topk-regimes``: what training comes to in each regime, Condition 4.1 line by line."""

from __future__ import annotations

from itertools import product

import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.topk.regimes.claims import in_regimes
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
from rarefy.theory.conditions import COLUMNS, table_rows

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
    return [_coefficients(results), _conditions(experiment, results)]


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
