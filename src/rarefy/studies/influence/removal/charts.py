"""Accuracy over the share left out, by score (003 Fig. 7)."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.influence.removal.experiment import RemovalExperiment
from rarefy.studies.influence.removal.tables import (
    ASKED,
    HIGH,
    LOW,
    PLACES,
    RANDOM,
    about_draws,
    accuracies,
    removed,
    spoken,
)
from rarefy.studies.influence.removal.training import LOGISTIC


def pictures(experiment: RemovalExperiment, results: xr.Dataset) -> list[Picture]:
    panels = []
    for within in results["within"].values.tolist():
        for asked, words in ASKED.items():
            curves = [
                mean_curve(
                    spoken(by),
                    removed(results),
                    accuracies(results, asked, within, by),
                    "noise" if by == RANDOM else by,
                    "solid" if by in (HIGH, LOW) else "dashed",
                )
                for by in results["by"].values.tolist()
            ]
            title = f"{words.capitalize()}; {PLACES[within]}"
            panels.append(Lines(curves, "share left out", "per cent right", title))
    logistic = experiment.network == LOGISTIC
    caption = (
        f"{'logistic regression' if logistic else experiment.network} on {experiment.data}, "
        "trained on what is left; mean and 95 % interval over up to "
        f"{experiment.seeds} seeds. 003 Fig. 7 says that the curve without high scores falls more "
        "than that without low ones. Where it falls no more than at random, the score has found "
        "nothing that training needs. The tail: the "
        f"{100 * experiment.tail_share:g} % of each class's test samples with the highest held-out "
        "scores."
    )
    if about := about_draws(experiment):
        caption += f" {about.capitalize()}."
    return [Picture("removed", "Accuracy after leaving samples out", caption, panels)]
