"""Does TopK pruning rescue generalisation where dense training fails, and more than cheap remedies?

Judged at the noise levels at which dense training fails, told by its validation loss, so that the
test samples choose nothing. Differences are paired by seed: rival minus TopK, both at their chosen
knobs. The worst noise level decides, at a level corrected for their number.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.studies.topk.baselines.arms import NAMES, READINGS
from rarefy.studies.topk.baselines.choice import Choice, choices
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment
from rarefy.theory.topk import chance_loss

RIVALS = {"dense": ""} | dict.fromkeys(
    ("random", "decay", "early"),
    "not a claim of the paper, which compares with dense training only",
)
"""What TopK is compared with, and what is to be said about that."""
NOT_FAILING = "premise not met: dense training does not fail at any noise level here"


def failing_loss(classes: int) -> float:
    """Losses from here on are those of failure: 2 for ten classes, as 002 Fig. 2 draws them, and as
    large a part of the loss of guessing, log T, for other numbers."""
    return float(2 * chance_loss(classes) / chance_loss(10))


def failing(dense: Choice, classes: int) -> NDArray[np.bool_]:
    """Noise levels, (sigma,), at which dense training fails by its mean validation loss."""
    return st.mean_band(dense.validation).mean >= failing_loss(classes)


def verdicts(experiment: BaselinesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    chosen = choices(experiment, results)
    sigma = results["sigma"].values.astype(np.float64)
    where = np.flatnonzero(failing(chosen["dense"], experiment.classes))
    limit, found = failing_loss(experiment.classes), []
    for topk in (chosen[reading] for reading in READINGS if reading in chosen):
        named = Naming(experiment, scale, f"{experiment.setting}, {topk.name} ")
        case, note = _deciding(topk.loss, sigma, where, ceiling=limit)
        name = named("S4", f"reaches a test loss under {limit:.3g} where dense fails")
        found.append(st.judge_bound(name, case, limit, "at_most", note=note))
        for rival, remark in RIVALS.items():
            for measure in ("loss", "error") if rival in chosen else ():
                gain = getattr(chosen[rival], measure) - getattr(topk, measure)
                case, note = _deciding(gain, sigma, where, floor=0.0)
                note = joined(f"{NAMES[rival]} minus {topk.name}", note, remark)
                name = named("S4", f"against {NAMES[rival]}, test {measure}")
                found.append(st.judge_difference(name, case, "positive", note=note))
    return found


def _deciding(
    samples: NDArray[np.float64],
    sigma: NDArray[np.float64],
    where: NDArray[np.intp],
    floor: float = -np.inf,
    ceiling: float = np.inf,
) -> tuple[st.Interval, str]:
    """Interval over seeds at the noise level that decides for all of ``where``, and a note."""
    if len(where) == 0:
        return st.mean_interval([]), NOT_FAILING
    level = corrected_level(len(where))
    cases = [st.mean_interval(samples[:, place], level) for place in where]
    worst = worst_of([each.low for each in cases], [each.high for each in cases], floor, ceiling)
    at = f"sigma_p={sigma[where[worst]]:g}"
    if len(where) == 1:
        return cases[worst], f"at {at}, the only noise level at which dense training fails"
    note = f"at {at}, the worst of {len(where)} noise levels at which dense training fails, "
    return cases[worst], note + f"interval at level {level:.3g}"
