"""Pictures and tables of ``benign-majority``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign.majority.claims import (
    gamma_towards,
    in_words,
    minority_accuracy,
    tails_of,
)
from rarefy.studies.benign.majority.experiment import MajorityExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.reading import slices
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words

GROWS = "samples of the class that grows"


def pictures(study: MajorityExperiment, results: xr.Dataset) -> list[Picture]:
    controls = [_control(study, results, name) for name in texts(results, "schedule")]
    return [_falls(study, results), *controls]


def _falls(study: MajorityExperiment, results: xr.Dataset) -> Picture:
    first = results.isel(control=0)
    tail, _, everything = tails_of(results)
    panels = [
        Lines(
            [
                mean_curve(
                    f"Gamma {gamma:g}, {in_words(what)}",
                    results["majority"].values,
                    by_seed(minority_accuracy(first.sel(schedule=schedule, gamma=gamma), what)),
                    f"gamma {place}",
                    style,
                )
                for place, gamma in enumerate(results["gamma"].values)
                for what, style in ((tail, "solid"), (everything, "dotted"))
            ],
            x_label=GROWS,
            y_label="accuracy of the small classes",
            title=study.words(schedule),
            x_log=True,
        )
        for schedule in texts(results, "schedule")
    ]
    return Picture(
        "falls",
        "Accuracy of the small classes as one class gets more data",
        f"Small classes have {study.minority} samples each, always the same ones; mean over them "
        f"with 95 % bands over {seeds_in_words(results)}, {study.test_samples} test samples each. "
        "Solid: long-tailed samples by Definition 1; dotted: all samples. Gamma is the ratio while "
        "all classes are equally large (left end).",
        panels,
    )


def _control(study: MajorityExperiment, results: xr.Dataset, schedule: str) -> Picture:
    tail = tails_of(results)[0]
    return Chart(
        f"controls-{schedule.replace(' ', '-')}",
        f"What hurts the small classes ({schedule})",
        f"Accuracy of the small classes, {study.words(schedule)}. As stated: the "
        "last class gets more samples, so that its share of the data and Gamma change. "
        "Clear: the same without its noise along the special directions of the small "
        "classes, which Gamma hardly notices. Ratio held: as clear, but its noise, as "
        "strong as ever, shares fewer directions with the others, so that their Gamma "
        "towards it falls less or not at all (see the table); Theorem 1 2(b) predicts no "
        "fall. Size held: no more samples, but its noise is scaled up until every Gamma is "
        "what it is as stated; by Gamma alone the fall would be the same. Test samples of "
        f"the small classes are the same in all. Bands: 95 % over {seeds_in_words(results)}.",
        lambda at: minority_accuracy(at, tail),
        x="majority",
        x_label=GROWS,
        y_label=f"accuracy, {in_words(tail)}",
        curves={"control": texts(results, "control")},
        label=lambda control: control,
        role=lambda control: control,
        panel="gamma",
        panel_title=lambda gamma: f"Gamma = {gamma:g}",
        at={"schedule": schedule},
        x_log=True,
    ).picture(results)


def tables(study: MajorityExperiment, results: xr.Dataset) -> list[Table]:
    gamma = float(results["gamma"].values[-1])
    small, last = {"class": slice(0, -1)}, {"class": -1}
    axes = {name: results[name].values.tolist() for name in ("schedule", "control", "majority")}
    rows = [
        {
            "training": at["schedule"],
            "control": at["control"],
            "majority": at["majority"],
            "Gamma towards it": f"{gamma_towards(study, gamma, at['control'], at['majority']):.3g}",
            "loss, small classes": f"{float(here['train_loss'].isel(small).mean()):.3g}",
            "loss, majority": f"{float(here['train_loss'].isel(last).mean()):.3g}",
            "reached the stop": f"{float((here['stopped_at'] >= 0).mean()):.0%}",
        }
        for at, here in slices(results, axes)
    ]
    return [
        table(
            "training",
            "How far each setting was trained, and its Gamma",
            f"Means over Gamma and {seeds_in_words(results)}. Gamma of a small class towards the "
            f"one that grows, for Gamma = {gamma:g} at the start. A run stops once its mean "
            f"training loss is {study.stop_loss:g}; the small classes are then a smaller part of "
            "that mean.",
            rows,
        ),
    ]
