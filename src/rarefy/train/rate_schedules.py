"""How the learning rate changes over a training, as a factor of its largest value."""

from __future__ import annotations

import math

from rarefy.core.errors import bad_value, unknown

SCHEDULES = ("cosine", "step", "constant")
STEP_AT = (0.5, 0.75)
"""``step``: shares of the training after which the rate falls to a tenth (He et al. 2016)."""


def rate_factor(schedule: str, step: int, steps: int, warm_up: float = 0.0) -> float:
    """Factor of the largest rate at ``step`` of ``steps``: a linear rise over the share ``warm_up``
    of the training, then the schedule over the rest of it."""
    if schedule not in SCHEDULES:
        raise unknown("schedule", schedule, SCHEDULES)
    if not 0 <= warm_up < 1:
        raise bad_value("warm_up", warm_up, "must be at least 0 and below 1")
    rising = int(warm_up * steps)
    if step < rising:
        return (step + 1) / (rising + 1)
    done = (step - rising) / max(steps - rising, 1)
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    if schedule == "step":
        return 0.1 ** sum(done >= share for share in STEP_AT)
    return 1.0
