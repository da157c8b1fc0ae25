"""Pictures of ``benign-tail``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.studies.benign.tail.claims import ENOUGH, IN_WORDS, measured_cells
from rarefy.studies.benign.tail.experiment import TailExperiment
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.words import seeds_in_words


def pictures(study: TailExperiment, results: xr.Dataset) -> list[Picture]:
    schedules = texts(results, "schedule")
    schedule = "trained" if "trained" in schedules else schedules[0]
    return [
        _against_both(study, results, schedule),
        _against_length(study, results, schedule),
        _selection(study, results),
    ]


def _mean_errors(results: xr.Dataset, schedule: str) -> dict[str, xr.DataArray]:
    """By criterion, means over seeds, (gamma, length); NaN where too few errors were seen."""
    here = results.sel(schedule=schedule)
    enough = here["errors_seen"].sum("seed") >= ENOUGH
    mean = here["tail_error"].mean("seed").where(enough).transpose(..., "gamma", "length")
    return {name: mean.sel(criterion=name) for name in texts(results, "criterion")}


def _note(study: TailExperiment, results: xr.Dataset) -> str:
    return (
        f"Mean of {seeds_in_words(results)}, {study.test_samples} weighted test samples each; a "
        f"point needs {ENOUGH:g} errors."
    )


def _fall(criterion: str, error: xr.DataArray, squared: bool, bound: Sequence[Curve]) -> Lines:
    """Errors beyond L, a curve per Gamma, against L or L^2 Gamma."""
    length = error["length"].values
    curves = [
        Curve(
            f"Gamma {gamma:g}" + (" (control)" if gamma == 1 else ""),
            length**2 * gamma if squared else length,
            error.sel(gamma=gamma).values,
            role=f"gamma {place}",
            style="dashed" if gamma == 1 else "solid",
        )
        for place, gamma in enumerate(error["gamma"].values)
    ]
    x_label = "L^2 Gamma" if squared else "L"
    return Lines([*curves, *bound], x_label, "error beyond L", IN_WORDS[criterion], y_log=True)


def _against_both(study: TailExperiment, results: xr.Dataset, schedule: str) -> Picture:
    panels = []
    for criterion, error in _mean_errors(results, schedule).items():
        cells, bound = measured_cells(study, results, schedule, criterion), []
        if cells.x.size:
            c = float(cells.constants(cells.error).min())
            x = np.linspace(0, float(cells.x.max()), 50)
            most = np.minimum((study.classes - 1) * np.exp(-c * x), 1.0)
            bound.append(Curve(f"bound with c = {c:.2g}", x, most, role="theory", style="dotted"))
        panels.append(_fall(criterion, error, True, bound))
    return Picture(
        "error",
        "How the error falls towards the tail",
        "If Theorem 1 2(b) described how fast, all curves would lie on one straight line. Dotted: "
        "the bound (K - 1) exp(-c L^2 Gamma) with the largest c that is true in all measured cells "
        f"with Gamma of at least 4. Networks {study.words(schedule)}. {_note(study, results)}",
        panels,
    )


def _against_length(study: TailExperiment, results: xr.Dataset, schedule: str) -> Picture:
    errors = _mean_errors(results, schedule)
    panels = [_fall(criterion, error, False, ()) for criterion, error in errors.items()]
    return Picture(
        "control",
        "The control: error beyond L where the noise of all classes is alike",
        "At Gamma = 1 (dashed) the noise of all classes is alike and overall error is chance, "
        f"{1 - 1 / study.classes:g}. Where it falls there all the same, it falls by selection: "
        "Definition 1 asks for a large output of the right class, |zeta| asks no network. "
        f"Networks {study.words(schedule)}. {_note(study, results)}",
        panels,
    )


def _selection(study: TailExperiment, results: xr.Dataset) -> Picture:
    gammas = results["gamma"].values
    chosen = gammas[np.unique([0, len(gammas) // 2, len(gammas) - 1])].tolist()
    return Chart(
        "selection",
        "How much of the data Definition 1 calls long-tailed",
        "Of a class's random filters about half are active on any sample, whichever it is, and the "
        f"ratio is about sqrt(m/pi) = {np.sqrt(study.filters / np.pi):.2g}: with random filters "
        "everything is long-tailed up to that L. Bands: 95 % over "
        f"{seeds_in_words(results)}.",
        "tail_share",
        x="length",
        x_label="L",
        y_label="share of data beyond L (Def. 1)",
        curves={"gamma": chosen},
        label=lambda gamma: f"Gamma {gamma:g}",
        role=lambda gamma: f"gamma {chosen.index(gamma)}",
        panel="schedule",
        panel_title=lambda schedule: study.words(str(schedule)),
        at={"criterion": "definition"},
    ).picture(results)
