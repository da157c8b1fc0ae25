"""Verdicts of ``contrast-samples``: Q3 and Q4, our own questions.

Primary: the smallest set, whose samples come back under fresh noise. What is lost or kept is what
a linear probe reads of the rare features' sign on fresh samples, and the cosine of the best neuron.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.data.finite_set import FRESH
from rarefy.measure.statistics import judge_difference, mean_interval
from rarefy.studies.contrastive.samples.experiment import SamplesExperiment
from rarefy.studies.contrastive.words import elsewhere
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

WORDS = {"probe": "probe of rare features' sign", "cosine": "largest cosine with a rare feature"}
SET_WORDS = {"sample": "samples come back", "pair": "pairs come back as they were"}


def quantity(at: xr.Dataset, name: str, group: str = "minority") -> xr.DataArray:
    """One of ``WORDS`` by read and whatever else is left."""
    chosen = at["accuracy"].sel(reading="sign") if name == "probe" else at["best"]
    return chosen.sel(group=group)


def deciding(experiment: SamplesExperiment, results: xr.Dataset) -> xr.Dataset:
    """The frequency and the bias that decide."""
    return results.sel(eps_min=experiment.eps_min[0], bias_scale=experiment.bias_scale[-1])


def sizes(experiment: SamplesExperiment) -> list[int]:
    """Of the finite sets, the smallest first."""
    return sorted(size for size in experiment.samples if size != FRESH)


def verdicts(experiment: SamplesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    few, *more = sizes(experiment)
    here, first = deciding(experiment, results), experiment.figure_read
    end = f"step {experiment.reads[-1]}"
    named = Naming(experiment, scale, after=f", {experiment.setting}")
    found: list[Verdict] = []

    def change(
        training: str, size: int, again: str, name: str, group: str = "minority"
    ) -> np.ndarray:
        values = quantity(here.sel(training=training, samples=size, again=again), name, group)
        return (values.isel(read=-1) - values.sel(read=first)).values

    def last(training: str, size: int, again: str, name: str) -> np.ndarray:
        at = here.sel(training=training, samples=size, again=again)
        return quantity(at, name).isel(read=-1).values

    def judge(
        claim: str, what: str, values: np.ndarray, sign: Literal["positive", "negative"]
    ) -> None:
        found.append(judge_difference(named(claim, what), values, sign))

    def loses(claim: str, training: str, size: int, again: str, name: str) -> None:
        where = f"{training}, {size} samples, {SET_WORDS[again]}"
        what = f"{WORDS[name]}: {end} less step {first}, {where}"
        judge(claim, what, change(training, size, again, name), "negative")

    def keeps(claim: str, of: Callable[..., np.ndarray], size: int, again: str, name: str) -> None:
        when = f"at {end}" if of is last else f"{end} less step {first}"
        what = f"{WORDS[name]}: masked less unmasked branch, {when}, {size}, {SET_WORDS[again]}"
        gain = of("masked", size, again, name) - of("branches", size, again, name)
        judge(claim, what, gain, "positive")
        falls = mean_interval(change("branches", size, again, name))
        why = "" if falls.high < 0 else "without masks nothing is lost"
        found[-1] = undecided(found[-1], why)

    decides = experiment.again[0]
    loses("Q3.1", "plain", few, decides, "probe")
    loses("Q3.2", "plain", few, decides, "cosine")
    keeps("Q4.1", last, few, decides, "probe")
    keeps("Q4.2", change, few, decides, "probe")
    others = [(size, decides) for size in more] + [(few, kind) for kind in experiment.again[1:]]
    for size, again in others:
        for name in WORDS:
            loses("Q3", "plain", size, again, name)
            keeps("Q4", last, size, again, name)
    for name in WORDS:
        loses("Q3", "branches", few, decides, name)
    keeps("Q4", last, few, decides, "cosine")
    keeps("Q4", change, few, decides, "cosine")
    gain = last("pruned", few, decides, "probe") - last("plain", few, decides, "probe")
    judge("Q4", f"{WORDS['probe']}: Algorithm 1 less plain, at {end}, {few}", gain, "positive")
    frequent = change("plain", few, decides, "probe", "majority")
    judge("", f"probe of frequent features' sign: {end} less step {first}", frequent, "negative")
    for training in ("plain", "branches", "masked"):
        at = here.sel(training=training, samples=few, again=decides).isel(read=-1)
        gap = (at["loss"].sel(seen="fresh") - at["loss"].sel(seen="trained")).values
        judge("", f"loss on fresh less on trained samples, {training}, {few}", gap, "positive")
        if FRESH in experiment.samples:
            never = (
                here["outside"].sel(training=training, samples=FRESH, again=decides).isel(read=-1)
            )
            extra = at["outside"].values - never.values
            what = f"weights outside the features, {few} less fresh samples, {training}"
            judge("", what, extra, "positive")
    return elsewhere(found, scale)
