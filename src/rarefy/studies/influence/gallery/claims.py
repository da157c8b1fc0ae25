"""B11: images with high influence scores are the hard ones, and the rare ones."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.resampling import resampled_interval
from rarefy.measure.statistics import finite_mean, judge_difference
from rarefy.studies.influence.gallery.experiment import INFLUENCE, RANDOM, GalleryExperiment
from rarefy.studies.kit.reading import Naming
from rarefy.tools.influence.out_of_fold import CLASSIFIERS

ISOLATION = "isolation"
PRIMARY = {"mnist": "B11.1", "cifar10": "B11.2"}
"""Hard to classify, on 003's two sets; B11.3 is isolation, on the set where it is least."""
RIVAL = "distance"
POINTS = 100.0
WORDS = {
    INFLUENCE: "influence score",
    "shared": "its part shared with others",
    RIVAL: "distance to class mean",
    "mahalanobis": "Mahalanobis distance in class",
    "norm": "norm",
    RANDOM: "at random",
}


def share_of(results: xr.Dataset, name: str) -> float:
    return float(results["share"].sel(data=name).mean())


def by_decile(
    results: xr.Dataset, output: str, name: str, classifier: str, signal: str
) -> NDArray[np.float64]:
    """(seed, decile)"""
    part = results[output].sel(data=name, signal=signal)
    part = part if output == ISOLATION else part.sel(classifier=classifier)
    return np.asarray(part.transpose("seed", "decile").values, dtype=np.float64)


def gap(results: xr.Dataset, name: str, asked: str, signal: str) -> NDArray[np.float64]:
    """The highest tenth less the lowest: (seed,), points of error or per cent of isolation."""
    output = ISOLATION if asked == ISOLATION else "error"
    found = by_decile(results, output, name, asked, signal)
    return POINTS * (found[:, -1] - found[:, 0])


def harder(results: xr.Dataset, name: str, signal: str) -> NDArray[np.float64]:
    """The gap in error, mean over classifiers: 003 names none, and they disagree."""
    return np.mean([gap(results, name, asked, signal) for asked in CLASSIFIERS], axis=0)


def verdicts(experiment: GalleryExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """The highest tenth of each class is harder than the lowest, and lonelier. A diagnostic:
    whether the score does more than the plainest one that knows the class."""
    named, names = Naming(experiment, scale), results["data"].values.tolist()
    error, lonely = "points of error", "per cent of isolation"
    cases = []
    for name in names:
        own, plain = (harder(results, name, signal) for signal in (INFLUENCE, RIVAL))
        what = f"{name}: high scores are harder to classify"
        cases.append((PRIMARY.get(name, "B11"), name, f"{what}, mean of classifiers", own, error))
        cases += [
            ("B11", name, f"{what}, {asked}", gap(results, name, asked, INFLUENCE), error)
            for asked in CLASSIFIERS
        ]
        cases.append(
            ("", name, f"{what}, by more than with the {WORDS[RIVAL]}", own - plain, error)
        )
    alone = {name: gap(results, name, ISOLATION, INFLUENCE) for name in names}
    for place, name in enumerate(sorted(names, key=lambda name: finite_mean(alone[name]))):
        what = "high scores lie farther from the others of their class"
        where = f"the set where least so ({name})" if place == 0 else name
        claim = "B11.3" if place == 0 and set(PRIMARY) == set(names) else "B11"
        cases.append((claim, name, f"{where}: {what}", alone[name], lonely))
    return [
        judge_difference(
            named(claim, what),
            resampled_interval(values, share_of(results, name)),
            "positive",
            note=f"{unit}: highest tenth less lowest",
        )
        for claim, name, what, values, unit in cases
    ]
