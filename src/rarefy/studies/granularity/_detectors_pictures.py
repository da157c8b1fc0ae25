"""Pictures of ``granularity-detectors``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import banded
from rarefy.studies.granularity._common import LABELS, seeds_in_words
from rarefy.studies.granularity._detectors_judging import OWN, Readings, predicted_rates
from rarefy.studies.granularity._detectors_watch import SETS

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
            banded(
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
        "Coarse labels teach the shared feature, fine labels the subclasses' too",
        f"How strongly an output answers to one patch with a feature, while it trains; {k} "
        "subclasses a side. Left: the network is told the side only. The feature that the whole "
        f"side shares is in every sample, a subclass's in one of {k}: its detectors get {k} times "
        "fewer updates, and when the loss has become small nothing pulls any more. Right: the "
        "network is told the subclass, and must answer to the subclass's own feature. What it "
        "learns there is what a sample without the shared feature needs. Bands: 95 % intervals "
        f"over {n}.",
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
            banded(f"{labels} labels", k, np.stack(values, axis=1), colours[labels], "points"),
            Curve(f"{labels} labels, predicted", k, exact, role=colours[labels], style="dashed"),
        ]
    ends = [
        banded(
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
        "The more subclasses, the less a coarse label teaches about each",
        "Left: how fast detectors of the shared feature grow compared with those of a subclass "
        f"feature, over the first {study.first} update{'s' if study.first > 1 else ''}; lines are "
        "k and k/(2k - 1), without free constants. Right: answers to one patch at the end of "
        f"training ({study.steps} updates): with coarse labels that to a subclass feature falls "
        f"nearly as 1/k. Bands: 95 % intervals over {n}.",
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
                banded(
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
        "Who was open on a feature at the start carries the answer to it",
        f"Part of an output's answer to its own features that comes from neurons chosen before the "
        f"first update; {k} subclasses a side. S (solid): all neurons that may be open on a patch "
        "of the feature. Detectors (dashed): surely open on it and on no other feature that "
        "occurs. S* as printed (dotted): open on no other word of the whole dictionary. The last "
        "two carry less, since at this d some neurons are open on two features, and some next to "
        f"their threshold join in later. Bands: 95 % intervals over {n}.",
        panels,
    )
