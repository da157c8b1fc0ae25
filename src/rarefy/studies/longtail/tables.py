"""Tables of long-tailed pre-training."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.order_pairs import over_orders
from rarefy.measure.statistics import mean_interval
from rarefy.studies.longtail.words import compared, judged_by, protocol_words, spoken
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.kept import kept_networks
from rarefy.tools.longtail.overtraining import courses
from rarefy.tools.longtail.readings import FEWEST, LONG_TAIL, readings, rows


def tables(experiment: LongTailPretraining, results: xr.Dataset) -> list[Table]:
    found = [_quality(experiment, results)]
    if compared(results)[1]:
        found.append(_gains(experiment, results))
    found.append(_protocols(experiment, results))
    if "kept_epoch" in results:
        return [*found, _kept(results)]
    return found + ([_course(results)] if len(experiment.watched_epochs()) > 1 else [])


def _quality(experiment: LongTailPretraining, results: xr.Dataset) -> Table:
    protocol = judged_by(experiment.protocols)
    lines = []
    for row in rows(results, protocol):
        lines.append(
            (
                f"{row['rho']:g}",
                row["images"],
                spoken(row["method"]),
                *(_shown(row[name]) for name in ("overall", "many", "medium", "few")),
                _shown(row["delta_20"]),
                _shown(row["control_delta_20"]),
                row["n"],
            )
        )
    return Table(
        "quality",
        f"How good the features are ({protocol})",
        "Per cent of test images, mean over classes and seeds (each another order of classes). "
        "Many, medium, few: thirds of the classes by their number of images. Delta_20: head fifth "
        "less tail fifth; beside it the same of the balanced set of equal size.",
        (
            *("rho", "images", "method", "all", "many", "medium", "few", "Delta_20"),
            *("of control", "n"),
        ),
        lines,
    )


def _protocols(experiment: LongTailPretraining, results: xr.Dataset) -> Table:
    """Overall accuracy by each way to judge, dense and masked."""
    lines = []
    told = [
        readings(results, protocol, which)["overall"]
        for which in ("accuracy", "masked_accuracy")
        for protocol in experiment.protocols
    ]
    for rho, images, method in product(
        *(results[name].values for name in ("rho", "images", "algorithm"))
    ):
        here = [one.sel(rho=rho, images=images, algorithm=method).values for one in told]
        cells = [_shown(mean_interval(values).mean) for values in here]
        lines.append((f"{rho:g}", str(images), spoken(str(method)), *cells))
    heads = [*experiment.protocols] + [f"{name}, masked" for name in experiment.protocols]
    return Table(
        "protocols",
        "Other ways to judge",
        "Overall accuracy in per cent. linear: all labels; long-tail: only those of the images "
        f"that were trained on; few: {experiment.shots} labels a class; knn: nearest neighbours. "
        "Masked: the "
        "network with what its mask left.",
        ("rho", "images", "method", *heads),
        lines,
    )


def _gains(experiment: LongTailPretraining, results: xr.Dataset) -> Table:
    """Differences to the baseline for head and tail, by each way to judge."""
    baseline, rest = compared(results)
    lines, pairs = [], experiment.pairs(results["seed"].values)
    for protocol in experiment.protocols:
        told = readings(results, protocol)
        for rho in results["rho"].values:
            for method in rest if LONG_TAIL in results["images"].values else ():
                here = told.sel(images=LONG_TAIL, rho=rho)
                gains = here.sel(algorithm=method) - here.sel(algorithm=baseline)
                found = [
                    over_orders(gains[name].values, pairs)
                    for name in ("overall", "many", "medium", "few", "delta_20")
                ]
                told_of = (f"{rho:g}", protocol_words(protocol), spoken(method))
                lines.append((*told_of, *(one.shown() for one in found), found[0].counted))
    return Table(
        "gains",
        "Who gains",
        f"Points over {spoken(baseline)}, order of classes by order of classes, long-tailed "
        "images; [ ]: 95 % interval over mirrored pairs of orders and single ones, if three. A "
        "gain of Delta_20 is a larger gap between head and tail.",
        ("rho", "judged by", "method", "all", "many", "medium", "few", "Delta_20", "over"),
        lines,
    )


def _course(results: xr.Dataset) -> Table:
    """Which trainings were longer than good."""
    lines = []
    for one in courses(results):
        method = spoken(one.method)
        fall = f"{one.fall.mean:.2f}" if one.fall.mean > 0 else "-"
        if one.fall.n > 1 and one.fall.mean > 0:
            fall += f" [{one.fall.low:.2f}, {one.fall.high:.2f}]"
        numbers = (one.best_epoch, _shown(one.best), _shown(one.last), fall)
        certain = "yes" if one.certain else "no" if one.fall.n >= FEWEST else "too few seeds"
        lines.append((f"{one.rho:g}", one.images, method, *numbers, certain))
    return Table(
        "course",
        "Past its best?",
        "Per cent of held-out images, mean over classes, whose nearest neighbours among the other "
        "images of the pre-training have their class: at the best look during the training, and at "
        "the end (with head full some of them were trained on, without labels). Fall: seed by "
        "seed; its interval is wider than 95 %, because the best of several looks was picked. A "
        "loss that still falls does not tell this.",
        ("rho", "images", "method", "best epoch", "then", "at the end", "fall", "certain"),
        lines,
    )


def _kept(results: xr.Dataset) -> Table:
    """Which networks are judged."""
    return Table(
        "kept",
        "Which network is kept",
        "The best on the way, by the per cent of held-out training images, mean over classes, "
        "whose nearest neighbours among the other images of the pre-training have their class "
        "(with head full some of them were trained on, without labels). The best of several looks "
        "flatters itself; accuracies of test images do not, because none was looked at. Epochs "
        "seed by seed; stopped: where over-training was certain.",
        ("rho", "images", "method", "kept epochs", "then", "at the end", "stopped after"),
        [
            (
                *(f"{one.rho:g}", one.images, spoken(one.method)),
                ", ".join(map(str, one.epochs)),
                *(_shown(one.best), _shown(one.last)),
                ", ".join("-" if end is None else str(end) for end in one.stopped),
            )
            for one in kept_networks(results)
        ],
    )


def _shown(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.2f}"
