"""Pictures of the comparison: methods over noise, K over its range, losses along training. Tables:
what was chosen and what it gave, and how far the theorem is away."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import mean_band, mean_interval
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.topk.baselines.arms import NAMES, PRUNED
from rarefy.studies.topk.baselines.choice import Choice, choices
from rarefy.studies.topk.baselines.claims import failing, failing_loss
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment
from rarefy.theory import topk

LOOKS = {
    "dense": ("baseline", "dashed"),
    "early": ("ordinary", "dotted"),
    "decay": ("bias", "dashed"),
    "random": ("mixed", "dotted"),
    "fixed": ("minority", "solid"),
    "revive0": ("majority", "solid"),
    "revive": ("lucky", "solid"),
}
"""Role and style of a method, the same in all pictures."""
KNOBS = {"early": "steps", "decay": "lambda"} | dict.fromkeys(PRUNED, "K")
SHOWN = 4
"""Noise levels drawn where each is a curve of its own."""


def pictures(experiment: BaselinesExperiment, results: xr.Dataset) -> list[Picture]:
    return [make(experiment, results) for make in (_over_noise, _over_keep, _along_training)]


def _over_noise(experiment: BaselinesExperiment, results: xr.Dataset) -> Picture:
    sigma = results["sigma"].values.astype(np.float64)
    chosen = choices(experiment, results)

    def panel(measure: str, label: str, chance: float) -> Lines:
        curves = [
            mean_curve(choice.name, sigma, getattr(choice, measure), *LOOKS[method])
            for method, choice in chosen.items()
        ]
        level = np.full(len(sigma), chance)
        curves.append(Curve("guessing", sigma, level, role="theory", style="dotted"))
        return Lines(curves, "noise std sigma_p", label, f"Test {measure}")

    return Picture(
        "methods",
        "Test loss and error of every method at its validated knob",
        "Each method at the K, weight decay or stopping time with the lowest loss on "
        f"{experiment.validation_samples} validation samples; losses and errors are those of "
        f"{experiment.test_samples} others. Mean and 95 % interval over {experiment.seeds} seeds. "
        "A remedy that only makes outputs smaller brings the loss down to that of guessing and "
        'leaves the error where it was. "TopK, ReLU\'(0)=0" is TopK revive with the slope at 0 of '
        "automatic differentiation, under which a pruned signal coordinate cannot come back.",
        [
            panel("loss", "cross-entropy (nats)", topk.chance_loss(experiment.classes)),
            panel("error", "share not classified right", 1 - 1 / experiment.classes),
        ],
    )


def _over_keep(experiment: BaselinesExperiment, results: xr.Dataset) -> Picture:
    listed = experiment.parsed(results)
    levels = np.sort(results["sigma"].values.astype(np.float64))
    some = np.linspace(0, len(levels) - 1, min(SHOWN, len(levels))).round().astype(int)
    end = results.isel(read=-1)["test_loss"]
    panels = []
    for method in PRUNED:
        places = [p for p, arm in enumerate(listed) if arm.method in (method, "dense")]
        places.sort(key=lambda place: listed[place].keep)
        if len(places) < 2:
            continue
        share = np.array([listed[place].keep for place in places]) / experiment.d
        curves = []
        for sigma in levels[np.unique(some)]:
            label = f"sigma_p = {sigma:g}"
            loss = by_seed(end.sel(sigma=sigma), "arm")[:, places]
            curves.append(mean_curve(label, share, loss, label))
        x_label = "share of coordinates kept, K/d"
        panels.append(Lines(curves, x_label, "test loss (nats)", NAMES[method], x_log=True))
    return Picture(
        "kept",
        "Test loss over the share of coordinates kept",
        f"After {experiment.steps} steps; the last point, K = d, is dense training. Mean and 95 % "
        f"interval over {experiment.seeds} seeds. All panels show the same seeds; random masks "
        "keep as many coordinates as TopK does, but choose them blindly.",
        panels,
    )


def _along_training(experiment: BaselinesExperiment, results: xr.Dataset) -> Picture:
    """At the largest noise, each method at the knob with the lowest mean validation loss."""
    sigma = float(results["sigma"].max())
    at = results.sel(sigma=sigma)
    listed = experiment.parsed(results)
    score = mean_band(by_seed(at["validation_loss"].isel(read=-1), "arm")).mean
    score = np.nan_to_num(score, nan=np.inf)
    reads = results["read"].values.astype(np.float64)
    after = reads > 0  # a logarithmic axis has no 0
    best = {}
    for method in NAMES:
        if places := [place for place, arm in enumerate(listed) if arm.method == method]:
            place = min(places, key=lambda place: score[place])
            sign = "" if method == "dense" else f", {KNOBS[method]} = {listed[place].knob:g}"
            best[method] = (place, NAMES[method] + sign)
    panels = []
    for name, title in (("train_loss", "Training loss"), ("test_loss", "Test loss")):
        values, y_log = by_seed(at[name], "arm", "read"), name == "train_loss"
        curves = [
            mean_curve(label, reads[after], values[:, place, after], *LOOKS[method])
            for method, (place, label) in best.items()
        ]
        panels.append(Lines(curves, "updates", "cross-entropy (nats)", title, True, y_log))
    return Picture(
        "training",
        f"Losses along training at sigma_p = {sigma:g}",
        f"Each method at the knob whose validation loss, averaged over {experiment.seeds} seeds, "
        "is lowest at the end. Mean and 95 % interval over seeds. Early stopping reads the dense "
        "curve at its lowest validation loss.",
        panels,
    )


def tables(experiment: BaselinesExperiment, results: xr.Dataset) -> list[Table]:
    chosen = choices(experiment, results)
    sigma = results["sigma"].values.astype(np.float64)
    return [_chosen(experiment, chosen, sigma), _premise(experiment, chosen["dense"], sigma)]


def _chosen(experiment: BaselinesExperiment, chosen: dict[str, Choice], sigma: np.ndarray) -> Table:
    rows = []
    for place in np.argsort(sigma):
        for choice in chosen.values():
            measures = (choice.validation, choice.loss, choice.error)
            means = [_mean(values[:, place]) for values in measures]
            rows.append([f"{sigma[place]:g}", choice.name, _knobs(choice, place), *means])
    return Table(
        "chosen",
        "What the validation set chose, and what it gave",
        f"The knob with the lowest validation loss, chosen for each of {experiment.seeds} seeds by "
        "itself: the median, and the range where seeds differ. A star marks a median at an end of "
        "the list, beyond which something better may lie. Means over seeds.",
        ("sigma_p", "method", "chosen knob", "validation loss", "test loss", "test error"),
        rows,
    )


def _knobs(choice: Choice, place: int) -> str:
    if choice.method not in KNOBS:
        return "none"
    values = np.sort(choice.knob[:, place])
    middle = values[len(values) // 2]
    star = "*" if middle in (min(choice.candidates), max(choice.candidates)) else ""
    range_ = f" ({values[0]:g} to {values[-1]:g})" if values[0] < values[-1] else ""
    return f"{KNOBS[choice.method]} {middle:g}{star}{range_}"


def _premise(experiment: BaselinesExperiment, dense: Choice, sigma: np.ndarray) -> Table:
    fails = failing(dense, experiment.classes)
    limit = float(topk.noise_threshold_order(experiment.samples))
    d, n, mu, classes = experiment.d, experiment.samples, experiment.mu, experiment.classes
    rows = []
    for place in np.argsort(sigma):
        value = float(sigma[place])
        ratio = float(topk.snr(mu, value, d))
        low = float(topk.window_lower_order(d, mu, value, power=2))
        high = float(topk.window_upper_order(classes, n, mu, value))
        rows.append(
            [
                f"{value:g}",
                f"{ratio:.3g}",
                f"{ratio / limit:.3g} times",
                f"{low:.3g}",
                f"{high:.3g}",
                _mean(dense.loss[:, place]),
                "yes" if fails[place] else "no",
            ]
        )
    window = ("K from (order)", "K to (order)")
    return Table(
        "premise",
        "How far the setting is from the theorem's",
        "002 Theorem 4.4 speaks of SNR = mu/(sigma_p sqrt(d)) up to the order of 1/n = "
        f"{limit:g} and of K between two orders, here with all hidden constants 1 and chance "
        "delta = 0.1 (where the first is above the second, no K is inside). Verdicts are about "
        "the noise levels at which dense training fails: its mean validation loss is at least "
        f"{failing_loss(classes):.3g} (Fig. 2 draws the line at 2 for T = 10).",
        ("sigma_p", "SNR", "above 1/n", *window, "dense test loss", "judged"),
        rows,
    )


def _mean(samples: np.ndarray) -> str:
    found = mean_interval(samples)
    return f"{found.mean:.3g}" if np.isfinite(found.mean) else "undefined"
