"""Pictures and tables of ``benign-mixing``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture, Table
from rarefy.studies.benign.conditions import condition_table, conditions
from rarefy.studies.benign.mixing.experiment import MixingExperiment
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.reading import slices
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words
from rarefy.theory.benign import noise_correlation_ratio

STYLES = {"free": "solid", "held": "dashed"}


def pictures(study: MixingExperiment, results: xr.Dataset) -> list[Picture]:
    return [_accuracy(study, results, name) for name in texts(results, "schedule")]


def _accuracy(study: MixingExperiment, results: xr.Dataset, schedule: str) -> Picture:
    gammas = results["gamma"].values.tolist()
    low, high = study.second_moment(0.0), study.second_moment(1.0)
    return Chart(
        f"accuracy-{schedule}",
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


def tables(study: MixingExperiment, results: xr.Dataset) -> list[Table]:
    axes = {name: results[name].values.tolist() for name in study.axes}
    rows = [
        {
            "training": point["schedule"],
            "Gamma of the law": f"{point['gamma']:g}",
            "moment": point["moment"],
            "share": f"{point['share']:g}",
            "Gamma of the training set": f"{_gamma_of_training(study, **point):.3g}",
            "training loss": f"{float(here['train_loss'].mean()):.2g}",
            "reached the stop": f"{float((here['stopped_at'] >= 0).mean()):.0%}",
            **{
                f"accuracy, {kind}": f"{float(here['accuracy'].sel(kind=kind).mean()):.3f}"
                for kind in texts(results, "kind")
            },
        }
        for point, here in slices(results, axes)
    ]
    title = "Accuracy, and the Gamma of the training set"
    caption = "Gamma is that of the training distribution's second moments. Means over "
    schedule, gamma = texts(results, "schedule")[-1], float(results["gamma"].values[-1])
    n, training = study.classes * study.samples, study.training(schedule)
    found = conditions(study, study.spectrum(gamma), study.strength, n, training)
    return [
        table("mixing", title, f"{caption}{seeds_in_words(results)}.", rows),
        condition_table(found, f"{schedule}, Gamma = {gamma:g}"),
    ]


def _gamma_of_training(
    study: MixingExperiment, gamma: float, moment: str, share: float, **_: str
) -> float:
    """Gamma of the second moments: the special direction's is multiplied by E zeta^2."""
    noise = study.training_spectrum(gamma, moment, share)
    gram = noise.with_special(study.second_moment(share) ** 0.5).gram()[0].numpy()
    return float(noise_correlation_ratio(gram, [study.samples] * study.classes)[0, 1])
