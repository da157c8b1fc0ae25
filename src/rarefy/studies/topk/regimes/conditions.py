"""Condition 4.1 on the grid of ``topk-regimes``: which line is missed most, and by how much."""

from __future__ import annotations

from itertools import product

from rarefy.measure.statistics import BIG_O
from rarefy.nets.patch_cnn import output_scale
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
from rarefy.theory.conditions import Condition, worst
from rarefy.theory.topk import condition_4_1


def conditions_at(
    study: RegimesExperiment, samples: int, classes: int, d: int, snr: float
) -> list[Condition]:
    """Condition 4.1 at one point of the grid; the constant of Theta (in d) is read as 1, that of O
    (in the learning rate) as 4, and T* as the number of steps."""
    sigma = study.mu / (snr * d**0.5)
    speed = study.mu**2 / classes + sigma**2 * d / samples
    scale = output_scale(study.combine, study.filters)
    given = {
        "classes": classes,
        "filters": study.filters,
        "samples": samples,
        "d": d,
        "mu": study.mu,
        "sigma": sigma,
        "sigma_0": study.sigma_0,
        "lr": study.lr / (study.filters * scale**2 * speed),
        "output_scale": scale,
        "horizon": study.steps,
    }
    lines = condition_4_1(**given, constant=1.0)
    return [*lines[:-1], condition_4_1(**given, constant=BIG_O)[-1]]


def worst_lines(study: RegimesExperiment, d: int) -> list[Condition]:
    """Each line of Condition 4.1 where the grid misses it most at dimension d."""
    points = product(study.samples, study.classes, study.snr)
    lists = [conditions_at(study, n, classes, d, snr) for n, classes, snr in points]
    return [worst(line) for line in zip(*lists, strict=True)]


def worst_condition(study: RegimesExperiment, d: int) -> str:
    """One phrase on how far dimension d is from Condition 4.1."""
    missed = worst(worst_lines(study, d))
    if missed.holds:
        return "Condition 4.1 is met at every point of the grid"
    return f"Condition 4.1 is not met: {missed.name} misses by up to {missed.ratio:.2g} times"
