"""Pictures and tables of ``benign-majority``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign._conditions import condition_table, conditions
from rarefy.studies.benign._majority_verdicts import in_words, minority_accuracy, tails_of
from rarefy.studies.benign._maps import seeds_in_words
from rarefy.theory.benign import noise_correlation_ratio

if TYPE_CHECKING:
    from rarefy.studies.benign.benign_majority import BenignMajority

GROWS = "samples of the class that grows"


def majority_pictures(study: BenignMajority, results: xr.Dataset) -> list[Picture]:
    return [_falls(study, results), *_controls(study, results)]


def _falls(study: BenignMajority, results: xr.Dataset) -> Picture:
    sizes = results["majority"].values
    control = str(results["control"].values[0])
    everything, tail = tails_of(results)[0], tails_of(results)[1]
    panels = []
    for schedule in results["schedule"].values:
        curves = []
        for place, gamma in enumerate(results["gamma"].values):
            for what, style in ((tail, "solid"), (everything, "dotted")):
                accuracy = minority_accuracy(results, schedule, gamma, control, what)
                label = f"Gamma {gamma:g}, {in_words(what)}"
                curves.append(mean_curve(label, sizes, accuracy, f"gamma {place}", style))
        panels.append(
            Lines(
                curves,
                x_label=GROWS,
                y_label="accuracy of the small classes",
                title=study.words(str(schedule)),
                x_log=True,
            )
        )
    return Picture(
        "falls",
        "Accuracy of the small classes as one class gets more data",
        f"Small classes have {study.minority} samples each, always the same ones; mean over them "
        f"with 95 % bands over {seeds_in_words(results)}, {study.test_samples} test samples each. "
        "Solid: long-tailed samples by Definition 1; dotted: all samples. Gamma is the ratio while "
        "all classes are equally large (left end).",
        panels,
    )


def _controls(study: BenignMajority, results: xr.Dataset) -> list[Picture]:
    tail = tails_of(results)[-1]
    pictures = []
    for schedule in (str(word) for word in results["schedule"].values):
        panels = [
            Lines(
                [
                    mean_curve(
                        str(control),
                        results["majority"].values,
                        minority_accuracy(results, schedule, gamma, str(control), tail),
                        str(control),
                    )
                    for control in results["control"].values
                ],
                x_label=GROWS,
                y_label=f"accuracy, {in_words(tail)}",
                title=f"Gamma = {gamma:g}",
                x_log=True,
            )
            for gamma in results["gamma"].values
        ]
        pictures.append(
            Picture(
                f"controls-{schedule}",
                f"What hurts the small classes ({schedule})",
                f"Accuracy of the small classes, {study.words(schedule)}. As stated: the "
                "last class gets more samples, so that its share of the data and Gamma change. "
                "Clear: the same without its noise along the special directions of the small "
                "classes, which Gamma hardly notices. Ratio held: as clear, but its noise, as "
                "strong as ever, shares fewer directions with the others, so that their Gamma "
                "towards it falls less or not at all (see the table); Theorem 1 2(b) predicts no "
                "fall. Size held: no more samples, but its noise is scaled up until every Gamma is "
                "what it is as stated; by Gamma alone the fall would be the same. Test samples of "
                "the "
                f"small classes are the same in all. Bands: 95 % over {seeds_in_words(results)}.",
                panels,
            )
        )
    return pictures


def majority_tables(study: BenignMajority, results: xr.Dataset) -> list[Table]:
    sizes = [int(size) for size in results["majority"].values]
    gamma = float(results["gamma"].values[-1])
    rows = []
    for schedule in (str(word) for word in results["schedule"].values):
        for control in (str(word) for word in results["control"].values):
            for size in sizes:
                here = results.sel(schedule=schedule, control=control, majority=size)
                gram = study.spectrum(gamma, control, size).gram()[0].numpy()
                ratio = noise_correlation_ratio(gram, study.sizes(control, size))
                loss = here["train_loss"]
                rows.append(
                    (
                        schedule,
                        control,
                        size,
                        f"{ratio[0, -1]:.3g}",
                        f"{float(loss.isel({'class': slice(0, -1)}).mean()):.3g}",
                        f"{float(loss.isel({'class': -1}).mean()):.3g}",
                        f"{float((here['stopped_at'] >= 0).mean()):.0%}",
                        f"{float(here['silent'].isel({'class': slice(0, -1)}).mean()):.2%}",
                    )
                )
    training_table = Table(
        "training",
        "How far each setting was trained, and its Gamma",
        f"Means over Gamma and {seeds_in_words(results)}. Gamma of a small class towards the one "
        f"that grows, for Gamma = {gamma:g} at the start. A run stops once its mean training loss "
        f"is {study.stop_loss:g}; the small classes are then a smaller part of that mean.",
        (
            "training",
            "control",
            "majority",
            "Gamma towards it",
            "loss, small classes",
            "loss, majority",
            "reached the stop",
            "no neuron answers",
        ),
        rows,
    )
    schedule = str(results["schedule"].values[-1])
    found = conditions(
        study,
        study.spectrum(gamma, "as stated", sizes[-1]),
        study.strength,
        study.total(sizes[-1]),
        study.training(schedule),
    )
    return [
        training_table,
        condition_table(found, f"{schedule}, Gamma = {gamma:g}, majority {sizes[-1]}"),
    ]
