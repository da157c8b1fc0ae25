"""Pictures of ``topk-phase``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.regions import overlap
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.chart import heat_map
from rarefy.studies.kit.words import seeds_in_words
from rarefy.studies.topk.phase import regions
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.theory.first_step import paper_noise_std

READS_AS = {
    "revive": "pruned coordinates may come back",
    "revive0": "may come back, ReLU'(0) = 0",
    "fixed": "the first support is final",
    "random": "a random support",
    "dense": "nothing is pruned",
}
LABELS = {"sigma": "noise std sigma_p", "keep": "kept coordinates K"}


def pictures(experiment: PhaseExperiment, results: xr.Dataset) -> list[Picture]:
    return [make(experiment, results) for make in (_map, _cuts, _first)]


def _map(experiment: PhaseExperiment, results: xr.Dataset) -> Picture:
    sigma, keep = regions.axes_of(results)
    curves = []
    for name, ends, role, style in (
        ("published", regions.published_curves(experiment, sigma), "theory", "solid"),
        ("first update", regions.predicted_curves(experiment, sigma), "first", "dashed"),
    ):
        for side, at in zip(("lower", "upper"), ends, strict=True):
            there = (at >= keep.min()) & (at <= keep.max())  # the part that lies on the map
            if there.any():
                label = f"{name}, {side}"
                curves.append(Curve(label, sigma[there], at[there], role=role, style=style))
    panels = [
        heat_map(
            results["test_loss"].isel(read=-1).sel(reading=reading),
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
        f"Mean of {seeds_in_words(results)} after {int(results['read'][-1])} updates; a loss "
        f"under {regions.LEARNT:g} counts as generalising, log {experiment.classes} = "
        f"{np.log(experiment.classes):.2f} is chance. Solid: the two curves of 002 Fig. 2 (scaled "
        "as Theorem 4.4 where the setting is another). Dashed: the window that follows from the "
        "first update alone, no constant fitted. Why the readings differ: a signal's coordinate "
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
        scores = regions.overlaps(results, reading, published)
        ends = f" ({min(scores):.2f} to {max(scores):.2f})" if len(scores) > 1 else ""
        found.append(f"{reading} {np.mean(scores):.2f}{ends}")
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
    readings, loudest = texts(results, "reading"), float(sigma.max())
    loss, held = results["test_loss"].isel(read=-1), results["signal_held"].sel(sigma=loudest)
    panels = [
        Lines(
            [
                mean_curve(
                    f"sigma_p = {value:g}",
                    keep,
                    by_seed(loss.sel(reading=reading, sigma=value), "keep"),
                    f"sigma {place}",
                )
                for place, value in enumerate(_spread_out(sigma, 5)[1:])
            ],
            LABELS["keep"],
            "test loss",
            f"{reading}: {READS_AS[reading]}",
            x_log=True,
        )
        for reading in readings
    ]
    holding = Lines(
        [
            mean_curve(reading, keep, by_seed(held.sel(reading=reading), "keep"), reading)
            for reading in readings
        ],
        LABELS["keep"],
        "share of all filters",
        f"Filters that hold their own signal at the end, sigma_p = {loudest:g}",
        x_log=True,
    )
    share = regions.spacing(keep)
    published = regions.published_region(experiment, results) @ share
    predicted = regions.predicted_region(experiment, results) @ share
    width = Lines(
        [
            *(
                mean_curve(
                    reading, sigma, regions.measured_regions(results, reading) @ share, reading
                )
                for reading in readings
            ),
            Curve("published", sigma, published, role="theory"),
            Curve("first update", sigma, predicted, role="first", style="dashed"),
        ],
        LABELS["sigma"],
        "share of K with test loss < 2",
        "How wide the window is",
    )
    return Picture(
        "slices",
        "Cuts through the map",
        f"Test loss against K at several noise levels, with 95 % bands over "
        f"{results.sizes['seed']} seeds: a window is a dip with two sides. Then how many filters "
        "hold their own signal (half of them begin shut on it, and stay so unless a coordinate at "
        "zero may come back), and how much of the K axis generalises.",
        [*panels, holding, width],
    )


def _first(experiment: PhaseExperiment, results: xr.Dataset) -> Picture:
    sigma, keep = regions.axes_of(results)
    first = results.isel(reading=0)
    curves = []
    for place, value in enumerate(_spread_out(sigma, 4)):
        name, role = f"sigma_p = {value:g}", f"sigma {place}"
        samples = by_seed(first["first_kept"].sel(sigma=value), "keep")
        shares = regions.kept_shares(experiment, results, value)
        curves.append(mean_curve(f"{name}, measured", keep, samples, role, "points"))
        curves.append(Curve(f"{name}, law", keep, shares, role=role))
    title = "Filters whose signal is among the K largest"
    kept = Lines(curves, "K", "share of filters", title)
    gained, noise = (
        by_seed(first[name].isel(keep=0), "sigma") for name in ("first_signal", "first_noise")
    )
    steps = [regions.first_update(experiment, value) for value in sigma]

    def law(label: str, values: list[float], role: str, style: str = "solid") -> Curve:
        return Curve(label, sigma, np.array(values), role=role, style=style)

    start = experiment.sigma_0
    added = Lines(
        [
            mean_curve("signal, measured", sigma, gained, "signal", "points"),
            law("signal, law", [step.signal_gain for step in steps], "signal"),
            mean_curve("noise, measured", sigma, noise, "noise", "points"),
            law("noise, law", [step.noise_gain for step in steps], "noise"),
            law("noise, 002 App. I", [paper_noise_std(step) for step in steps], "noise", "dotted"),
            law("initial weights, std", [start] * len(sigma), "start", "dashed"),
        ],
        LABELS["sigma"],
        "size of what the first update adds",
        "The first update against the initial weights",
        y_log=True,
    )
    mean = float(first["first_signal"].isel(keep=0).mean())
    return Picture(
        "first",
        "The first update, which decides a fixed support",
        "Left: of the filters that could learn their signal, those in which it is among the K "
        "largest after one update; points measured, lines the law. Right: what the update adds to "
        f"signal and noise coordinates. The signal gains {mean / start:.2g} times the std of the "
        "initial weights: "
        + (
            "less than they already have, so that a support chosen after it owes much to chance."
            if mean < start
            else "it is the update that decides which coordinates are largest."
        ),
        [kept, added],
    )
