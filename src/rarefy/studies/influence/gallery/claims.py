"""B11: images with high influence scores are the hard ones, and the rare ones."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.resampling import resampled_interval
from rarefy.measure.statistics import judge_difference
from rarefy.studies.influence.gallery.experiment import INFLUENCE, RANDOM, GalleryExperiment
from rarefy.tools.influence.out_of_fold import CLASSIFIERS

ISOLATION = "isolation"
RIVALS = ("distance", "norm")
POINTS = 100.0
WORDS = {
    INFLUENCE: "influence score",
    "shared": "its part shared with others",
    "distance": "distance to class mean",
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


def verdicts(experiment: GalleryExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """The highest tenth of each class is harder than the lowest, and lonelier. Further,
    whether the score does more than plainer ones; 003 does not say so, but would be of no use
    otherwise."""
    found = []
    for name in results["data"].values.tolist():
        share = share_of(results, name)
        for asked in (*CLASSIFIERS, ISOLATION):
            lonely = asked == ISOLATION
            where = f"{name}: high scores are " + (
                "farther from their class's others" if lonely else f"harder for {asked}"
            )
            note = "per cent of isolation" if lonely else "points of error"
            own = gap(results, name, asked, INFLUENCE)
            cases = [(where, own, f"{note}: highest tenth less lowest")]
            cases += [
                (
                    f"{where}, by more than with the {WORDS[rival]}",
                    own - gap(results, name, asked, rival),
                    f"{note}: highest tenth less lowest, less that of the plainer score",
                )
                for rival in RIVALS
            ]
            for what, values, words in cases:
                interval = resampled_interval(values, share)
                identity = ("B11", experiment.name, scale, what)
                found.append(judge_difference(identity, interval, "positive", note=words))
    return found
