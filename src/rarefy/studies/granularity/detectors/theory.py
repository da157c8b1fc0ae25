"""What 004 predicts for ``granularity-detectors``, with its parameters put in."""

from __future__ import annotations

import math

from rarefy.measure.detectors import STDS
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.theory import granularity as theory

STOP = math.log(1.5)
"""B of Def. G.2."""


def predicted_rates(experiment: DetectorsExperiment, labels: str, k: int) -> theory.Rates:
    """Growth per step at the start (004 eq. 33, 35, 202, 205), with the mean strength in it."""
    given = experiment.some("lr", "feature_patches", "patches", "spread")
    return theory.first_rates(plus=k, minus=k, per_side=1 if labels == "coarse" else k, **given)


def predicted_stop(experiment: DetectorsExperiment, labels: str, k: int) -> float:
    """Updates until B if the |S*| that are expected grow at those rates."""
    rates, detectors = predicted_rates(experiment, labels, k), expected_sets(experiment).detectors
    return theory.phase_1_steps(rates, detectors, experiment.feature_patches, STOP)


def late_gain_of(experiment: DetectorsExperiment, k: int, printed: bool) -> float:
    """C of (98), with the |S*| that are expected, or as it is printed."""
    given = experiment.some("lr", "feature_patches", "patches")
    if printed:
        return theory.printed_late_gain(**given, plus=k)
    return theory.late_gain(**given, plus=k, detectors=expected_sets(experiment).detectors)


def _margins(experiment: DetectorsExperiment) -> dict[str, float]:
    """What ``rarefy.measure.detectors`` reckons with, noise in units of sigma_0: |w| is near its
    root mean square at the start."""
    noise = STDS * experiment.sigma * math.sqrt(experiment.d)
    return {"spread": experiment.spread, "noise": noise}


def expected_sets(experiment: DetectorsExperiment, printed: bool = True) -> theory.InitialSets:
    """Exact, with the margins printed in 004 or with those that strengths and noise need."""
    wide = {} if printed else _margins(experiment)
    return theory.initial_sets(experiment.d, experiment.neurons, experiment.threshold, **wide)


def expected_sizes(experiment: DetectorsExperiment, k: int) -> dict[str, float]:
    """Neurons per feature and output in each of ``watch.SETS``."""
    wide = expected_sets(experiment, False)
    return {
        "printed": expected_sets(experiment).detectors,
        "detector": experiment.neurons * wide.detector_among(2 + 2 * k),
        "able": wide.able,
    }


def expected_share(experiment: DetectorsExperiment, members: str, k: int) -> float:
    """Of the response at the start, what "printed" sets or those of a "detector" carry."""
    d, threshold = experiment.d, experiment.threshold
    if members == "printed":
        return theory.initial_share(d, threshold)
    return theory.initial_share(d, threshold, 2 + 2 * k, **_margins(experiment))
