"""Pictures of ``granularity-ablation``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity.ablation.arms import LINEAR, Arm, linear_readout
from rarefy.studies.granularity.ablation.experiment import AblationExperiment
from rarefy.studies.granularity.charts import ROLES, level, share_curve
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.words import seeds_in_words

LEARNERS = {"following": "lucky", "scheduled": "bias", "linear": "baseline"}
"""Colours of the learners."""
LINES = {"following": "bias follows its neuron", "scheduled": "hard-coded bias"}
BIASES = (
    "A neuron's bias falls while it learns: by its rate times the neuron's own movement (follows), "
    "or by as much for all neurons (hard-coded: rate times what a detector of the shared feature "
    "would move at first with coarse labels)."
)


def pictures(experiment: AblationExperiment, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    found = [_learners(experiment, here), _schedule(experiment, here)]
    if "quiet" in here["world"].values:
        found.append(_tuning(experiment, here.sel(world="quiet", arm="tuned")))
    return found


def _by_rate(study: AblationExperiment, end: xr.Dataset) -> list[Curve]:
    """Hard error against the rate of the bias, one curve per way to move it."""
    curves = []
    for kind, words in LINES.items():
        names = [word for word in texts(end, "arm") if word.startswith(kind)]
        rates = {word: Arm.parse(word, study.d).rate for word in names}
        names.sort(key=lambda word: rates[word])
        if names:
            values = by_seed(end["hard_error"].sel(arm=names), "arm")
            curves.append(share_curve(words, sorted(rates.values()), values, LEARNERS[kind]))
    return curves


def _panel(study: AblationExperiment, world: str, curves: list[Curve]) -> Lines:
    there = study.in_world(world)
    return Lines(
        curves,
        x_label="rate of the bias (paper's: leftmost)",
        y_label="error (share of samples)",
        title=f"{world}: {there.patches} patches, noise {there.sigma:g}",
        x_log=True,
    )


def _learners(study: AblationExperiment, here: xr.Dataset) -> Picture:
    panels = []
    for world in texts(here, "world"):
        end = here.sel(world=world, labels="fine").isel(read=-1)
        curves = _by_rate(study, end)
        rates = np.concatenate([curve.x for curve in curves])
        ends = (rates.min(), rates.max())
        for kind, style in (("hard", "dotted"), ("easy", "dashed")):
            mean = float(end[f"{kind}_error"].sel(arm=LINEAR).mean())
            curves.append(level(f"no ReLU, {kind} samples", ends, mean, LEARNERS["linear"], style))
        best = linear_readout(study.in_world(world))
        if best is not None:
            words = "no ReLU, easy samples, best sum"
            curves.append(level(words, ends, best.easy_error(), "theory"))
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


def _schedule(study: AblationExperiment, here: xr.Dataset) -> Picture:
    end = here.isel(read=-1).sel(labels="coarse")
    return Picture(
        "schedule",
        "A hard-coded bias and coarse labels",
        f"Errors on hard samples of networks trained with coarse labels. {BIASES} With coarse "
        f"labels detectors of the shared feature move {study.subclasses} times as fast as those "
        "of a subclass at first. A bias that falls alike for all may therefore silence the slow "
        "ones, on which a hard sample depends: see whether the hard-coded curve lies above the "
        "other, and at which rates. "
        f"{study.setting}, {study.steps} updates; bands: 95 % over {seeds_in_words(here)}.",
        [
            _panel(study, world, _by_rate(study, end.sel(world=world)))
            for world in texts(here, "world")
        ],
    )


TUNED = {"fine": "fine, then coarse", "coarse": "coarse throughout"}
EASY = {"fine": "dashed", "coarse": "points"}
"""Of errors on easy samples: curves that may lie on each other must differ."""


def _tuning(study: AblationExperiment, here: xr.Dataset) -> Picture:
    steps, weights, errors = here["tuned"].values, [], []
    for labels, words in TUNED.items():
        one, role = here.sel(labels=labels), ROLES[labels]
        for name, of, style in (("own", "subclass", "solid"), ("common", "common", "dashed")):
            values = by_seed(one[f"{name}_weight"], "tuned")
            weights.append(mean_curve(f"{words}, {of}", steps, values, role, style))
        for kind, style in (("hard", "solid"), ("easy", EASY[labels])):
            values = by_seed(one[f"tuned_{kind}_error"], "tuned")
            errors.append(share_curve(f"{words}, {kind}", steps, values, role, style))
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
