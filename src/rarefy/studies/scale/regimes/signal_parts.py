"""What 002 says at one dimension, part by part.

    S1  Theorem 4.2 at the upper end of the signal's road, SNR = T n^(-1/4)
    S2  Theorem 4.3 at its lower end, SNR = 1/n
    S3  Prop. 5.2: gamma/rho is of order n SNR^2/T; so the boundary is at a constant n SNR^2/T

Constants of Theta in the thresholds are read as 1, those of O and Omega as 4 and 1/4.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.measure.statistics import BIG_O, OMEGA
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.part import DELTA, EXPONENT, FITTED, Part, all_of, by_seed
from rarefy.studies.scale.regimes.rows import (
    beyond_note,
    boundaries_of,
    ends_of,
    exponent,
    log10,
    mean_of,
    on,
    share_beyond,
    share_unfitted,
    words_of,
)
from rarefy.studies.topk.regimes.boundary import HALF, of_chance, on_grid
from rarefy.studies.topk.regimes.claims import SMALL
from rarefy.theory.topk import noise_test_loss_floor


def signal_parts(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    """``here``: the rows of one d."""
    if not words_of(here, "signal"):
        return []
    return [
        *_theorem_4_2(study, here),
        *_theorem_4_3(study, here),
        *_ratio(here),
        *_signal_boundary(study, here),
    ]


def theorem_4_2(study: RegimesExperiment, here: xr.Dataset) -> dict[str, xr.DataArray]:
    """Which rows have what Theorem 4.2 says at the upper end, part by part."""
    word = words_of(here, "signal")[0]
    end = on(here, word).sel(place="high")
    order = 10 ** ends_of(here, word)[1]
    return {
        "signal learnt": end["signal_learnt"] >= OMEGA,
        "noise not": end["rho_all"] <= _logarithm(study) / order,
        FITTED: end["train_loss"] <= study.epsilon,
        "test loss": of_chance(end, "test_loss") <= SMALL,
    }


def theorem_4_3(study: RegimesExperiment, here: xr.Dataset) -> dict[str, xr.DataArray]:
    """The same of Theorem 4.3 at the lower end."""
    word = words_of(here, "signal")[0]
    end = on(here, word).sel(place="low")
    order = 10 ** ends_of(here, word)[0]
    return {
        "noise memorised": end["noise_learnt"] >= OMEGA,
        "signal not": end["gamma_all"] <= _logarithm(study) * order,
        FITTED: end["train_loss"] <= study.epsilon,
        "test loss": end["test_loss"] >= on_grid(noise_test_loss_floor, end["classes"]),
    }


def _logarithm(study: RegimesExperiment) -> float:
    """4 log T*: what O-tilde hides (alpha in 002 (13) to (16)), its constant read as 4."""
    return BIG_O * float(np.log(study.steps))


def _theorem_4_2(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    what = "all of Theorem 4.2 at SNR = T n^(-1/4)"
    return [all_of("S1", what, theorem_4_2(study, here))]


def _theorem_4_3(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    end = on(here, words_of(here, "signal")[0]).sel(place="low")
    poor = of_chance(end, "test_error") >= HALF
    error = float(of_chance(end, "test_error").mean())
    return [
        all_of("S2", "all of Theorem 4.3 at SNR = 1/n", theorem_4_3(study, here)),
        Part(
            "S2",
            "text: generalises poorly at SNR = 1/n, test error at least half of guessing's",
            mean_of(by_seed(poor)),
            1 - DELTA,
            note=f"share of {poor.size} rows; mean error {error:.3g} of guessing's",
        ),
    ]


def ratio_points(here: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """log10 of n SNR^2/T and of gamma/rho, (seed, size, classes, place)."""
    word = words_of(here, "signal")[0]
    rows = on(here, word)
    low, high = ends_of(here, word)
    middle = rows["boundary"]
    order = xr.concat(
        [part.broadcast_like(middle) for part in (low, middle, high)], dim="place"
    ).assign_coords(place=["low", "boundary", "high"])
    ratio = log10(rows["gamma"]) - log10(rows["rho"])
    return order, ratio


def _ratio(here: xr.Dataset) -> list[Part]:
    order, ratio = ratio_points(here)
    order, ratio = xr.align(order, ratio)
    slope = exponent(ratio, {"order": order}, "order")
    offset = float(10 ** (ratio - order).mean())
    return [
        Part(
            "S3",
            "exponent of gamma/rho in n SNR^2/T",
            slope,
            1.0,
            EXPONENT,
            note=f"{int(ratio.notnull().sum())} runs at both ends and at the boundary; gamma/rho "
            f"over n SNR^2/T is {offset:.3g} in the geometric mean",
        )
    ]


def _signal_boundary(study: RegimesExperiment, here: xr.Dataset) -> list[Part]:
    words = words_of(here, "signal")
    place = boundaries_of(here, words)
    classes, samples = log10(here["classes"]), log10(here["classes"] * here["size"])
    snr = (place + classes - samples) / 2
    columns = {"n": samples, "T": classes}
    note = "not a claim of the paper, which says nothing between its thresholds; "
    note += beyond_note(here, words)
    return [
        Part(
            "S3",
            f"exponent in {name} of the boundary's SNR, sqrt(T/n) where gamma = rho",
            exponent(snr, columns, name),
            goal,
            EXPONENT,
            note=note,
            lost=share_beyond(here, words),
            unfitted=share_unfitted(study, here, words),
        )
        for name, goal in (("n", -0.5), ("T", 0.5))
    ]
