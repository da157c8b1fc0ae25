"""Pictures of ``topk-phase``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.regions import overlap
from rarefy.studies.topk._phase_regions import (
    LEARNT,
    axes_of,
    first_update,
    kept_shares,
    measured_region,
    predicted_curves,
    predicted_region,
    published_curves,
    published_region,
    spacing,
    test_loss,
)
from rarefy.theory import first_step

if TYPE_CHECKING:
    from rarefy.studies.topk.topk_phase import TopKPhase

READS_AS = {
    "revive": "pruned coordinates may come back",
    "revive0": "may come back, ReLU'(0) = 0",
    "fixed": "the first support is final",
    "random": "a random support",
    "dense": "nothing is pruned",
}


def phase_pictures(study: TopKPhase, results: xr.Dataset) -> list[Picture]:
    return [_map(study, results), _slices(study, results), _first(study, results)]


def _map(study: TopKPhase, results: xr.Dataset) -> Picture:
    sigma, keep = axes_of(results)
    lower, upper = published_curves(study, sigma)
    low, high = predicted_curves(study, sigma)
    top, bottom = keep.max(), keep.min()
    curves = [
        Curve("published, lower", *_inside(sigma, lower, bottom, top), role="theory"),
        Curve("published, upper", *_inside(sigma, upper, bottom, top), role="theory"),
        Curve(
            "first update, lower", *_inside(sigma, low, bottom, top), None, None, "first", "dashed"
        ),
        Curve(
            "first update, upper", *_inside(sigma, high, bottom, top), None, None, "first", "dashed"
        ),
    ]
    loss = test_loss(results).mean("seed")
    panels = [
        HeatMap(
            values=loss.sel(reading=reading).transpose("keep", "sigma").values,
            x=sigma.tolist(),
            y=[int(k) for k in keep],
            x_label="noise std sigma_p",
            y_label="kept coordinates K",
            colour_label="test loss",
            title=f"{reading}: {READS_AS[str(reading)]}",
            curves=[curve for curve in curves if len(curve.x)],
            levels=(LEARNT,),
        )
        for reading in results["reading"].values
    ]
    n = results.sizes["seed"]
    return Picture(
        "map",
        "Test loss over noise and kept coordinates, for each reading of TopK",
        f"Mean of {n} seed{'s' if n > 1 else ''} after {int(results['read'][-1])} updates; a loss "
        f"under {LEARNT:g} counts as generalising, log {study.classes} = "
        f"{np.log(study.classes):.2f} is chance. Solid: the two curves of 002 Fig. 2 (scaled as "
        "Theorem 4.4 where the setting is another). Dashed: the window that follows from the "
        "first update alone, no constant fitted. Why the readings differ: a signal's coordinate "
        "that was set to zero answers its signal with exactly 0. With ReLU'(0) = 1, as the paper "
        "writes, it still has a gradient and can come back at any update, even in filters that "
        "began shut on it: a handful of coordinates is enough (revive). With ReLU'(0) = 0, as "
        "automatic differentiation has it, a signal once lost is lost for good while noise can "
        "come back (revive0); and where the first support is final (fixed), a filter that missed "
        "its signal can only memorise noise. In both, few coordinates can hurt as well as many, "
        "as published, but where the lower side lies differs much from seed to seed. "
        f"{_overlaps(study, results)}",
        panels,
    )


def _overlaps(study: TopKPhase, results: xr.Dataset) -> str:
    published = published_region(study, results)
    seeds = results["seed"].values
    found = []
    for reading in results["reading"].values:
        scores = [overlap(measured_region(results, reading, seed), published) for seed in seeds]
        ends = f" ({min(scores):.2f} to {max(scores):.2f})" if len(seeds) > 1 else ""
        found.append(f"{reading} {np.mean(scores):.2f}{ends}")
    return (
        f"Overlap of the region under {LEARNT:g} with the published one: {', '.join(found)}; the "
        f"whole map would have {overlap(np.ones_like(published), published):.2f}."
    )


def _inside(
    x: np.ndarray, y: np.ndarray, bottom: float, top: float
) -> tuple[np.ndarray, np.ndarray]:
    """The part of a curve that lies on the map."""
    there = (y >= bottom) & (y <= top)
    return x[there], y[there]


def _slices(study: TopKPhase, results: xr.Dataset) -> Picture:
    sigma, keep = axes_of(results)
    chosen = sigma[np.unique(np.linspace(0, len(sigma) - 1, 5).round().astype(int))][1:]
    loss = test_loss(results)
    panels = [
        Lines(
            [
                mean_curve(
                    f"sigma_p = {value:g}",
                    keep,
                    loss.sel(reading=reading, sigma=value).transpose("seed", "keep").values,
                    role=f"sigma {place}",
                )
                for place, value in enumerate(chosen)
            ],
            x_label="kept coordinates K",
            y_label="test loss",
            title=f"{reading}: {READS_AS[str(reading)]}",
            x_log=True,
        )
        for reading in results["reading"].values
    ]
    loudest = float(sigma.max())
    held = Lines(
        [
            mean_curve(
                str(reading),
                keep,
                results["signal_held"]
                .sel(reading=reading, sigma=loudest)
                .transpose("seed", "keep")
                .values,
                role=str(reading),
            )
            for reading in results["reading"].values
        ],
        x_label="kept coordinates K",
        y_label="share of all filters",
        title=f"Filters that hold their own signal at the end, sigma_p = {loudest:g}",
        x_log=True,
    )
    width = Lines(
        [
            mean_curve(
                str(reading),
                sigma,
                (loss.sel(reading=reading).transpose("seed", "sigma", "keep").values < LEARNT)
                @ spacing(keep),
                role=str(reading),
            )
            for reading in results["reading"].values
        ]
        + [
            Curve(
                "published", sigma, published_region(study, results) @ spacing(keep), role="theory"
            ),
            Curve(
                "first update",
                sigma,
                predicted_region(study, results) @ spacing(keep),
                role="first",
                style="dashed",
            ),
        ],
        x_label="noise std sigma_p",
        y_label="share of K with test loss < 2",
        title="How wide the window is",
    )
    return Picture(
        "slices",
        "Cuts through the map",
        f"Test loss against K at several noise levels, with 95 % bands over "
        f"{results.sizes['seed']} seeds: a window is a dip with two sides. Then how many filters "
        "hold their own signal (half of them begin shut on it, and stay so unless a coordinate at "
        "zero may come back), and how much of the K axis generalises.",
        [*panels, held, width],
    )


def _first(study: TopKPhase, results: xr.Dataset) -> Picture:
    sigma, keep = axes_of(results)
    chosen = sigma[np.unique(np.linspace(0, len(sigma) - 1, 4).round().astype(int))]
    first = results.isel(reading=0)
    curves = []
    for place, value in enumerate(chosen):
        samples = first["first_kept"].sel(sigma=value).transpose("seed", "keep").values
        role = f"sigma {place}"
        curves.append(mean_curve(f"sigma_p = {value:g}, measured", keep, samples, role, "points"))
        law = kept_shares(study, results, value)
        curves.append(Curve(f"sigma_p = {value:g}, law", keep, law, role=role))
    kept = Lines(
        curves,
        x_label="K",
        y_label="share of filters",
        title="Filters whose signal is among the K largest",
    )
    alike = first.isel(keep=0).transpose("seed", "sigma", ...)
    steps = [first_update(study, value) for value in sigma]
    gained = float(alike["first_signal"].mean())
    added = Lines(
        [
            mean_curve("signal, measured", sigma, alike["first_signal"].values, "signal", "points"),
            Curve("signal, law", sigma, np.array([s.signal_gain for s in steps]), role="signal"),
            mean_curve("noise, measured", sigma, alike["first_noise"].values, "noise", "points"),
            Curve("noise, law", sigma, np.array([s.noise_gain for s in steps]), role="noise"),
            Curve(
                "noise, 002 App. I",
                sigma,
                np.array([first_step.paper_noise_std(s) for s in steps]),
                role="noise",
                style="dotted",
            ),
            Curve(
                "initial weights, std",
                sigma,
                np.full(len(sigma), study.sigma_0),
                role="start",
                style="dashed",
            ),
        ],
        x_label="noise std sigma_p",
        y_label="size of what the first update adds",
        title="The first update against the initial weights",
        y_log=True,
    )
    return Picture(
        "first",
        "The first update, which decides a fixed support",
        "Left: of the filters that could learn their signal, those in which it is among the K "
        "largest after one update; points measured, lines the law. Right: what the update adds to "
        f"signal and noise coordinates. The signal gains {gained / study.sigma_0:.2g} times the "
        "std of the initial weights: "
        + (
            "less than they already have, so that a support chosen after it owes much to chance."
            if gained < study.sigma_0
            else "it is the update that decides which coordinates are largest."
        ),
        [kept, added],
    )
