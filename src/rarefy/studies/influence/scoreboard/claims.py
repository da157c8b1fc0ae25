"""B11: samples that are atypical because they were made so rank above others."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import Interval, finite_mean
from rarefy.measure.resampling import resampled_interval
from rarefy.measure.statistics import judge_difference
from rarefy.studies.influence.scoreboard.experiment import ScoreboardExperiment
from rarefy.studies.kit.reading import Naming
from rarefy.tools.influence.injections import Injection

SCORE = "percentile"
"""What the tool sorts by."""
KINDS = {
    "flips": "labels flipped at random",
    "paired-flips": "labels flipped between two classes",
    "rare-modes": "rare modes",
    "copies": "copies with another label",
    "near-copies": "near copies with another label",
}
CLOSE = 0.01
"""AUROCs that are so much apart at most are as good as equal."""


def spoken(text: str) -> str:
    injection = Injection.parse(text)
    return f"{KINDS[injection.kind]}, {100 * injection.share:g} %"


def values_of(
    results: xr.Dataset, output: str, name: str, injection: str, signal: str
) -> NDArray[np.float64]:
    """One number per seed."""
    part = results[output].sel(data=name, injection=injection, signal=signal)
    return np.asarray(part.values, dtype=np.float64)


def interval_of(
    results: xr.Dataset, output: str, name: str, injection: str, signal: str
) -> Interval:
    share = float(results["share"].sel(data=name, injection=injection).mean())
    return resampled_interval(values_of(results, output, name, injection, signal), share)


def winners(results: xr.Dataset, name: str, injection: str) -> list[str]:
    """The signal with the highest mean AUROC, and those as good as it, best first."""
    here = results["auroc"].sel(data=name, injection=injection).transpose("signal", "seed").values
    means = np.nan_to_num(finite_mean(here, 1)).tolist()
    found = dict(zip(results["signal"].values.tolist(), means, strict=True))
    ordered = sorted(found, key=lambda signal: -found[signal])
    return [signal for signal in ordered if found[signal] >= found[ordered[0]] - CLOSE]


def verdicts(experiment: ScoreboardExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """Rare modes do so. Of wrong labels and copies 003 says nothing: they are shown, not judged."""
    named, found = Naming(experiment, scale), []
    for name in results["data"].values.tolist():
        for text in results["injection"].values.tolist():
            if Injection.parse(text).kind != "rare-modes":
                continue
            best = winners(results, name, text)[0]
            own, reached = (
                values_of(results, "auroc", name, text, signal) for signal in (SCORE, best)
            )
            means = [f"{finite_mean(values):.3f}" for values in (own, reached)]
            note = f"AUROC less 0.5; score {means[0]}, best {best} {means[1]}"
            share = float(results["share"].sel(data=name, injection=text).mean())
            identity = named("B11", f"{name}, {spoken(text)}: found better than at random")
            interval = resampled_interval(own - 0.5, share)
            found.append(judge_difference(identity, interval, "positive", note=note))
    return found
