"""Pictures and tables of pre-training on images: the curve, the order of kinds, checkpoints, hard
images; a row per labels."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.data.hierarchy.made import MEANINGLESS
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import mean_interval
from rarefy.studies.granularity.charts import level
from rarefy.studies.granularity.images.numbers import (
    KINDS,
    PERCENT,
    at_end,
    best_of,
    classes,
    errors,
    of_kind,
    share_of_error,
)
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.chart import Chart
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import GIVEN, ONCE, TARGET

PUBLISHED = {
    GIVEN: 4.79,
    "kmeans-within": 5.14,
    "rebalanced": 5.17,
    "kmeans": 5.42,
    "random": 6.10,
    "samples": 6.54,
}
"""Best error of each kind in 004 Table 1, where re-training has 5.25."""
RETRAINED = 5.25
ROLES = dict(
    zip(
        KINDS,
        ("majority", "minority", "theory", "mixed", "chance", "noise", "fine"),
        strict=True,
    )
)
IMAGES = {"mirror": "only coarse right", "other": "all others", "hard": "only fine right"}


def pictures(experiment: GranularityExperiment, results: xr.Dataset) -> list[Picture]:
    found = [_curve(results, not experiment.target_data)]
    if len(_kinds(results)) > 1 and not experiment.target_data:
        found.append(_order(results))
    found.append(_checkpoints(results))
    if results["hard_accuracy"].notnull().any():
        found.append(_hard(results))
    return [picture for picture in found if picture.panels]


def _kinds(results: xr.Dataset) -> dict[str, list[str]]:
    found = {kind: of_kind(results, kind) for kind in KINDS}
    return {kind: labels for kind, labels in found.items() if labels}


def _curve(results: xr.Dataset, same: bool) -> Picture:
    """Ids that mean nothing are drawn apart: beside them nothing else could be seen."""
    kinds = _kinds(results)
    if same and GIVEN in kinds:  # the coarsest of the manual levels is the target itself
        kinds[GIVEN] = [TARGET, *kinds[GIVEN]]
    apart: dict[str, list[str]] = {}
    for kind in [one for one in MEANINGLESS if one in kinds]:
        apart[kind] = kinds.pop(kind)
    tuned, probed = errors(results), PERCENT * (1 - at_end(results["probe_accuracy"]))
    panels = [
        _panel(results, title, error, some)
        for title, error, some in (
            ("fine-tuned", tuned, kinds),
            ("linear probe", probed, kinds),
            ("fine-tuned, ids that mean nothing", tuned, apart),
        )
        if some
    ]
    return Picture(
        "curve",
        "Error on the target over the number of pre-training classes",
        f"Test images, at the end of fine-tuning; means with 95 % bands over "
        f"{seeds_in_words(results)}. Both baselines, dotted, are fine-tuned in all panels.",
        panels,
    )


def _panel(
    results: xr.Dataset, title: str, error: xr.DataArray, kinds: dict[str, list[str]]
) -> Lines:
    curves = []
    for kind, labels in kinds.items():
        sizes = [classes(results, one) for one in labels]
        values = by_seed(error.sel(labels=labels), "labels")
        curves.append(mean_curve(KINDS[kind], sizes, values, ROLES[kind]))
    everywhere = [classes(results, one) for one in texts(results, "labels")]
    ends = [min(everywhere), max(everywhere)]
    for label, words in ((TARGET, "re-training"), (ONCE, "one pass, as long as both stages")):
        # the lines of fine-tuned networks stand in all panels: what a probe has to beat
        if label in texts(results, "labels"):
            mean = float(errors(results).sel(labels=label).mean())
            curves.append(level(words, ends, mean, label))
    return Lines(curves, "pre-training classes", "error on the target, %", title, x_log=True)


def _order(results: xr.Dataset) -> Picture:
    kinds = {kind: some for kind, some in _kinds(results).items() if kind in PUBLISHED}
    places = np.arange(1.0, len(kinds) + 1)
    retrained = errors(results).sel(labels=TARGET, drop=True)
    best = [best_of(results, labels) for labels in kinds.values()]
    values = [PERCENT + share_of_error(results, error - retrained) for error, _ in best]
    published = np.array([PERCENT * PUBLISHED[kind] / RETRAINED for kind in kinds])
    curves = [
        mean_curve("measured", places, np.stack(values, axis=1), "majority", "points"),
        Curve("published, iNaturalist", places, published, role="theory", style="points"),
        level("re-training", places[[0, -1]], PERCENT, TARGET),
    ]
    names = "; ".join(
        f"{place:.0f} {KINDS[kind]}" for place, kind in zip(places, kinds, strict=True)
    )
    labels = ", ".join(which for _, which in best)
    return Picture(
        "order",
        "Which kind of labels is best?",
        "Error with the best size of each kind, in % of that of re-training, beside 004 Table 1. "
        f"Sizes are chosen for each seed on held-out images of the other seeds: {labels}.",
        [Lines(curves, names, "error, % of re-training")],
    )


def _checkpoints(results: xr.Dataset) -> Picture:
    labels = [one for one in texts(results, "labels") if one != ONCE]
    shown = [one for one in labels if one == TARGET or one in of_kind(results, GIVEN)]
    chart = Chart(
        "checkpoints",
        "How long to fine-tune, and from where?",
        "Error on test images while a copy of each checkpoint is fine-tuned; nothing is chosen by "
        "it.",
        lambda at: PERCENT * (1 - at["test_accuracy"]),
        x="tuned",
        x_label="epochs of fine-tuning",
        y_label="error on the target, %",
        curves={"checkpoint": results["checkpoint"].values.tolist()},
        label=lambda checkpoint: f"from epoch {checkpoint}",
        role=lambda checkpoint: f"from epoch {checkpoint}",
        panel="labels",
        panel_title=lambda one: "re-training" if one == TARGET else str(one),
    )
    return chart.picture(results.sel(labels=shown))


def _hard(results: xr.Dataset) -> Picture:
    places = np.arange(1.0, len(IMAGES) + 1)
    curves = []
    for kind, labels in _kinds(results).items():
        for one in labels if kind == GIVEN else labels[:1]:
            gains = [
                results[f"{name}_accuracy"].sel(labels=one, drop=True)
                - results[f"{name}_accuracy"].sel(labels=TARGET, drop=True)
                for name in IMAGES
            ]
            values = PERCENT * np.stack([by_seed(gain) for gain in gains], axis=1)
            curves.append(mean_curve(one, places, values, ROLES[kind]))
    shares = [PERCENT * float(results[f"{name}_share"].mean()) for name in ("hard", "mirror")]
    names = "; ".join(
        f"{place:.0f} {word}" for place, word in zip(places, IMAGES.values(), strict=True)
    )
    return Picture(
        "hard",
        "Which images gain?",
        "Accuracy less that of re-training, by two judges that are not among the compared: a "
        "network with target labels, and a probe of one with the finest labels. On "
        f"{shares[0]:.1f} % of the test images only the second is right (hard), on {shares[1]:.1f} "
        "% only the first. Labels that teach other features and not more would gain on the one "
        "what they lose on the other.",
        [Lines(curves, names, "gain over re-training, points")],
    )


def tables(experiment: GranularityExperiment, results: xr.Dataset) -> list[Table]:
    error, rows = errors(results), []
    for one in texts(results, "labels"):
        here = results.sel(labels=one)
        gain = error.sel(labels=TARGET, drop=True) - error.sel(labels=one, drop=True)
        rows.append(
            {
                "labels": one,
                "classes": f"{float(here['classes'].mean()):.0f}",
                "smallest": f"{float(here['smallest'].mean()):.0f}",
                "agreement": _shown(here["agreement"], 3),
                "error, %": _shown(error.sel(labels=one)),
                "gain, points": "" if one == TARGET else _shown(gain),
                "probe, %": _shown(PERCENT * (1 - at_end(here["probe_accuracy"]))),
                "worst subclass, %": _shown(PERCENT * (1 - here["worst_subclass"])),
                "worst tenth, %": _shown(PERCENT * (1 - here["worst_tenth"])),
            }
        )
    caption = (
        "Errors on test images at the end of fine-tuning, of a linear probe, on the worst subclass "
        "of the target and the worst tenth of them; means with 95 % intervals over "
        f"{seeds_in_words(results)}. Gain: over re-training (target), in pairs. Smallest: images "
        "with the rarest label; agreement: share of images in their label's target class."
    )
    return [table("labels", "Labels of pre-training", caption, rows)]


def _shown(values: xr.DataArray, digits: int = 2) -> str:
    mean = mean_interval(by_seed(values))
    if mean.n == 0:
        return ""
    text = f"{mean.mean:.{digits}f}"
    exact = mean.n == 1 or mean.low == mean.high
    return text if exact else f"{text} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]"
