"""Overlaps of class covariances (003 Fig. 6), classes in the plane (003 Fig. 1), and numbers."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.picture import Curve, HeatMap, Lines, Picture, Table
from rarefy.measure.estimates import finite_mean
from rarefy.measure.resampling import resampled_interval
from rarefy.studies.influence.covariance.claims import HALF, matrices
from rarefy.studies.influence.covariance.experiment import CovarianceExperiment
from rarefy.tools.influence.class_noise import own_and_others
from rarefy.tools.influence.drawn_parts import class_names


def pictures(experiment: CovarianceExperiment, results: xr.Dataset) -> list[Picture]:
    found = []
    for name in results["data"].values.tolist():
        names = class_names(name)
        raw = finite_mean(matrices(results, name, "across"))
        size = np.sqrt(np.diagonal(raw))
        numbers = [str(place) for place in range(len(names))]
        rows = [
            place if place == name else f"{place} {name}"
            for place, name in zip(numbers, names, strict=True)
        ]
        panels = [
            HeatMap(
                values,
                numbers,
                rows,
                "class j",
                "class i",
                words,
                title,
                notes=[(*at, _short(value)) for at, value in np.ndenumerate(values)],
            )
            for values, words, title in (
                (raw, "tr(Sigma_i Sigma_j)", "As Fig. 6"),
                (raw / np.outer(size, size), "cosine", "Divided by the norms of both"),
            )
        ]
        caption = (
            "Overlap of class covariances, pixels in [0, 1], the two covariances from different "
            "samples. 003 Fig. 6 says that the diagonal dominates. Left, a class of small variance "
            "may overlap more with a larger class than with itself. Right, that is impossible "
            "(Cauchy and Schwarz): what counts there is how far the others are below 1."
        )
        title = f"{name}: overlap of class covariances"
        found.append(Picture(f"overlaps-{name}", title, caption, panels))
    found.append(_map(results))
    return found


def _map(results: xr.Dataset) -> Picture:
    panels = []
    for name in results["data"].values.tolist():
        part = results.sel(data=name)
        seen = part["points_class"].notnull().any("point").values
        seed = int(np.argmax(seen))
        at = part["points_at"].isel(seed=seed).transpose("point", "coordinate").values
        label = part["points_class"].isel(seed=seed).values
        curves = [
            Curve(
                words,
                at[label == place, 0],
                at[label == place, 1],
                role=f"class {place}",
                style="points",
            )
            for place, words in enumerate(class_names(name))
            if (label == place).any()
        ]
        panels.append(Lines(curves, "t-SNE 1", "t-SNE 2", name))
    caption = (
        "A t-SNE of some training samples, as 003 Fig. 1 has one. Shapes on such a map are not "
        "those in pixel space and prove nothing about covariances; whether noise depends on the "
        "class is asked of held-out residuals instead (table)."
    )
    return Picture("t-sne", "Classes spread out in the plane", caption, panels)


def tables(experiment: CovarianceExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for name in results["data"].values.tolist():
        names = class_names(name)
        mean, largest = own_and_others(matrices(results, name, "across"))
        rows.append([name, "log(own / mean of others)", *_told(mean.mean(axis=1))])
        rows.append([name, "log(own / largest other)", *_told(largest.mean(axis=1))])
        place = int(np.nan_to_num(finite_mean(largest)).argmin())
        head = f"log(own / largest other) of class {names[place]}, the smallest"
        rows.append([name, head, *_told(largest[:, place])])
        for residual in results["residual"].values.tolist():
            values = results["told"].sel(data=name, residual=residual).values
            rows.append([name, f"told from residuals, {residual}", *_told(values)])
        rows.append([name, "chance", f"{1 / len(names):.3f}", "", ""])
    caption = (
        "Means over random halves of the training samples; the interval (95 %) allows for the "
        "samples that halves share. Residuals: held-out samples without their class's mean."
    )
    heads = ["data", "quantity", "mean", "interval", "n"]
    return [Table("covariance", "Class covariances", caption, heads, rows)]


def _told(values: NDArray[np.float64]) -> list[object]:
    found = resampled_interval(values, HALF)
    ends = f"{found.low:.3f} to {found.high:.3f}" if found.n > 1 else "–"
    return [f"{found.mean:.3f}", ends, found.n]


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:.1f}k"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
