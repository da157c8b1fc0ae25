"""What the papers assume, on the grid of ``regimes-at-scale``: 002 Condition 4.1 and 003 Condition
1, each line where a dimension's grid misses it most."""

from __future__ import annotations

from itertools import product

import numpy as np

from rarefy.measure.statistics import BIG_O
from rarefy.nets.patch_cnn import output_scale
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.questions import FEATURE_ENDS, Question
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import Condition, worst
from rarefy.theory.topk import condition_4_1, logit_gain


def signal_conditions(study: RegimesExperiment, d: int) -> list[Condition]:
    """Condition 4.1 at both ends of the path; constants of Theta read as 1, of O as 4."""
    scale = output_scale("mean", study.filters)
    lists = []
    for size, classes in product(study.size, study.classes):
        n = size * classes
        for place in Question("signal", 0.5).ends(size, classes):
            sigma = (n / (classes * d)) ** 0.5 * 10 ** (-place / 2)
            speed = 1 / classes + sigma**2 * (d**0.5 + n**0.5) ** 2 / n
            given = {
                "classes": classes,
                "filters": study.filters,
                "samples": n,
                "d": d,
                "mu": 1.0,
                "sigma": sigma,
                "sigma_0": study.sigma_0,
                "lr": study.lr / (logit_gain(study.filters, scale) * speed),
                "output_scale": scale,
                "horizon": max(study.steps, 2),
            }
            lines = condition_4_1(**given, constant=1.0)
            lists.append([*lines[:-1], condition_4_1(**given, constant=BIG_O)[-1]])
    return [worst(line) for line in zip(*lists, strict=True)]


def feature_conditions(study: RegimesExperiment, d: int) -> list[Condition]:
    """Condition 1 with C = 1 and Gamma = 1 at both ends of the feature's path."""
    scale = output_scale("mean", study.filters)
    lists = []
    for size, classes, place in product(study.size, study.classes, FEATURE_ENDS):
        n, rank = size * classes, float(d - classes)
        norm = (10**place * rank / size) ** 0.25
        speed = norm**2 / classes + (d**0.5 + n**0.5) ** 2 / n
        one = np.ones(classes)
        geometry = NoiseGeometry(
            gram=np.full((classes, classes), rank),
            operator=np.ones((classes, classes)),
            trace=rank * one,
            rank=rank * one,
            spread=one,
        )
        lists.append(
            condition_1(
                geometry=geometry,
                norms=norm * one,
                samples=n,
                filters=study.filters,
                d=d,
                sigma_0=study.sigma_0 / d**0.5,
                lr=study.lr / (logit_gain(study.filters, scale) * speed),
                output_scale=scale,
                horizon=float(max(study.steps, 2)),
            )
        )
    return [worst(line) for line in zip(*lists, strict=True)]
