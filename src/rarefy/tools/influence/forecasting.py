"""How long scoring and checking labels will take here, told before it begins."""

from __future__ import annotations

import math

import torch

from rarefy.core.progress import spell_seconds
from rarefy.core.settings import resolve_device
from rarefy.measure.influence.core_pool import cores
from rarefy.measure.influence.forecast import (
    Forecast,
    Rates,
    calibrate,
    forecast_neighbours,
    forecast_scores,
)
from rarefy.measure.influence.rows import is_mapped
from rarefy.tools.influence import class_probabilities as check
from rarefy.tools.influence.edges import EDGES
from rarefy.tools.influence.label_check import why_unchecked
from rarefy.tools.influence.neighbours import WIDTH, references_of
from rarefy.tools.influence.scoring import ScoreSettings
from rarefy.tools.samples.samples import Samples

CPU = torch.device("cpu")
SURELY_SHORT = 1e10
"""Operations that take no time worth telling, nor measuring, on any machine."""
FLOPS_A_SPLIT = 500.0
"""What a tree does for each sample, level and feature tried, in operations of matrix products that
take as long."""


def forecast(samples: Samples, settings: ScoreSettings, from_seconds: float = 0.0) -> str:
    """A line about time and memory, or nothing below ``from_seconds``; the machine's speed is
    measured for a third of a second."""
    device = resolve_device(settings.device)
    count, width = samples.features.shape
    asked = references_of(samples) if settings.neighbours else 0

    checked = _check_flops(samples) if settings.check_labels and not why_unchecked(samples) else 0.0

    def both(rates: Rates | None) -> tuple[Forecast, Forecast]:
        return (
            forecast_scores(
                samples.counts,
                width,
                itemsize=samples.features.dtype.itemsize,
                mapped=is_mapped(samples.features),
                memory=settings.memory,
                device=device,
                rates=rates,
            ),
            forecast_neighbours(count, asked, width, dimensions=WIDTH, rates=rates),
        )

    if from_seconds and sum(each.flops for each in both(None)) + checked < SURELY_SHORT:
        return ""
    rates = calibrate(device)
    scores, near = both(rates)
    seconds, seconds_near = scores.seconds or 0.0, (near.seconds or 0.0) if asked else 0.0
    # classifiers run on one core, whatever the device
    seconds_check = (
        checked and checked * cores(CPU) / (rates if device.type == "cpu" else calibrate(CPU)).flops
    )
    if seconds + seconds_near + seconds_check < from_seconds:
        return ""
    words = f"scores about {spell_seconds(seconds)}"
    if asked:
        words += f", neighbours {spell_seconds(seconds_near)} (--neighbours 0 leaves them out)"
    if checked:
        words += f", label check {spell_seconds(seconds_check)} (--no-check-labels leaves it out)"
    return f"{words}; {scores.memory / 1e6:,.0f} MB of memory beside the features"


def _check_flops(samples: Samples) -> float:
    """Of all classifiers in all folds: steps of the two regressions, kernels, levels of trees."""
    count, classes = len(samples), int((samples.counts > 0).sum())
    edges = 0 if samples.image is None else EDGES
    width = min(samples.features.shape[1], check.WIDTH) + edges
    fitted = min(0.8 * count, check.TRAINED)
    steps = 4.0 * fitted * classes * check.STEPS * (width + check.KERNEL_FEATURES)
    kernels = 2.0 * (fitted + 0.2 * count) * check.KERNEL_FEATURES * width
    trees = FLOPS_A_SPLIT * check.GROWN * fitted * math.log2(fitted + 1) * math.sqrt(width)
    rounds = check.ROUNDS if count <= check.FEW else 1
    return rounds * check.FOLDS * (steps + kernels + trees)
