"""Pictures of ``granularity-detectors``."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity.charts import ROLES, share_curve
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.measured import OWN, Measured
from rarefy.studies.granularity.detectors.theory import predicted_rates
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.words import seeds_in_words

COLOURS = {"common": "lucky", "subclass": "mixed", "other": "noise"}
NAMES = {
    "common": "feature its whole side shares",
    "subclass": "feature of a subclass with its label",
    "other": "features of others",
}
SETS = {"printed": ("S*", "solid"), "able": ("all of S", "dotted")}
SCORE = "answer to one patch (score)"
PER_LABELS = {"coarse": "2 labels", "fine": "one label a subclass"}


def pictures(experiment: DetectorsExperiment, results: xr.Dataset) -> list[Picture]:
    read, n = Measured(experiment, results), seeds_in_words(results)
    return [make(read, n) for make in (_responses, _against_k, _carriers)]


def _later(read: Measured) -> tuple[np.ndarray, np.ndarray]:
    """Places and numbers of updates of all reads but the start: there is no logarithm of 0."""
    places = np.flatnonzero(np.array(read.experiment.reads))
    return places, np.array(read.experiment.reads)[places]


def _responses(read: Measured, n: str) -> Picture:
    """The picture of the laboratory: what is learnt, coarse and fine side by side."""
    k = read.subclasses[-1]
    later, x = _later(read)
    panels = []
    for labels, words in PER_LABELS.items():
        curves = [
            mean_curve(name, x, read.of(f"{kind}_response", labels, k)[:, later], COLOURS[kind])
            for kind, name in NAMES.items()
        ]
        panels.append(Lines(curves, "updates", SCORE, f"{labels} labels ({words})", x_log=True))
    return Picture(
        "responses",
        "Which features coarse and fine labels teach",
        f"How strongly an output answers to one patch with a feature, while it trains; {k} "
        "subclasses a side. Left: the network is told the side only. The feature that the whole "
        f"side shares is in every sample, a subclass's in one of {k}: its detectors get {k} times "
        "fewer updates. See how far apart both answers end. Right: the "
        "network is told the subclass, and must answer to the subclass's own feature, which is all "
        "that a sample without the shared feature has. Compare its curve on both sides; answers to "
        f"features of others should not rise (004 Theorem F.1, G.1). Bands: 95 % intervals over "
        f"{n}.",
        panels,
    )


def _against_k(read: Measured, n: str) -> Picture:
    study, k = read.experiment, np.array(read.subclasses)
    ratios, ends = [], []
    for labels in LABELS:
        role = ROLES[labels]
        values = [
            read.growth_ratio(read.before_stop(labels, each), labels, each)
            for each in read.subclasses
        ]
        exact = np.array([predicted_rates(study, labels, each).ratio for each in read.subclasses])
        ratios += [
            mean_curve(f"{labels} labels", k, np.stack(values, axis=1), role, "points"),
            Curve(f"{labels} labels, predicted", k, exact, role=role, style="dashed"),
        ]
        for kind, style in zip(OWN, ("solid", "dashed"), strict=True):
            values = [read.end(f"{kind}_response", labels, each) for each in read.subclasses]
            label = f"{labels} labels, {kind} feature"
            ends.append(mean_curve(label, k, np.stack(values, axis=1), role, style))
    x_label, ratio = "subclasses of each side (k)", "growth, shared over subclass feature"
    return Picture(
        "subclasses",
        "What more subclasses change",
        "Left: how fast detectors of the shared feature grow compared with those of a subclass "
        "feature, until a sample's own score reaches log(3/2); lines are k and k/(2k - 1), without "
        "free constants. Right: answers to one patch at the end of "
        f"training ({study.steps} updates): with coarse labels that to a subclass feature should "
        "fall at least as fast as 1/k, a straight line of slope -1 here (004 eq. 11), and with "
        f"fine labels neither should. Bands: 95 % intervals over {n}.",
        [
            Lines(ratios, x_label, ratio, "Speed of detectors in phase 1", True, True),
            Lines(ends, x_label, SCORE, "What has been learnt at the end", True, True),
        ],
    )


def _carriers(read: Measured, n: str) -> Picture:
    k = read.experiment.main
    later, x = _later(read)
    panels = []
    for labels in LABELS:
        curves = []
        for kind, (name, (words, style)) in product(OWN, SETS.items()):
            share, label = read.share(name, kind, labels, k)[:, later], f"{kind} feature: {words}"
            curves.append(share_curve(label, x, share, COLOURS[kind], style))
        panels.append(Lines(curves, "updates", "share of the answer", f"{labels} labels", True))
    return Picture(
        "carriers",
        "How much of an answer comes from those who were open at the start",
        f"Part of an output's answer to its own features that comes from neurons chosen before the "
        f"first update; {k} subclasses a side. S* (solid): open on the feature and on no other "
        "word of the dictionary; S (dotted): all that may be open on a patch of it. The paper has "
        "both near 1 (004 eq. 7). What S* lacks comes from neurons that are open on two features, "
        "of which a finite d has some. "
        f"Bands: 95 % intervals over {n}.",
        panels,
    )
