"""Pictures of ``benign-topk``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture
from rarefy.studies.benign.topk.experiment import KINDS, TopKExperiment
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.words import seeds_in_words

STYLES = dict(zip(KINDS, ("solid", "dotted"), strict=True))


def pictures(study: TopKExperiment, results: xr.Dataset) -> list[Picture]:
    return [_accuracy(study, results, reading) for reading in texts(results, "reading")]


def _accuracy(study: TopKExperiment, results: xr.Dataset, reading: str) -> Picture:
    gammas = results["gamma"].values.tolist()
    return Chart(
        f"accuracy-{reading}",
        f"Accuracy against the share of coordinates that is kept ({reading})",
        "Noise alone, no feature. Rotated: each class's special direction is spread over all "
        "coordinates (the paper's setting); aligned: it is one coordinate. Solid: all test "
        f"samples, dotted: those with |zeta| >= {study.tail:g} along it. Bands: 95 % over "
        f"{seeds_in_words(results)}; chance is {1 / study.classes:.2f}.",
        "accuracy",
        x="keep",
        x_label="share of a filter's coordinates that is kept",
        y_label="test accuracy",
        curves={"gamma": gammas, "kind": list(KINDS)},
        label=lambda gamma, kind: f"Gamma {gamma:g}, {kind}",
        role=lambda gamma, kind: f"gamma {gammas.index(gamma)}",
        style=lambda gamma, kind: STYLES[kind],
        panel="basis",
        at={"reading": reading},
        x_log=True,
    ).picture(results.sortby("keep"))
