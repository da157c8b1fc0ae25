"""Pictures and tables of ``benign-tail``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign._conditions import condition_table, conditions
from rarefy.studies.benign._maps import seeds_in_words
from rarefy.studies.benign._tail_verdicts import ENOUGH, IN_WORDS, measured_cells

if TYPE_CHECKING:
    from rarefy.studies.benign.benign_tail import BenignTail


def tail_pictures(study: BenignTail, results: xr.Dataset) -> list[Picture]:
    schedule = (
        "trained" if "trained" in results["schedule"].values else str(results["schedule"].values[0])
    )
    return [
        _against_both(study, results, schedule),
        _against_length(study, results, schedule),
        _map(study, results, schedule),
        _selection(study, results),
    ]


def _mean_error(results: xr.Dataset, schedule: str, criterion: str) -> xr.DataArray:
    """Mean over seeds, (gamma, length); NaN where too few errors were seen."""
    here = results.sel(schedule=schedule, criterion=criterion)
    enough = here["errors_seen"].sum("seed") >= ENOUGH
    return here["tail_error"].mean("seed").where(enough).transpose("gamma", "length")


def _note(study: BenignTail, results: xr.Dataset) -> str:
    return (
        f"Mean of {seeds_in_words(results)}, {study.test_samples} weighted test samples each; a "
        f"point needs {ENOUGH:g} errors."
    )


def _against_both(study: BenignTail, results: xr.Dataset, schedule: str) -> Picture:
    panels = []
    for criterion in (str(word) for word in results["criterion"].values):
        error = _mean_error(results, schedule, criterion)
        length = error["length"].values
        curves = [
            Curve(
                f"Gamma {gamma:g}" + (" (control)" if gamma == 1 else ""),
                length**2 * gamma,
                error.sel(gamma=gamma).values,
                role=f"gamma {place}",
                style="dashed" if gamma == 1 else "solid",
            )
            for place, gamma in enumerate(error["gamma"].values)
        ]
        cells = measured_cells(study, results, schedule, criterion)
        if cells.x.size:
            c = float(cells.constants(cells.error).min())
            x = np.linspace(0, float(cells.x.max()), 50)
            bound = np.minimum((study.classes - 1) * np.exp(-c * x), 1.0)
            curves.append(Curve(f"bound with c = {c:.2g}", x, bound, role="theory", style="dotted"))
        panels.append(
            Lines(
                curves,
                x_label="L^2 Gamma",
                y_label="error beyond L",
                title=IN_WORDS[criterion],
                y_log=True,
            )
        )
    return Picture(
        "error",
        "How the error falls towards the tail",
        "If Theorem 1 2(b) described how fast, all curves would lie on one straight line. Dotted: "
        "the bound (K - 1) exp(-c L^2 Gamma) with the largest c that is true in all measured cells "
        f"with Gamma of at least 2. Networks {study.words(schedule)}. {_note(study, results)}",
        panels,
    )


def _against_length(study: BenignTail, results: xr.Dataset, schedule: str) -> Picture:
    panels = []
    for criterion in (str(word) for word in results["criterion"].values):
        error = _mean_error(results, schedule, criterion)
        panels.append(
            Lines(
                [
                    Curve(
                        f"Gamma {gamma:g}" + (" (control)" if gamma == 1 else ""),
                        error["length"].values,
                        error.sel(gamma=gamma).values,
                        role=f"gamma {place}",
                        style="dashed" if gamma == 1 else "solid",
                    )
                    for place, gamma in enumerate(error["gamma"].values)
                ],
                x_label="L",
                y_label="error beyond L",
                title=IN_WORDS[criterion],
                y_log=True,
            )
        )
    return Picture(
        "control",
        "The control: error beyond L where the noise of all classes is alike",
        "At Gamma = 1 (dashed) the noise of all classes is alike and overall error is chance, "
        f"{1 - 1 / study.classes:g}. Where it falls there all the same, it falls by selection: "
        "Definition 1 asks for a large output of the right class, |zeta| asks no network. "
        f"Networks {study.words(schedule)}. {_note(study, results)}",
        panels,
    )


def _map(study: BenignTail, results: xr.Dataset, schedule: str) -> Picture:
    panels = []
    for criterion in (str(word) for word in results["criterion"].values):
        error = _mean_error(results, schedule, criterion)
        panels.append(
            HeatMap(
                values=np.log10(error.values),
                x=[float(value) for value in error["length"].values],
                y=[f"{value:g}" for value in error["gamma"].values],
                x_label="L",
                y_label="Gamma",
                colour_label="log10 of error beyond L",
                title=IN_WORDS[criterion],
            )
        )
    return Picture(
        "map",
        "Error beyond L for every Gamma",
        f"Empty cells: too few errors to measure. Networks {study.words(schedule)}. "
        f"{_note(study, results)}",
        panels,
    )


def _selection(study: BenignTail, results: xr.Dataset) -> Picture:
    gammas = results["gamma"].values
    chosen = gammas[np.unique([0, len(gammas) // 2, len(gammas) - 1])]
    length = results["length"].values
    panels = [
        Lines(
            [
                mean_curve(
                    f"Gamma {gamma:g}",
                    length,
                    results["tail_share"]
                    .sel(schedule=schedule, criterion="definition", gamma=gamma)
                    .transpose("seed", "length")
                    .values,
                    f"gamma {place}",
                )
                for place, gamma in enumerate(chosen)
            ],
            x_label="L",
            y_label="share of data beyond L (Def. 1)",
            title=study.words(str(schedule)),
        )
        for schedule in results["schedule"].values
    ]
    return Picture(
        "selection",
        "How much of the data Definition 1 calls long-tailed",
        "Of a class's random filters about half are active on any sample, whichever it is, and the "
        f"ratio is about sqrt(m/pi) = {np.sqrt(study.filters / np.pi):.2g}: with random filters "
        "everything is long-tailed up to that L. Bands: 95 % over "
        f"{seeds_in_words(results)}.",
        panels,
    )


def tail_tables(study: BenignTail, results: xr.Dataset) -> list[Table]:
    rows = []
    for schedule in (str(word) for word in results["schedule"].values):
        for gamma in results["gamma"].values:
            here = results.sel(schedule=schedule, gamma=gamma)
            errors = here["tail_error"].mean("seed")
            rows.append(
                (
                    schedule,
                    f"{gamma:g}",
                    f"{float(here['train_loss'].mean()):.2g}",
                    f"{float(here['silent'].mean()):.2%}",
                    f"{float(here['quiet'].mean()):.2%}",
                    *(f"{float(value):.2g}" for value in errors.sel(criterion="definition")),
                )
            )
    lengths = [f"L = {float(value):g}" for value in results["length"].values]
    errors_table = Table(
        "errors",
        "Error beyond L by Definition 1",
        f"{_note(study, results)} A 0 means that none was seen. Silent: no neuron of the own class "
        "answers, so that the ratio is 0/0; quiet: fewer than 0.1 m answer, against Lemma 4.",
        ("training", "Gamma", "loss", "silent", "quiet", *lengths),
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
    return [errors_table, condition_table(found, f"{schedule}, Gamma = {gamma:g}")]
