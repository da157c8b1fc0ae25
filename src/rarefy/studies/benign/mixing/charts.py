"""Pictures of ``benign-mixing``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture
from rarefy.studies.benign.mixing.experiment import MixingExperiment
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.words import seeds_in_words

STYLES = {"free": "solid", "held": "dashed"}


def pictures(study: MixingExperiment, results: xr.Dataset) -> list[Picture]:
    return [_accuracy(study, results, name) for name in texts(results, "schedule")]


def _accuracy(study: MixingExperiment, results: xr.Dataset, schedule: str) -> Picture:
    gammas = results["gamma"].values.tolist()
    low, high = study.second_moment(0.0), study.second_moment(1.0)
    return Chart(
        f"accuracy-{schedule.replace(' ', '-')}",
        f"More long-tailed samples in a training set of fixed size ({study.words(schedule)})",
        f"Long-tailed: |zeta| >= {study.tail:g} along the class's special direction; the law's own "
        f"share is {(1 - low) / (high - low):.3f}. Solid (free): the noise along that direction "
        "gets stronger with the share. Dashed (held): the direction's eigenvalue is lowered in the "
        "training set so that its second moment stays the same; what still rises is due to the "
        f"shape of the tail. Test samples are the same everywhere, {study.test_samples} a run; "
        f"bands: 95 % over {seeds_in_words(results)}.",
        "accuracy",
        x="share",
        x_label="share of long-tailed training samples",
        y_label="test accuracy",
        curves={"gamma": gammas, "moment": texts(results, "moment")},
        label=lambda gamma, moment: f"Gamma {gamma:g}, {moment}",
        role=lambda gamma, moment: f"gamma {gammas.index(gamma)}",
        style=lambda gamma, moment: STYLES[moment],
        panel="kind",
        panel_title=lambda kind: f"{kind} test samples",
        at={"schedule": schedule},
    ).picture(results)
