"""Pictures of the comparison: methods over noise, K over its range, losses along training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.estimates import mean_band
from rarefy.studies.topk.baselines.arms import PRUNED, Arm
from rarefy.studies.topk.baselines.choice import NAMES, Choice, choices
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment
from rarefy.theory.topk import chance_loss

if TYPE_CHECKING:
    import xarray as xr


ROLES = {
    "dense": "baseline",
    "early": "ordinary",
    "decay": "bias",
    "random": "mixed",
    "fixed": "minority",
    "revive0": "majority",
    "revive": "lucky",
}
"""One colour a method, the same in all pictures."""
STYLES = {"dense": "dashed", "early": "dotted", "decay": "dashed", "random": "dotted"}
SHOWN = 4
"""Noise levels drawn where each is a curve of its own."""
NOISE = "noise std sigma_p"


def baseline_pictures(study: BaselinesExperiment, results: xr.Dataset) -> list[Picture]:
    chosen = choices(study, results)
    return [
        _over_noise(study, results, chosen),
        _over_keep(study, results),
        _along_training(study, results),
    ]


def _over_noise(
    study: BaselinesExperiment, results: xr.Dataset, chosen: dict[str, Choice]
) -> Picture:
    sigma = results["sigma"].values.astype(np.float64)

    def panel(measure: str, label: str, chance: float) -> Lines:
        curves = []
        for method, choice in chosen.items():
            band = mean_band(getattr(choice, measure))
            style = STYLES.get(method, "solid")
            curves.append(
                Curve(choice.name, sigma, band.mean, band.low, band.high, ROLES[method], style)
            )
        level = np.full(len(sigma), chance)
        curves.append(Curve("guessing", sigma, level, role="theory", style="dotted"))
        return Lines(curves, x_label=NOISE, y_label=label, title=f"Test {measure}")

    caption = (
        "Each method at the K, weight decay or stopping time with the lowest loss on "
        f"{study.validation_samples} validation samples; losses and errors are those of "
        f"{study.test_samples} others. Mean and 95 % interval over {study.seeds} seeds. A remedy "
        "that only makes outputs smaller brings the loss down to that of guessing and leaves the "
        'error where it was. "TopK, ReLU\'(0)=0" is TopK revive with the slope at 0 of automatic '
        "differentiation, under which a pruned signal coordinate cannot come back."
    )
    return Picture(
        "methods",
        "Test loss and error of every method at its validated knob",
        caption,
        [
            panel("loss", "cross-entropy (nats)", chance_loss(study.classes)),
            panel("error", "share not classified right", 1 - 1 / study.classes),
        ],
    )


def _over_keep(study: BaselinesExperiment, results: xr.Dataset) -> Picture:
    listed = [Arm.parse(str(word), study.d, study.lr) for word in results["arm"].values]
    levels = shown(results["sigma"].values.astype(np.float64))
    loss = results["test_loss"].isel(read=-1).transpose("seed", "arm", "sigma").values
    column = {value: place for place, value in enumerate(results["sigma"].values.tolist())}
    panels = []
    for method in PRUNED:
        places = [p for p, arm in enumerate(listed) if arm.method in (method, "dense")]
        places.sort(key=lambda place: listed[place].keep)
        if len(places) < 2:
            continue
        share = np.array([listed[place].keep for place in places]) / study.d
        curves = []
        for sigma in levels:
            band = mean_band(loss[:, places, column[sigma]])
            label = f"sigma_p = {sigma:g}"
            curves.append(Curve(label, share, band.mean, band.low, band.high, label))
        panels.append(
            Lines(
                curves,
                x_label="share of coordinates kept, K/d",
                y_label="test loss (nats)",
                title=NAMES[method],
                x_log=True,
            )
        )
    caption = (
        f"After {study.steps} steps; the last point, K = d, is dense training. Mean and 95 % "
        f"interval over {study.seeds} seeds. All panels show the same seeds; random masks keep as "
        "many coordinates as TopK does, but choose them blindly."
    )
    return Picture("kept", "Test loss over the share of coordinates kept", caption, panels)


def _along_training(study: BaselinesExperiment, results: xr.Dataset) -> Picture:
    """At the largest noise, each method at the knob with the lowest mean validation loss."""
    sigma = float(results["sigma"].max())
    at = results.sel(sigma=sigma).transpose("seed", "arm", "read", ...)
    listed = [Arm.parse(str(word), study.d, study.lr) for word in results["arm"].values]
    score = np.nan_to_num(mean_band(at["validation_loss"].values[:, :, -1]).mean, nan=np.inf)
    reads = results["read"].values.astype(np.float64)
    after = reads > 0  # a logarithmic axis has no 0
    panels = []
    for name, title in (("train_loss", "Training loss"), ("test_loss", "Test loss")):
        curves = []
        for method in (word for word in NAMES if word != "early"):
            places = [place for place, arm in enumerate(listed) if arm.method == method]
            if not places:
                continue
            best = min(places, key=lambda place: score[place])
            band = mean_band(at[name].values[:, best, after])
            label = NAMES[method] if method == "dense" else f"{NAMES[method]}, {knob(listed[best])}"
            look = (ROLES[method], STYLES.get(method, "solid"))
            curves.append(Curve(label, reads[after], band.mean, band.low, band.high, *look))
        panels.append(
            Lines(
                curves,
                x_label="updates",
                y_label="cross-entropy (nats)",
                title=title,
                x_log=True,
                y_log=name == "train_loss",
            )
        )
    caption = (
        f"Each method at the knob whose validation loss, averaged over {study.seeds} seeds, is "
        "lowest at the end. Mean and 95 % interval over seeds. Early stopping reads the dense "
        "curve at its lowest validation loss."
    )
    return Picture("training", f"Losses along training at sigma_p = {sigma:g}", caption, panels)


def knob(arm: Arm) -> str:
    """The knob of an arm as a reader would say it."""
    return f"K = {arm.keep}" if arm.method in PRUNED else f"lambda = {arm.decay:g}"


def shown(sigma: np.ndarray) -> list[float]:
    """A few noise levels, the first and the last among them."""
    ordered = np.sort(sigma)
    places = np.linspace(0, len(ordered) - 1, min(SHOWN, len(ordered))).round().astype(int)
    return [float(value) for value in ordered[np.unique(places)]]
