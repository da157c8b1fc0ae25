"""Pictures of ``topk-phase``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import finite_mean
from rarefy.measure.regions import overlap
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.chart import heat_map
from rarefy.studies.kit.words import seeds_in_words
from rarefy.studies.topk.phase import regions
from rarefy.studies.topk.phase.experiment import READS_AS, PhaseExperiment

LABELS = {"sigma": "noise std sigma_p", "keep": "kept coordinates K"}


def pictures(experiment: PhaseExperiment, results: xr.Dataset) -> list[Picture]:
    return [make(experiment, results) for make in (_map, _cuts)]


def _map(experiment: PhaseExperiment, results: xr.Dataset) -> Picture:
    sigma, keep = regions.axes_of(results)
    curves = []
    for side, at in zip(
        ("lower", "upper"), regions.published_curves(experiment, sigma), strict=True
    ):
        there = (at >= keep.min()) & (at <= keep.max())  # the part that lies on the map
        if there.any():
            curves.append(Curve(f"published, {side}", sigma[there], at[there], role="theory"))
    panels = [
        heat_map(
            results["test_loss"].sel(reading=reading),
            "sigma",
            "keep",
            LABELS,
            "test loss",
            f"{reading}: {READS_AS[reading]}",
            curves=curves,
            levels=(regions.LEARNT,),
        )
        for reading in texts(results, "reading")
    ]
    return Picture(
        "map",
        "Test loss over noise and kept coordinates, for each reading of TopK",
        f"Mean of {seeds_in_words(results)} after {experiment.steps} updates; a loss "
        f"under {regions.LEARNT:g} counts as generalising, log {experiment.classes} = "
        f"{np.log(experiment.classes):.2f} is chance. Solid: the two curves of 002 Fig. 2 (scaled "
        "as Theorem 4.4 where the setting is another). Why readings differ: a signal's coordinate "
        "that was set to zero answers its signal with exactly 0. With ReLU'(0) = 1, as the paper "
        "writes, it still has a gradient and can come back at any update, even in filters that "
        "began shut on it: a handful of coordinates is enough (revive). With ReLU'(0) = 0, as "
        "automatic differentiation has it, a signal once lost is lost for good while noise can "
        "come back (revive0); and where the first support is final (fixed), a filter that missed "
        "its signal can only memorise noise. In both, few coordinates can hurt as well as many, "
        "as published, but where the lower side lies differs much from seed to seed. "
        f"{_overlaps(experiment, results)}",
        panels,
    )


def _overlaps(experiment: PhaseExperiment, results: xr.Dataset) -> str:
    published = regions.published_region(experiment, results)
    found = []
    for reading in texts(results, "reading"):
        scores = [overlap(one, published) for one in regions.measured_regions(results, reading)]
        found.append(f"{reading} {finite_mean(scores):.2f}")
    whole = overlap(np.ones_like(published), published)
    return (
        f"Overlap of the region under {regions.LEARNT:g} with the published one: "
        f"{', '.join(found)}; the whole map would have {whole:.2f}."
    )


def _spread_out(sigma: regions.Numbers, count: int) -> regions.Numbers:
    """Some noise levels from first to last."""
    return sigma[np.unique(np.linspace(0, len(sigma) - 1, count).round().astype(int))]


def _cuts(experiment: PhaseExperiment, results: xr.Dataset) -> Picture:
    sigma, keep = regions.axes_of(results)
    panels = [
        Lines(
            [
                mean_curve(
                    f"sigma_p = {value:g}",
                    keep,
                    by_seed(results["test_loss"].sel(reading=reading, sigma=value), "keep"),
                    f"sigma {place}",
                )
                for place, value in enumerate(_spread_out(sigma, 5)[1:])
            ],
            LABELS["keep"],
            "test loss",
            f"{reading}: {READS_AS[reading]}",
            x_log=True,
        )
        for reading in texts(results, "reading")
    ]
    return Picture(
        "slices",
        "Cuts through the map",
        f"Test loss against K at several noise levels, with 95 % bands over "
        f"{results.sizes['seed']} seeds: a window is a dip with two sides.",
        panels,
    )
