"""How long scoring will take here, told before it begins."""

from __future__ import annotations

from rarefy.core.progress import spell_seconds
from rarefy.core.settings import resolve_device
from rarefy.measure.influence.forecast import (
    Forecast,
    Rates,
    calibrate,
    forecast_neighbours,
    forecast_scores,
)
from rarefy.tools.influence.neighbours import WIDTH, references_of
from rarefy.tools.influence.scoring import ScoreSettings
from rarefy.tools.samples.samples import Samples

SURELY_SHORT = 1e10
"""Operations that take no time worth telling, nor measuring, on any machine."""


def forecast(samples: Samples, settings: ScoreSettings, from_seconds: float = 0.0) -> str:
    """A line about time and memory, or nothing below ``from_seconds``; the machine's speed is
    measured for a third of a second."""
    device = resolve_device(settings.device)
    count, width = samples.features.shape
    asked = references_of(samples) if settings.neighbours else 0

    def both(rates: Rates | None) -> tuple[Forecast, Forecast]:
        size = samples.features.dtype.itemsize
        memory = settings.memory
        return (
            forecast_scores(
                samples.counts, width, itemsize=size, memory=memory, device=device, rates=rates
            ),
            forecast_neighbours(count, asked, width, dimensions=WIDTH, rates=rates),
        )

    if from_seconds and sum(each.flops for each in both(None)) < SURELY_SHORT:
        return ""
    scores, near = both(calibrate(device))
    seconds, seconds_near = scores.seconds or 0.0, (near.seconds or 0.0) if asked else 0.0
    if seconds + seconds_near < from_seconds:
        return ""
    words = f"scores about {spell_seconds(seconds)}"
    if asked:
        words += f", neighbours {spell_seconds(seconds_near)} (--neighbours 0 leaves them out)"
    return f"{words}; {scores.memory / 1e6:,.0f} MB of memory beside the features"
