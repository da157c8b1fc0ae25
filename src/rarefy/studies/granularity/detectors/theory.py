"""What 004 predicts for ``granularity-detectors``, with its parameters put in."""

from __future__ import annotations

import math

from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.theory import granularity as theory

STOP = math.log(1.5)
"""B of Def. G.2."""


def predicted_rates(experiment: DetectorsExperiment, labels: str, k: int) -> theory.Rates:
    """Growth per step at the start (004 eq. 33, 35, 202, 205), with the mean strength in it."""
    given = experiment.some("lr", "feature_patches", "patches", "spread")
    return theory.first_rates(plus=k, minus=k, per_side=1 if labels == "coarse" else k, **given)


def expected_size(experiment: DetectorsExperiment, labels: str) -> float:
    """|S*| to the letter, by exact probability."""
    wide = experiment.of(labels)
    return theory.initial_sets(wide.d, wide.neurons, wide.threshold).detectors


def predicted_stop(experiment: DetectorsExperiment, labels: str, k: int) -> float:
    """Updates until B if the |S*| that are expected grow at those rates."""
    rates, size = predicted_rates(experiment, labels, k), expected_size(experiment, labels)
    return theory.phase_1_steps(rates, size, experiment.feature_patches, STOP)


def expected_share(experiment: DetectorsExperiment, labels: str) -> float:
    """Of the response at the start, what S* carries."""
    return theory.initial_share(experiment.d, experiment.of(labels).threshold)
