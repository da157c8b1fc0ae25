"""One change of the setting at a time: what the studies of 004 call ``variation``.

Every study has this axis, with "as chosen" first; its table of sensitivity shows the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from rarefy.core.errors import unknown
from rarefy.studies.granularity.experiment import GranularityExperiment

Chosen = TypeVar("Chosen", bound=GranularityExperiment)
AS_CHOSEN = "as chosen"

CHANGES: dict[str, Callable[[GranularityExperiment], dict[str, Any]]] = {
    AS_CHOSEN: lambda study: {},
    "noise x2": lambda study: {"sigma": 2 * study.sigma},
    "patches x2": lambda study: {"patches": 2 * study.patches, "lr": 2 * study.lr},
    "neurons x2": lambda study: {"neurons": 2 * study.neurons},
    "neurons x1/2": lambda study: {"neurons": max(1, study.neurons // 2)},
    "c_b 0.7": lambda study: {"threshold": 0.7},
    "c_b 1.3": lambda study: {"threshold": 1.3},
    "patch counts drawn": lambda study: {"counts": "drawn"},
    "hard: weaker distraction": lambda study: {"distraction": study.distraction / 2},
    "hard: no strong noise": lambda study: {"strong": study.sigma},
    "hard: no distraction": lambda study: {"distractors": 0},
}
"""What each changes. The rate goes with the patches, since (16) divides by their number."""


def varied(study: Chosen, variation: str) -> Chosen:
    """The study with one thing changed."""
    if variation not in CHANGES:
        raise unknown("variation", variation, CHANGES)
    return dataclasses.replace(study, **CHANGES[variation](study))
