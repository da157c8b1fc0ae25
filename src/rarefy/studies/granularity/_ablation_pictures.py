"""Pictures of ``granularity-ablation``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity._ablation_arms import LINEAR, Arm, linear_readout
from rarefy.studies.granularity._common import ROLES, seeds_in_words
from rarefy.studies.granularity._setting import share_curve
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_ablation import GranularityAblation

LEARNERS = {"following": "lucky", "scheduled": "bias", "linear": "baseline"}
"""Colours of the learners."""
LINES = (("following", "bias follows its neuron"), ("scheduled", "hard-coded bias"))


BIASES = (
    "A neuron's bias falls while it learns: by its rate times the neuron's own movement (follows), "
    "or by as much for all neurons (hard-coded: rate times what a detector of the shared feature "
    "would move at first with coarse labels)."
)


def ablation_pictures(study: GranularityAblation, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    found = [_learners(study, here), _schedule(study, here)]
    if "quiet" in here["world"].values:
        found.append(_tuning(study, here.sel(world="quiet", arm="tuned")))
    return found


def _by_rate(
    study: GranularityAblation, end: xr.Dataset, world: str
) -> tuple[list[Curve], list[float]]:
    """Hard error against the rate of the bias, one curve a way to move it; the ends of the axis."""
    curves, ends = [], [float("inf"), 0.0]
    for kind, words in LINES:
        names = [str(word) for word in end["arm"].values if str(word).startswith(kind)]
        if not names:
            continue
        names.sort(key=lambda word: Arm.parse(word, study.d).rate)
        rates = np.array([Arm.parse(word, study.d).rate for word in names])
        ends = [min(ends[0], rates.min()), max(ends[1], rates.max())]
        values = end["hard_error"].sel(world=world, arm=names).transpose("seed", "arm").values
        curves.append(share_curve(words, rates, values, LEARNERS[kind]))
    return curves, ends


def _panel(study: GranularityAblation, world: str, curves: list[Curve]) -> Lines:
    there = study.in_world(world)
    return Lines(
        curves,
        x_label="rate of the bias (paper's: leftmost)",
        y_label="error (share of samples)",
        title=f"{world}: {there.patches} patches, noise {there.sigma:g}",
        x_log=True,
    )


def _learners(study: GranularityAblation, here: xr.Dataset) -> Picture:
    end = here.isel(read=-1).sel(labels="fine")
    panels = []
    for world in (str(word) for word in here["world"].values):
        curves, ends = _by_rate(study, end, world)
        for name, style in (("hard_error", "dotted"), ("easy_error", "dashed")):
            level = float(end[name].sel(world=world, arm=LINEAR).mean())
            words = f"no ReLU, {name.partition('_')[0]} samples"
            curves.append(_level(words, ends, level, LEARNERS["linear"], style))
        best = linear_readout(study.in_world(world), study.subclasses)
        if best is not None:
            words = "no ReLU, easy samples, best sum"
            curves.append(_level(words, ends, best.easy_error(), "theory", "dotted"))
        panels.append(_panel(study, world, curves))
    return Picture(
        "learners",
        "What the learner needs",
        "Errors of networks trained with fine labels, on hard samples where nothing else is said. "
        f"{BIASES} Without ReLU the noise of all patches adds up; best sum: the least error on "
        "easy samples of a weighted sum of patches a side, a formula (an answer by the largest of "
        "several outputs can do a little better). Compare the worlds: where noise is weak (quiet) "
        "a network may do without ReLU and bias; where that of many patches adds up (noisy), see "
        "which of the learners still have a small error, at which rates, and whether the paper's "
        f"rate 1/log^5(d), tiny at this size, is one of them. {study.setting}, {study.steps} "
        f"updates; bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


def _level(label: str, ends: list[float], level: float, role: str, style: str) -> Curve:
    return Curve(label, np.array(ends), np.full(2, level), role=role, style=style)


def _schedule(study: GranularityAblation, here: xr.Dataset) -> Picture:
    end = here.isel(read=-1).sel(labels="coarse")
    worlds = [str(word) for word in here["world"].values]
    return Picture(
        "schedule",
        "A hard-coded bias and coarse labels",
        f"Errors on hard samples of networks trained with coarse labels. {BIASES} With coarse "
        f"labels detectors of the shared feature move {study.subclasses} times as fast as those "
        "of a subclass at first. A bias that falls alike for all may therefore silence the slow "
        "ones, on which a hard sample depends: see whether the hard-coded curve lies above the "
        "other, and at which rates. "
        f"{study.setting}, {study.steps} updates; bands: 95 % over {seeds_in_words(here)}.",
        [_panel(study, world, _by_rate(study, end, world)[0]) for world in worlds],
    )


TUNED = {"fine": "fine, then coarse", "coarse": "coarse throughout"}
EASY = {"fine": "dashed", "coarse": "points"}
"""Of errors on easy samples: curves that may lie on each other must differ."""


def _tuning(study: GranularityAblation, here: xr.Dataset) -> Picture:
    steps = here["tuned"].values

    def values(name: str, labels: str) -> np.ndarray:
        return np.asarray(here[name].sel(labels=labels).transpose("seed", "tuned").values)

    weights = [
        mean_curve(f"{words}{of}", steps, values(name, labels), ROLES[labels], style)
        for labels, words in TUNED.items()
        for name, of, style in (
            ("own_weight", ", subclass", "solid"),
            ("common_weight", ", common", "dashed"),
        )
    ]
    errors = [
        share_curve(f"{words}, {kind}", steps, values(name, labels), ROLES[labels], style)
        for labels, words in TUNED.items()
        for name, kind, style in (
            ("tuned_hard_error", "hard", "solid"),
            ("tuned_easy_error", "easy", EASY[labels]),
        )
    ]
    return Picture(
        "tuning",
        "What coarse fine-tuning does to what fine labels taught",
        f"Networks after {study.steps} updates with fine or coarse labels train on with coarse "
        "labels and fresh samples; the fine network answers for a side by its largest output. "
        "Left: how strongly detectors, the neurons that a feature wakes at the start, point along "
        "their feature: a subclass's in its own output, the common one in all outputs of its "
        "side. Right: errors. See whether any of the fine network's curves gets worse, and "
        "whether the coarse network, with as many updates in all, catches up on hard samples. "
        f"Quiet world; bands: 95 % over {seeds_in_words(here)}.",
        [
            Lines(weights, "updates of fine-tuning", "<w, v> of a detector, mean", "Detectors"),
            Lines(errors, "updates of fine-tuning", "error (share of samples)", "Errors"),
        ],
    )
