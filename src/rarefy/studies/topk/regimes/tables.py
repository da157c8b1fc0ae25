"""Tables of ``topk-regimes``: the boundary's exponents, what the coefficients come to in each
regime, and Condition 4.1 line by line."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import Slope
from rarefy.studies.topk.regimes.boundary import boundary, exponent_in
from rarefy.studies.topk.regimes.claims import in_regimes
from rarefy.studies.topk.regimes.conditions import worst_lines
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
from rarefy.studies.topk.regimes.limit import limit_boundary
from rarefy.theory.conditions import COLUMNS, table_rows


def regimes_tables(study: RegimesExperiment, results: xr.Dataset) -> list[Table]:
    return [
        _exponents(results),
        _against_closed_form(results),
        _coefficients(results),
        _conditions(study, results),
    ]


def _shown(slope: Slope) -> str:
    if not np.isfinite(slope.value):
        return "no boundary on the grid"
    ends = f" [{slope.low:.3g}, {slope.high:.3g}]" if np.isfinite(slope.low) else ""
    return f"{slope.value:.3g}{ends}, {slope.n_points} points"


def _exponents(results: xr.Dataset) -> Table:
    end = results.isel(read=-1)
    rows = []
    for what, name in (("test_loss", "test loss"), ("test_error", "test error")):
        where = boundary(end, what)
        for d in results["d"].values:
            here = where.sel(d=d)
            rows.append(
                [
                    name,
                    f"{float(d):g}",
                    _shown(exponent_in(here, "samples")),
                    _shown(exponent_in(here, "classes")),
                ]
            )
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
    for read in results["read"].values:
        here = at.sel(read=read)
        where = boundary(here)
        for classes in results["classes"].values:
            loss = float(here["train_loss"].sel(classes=classes).mean())
            active = float(at["noise_active"].sel(classes=classes).mean())
            ratio = where.sel(classes=classes) / limit_boundary(
                where["samples"].values, classes, loss, active
            ).reshape([-1 if dim == "samples" else 1 for dim in where.sel(classes=classes).dims])
            found = ratio.values[np.isfinite(ratio.values)]
            rows.append(
                [
                    int(read),
                    int(classes),
                    f"{loss:.2g}",
                    f"{limit_boundary(1, classes, loss, active):.3g}/sqrt(n)",
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
    names = (
        "gamma",
        "rho",
        "gamma_all",
        "rho_all",
        "noise_active",
        "balance",
        "train_loss",
        "test_loss",
    )
    signal, noise = in_regimes(results)
    for d in results["d"].values:
        end = results.sel(d=d).isel(read=-1)
        for name, among in (
            ("noise", noise),
            ("between", ~(signal | noise)),
            ("signal", signal),
        ):
            values = [end[each].where(among) for each in (*names, "test_error")]
            count = int(values[0].notnull().sum())
            if not count:
                continue
            means = [f"{float(value.mean()):.3g}" for value in values]
            rows.append([f"{float(d):g}", name, *means, count])
    return Table(
        "coefficients",
        "What training comes to in each regime",
        "Means over all runs of a regime at the end. gamma, rho: over filters that began on the "
        "positive side; largest: over all filters in absolute value; noise seen by: share of a "
        "sample's own filters that respond to its noise; balance: largest over "
        "smallest residual of training samples, which Lemmas E.7 and G.2 bound by a constant.",
        (
            "d",
            "regime",
            "gamma",
            "rho",
            "largest gamma",
            "largest rho",
            "noise seen by",
            "balance",
            "training loss",
            "test loss",
            "test error",
            "runs",
        ),
        rows,
    )


def _conditions(study: RegimesExperiment, results: xr.Dataset) -> Table:
    rows = [
        [f"{float(d):g}", *row]
        for d in results["d"].values
        for row in table_rows(worst_lines(study, int(d)))
    ]
    return Table(
        "conditions",
        "Condition 4.1 where the grid is farthest from it",
        "Each line at the n, T and SNR that miss it most; delta = 0.1, T* the number of steps, the "
        "constant of Theta in d read as 1, that of O in the learning rate as 4.",
        ("at d", *COLUMNS),
        rows,
    )
