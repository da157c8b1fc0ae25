"""B12: every class of images has noise of its own."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.resampling import resampled_interval
from rarefy.measure.statistics import finite_mean, judge_difference
from rarefy.studies.influence.covariance.experiment import CovarianceExperiment
from rarefy.studies.kit.reading import Naming
from rarefy.tools.influence.class_noise import UNIT_LENGTH, own_and_others
from rarefy.tools.influence.drawn_parts import class_names

HALF = 0.5
"""Share of the samples that a seed's first half has."""
PRIMARY = {"mnist": "B12.1"}
"""Fig. 6 is of MNIST; how large is large enough hangs on constants that Theorem 1 does not give,
so that the sign is read, in every class."""


def matrices(results: xr.Dataset, name: str, output: str) -> NDArray[np.float64]:
    """(seed, class, class) of one set, without the classes that it does not have."""
    count = len(class_names(name))
    part = results[output].sel(data=name).transpose("seed", "class_a", "class_b")
    return np.asarray(part.values, dtype=np.float64)[:, :count, :count]


def verdicts(experiment: CovarianceExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """Own overlaps are larger than any other in every row, and on average; and residuals tell
    classes above chance."""
    found = []
    for name in results["data"].values.tolist():
        names, named = class_names(name), Naming(experiment, scale, f"{name}: ")
        mean, largest = own_and_others(matrices(results, name, "across"))
        wrong = [names[place] for place in (finite_mean(largest) < 0).nonzero()[0]]
        note = "smallest of log(own overlap / largest other)"
        note += f"; another class's is larger for {', '.join(wrong)}" if wrong else ""
        chance = 1 / len(names)
        told = results["told"].sel(data=name, residual=UNIT_LENGTH).values.astype(np.float64)
        for claim, what, values, words in (
            (
                PRIMARY.get(name, "B12"),
                "own covariance stands out in every class",
                largest.min(axis=1),
                note,
            ),
            (
                "B12",
                "own covariance stands out on average",
                mean.mean(axis=1),
                "mean over classes of log(own overlap / mean of others)",
            ),
            (
                "B12",
                "residuals of length 1 tell their class",
                told - chance,
                f"share right, mean over classes, less {chance:g} (chance)",
            ),
        ):
            interval = resampled_interval(values, HALF)
            found.append(judge_difference(named(claim, what), interval, "positive", note=words))
    return found
