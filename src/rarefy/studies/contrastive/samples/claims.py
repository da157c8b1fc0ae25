"""Verdicts of ``contrast-samples``: Q3, Q4 and Q8, our own questions.

Primary: the smallest set, whose samples come back under fresh noise; for Q8 fresh samples, at the
scale without a bias. What is lost or kept is what a linear probe reads of the rare features' sign
on fresh samples, and the cosine of the best neuron.
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

    def last(training: str, size: int, again: str, name: str) -> np.ndarray:
        at = here.sel(training=training, samples=size, again=again)
        return quantity(at, name).isel(read=-1).values

    def change(training: str, size: int, again: str, name: str) -> np.ndarray:
        at = here.sel(training=training, samples=size, again=again, read=first)
        return np.asarray(last(training, size, again, name) - quantity(at, name).values)

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
    for training in ("plain", "branches", "masked"):
        of = here.sel(training=training, again=decides).isel(read=-1)
        at = of.sel(samples=few)
        gap = at["loss"].sel(seen="fresh") - at["loss"].sel(seen="trained")
        judge(
            "", f"loss on fresh less on trained samples, {training}, {few}", gap.values, "positive"
        )
        if FRESH in experiment.samples:
            fresh = of.sel(samples=FRESH)
            more_outside = (at["outside"] - fresh["outside"]).values
            less = (quantity(at, "probe") - quantity(fresh, "probe")).values
            what = f"{few} less fresh samples, {training}"
            judge("", f"weights outside the features: {what}", more_outside, "positive")
            judge("", f"{WORDS['probe']} at {end}: {what}", less, "negative")
    return [*elsewhere(found, scale), *_given_up(experiment, here, scale)]


def _given_up(experiment: SamplesExperiment, here: xr.Dataset, scale: str) -> list[Verdict]:
    """Q8: what two branches lose with fresh samples; declared where neurons have no bias."""
    if FRESH not in experiment.samples:
        return []
    at = here.sel(samples=FRESH, again=experiment.again[0])
    looks = (experiment.reads[-1], experiment.figure_read)
    rare, frequent = (
        quantity(at, "probe", group).sel(read=looks[0])
        - quantity(at, "probe", group).sel(read=looks[1])
        for group in ("minority", "majority")
    )
    free, masked = rare.sel(training="branches"), rare.sel(training="masked")
    named = Naming(
        experiment, scale, after=f", step {looks[0]} less step {looks[1]}, fresh samples"
    )
    readings: tuple[tuple[str, xr.DataArray, Literal["positive", "negative"]], ...] = (
        (f"{WORDS['probe']}, two branches", free, "negative"),
        (
            "the same, rare less frequent features",
            free - frequent.sel(training="branches"),
            "negative",
        ),
        ("the same of rare ones, masked less unmasked", masked - free, "positive"),
    )
    return [
        judge_difference(
            named(f"Q8.{place}" if scale == "linear" else "Q8", f"{scale}: {what}"),
            values.values,
            sign,
        )
        for place, (what, values, sign) in enumerate(readings, 1)
    ]
