"""What 002 says at one dimension, part by part.

    S1  Theorem 4.2 at the upper end of the signal's path, SNR = T n^(-1/4)
    S2  Theorem 4.3 at its lower end, SNR = 1/n
    S3  Prop. 5.2: gamma/rho is of order n SNR^2/T

Constants of Theta in the thresholds are read as 1, those of O and Omega as 4 and 1/4.
"""

from __future__ import annotations

import xarray as xr

from rarefy.measure.statistics import OMEGA
from rarefy.studies.kit.arrays import known
from rarefy.studies.scale.regimes.experiment import PLACES, RegimesExperiment
from rarefy.studies.scale.regimes.rows import exponent, log10, words_of
from rarefy.studies.scale.regimes.statement import (
    DELTA,
    EXPONENT,
    FITTED,
    Statement,
    all_of,
    share_of,
)
from rarefy.studies.topk.regimes.boundary import HALF, of_chance, on_grid
from rarefy.studies.topk.regimes.claims import SMALL, hidden_factor
from rarefy.theory.topk import noise_test_loss_floor


def signal_statements(study: RegimesExperiment, here: xr.Dataset) -> list[Statement]:
    """``here``: the rows of one d."""
    words = words_of(here, "signal")
    if not words:
        return []
    rows = here.sel(question=words[0])
    poor = of_chance(rows.sel(place="low"), "test_error")
    text = "text: generalises poorly at SNR = 1/n, test error at least half of guessing's"
    note = f"share of {int(poor.count())} rows; mean error {float(poor.mean()):.3g} of guessing's"
    return [
        all_of("S1", "all of Theorem 4.2 at SNR = T n^(-1/4)", _theorem_4_2(study, rows)),
        all_of("S2", "all of Theorem 4.3 at SNR = 1/n", _theorem_4_3(study, rows)),
        Statement("S2", text, share_of(known(poor >= HALF, poor)), 1 - DELTA, note=note),
        _ratio(rows),
    ]


def _theorem_4_2(study: RegimesExperiment, rows: xr.Dataset) -> dict[str, xr.DataArray]:
    """Which rows have what the theorem says at the upper end, part by part."""
    end, order = rows.sel(place="high"), 10 ** rows["log_high"]
    parts = {
        "signal learnt": end["signal_learnt"] >= OMEGA,
        "noise not": end["rho_all"] <= hidden_factor(study.steps) / order,
        FITTED: end["train_loss"] <= study.epsilon,
        "test loss": of_chance(end, "test_loss") <= SMALL,
    }
    return {name: known(part, end["train_loss"]) for name, part in parts.items()}


def _theorem_4_3(study: RegimesExperiment, rows: xr.Dataset) -> dict[str, xr.DataArray]:
    """The same at the lower end."""
    end, order = rows.sel(place="low"), 10 ** rows["log_low"]
    parts = {
        "noise memorised": end["noise_learnt"] >= OMEGA,
        "signal not": end["gamma_all"] <= hidden_factor(study.steps) * order,
        FITTED: end["train_loss"] <= study.epsilon,
        "test loss": end["test_loss"] >= on_grid(noise_test_loss_floor, end["classes"]),
    }
    return {name: known(part, end["train_loss"]) for name, part in parts.items()}


def _ratio(rows: xr.Dataset) -> Statement:
    """gamma/rho against n SNR^2/T, (seed, size, classes, place) in log10."""
    names = ("log_low", "boundary", "log_high")
    parts = [rows[name].broadcast_like(rows["boundary"]) for name in names]
    order = xr.concat(parts, dim="place").assign_coords(place=list(PLACES))
    order, ratio = xr.align(order, log10(rows["gamma"]) - log10(rows["rho"]))
    offset = float(10 ** (ratio - order).mean())
    what, slope = "exponent of gamma/rho in n SNR^2/T", exponent(ratio, {"order": order}, "order")
    note = (
        f"{int(ratio.notnull().sum())} runs at both ends and at the boundary; gamma/rho over "
        f"n SNR^2/T is {offset:.3g} in the geometric mean"
    )
    return Statement("S3", what, slope, 1.0, EXPONENT, note=note)
