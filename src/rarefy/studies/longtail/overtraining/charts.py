"""What features are made of while they are learnt, in pictures and in a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import mean_band
from rarefy.measure.order_pairs import FEWEST
from rarefy.measure.representation.groups import groups
from rarefy.studies.longtail import charts, tables
from rarefy.studies.longtail.overtraining.experiment import OvertrainingExperiment
from rarefy.studies.longtail.overtraining.measures import (
    EARLY,
    MEASURES,
    TABLED,
    early_look,
    of_method,
    seen,
    shown,
    two_looks,
)
from rarefy.studies.longtail.words import spoken
from rarefy.tools.longtail.readings import PERCENT
from rarefy.train.simclr.method import Method

UNSEEN = "Test images, as many of each class, which no training saw; mean and 95 % band over orders"


def pictures(experiment: OvertrainingExperiment, results: xr.Dataset) -> list[Picture]:
    """Our own, and then those of every long-tailed pre-training."""
    own = [_neighbours, _class_or_image, _views, _geometry, _spectrum]
    return [*(make(results) for make in own), *charts.pictures(experiment, results)]


def trained(results: xr.Dataset) -> list[str]:
    return [str(one) for one in results["algorithm"].values if Method.parse(str(one)).trained]


def _lines(
    results: xr.Dataset,
    words: str,
    values: Callable[[str], np.ndarray],
    title: str = "",
) -> Lines:
    """A curve per method over the epochs; ``values`` of a method: (seed, look)."""
    epochs = results["watched_epoch"].values.astype(float)
    curves = [
        mean_curve(spoken(one), epochs, values(one), one, fewest=FEWEST) for one in trained(results)
    ]
    return Lines(curves, "epoch", words, title)


def _measure(results: xr.Dataset, name: str, title: str = "") -> Lines:
    return _lines(results, MEASURES[name].label, lambda one: seen(results, one, name), title)


def _neighbours(results: xr.Dataset) -> Picture:
    ranks = groups([1] * results.sizes["rank"])

    def values(which: tuple[int, ...], method: str) -> np.ndarray:
        here = of_method(results, method)["unseen_knn"].isel(rank=list(which)).mean("rank")
        return PERCENT * np.asarray(here.transpose("seed", "watched_epoch").values)

    panels = [
        _lines(results, MEASURES["knn"].label, partial(values, which), name)
        for name, which in zip(("many", "medium", "few"), ranks, strict=True)
        if which
    ]
    caption = (
        f"{UNSEEN}. Half of them are asked, their 20 nearest neighbours in the other half answer: "
        "no class has fewer neighbours than another. Many, medium, few: thirds of the classes by "
        "their images in the training."
    )
    return Picture("neighbours", "Do neighbours share their class?", caption, panels)


def _class_or_image(results: xr.Dataset) -> Picture:
    caption = (
        f"{UNSEEN}. Left: how much of the variance of features lies between classes. Right: views "
        "whose nearest other view is of the same image, trained images less unseen ones, as many "
        "of each class: what was learnt by heart."
    )
    panels = [_measure(results, name) for name in ("class", "memorised")]
    return Picture("class-or-image", "Class or image?", caption, panels)


def _views(results: xr.Dataset) -> Picture:
    caption = (
        f"{UNSEEN}. R² of a linear regression, on images that it was not fitted to, from the "
        "feature of a view to where and how large its crop is, and to how its colours were "
        "changed: a feature that ignores the view has 0."
    )
    panels = [_measure(results, name) for name in ("crop", "colour")]
    there = [panel for panel in panels if any(np.isfinite(one.y).any() for one in panel.curves)]
    return Picture("views", "Can the view be read from its feature?", caption, there)


def _geometry(results: xr.Dataset) -> Picture:
    paths = []
    for one in trained(results):
        x, y = (mean_band(seen(results, one, name)).mean for name in ("alignment", "uniformity"))
        paths.append(Curve(spoken(one), x, y, role=one))
    caption = (
        f"{UNSEEN}. Effective rank: exp of the entropy of the singular values (Roy and Vetterli "
        "2007). Right: squared distance of two views of an image and uniformity (Wang and Isola "
        "2020), both the better the smaller, from the first look to the last."
    )
    panels = [
        _measure(results, "rank"),
        _measure(results, "alignment"),
        Lines(paths, MEASURES["alignment"].label, MEASURES["uniformity"].label, "the way"),
    ]
    return Picture("geometry", "How features are spread", caption, panels)


def _spectrum(results: xr.Dataset) -> Picture:
    epochs, direction = results["watched_epoch"].values, results["direction"].values.astype(float)
    panels = []
    for look in dict.fromkeys((0, early_look(results), len(epochs) - 1)):
        curves = []
        for one in trained(results):
            here = of_method(results, one)["spectrum"].isel(watched_epoch=look)
            values = here.transpose("seed", "direction").values
            mean = mean_band(np.where(values > 0, values, np.nan)).mean  # (the axis is a log one)
            curves.append(Curve(spoken(one), direction, mean, role=one))
        labels = ("direction, the largest first", "share of the variance")
        title = f"epoch {epochs[look]}"
        panels.append(Lines(curves, *labels, title, x_log=True, y_log=True))
    return Picture("spectrum", "The spectrum of features", f"{UNSEEN}: means alone.", panels)


def looks_table(results: xr.Dataset) -> Table:
    """Every measure at the two looks, and its change with its interval."""
    rows = []
    for method in trained(results):
        for name in TABLED:
            early, last, moved = two_looks(results, method, name)
            if moved.n:
                told = (f"{early:.2f}", f"{last:.2f}", shown(moved), moved.n)
                rows.append((spoken(method), MEASURES[name].label, *told))
    epochs = results["watched_epoch"].values
    return Table(
        "looks",
        "What became of the features",
        f"{UNSEEN}. The look at {PERCENT * EARLY:.0f} % of the training against the last one; the "
        "change with its 95 % interval, order by order.",
        ("method", "measure", f"epoch {epochs[early_look(results)]}", f"epoch {epochs[-1]}")
        + ("change", "n"),
        rows,
    )


def all_tables(experiment: OvertrainingExperiment, results: xr.Dataset) -> list[Table]:
    return [looks_table(results), *tables.tables(experiment, results)]
