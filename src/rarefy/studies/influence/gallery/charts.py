"""Mistakes, losses and isolation by tenth of the class, and the numbers (003 Fig. 5)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.estimates import finite_mean
from rarefy.measure.resampling import resampled_band, resampled_interval
from rarefy.studies.influence.gallery.claims import (
    ISOLATION,
    POINTS,
    WORDS,
    by_decile,
    gap,
    share_of,
)
from rarefy.studies.influence.gallery.experiment import INFLUENCE, RANDOM, GalleryExperiment
from rarefy.tools.influence.out_of_fold import CLASSIFIERS

SHOWN = {
    "error": (
        "per cent wrong",
        "Mistakes by tenth of the class",
        "Images sorted within their class by a score, lowest tenth first, and how often "
        "classifiers trained without them are wrong. A score that puts hard images first rises to "
        "the right; one that knows nothing is flat. Bands: 95 %, allowing for what draws share.",
    ),
    ISOLATION: (
        "isolation (class mean 1)",
        "Isolation by tenth of the class",
        "The same with the mean distance to the ten nearest images of the class. A score that puts "
        "rare images first rises to the right.",
    ),
}


def pictures(experiment: GalleryExperiment, results: xr.Dataset) -> list[Picture]:
    found = []
    for output, (unit, title, caption) in SHOWN.items():
        panels = [
            Lines(
                _curves(results, output, name, classifier),
                "tenth of the class",
                unit,
                name if output == ISOLATION else f"{name}, {classifier}",
            )
            for name in results["data"].values.tolist()
            for classifier in (CLASSIFIERS[:1] if output == ISOLATION else CLASSIFIERS)
        ]
        found.append(Picture(output, title, caption, panels))
    return found


def _curves(results: xr.Dataset, output: str, name: str, classifier: str) -> list[Curve]:
    found = []
    tenths = results["decile"].values.astype(np.float64)
    for signal in results["signal"].values.tolist():
        values = by_decile(results, output, name, classifier, signal)
        values = values * (POINTS if output == "error" else 1.0)
        band = resampled_band(values, share_of(results, name))
        role = "noise" if signal == RANDOM else signal
        style = "solid" if signal == INFLUENCE else "dashed"
        found.append(Curve(WORDS[signal], tenths, band.mean, band.low, band.high, role, style))
    return found


def tables(experiment: GalleryExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for name in results["data"].values.tolist():
        for asked in (*CLASSIFIERS, ISOLATION):
            output = ISOLATION if asked == ISOLATION else "error"
            for signal in results["signal"].values.tolist():
                values = POINTS * by_decile(results, output, name, asked, signal)
                apart = resampled_interval(
                    gap(results, name, asked, signal), share_of(results, name)
                )
                told = "–"
                if output == "error":
                    part = results["mistakes"].sel(data=name, classifier=asked, signal=signal)
                    told = f"{float(part.mean()):.3f}"
                rows.append(
                    [
                        name,
                        asked,
                        WORDS[signal],
                        f"{finite_mean(values[:, 0]):.2f}",
                        f"{finite_mean(values[:, -1]):.2f}",
                        f"{apart.mean:+.2f} [{apart.low:.2f}, {apart.high:.2f}]",
                        told,
                        apart.n,
                    ]
                )
    heads = ["data", "asked", "sorted by", "lowest tenth", "highest tenth", "difference"]
    found = Table(
        "tenths",
        "Per cent misclassified, and isolation in per cent",
        "Sorted within classes. AUROC: chance that an image misclassified by a classifier that has "
        "not seen it ranks above another one; 0.5 knows nothing. Intervals allow for what the "
        "draws share.",
        [*heads, "AUROC", "n"],
        rows,
    )
    return [found, _confounders(results)]


def _confounders(results: xr.Dataset) -> Table:
    names = results["data"].values.tolist()
    rows: list[list[object]] = []
    for other in results["compared"].values.tolist():
        row: list[object] = [WORDS.get(other, other)]
        for name in names:
            values = results["alike"].sel(data=name, compared=other).values
            found = resampled_interval(values, share_of(results, name))
            row.append(f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]")
        rows.append(row)
    caption = (
        "Spearman's rho between the influence score and other numbers of the same image, mean over "
        "classes. Near 1: the plainer number sorts a class almost alike."
    )
    return Table("confounders", "What the score goes along with", caption, ["with", *names], rows)
