"""Pictures of ``granularity-detectors``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity._common import LABELS, seeds_in_words
from rarefy.studies.granularity._detectors_judging import OWN, Readings, predicted_rates
from rarefy.studies.granularity._detectors_watch import SETS
from rarefy.studies.granularity._setting import share_curve

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_detectors import GranularityDetectors

COLOURS = {"common": "lucky", "subclass": "mixed", "other": "noise"}
NAMES = {
    "common": "feature its whole side shares",
    "subclass": "feature of a subclass with its label",
    "other": "features of others",
}
SET_STYLES = {"printed": "dotted", "detector": "dashed", "able": "solid"}
SET_NAMES = {"printed": "S* as printed", "detector": "detectors", "able": "all of S"}
PER_LABELS = {"coarse": "2 labels", "fine": "one label a subclass"}


def detectors_pictures(study: GranularityDetectors, results: xr.Dataset) -> list[Picture]:
    read = Readings(study, results)
    n = seeds_in_words(results)
    return [_responses(read, n), _against_k(read, n), _carriers(read, n)]


def _responses(read: Readings, n: str) -> Picture:
    """The picture of the laboratory: what is learnt, coarse and fine side by side."""
    study, k = read.study, read.subclasses[-1]
    later = np.array(study.reads) > 0  # no logarithm of 0
    x = np.array(study.reads)[later]
    panels = []
    for labels in LABELS:
        curves = [
            mean_curve(
                NAMES[kind],
                x,
                read.of(f"{kind}_response", labels, k)[:, later],
                COLOURS[kind],
            )
            for kind in NAMES
        ]
        panels.append(
            Lines(
                curves,
                x_label="updates",
                y_label="answer to one patch (score)",
                title=f"{labels} labels ({PER_LABELS[labels]})",
                x_log=True,
            )
        )
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


def _against_k(read: Readings, n: str) -> Picture:
    study = read.study
    k = np.array(read.subclasses)
    colours = {"coarse": "minority", "fine": "majority"}
    ratios = []
    for labels in LABELS:
        values = [read.growth_ratio(study.first, labels, each) for each in read.subclasses]
        exact = np.array([predicted_rates(study, labels, each).ratio for each in read.subclasses])
        ratios += [
            mean_curve(f"{labels} labels", k, np.stack(values, axis=1), colours[labels], "points"),
            Curve(f"{labels} labels, predicted", k, exact, role=colours[labels], style="dashed"),
        ]
    ends = [
        mean_curve(
            f"{labels} labels, {kind} feature",
            k,
            np.stack([read.end(f"{kind}_response", labels, each) for each in k], axis=1),
            colours[labels],
            "solid" if kind == "common" else "dashed",
        )
        for labels in LABELS
        for kind in OWN
    ]
    return Picture(
        "subclasses",
        "What more subclasses change",
        "Left: how fast detectors of the shared feature grow compared with those of a subclass "
        f"feature, over the first {study.first} update{'s' if study.first > 1 else ''}; lines are "
        "k and k/(2k - 1), without free constants. Right: answers to one patch at the end of "
        f"training ({study.steps} updates): with coarse labels that to a subclass feature should "
        "fall at least as fast as 1/k, a straight line of slope -1 here (004 eq. 11), and with "
        f"fine labels neither should. Bands: 95 % intervals over {n}.",
        [
            Lines(
                ratios,
                x_label="subclasses of each side (k)",
                y_label="growth, shared over subclass feature",
                title="Speed of detectors at the start",
                x_log=True,
                y_log=True,
            ),
            Lines(
                ends,
                x_label="subclasses of each side (k)",
                y_label="answer to one patch (score)",
                title="What has been learnt at the end",
                x_log=True,
                y_log=True,
            ),
        ],
    )


def _carriers(read: Readings, n: str) -> Picture:
    study, k = read.study, read.study.main
    later = np.array(study.reads) > 0
    x = np.array(study.reads)[later]
    panels = [
        Lines(
            [
                share_curve(
                    f"{kind} feature: {SET_NAMES[name]}",
                    x,
                    read.share(name, kind, labels, k)[:, later],
                    COLOURS[kind],
                    SET_STYLES[name],
                )
                for kind in OWN
                for name in SETS
            ],
            x_label="updates",
            y_label="share of the answer",
            title=f"{labels} labels",
            x_log=True,
        )
        for labels in LABELS
    ]
    return Picture(
        "carriers",
        "How much of an answer comes from those who were open at the start",
        f"Part of an output's answer to its own features that comes from neurons chosen before the "
        f"first update; {k} subclasses a side. S (solid): all neurons that may be open on a patch "
        "of the feature. Detectors (dashed): surely open on it and on no other feature that "
        "occurs. S* as printed (dotted): open on no other word of the whole dictionary. The paper "
        "has all of these near 1 (004 eq. 7). What the last two lack comes from neurons that are "
        "open on two features or begin next to their threshold, of which a finite d has some. "
        f"Bands: 95 % intervals over {n}.",
        panels,
    )
