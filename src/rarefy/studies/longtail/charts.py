"""Pictures of long-tailed pre-training: from head to tail, on the way, whose units are masked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import mean_band
from rarefy.measure.order_pairs import FEWEST, by_pair
from rarefy.studies.longtail.words import compared, judged_by, others, protocol_words, spoken
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, PERCENT
from rarefy.train.simclr.method import Method

GROUPS = 5
"""Groups of neighbouring classes whose gains are shown: fifths, as in Delta_20."""


def pictures(experiment: LongTailPretraining, results: xr.Dataset) -> list[Picture]:
    found = [_by_rank(experiment.protocols, results), _on_the_way(results)]
    if LONG_TAIL in results["images"].values:
        baseline, rest = compared(results)
        if rest:
            found.insert(1, _gains(experiment, results, baseline, rest))
        if masked := others(results)[1]:
            found.append(_inside(results, masked))
    return found


def _by_rank(protocols: Sequence[str], results: xr.Dataset) -> Picture:
    protocol = judged_by(protocols)
    panels = []
    for rho in results["rho"].values:
        curves = []
        for method in results["algorithm"].values:
            for images in results["images"].values:
                at = {"protocol": protocol, "images": images, "algorithm": method, "rho": rho}
                part = results["accuracy"].sel(at).transpose("seed", "rank")
                band, balanced = mean_band(PERCENT * part.values), images == BALANCED
                ends = [None if balanced else end.clip(0, PERCENT) for end in (band.low, band.high)]
                label = spoken(str(method)) + (", balanced" if balanced else "")
                rank, style = results["rank"].values + 1.0, "dotted" if balanced else "solid"
                curves.append(Curve(label, rank, band.mean, ends[0], ends[1], str(method), style))
        panels.append(Lines(curves, "class, the head first", "test accuracy, %", f"rho = {rho:g}"))
    return Picture(
        "ranks",
        "Accuracy from head to tail",
        "Mean and 95 % band over orders of the classes; dotted: trained on the balanced set of "
        "equal size, whose slope shows what the order of the classes alone does.",
        panels,
    )


def _gains(
    experiment: LongTailPretraining, results: xr.Dataset, baseline: str, rest: list[str]
) -> Picture:
    """Differences in pairs: what an order of classes does to all methods alike is gone."""
    here = PERCENT * results["accuracy"].sel(images=LONG_TAIL, rho=results["rho"].max())
    groups = np.array_split(np.arange(here.sizes["rank"]), min(GROUPS, here.sizes["rank"]))
    middles = np.array([group.mean() + 1.0 for group in groups])
    panels, pairs = [], experiment.pairs(results["seed"].values)
    for protocol in experiment.protocols:
        told = here.sel(protocol=protocol)
        curves = [Curve(spoken(baseline), middles, 0 * middles, role=baseline, style="dotted")]
        for method in rest:
            gain = (told.sel(algorithm=method) - told.sel(algorithm=baseline)).transpose(
                "seed", ...
            )
            means = np.stack([gain.values[:, group].mean(axis=1) for group in groups], axis=1)
            means = by_pair(means, pairs)
            curves.append(mean_curve(spoken(method), middles, means, method, fewest=FEWEST))
        words = f"gain over {spoken(baseline)}, points"
        panels.append(Lines(curves, "class, the head first", words, protocol_words(protocol)))
    return Picture(
        "gains",
        "Who gains",
        "Test accuracy less that of the baseline with the same order of classes, first weights and "
        "views: mean over orders, by each way to judge; fifths of the classes, largest rho. With "
        "three mirrored pairs of orders (or single ones) a 95 % band over them.",
        panels,
    )


def _on_the_way(results: xr.Dataset) -> Picture:
    images = LONG_TAIL if LONG_TAIL in results["images"].values else results["images"].values[0]
    here = results.sel(images=images, rho=results["rho"].max())
    trained = [str(one) for one in results["algorithm"].values if Method.parse(str(one)).trained]
    kept, panels = "kept_epoch" in results, []
    shown = [
        ("epoch_loss", "epoch", 1.0, "contrastive loss"),
        ("watched_knn", "watched_epoch", PERCENT, "kNN accuracy on held-out images, %"),
    ]
    if kept:
        shown.append(("watched_rank", "watched_epoch", 1.0, "effective rank of their features"))
    for name, x, unit, label in shown:
        epochs = results[x].values.astype(float)
        curves = [
            mean_curve(
                spoken(method),
                epochs,
                unit * here[name].sel(algorithm=method).transpose("seed", x).values,
                method,
            )
            for method in trained
        ]
        panels.append(Lines(curves, "epoch", label))
    return Picture(
        "training",
        "While it is learnt",
        f"Of the {images} images, largest rho. Held-out training images (with head full some of "
        "them were seen, mostly of the head); "
        + (
            "of each training the network with the highest kNN accuracy is kept."
            if kept
            else "nothing is chosen by these curves."
        ),
        panels,
    )


def _inside(results: xr.Dataset, masked: list[str]) -> Picture:
    panels = []
    for method in masked:
        here = results.sel(images=LONG_TAIL, algorithm=method, rho=results["rho"].max())
        rank = results["rank"].values + 1.0
        excess = PERCENT * here["mask_excess"].transpose("seed", "rank").values
        low, high = (
            PERCENT * mean_band(here[name].transpose("seed", "rank").values).mean
            for name in ("mask_low", "mask_high")
        )
        panels.append(
            Lines(
                [
                    mean_curve("measured", rank, excess, method),
                    Curve("chance, lower end", rank, low, role="chance", style="dotted"),
                    Curve("chance, upper end", rank, high, role="chance", style="dotted"),
                ],
                "class, the head first",
                "masked share over chance, points",
                spoken(method),
            )
        )
    return Picture(
        "masked-units",
        "Whose units are masked?",
        "Units (filters) by the class that they respond to most: how much more of them is masked "
        "than of other units of the same layer. 000 (Remark 2) has the tail's masked more: a rise "
        "to the right. Dotted: 95 % of chance in one network.",
        panels,
    )
