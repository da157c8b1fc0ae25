"""Verdicts of ``longtail-overtraining``: Q5 to Q7, our own questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference
from rarefy.studies.kit.reading import Naming
from rarefy.studies.longtail.overtraining.experiment import OvertrainingExperiment
from rarefy.studies.longtail.overtraining.measures import change, early_look, seen
from rarefy.studies.longtail.words import judged_by, spoken
from rarefy.tools.longtail.readings import LONG_TAIL, readings

SIMCLR, MASKED, FREE = "simclr", "branches:0.1", "branches:1"
"""What is trained too long, what is said to help, and the same without masks."""
CONTROLS = tuple(
    f"{MASKED}+{word}" for word in ("random", "dropout", "noise", "frozen", "both", "straight")
)
"""Ways to disturb a network that are not a mask of its smallest weights in one branch."""
PRIMARY = 3
"""Of these the first so many, which choose nothing."""
PAIRS = "points, order by order, at the end"


def verdicts(experiment: OvertrainingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    named = Naming(experiment, scale, f"{experiment.setting}: ")
    methods = {str(name) for name in results["algorithm"].values}
    found = []
    for claim, what, values, note in _lost(results) if SIMCLR in methods else ():
        found.append(judge_difference(named(claim, what), values, "positive", note=note))
    for number, other in ((0, SIMCLR), (1, FREE)):
        if not {MASKED, other} <= methods:
            continue
        for (what, gains), claim in zip(
            _gains(experiment, results, MASKED, other),
            (("Q6.1", "Q6.2"), ("Q6.3", "Q6"))[number],
            strict=True,
        ):
            found.append(judge_difference(named(claim, what), gains, "positive", note=PAIRS))
    for number, control in enumerate(CONTROLS, start=1):
        if not {control, SIMCLR} <= methods:
            continue
        (what, gains), (near, closer) = _gains(experiment, results, control, SIMCLR)
        claim = f"Q7.{number}" if number <= PRIMARY else "Q7"
        found.append(judge_difference(named(claim, what), gains, "positive", note=PAIRS))
        found.append(judge_difference(named("Q7", near), closer, "positive", note=PAIRS))
    return found


def _lost(results: xr.Dataset) -> Iterator[tuple[str, str, np.ndarray, str]]:
    """Q5, of SimCLR: claim, what, values (seed,), note."""
    epochs = results["watched_epoch"].values
    looks = f"points, order by order: epochs {epochs[early_look(results)]} and {epochs[-1]}"
    for claim, name, sign, what in (
        ("Q5.1", "knn", -1, "fall of the accuracy of neighbours, unseen images"),
        ("Q5.2", "class", -1, "fall of the share of variance between classes, unseen images"),
        ("Q5.3", "memorised", 1, "rise of views found of trained less of unseen images"),
        ("Q5", "held-out", -1, "fall of the accuracy of neighbours, held-out images"),
    ):
        yield claim, what, sign * change(results, SIMCLR, name), looks


def _gains(
    experiment: OvertrainingExperiment, results: xr.Dataset, method: str, other: str
) -> Iterator[tuple[str, np.ndarray]]:
    """What the method has at the end over the other: by the linear probe, by neighbours."""
    words = f"{spoken(method)}, less {spoken(other)}"
    yield f"accuracy by the probe, {words}", probed(experiment, results, method, other)
    near = seen(results, method, "knn")[:, -1] - seen(results, other, "knn")[:, -1]
    yield f"accuracy of neighbours, unseen images, {words}", near


def probed(
    experiment: OvertrainingExperiment, results: xr.Dataset, method: str, other: str
) -> np.ndarray:
    """Accuracy of the linear probe on test images, points over the other, order by order."""
    told = readings(results, judged_by(experiment.protocols))["overall"]
    here = told.sel(images=LONG_TAIL, rho=results["rho"].max())
    return np.asarray((here.sel(algorithm=method) - here.sel(algorithm=other)).values)
