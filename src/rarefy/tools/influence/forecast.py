"""How long scoring will take here, before it begins."""

from __future__ import annotations

import time

import torch

from rarefy.core.progress import spell_seconds
from rarefy.core.settings import resolve_device
from rarefy.measure.influence.plan import make_plan
from rarefy.measure.nearest import REFERENCE, WIDTH
from rarefy.tools.influence.scoring import Scoring
from rarefy.tools.samples.samples import Samples

SIDE = 512
"""Of the products by which the machine's speed is found: a hundredth of a second's work."""
READING = 1e9
"""Bytes a second for features, with room to spare: where products are few, reading counts."""


def forecast(samples: Samples, settings: Scoring, from_seconds: float = 0.0) -> str:
    """A line about time and memory, or nothing below ``from_seconds``. The speed is that of matrix
    products measured now; the truth is usually within a factor of two."""
    device = resolve_device(settings.device)
    features = samples.features
    count, width = features.shape
    plan = make_plan(samples.counts, width, features.dtype.itemsize, settings.memory, None)
    flops = sum(plan.flops(step, samples.counts, width) for step in plan.steps)
    seconds = flops / speed(torch.float64, device) + 2 * features.nbytes / READING
    asked = min(count, REFERENCE) if settings.neighbours else 0
    near = 2.0 * count * (asked * min(width, WIDTH) + (width * WIDTH if width > WIDTH else 0))
    seconds_near = 2 * near / speed(torch.float32, device) if asked else 0.0
    if seconds + seconds_near < from_seconds:
        return ""
    words = f"scores about {spell_seconds(seconds)}"
    if asked:
        words += (
            f", neighbours about {spell_seconds(seconds_near)} (--neighbours 0 leaves them out)"
        )
    return f"{words}; {plan.memory / 1e6:,.0f} MB of memory beside the features"


def speed(dtype: torch.dtype, device: torch.device) -> float:
    """Operations a second of matrix products here, the best of three."""
    a = torch.ones(4 * SIDE, SIDE, dtype=dtype, device=device)
    b = torch.ones(SIDE, SIDE, dtype=dtype, device=device)
    best = 0.0
    for _ in range(3):
        began = time.perf_counter()
        (a @ b).sum().item()
        best = max(best, 2 * 4 * SIDE**3 / (time.perf_counter() - began))
    return best
