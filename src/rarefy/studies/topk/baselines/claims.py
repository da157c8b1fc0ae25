"""Does TopK pruning rescue generalisation where dense training fails, and more than cheap remedies?

Judged at the noise levels at which dense training fails, told by its validation loss, so that the
test samples choose nothing. Differences are paired by seed: rival minus TopK, both at their chosen
knobs. The worst noise level decides, at a level corrected for their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Interval,
    judge_bound,
    judge_difference,
    mean_band,
    mean_interval,
)
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.studies.topk.baselines.choice import NAMES, Choice, choices
from rarefy.theory.topk import chance_loss

if TYPE_CHECKING:
    from rarefy.studies.topk.baselines.experiment import BaselinesExperiment

READINGS = ("revive", "revive0", "fixed")
RIVALS = ("dense", "random", "decay", "early")
MEASURES = ("loss", "error")
NOT_FAILING = "premise not met: dense training does not fail at any noise level here"


def failing_loss(classes: int) -> float:
    """Losses from here on are those of failure: 2 for ten classes, as 002 Fig. 2 draws them, and as
    large a part of the loss of guessing, log T, for other numbers."""
    return float(2 * chance_loss(classes) / chance_loss(10))


def failing(dense: Choice, classes: int) -> NDArray[np.bool_]:
    """Noise levels, (sigma,), at which dense training fails by its mean validation loss."""
    return mean_band(dense.validation).mean >= failing_loss(classes)


def baseline_verdicts(study: BaselinesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    chosen = choices(study, results)
    sigma = results["sigma"].values.astype(np.float64)
    where = np.flatnonzero(failing(chosen["dense"], study.classes))
    limit, found = failing_loss(study.classes), []
    for reading in (word for word in READINGS if word in chosen):
        topk = chosen[reading]

        def identity(words: str, name: str = topk.name) -> tuple[str, str, str, str]:
            return ("S4", study.name, scale, f"{study.setting}, {name}{words}")

        case, note = _deciding(topk.loss, sigma, where, ceiling=limit)
        text = f" reaches a test loss under {limit:.3g} where dense fails"
        found.append(judge_bound(identity(text), case, limit, "at_most", note=note))
        for rival in (word for word in RIVALS if word in chosen):
            for measure in MEASURES:
                gain = getattr(chosen[rival], measure) - getattr(topk, measure)
                case, note = _deciding(gain, sigma, where, floor=0.0)
                words = f" against {NAMES[rival]}, test {measure}"
                note = f"{chosen[rival].name} minus {topk.name}; {note}"
                if rival != "dense":
                    note += "; not a claim of the paper, which compares with dense training only"
                found.append(judge_difference(identity(words), case, "positive", note=note))
    return found


def _deciding(
    samples: NDArray[np.float64],
    sigma: NDArray[np.float64],
    where: NDArray[np.intp],
    floor: float = -np.inf,
    ceiling: float = np.inf,
) -> tuple[Interval, str]:
    """Interval over seeds at the noise level that decides for all of ``where``, and a note."""
    if len(where) == 0:
        return mean_interval([]), NOT_FAILING
    level = corrected_level(len(where))
    cases = [mean_interval(samples[:, place], level) for place in where]
    worst = worst_of([each.low for each in cases], [each.high for each in cases], floor, ceiling)
    at = f"sigma_p={sigma[where[worst]]:g}"
    if len(where) == 1:
        return cases[worst], f"at {at}, the only noise level at which dense training fails"
    note = f"at {at}, the worst of {len(where)} noise levels at which dense training fails, "
    return cases[worst], note + f"interval at level {level:.3g}"
