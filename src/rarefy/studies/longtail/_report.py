"""Verdicts, pictures and tables of long-tailed pre-training: methods compared seed by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.estimates import mean_band
from rarefy.measure.statistics import (
    judge_difference,
    judge_trend,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.longtail._published import published
from rarefy.tools.longtail.readings import (
    BALANCED,
    LONG_TAIL,
    PERCENT,
    baseline_of,
    readings,
    rows,
)
from rarefy.train.contrast.method import Method

if TYPE_CHECKING:
    from rarefy.studies.longtail._longtail import LongTailPretraining

LINEAR = "linear"


def spoken(method: str) -> str:
    """A method for people."""
    found = Method.parse(method)
    if found.kind == "pruned":
        return f"Algorithm 1, {method.removeprefix('pruned:')} kept"
    if method.startswith("sdclr"):
        return "two branches as in SDCLR"
    if found.kind == "branches":
        return f"two branches, {method.removeprefix('branches:')} kept"
    if not found.trained:
        return {"pixels": "raw pixels", "untrained": "untrained network"}[found.kind]
    return method.replace("simclr", "SimCLR")


def others(results: xr.Dataset) -> tuple[str, list[str]]:
    """What is compared with, and the methods with masks."""
    methods = [str(name) for name in results["way"].values]
    return baseline_of(methods), [name for name in methods if Method.parse(name).masked]


# ----------------------------------------------------------------------------------------- verdicts


def pruning_verdicts(study: LongTailPretraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    """P6: pruning raises the accuracy of a linear probe, and lowers Delta_20; P8: the gain grows
    with rho; P4: the units that masks leave out prefer classes of the tail."""
    found: list[Verdict] = []
    if not _has_tail(results):  # a control by itself says nothing of a claim
        return found
    protocol = LINEAR if LINEAR in study.protocols else study.protocols[0]
    told = readings(results, protocol)
    baseline, masked = others(results)
    claims: tuple[tuple[str, str, Literal["positive", "negative"]], ...] = (
        ("overall", "accuracy", "positive"),
        ("few", "accuracy of the few", "positive"),
        ("delta_20", "Delta_20", "negative"),
    )
    for method in masked:
        if method == baseline:
            continue
        for rho in told["rho"].values:
            here = told.sel(images=LONG_TAIL, rho=rho)
            for name, words, direction in claims:
                samples = (here[name].sel(way=method) - here[name].sel(way=baseline)).values
                setting = f"{study.setting}, rho {rho:g}, {spoken(method)}: {words}"
                found.append(
                    judge_difference(
                        ("P6", study.name, scale, setting),
                        samples,
                        direction,
                        note=_note(study, float(rho), name, baseline),
                    )
                )
        if len(told["rho"]) > 1:
            found.append(_growth(study, told, scale, method, baseline))
        found.append(_mechanism(study, results, scale, method))
    return found


def _has_tail(told: xr.Dataset) -> bool:
    return LONG_TAIL in told["images"].values


def _note(study: LongTailPretraining, rho: float, name: str, baseline: str) -> str:
    words = f"points, less {spoken(baseline)}, class order by class order"
    row = published(study.data, rho)
    if row is None or name == "few":
        return words
    theirs = row.gain if name == "overall" else row.pruned_delta - row.plain_delta
    return f"{words}; published {theirs:+.2f}"


def _growth(
    study: LongTailPretraining, told: xr.Dataset, scale: str, method: str, baseline: str
) -> Verdict:
    here = told["overall"].sel(images=LONG_TAIL)
    gain = here.sel(way=method, drop=True) - here.sel(way=baseline, drop=True)
    # the imbalances of a seed share weights, views and images
    rho, values = told["rho"].values.astype(float), gain.transpose("seed", "rho").values
    trend = spearman_trend(rho, values, within_rows=True)
    setting = f"{study.setting}, {spoken(method)}"
    return judge_trend(("P8", study.name, scale, setting), trend, "increasing")


def _mechanism(study: LongTailPretraining, results: xr.Dataset, scale: str, method: str) -> Verdict:
    """Over all class orders: is the masked share of units that prefer a class larger for the
    tail? (With rho 1 there is none.)"""
    slopes = np.full(1, np.nan)
    if LONG_TAIL in results["images"].values:
        found = results["mask_slope"].sel(images=LONG_TAIL, way=method)
        found = found.sel(rho=found["rho"] > 1)
        # networks of one seed share an order of classes and first weights: one sample together
        slopes = mean_band(found.transpose("rho", "seed").values).mean
    setting = f"{study.setting}, {spoken(method)}: units of tail classes are masked more"
    return judge_difference(
        ("P4", study.name, scale, setting),
        slopes,
        "positive",
        note="Spearman's correlation of rank and masked share over chance, of each network",
    )


# ------------------------------------------------------------------------------------------- tables


def quality_table(study: LongTailPretraining, results: xr.Dataset) -> Table:
    protocol = LINEAR if LINEAR in study.protocols else study.protocols[0]
    lines = []
    for row in rows(results, protocol):
        ends = row["difference_interval"]
        gain = "" if row["difference"] is None else f"{row['difference']:+.2f}"
        gain += f" [{ends[0]:+.2f}, {ends[1]:+.2f}]" if ends else ""
        lines.append(
            (
                f"{row['rho']:g}",
                row["images"],
                spoken(row["method"]),
                *(_shown(row[name]) for name in ("overall", "many", "medium", "few")),
                _shown(row["delta_20"]),
                _shown(row["control_delta_20"]),
                gain,
                row["n"],
            )
        )
    return Table(
        "quality",
        f"How good the features are ({protocol})",
        "Per cent of test images, mean over classes and seeds (each another order of classes). "
        "Many, medium, few: thirds of the classes by their number of images. Delta_20: head fifth "
        "less tail fifth; beside it the same of the balanced set of equal size. Gain: over the "
        "first trained method, seed by seed, with its 95 % interval.",
        (
            *("rho", "images", "method", "all", "many", "medium", "few", "Delta_20"),
            *("of control", "gain", "n"),
        ),
        lines,
    )


def protocol_table(study: LongTailPretraining, results: xr.Dataset) -> Table:
    """Overall accuracy by each way to judge, dense and masked."""
    lines = []
    told = [
        readings(results, protocol, which)["overall"]
        for which in ("accuracy", "masked_accuracy")
        for protocol in study.protocols
    ]
    for rho in results["rho"].values:
        for images in results["images"].values:
            for method in results["way"].values:
                here = [one.sel(rho=rho, images=images, way=method).values for one in told]
                shown = [_shown(mean_interval(values).mean) for values in here]
                lines.append((f"{rho:g}", str(images), spoken(str(method)), *shown))
    heads = [*study.protocols] + [f"{name}, masked" for name in study.protocols]
    return Table(
        "protocols",
        "Other ways to judge",
        "Overall accuracy in per cent. linear: all labels; long-tail: only those of the images "
        f"that were trained on; few: {study.shots} labels a class; knn: nearest neighbours. "
        "Masked: the "
        "network with what its mask left.",
        ("rho", "images", "method", *heads),
        lines,
    )


def _shown(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.2f}"


# ----------------------------------------------------------------------------------------- pictures


def pictures(study: LongTailPretraining, results: xr.Dataset) -> list[Picture]:
    found = [_by_rank(study, results), _on_the_way(results)]
    masked = others(results)[1]
    if masked and LONG_TAIL in results["images"].values:
        found.append(_inside(results, masked))
    return found


def _by_rank(study: LongTailPretraining, results: xr.Dataset) -> Picture:
    protocol = LINEAR if LINEAR in study.protocols else study.protocols[0]
    panels = []
    for rho in results["rho"].values:
        curves = []
        for method in results["way"].values:
            for images in results["images"].values:
                part = results["accuracy"].sel(
                    protocol=protocol, images=images, way=method, rho=rho
                )
                band = mean_band(PERCENT * part.transpose("seed", "rank").values)
                curves.append(
                    Curve(
                        spoken(str(method)) + (", balanced" if images == BALANCED else ""),
                        results["rank"].values + 1.0,
                        band.mean,
                        None if images == BALANCED else band.low,
                        None if images == BALANCED else band.high,
                        role=str(method),
                        style="dotted" if images == BALANCED else "solid",
                    )
                )
        panels.append(Lines(curves, "class, the head first", "test accuracy, %", f"rho = {rho:g}"))
    return Picture(
        "ranks",
        "Accuracy from head to tail",
        "Mean and 95 % band over orders of the classes; dotted: trained on the balanced set of "
        "equal size, whose slope shows what the order of the classes alone does.",
        panels,
    )


def _on_the_way(results: xr.Dataset) -> Picture:
    images = LONG_TAIL if LONG_TAIL in results["images"].values else results["images"].values[0]
    here = results.sel(images=images).isel(rho=-1)
    panels = []
    for name, x, label in (
        ("epoch_loss", "epoch", "contrastive loss"),
        ("watched_knn", "watched_epoch", "kNN accuracy on held-out images, %"),
        ("separability", "watched_epoch", "held-out, nearest to class mean, %"),
    ):
        curves = []
        for method in results["way"].values:
            if not Method.parse(str(method)).trained:
                continue
            part = here[name].sel(way=method)
            unit = 1.0 if name == "epoch_loss" else PERCENT
            parts = {"": part}
            if name == "separability":
                ranks = part.sizes["rank"]
                fifth = max(1, ranks // 5)
                parts = {
                    ", head": part.isel(rank=slice(0, fifth)).mean("rank"),
                    ", tail": part.isel(rank=slice(ranks - fifth, ranks)).mean("rank"),
                }
            for words, values in parts.items():
                band = mean_band(unit * values.transpose("seed", x).values)
                curves.append(
                    Curve(
                        spoken(str(method)) + words,
                        results[x].values.astype(float),
                        band.mean,
                        band.low if not words else None,
                        band.high if not words else None,
                        role=str(method),
                        style="dashed" if words == ", tail" else "solid",
                    )
                )
        panels.append(Lines(curves, "epoch", label))
    return Picture(
        "training",
        "While it is learnt",
        f"Of the {images} images, largest rho. Held-out training images (with head full some of "
        "them were seen, mostly of the head); nothing is chosen by these curves. Right: the fifth "
        "of the classes with most images and (dashed) with fewest.",
        panels,
    )


def _inside(results: xr.Dataset, masked: list[str]) -> Picture:
    panels = []
    for method in masked:
        here = results.sel(images=LONG_TAIL, way=method).isel(rho=-1)
        rank = results["rank"].values + 1.0
        excess = mean_band(PERCENT * here["mask_excess"].transpose("seed", "rank").values)
        low, high = (
            PERCENT * mean_band(here[name].transpose("seed", "rank").values).mean
            for name in ("mask_low", "mask_high")
        )
        panels.append(
            Lines(
                [
                    Curve("measured", rank, excess.mean, excess.low, excess.high, role=method),
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
