"""Pictures and tables of ``benign-mixing``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign._conditions import condition_table, conditions
from rarefy.studies.benign._maps import seeds_in_words
from rarefy.studies.benign._mixing_verdicts import accuracy_of
from rarefy.theory.benign import noise_correlation_ratio

if TYPE_CHECKING:
    from rarefy.studies.benign.benign_mixing import BenignMixing

STYLES = {"free": "solid", "held": "dashed"}


def mixing_pictures(study: BenignMixing, results: xr.Dataset) -> list[Picture]:
    return [_accuracy(study, results, str(schedule)) for schedule in results["schedule"].values]


def _accuracy(study: BenignMixing, results: xr.Dataset, schedule: str) -> Picture:
    panels = [
        Lines(
            [
                mean_curve(
                    f"Gamma {gamma:g}, {moment}",
                    results["share"].values,
                    accuracy_of(results, schedule, gamma, str(moment), str(kind)),
                    f"gamma {place}",
                    STYLES[str(moment)],
                )
                for place, gamma in enumerate(results["gamma"].values)
                for moment in results["moment"].values
            ],
            x_label="share of long-tailed training samples",
            y_label="test accuracy",
            title=f"{kind} test samples",
        )
        for kind in results["kind"].values
    ]
    return Picture(
        f"accuracy-{schedule}",
        f"More long-tailed samples in a training set of fixed size ({study.words(schedule)})",
        f"Long-tailed: |zeta| >= {study.tail:g} along the class's special direction; the law's own "
        f"share is {_own_share(study):.3f}. Solid (free): the noise along that direction gets "
        "stronger with the share. Dashed (held): the direction's eigenvalue is lowered in the "
        "training set so that its second moment stays the same; what still rises is due to the "
        f"shape of the tail. Test samples are the same everywhere, {study.test_samples} a run; "
        f"bands: 95 % over {seeds_in_words(results)}.",
        panels,
    )


def _own_share(study: BenignMixing) -> float:
    """The share at which the second moment is the law's own, 1."""
    low, high = study.second_moment(0.0), study.second_moment(1.0)
    return (1 - low) / (high - low)


def mixing_tables(study: BenignMixing, results: xr.Dataset) -> list[Table]:
    rows = []
    for schedule in (str(word) for word in results["schedule"].values):
        for gamma in results["gamma"].values:
            for moment in (str(word) for word in results["moment"].values):
                for share in results["share"].values:
                    here = results.sel(schedule=schedule, gamma=gamma, moment=moment, share=share)
                    rows.append(
                        (
                            schedule,
                            f"{gamma:g}",
                            moment,
                            f"{share:g}",
                            f"{_gamma_of_training(study, gamma, moment, share):.3g}",
                            f"{float(here['train_loss'].mean()):.2g}",
                            f"{float((here['stopped_at'] >= 0).mean()):.0%}",
                            *(f"{float(value):.3f}" for value in here["accuracy"].mean("seed")),
                        )
                    )
    table = Table(
        "mixing",
        "Accuracy, and the Gamma of the training set",
        "Gamma is that of the training distribution's second moments. Means over "
        f"{seeds_in_words(results)}.",
        (
            "training",
            "Gamma of the law",
            "moment",
            "share",
            "Gamma of the training set",
            "training loss",
            "reached the stop",
            *(f"accuracy, {kind}" for kind in results["kind"].values),
        ),
        rows,
    )
    schedule, gamma = str(results["schedule"].values[-1]), float(results["gamma"].values[-1])
    found = conditions(
        study,
        study.spectrum(gamma),
        study.strength,
        study.classes * study.samples,
        study.training(schedule),
    )
    return [table, condition_table(found, f"{schedule}, Gamma = {gamma:g}")]


def _gamma_of_training(study: BenignMixing, gamma: float, moment: str, share: float) -> float:
    """Gamma of the second moments: the special direction's is multiplied by E zeta^2."""
    factor = study.second_moment(float(share)) ** 0.5
    noise = study.training_spectrum(float(gamma), moment, float(share))
    gram = noise.with_special(factor).gram()[0].numpy()
    ratio = noise_correlation_ratio(gram, [study.samples] * study.classes)
    return float(ratio[0, 1])
