"""Pictures of ``benign-homogeneous``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.estimates import finite_mean
from rarefy.studies.benign.homogeneous.claims import BOUNDARY, RATIO, Transition, transitions
from rarefy.studies.benign.homogeneous.experiment import HomogeneousExperiment
from rarefy.studies.benign.maps import AXIS_LABELS
from rarefy.theory import benign


def pictures(study: HomogeneousExperiment, results: xr.Dataset) -> list[Picture]:
    every = transitions(study, results)
    main = next((here for here in every if here.schedule == "trained"), every[0])
    return [_map(main), _collapse(every)]


def _map(here: Transition) -> Picture:
    """One panel per dimension."""
    mean = finite_mean(here.error)
    edge = here.boundary()
    x = here.ratio_at(edge)
    level = float(np.nanmedian(x)) if np.isfinite(x).any() else 1.0
    panels = []
    for place, dimension in enumerate(here.dimension):
        classes, fit = here.study.classes, []
        norm = benign.classical_norm(
            classes, classes * here.size, dimension, level, here.study.base
        )
        measured = np.isfinite(edge[place])
        inside = (norm >= here.strength.min()) & (norm <= here.strength.max())
        if inside.sum() > 1:
            label = f"{RATIO} = {level:.2g}"
            fit.append(Curve(label, norm[inside], here.size[inside], role="theory"))
        if measured.any():
            label = f"error {BOUNDARY:g}, measured"
            points = (edge[place][measured], here.size[measured])
            fit.append(Curve(label, *points, role="boundary", style="points"))
        panels.append(
            HeatMap(
                mean[place],
                here.strength.tolist(),
                [int(size) for size in here.size],
                AXIS_LABELS["strength"],
                AXIS_LABELS["size"],
                "test error",
                f"d = {dimension:g}",
                curves=fit,
            )
        )
    return Picture(
        "transition",
        "The transition between harmful and benign overfitting, noise of one kind",
        f"Test error, mean of {len(here.error)} seeds, {here.schedule}; chance is "
        f"{1 - 1 / here.study.classes:.2g}. Points: where it is {BOUNDARY:g}. Line: n |u|^4/(K d) "
        "constant, its value the median over the points of all panels; the classical law says that "
        "points follow the line, in every panel the same.",
        panels,
    )


def _collapse(every: list[Transition]) -> Picture:
    panels = []
    for here in every:
        mean = finite_mean(here.error)
        curves = [
            Curve(
                f"d = {dimension:g}, |S| = {size:g}",
                here.ratio[i, j],
                mean[i, j],
                role=f"d {i}",
                style=("solid", "dashed", "dotted")[min(order, 2)],
            )
            for i, dimension in enumerate(here.dimension)
            for order, j in enumerate(sorted({0, len(here.size) // 2, len(here.size) - 1}))
            for size in (here.size[j],)
        ]
        marks = ((1.0, "1"),)
        panels.append(Lines(curves, RATIO, "test error", here.schedule, x_log=True, marks=marks))
    return Picture(
        "collapse",
        f"Does one number decide? The error against {RATIO}",
        f"Mean of {len(every[0].error)} seeds. Curves of different d and |S| fall onto each other "
        "where that number is all that counts.",
        panels,
    )
