"""What the papers assume, on the grid of ``regimes-at-scale``: 002 Condition 4.1 and 003 Condition
1, each line where a dimension's grid misses it most."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from rarefy.measure.statistics import BIG_O
from rarefy.nets.patch_cnn import output_scale
from rarefy.studies.scale.questions import FEATURE_ENDS, Question
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import Condition, worst
from rarefy.theory.topk import condition_4_1, logit_gain


def _training(study: RegimesExperiment, speed: float) -> dict[str, Any]:
    """What both conditions ask of it, where logits move with this speed at rate 1."""
    scale = output_scale("mean", study.filters)
    lr = study.lr / (logit_gain(study.filters, scale) * speed)
    horizon = max(study.steps, 2)
    return {"filters": study.filters, "lr": lr, "output_scale": scale, "horizon": horizon}


def signal_conditions(study: RegimesExperiment, d: int) -> list[Condition]:
    """Condition 4.1 at both ends of the path; constants of Theta read as 1, of O as 4."""
    lists = []
    for size, classes in product(study.size, study.classes):
        n = size * classes
        for place in Question("signal", 0.5).ends(size, classes):
            sigma = (n / (classes * d)) ** 0.5 * 10 ** (-place / 2)
            speed = 1 / classes + sigma**2 * (d**0.5 + n**0.5) ** 2 / n
            read_as = partial(
                condition_4_1,
                **_training(study, speed),
                classes=classes,
                samples=n,
                d=d,
                mu=1.0,
                sigma=sigma,
                sigma_0=study.sigma_0,
            )
            lists.append([*read_as(constant=1.0)[:-1], read_as(constant=BIG_O)[-1]])
    return [worst(line) for line in zip(*lists, strict=True)]


def feature_conditions(study: RegimesExperiment, d: int) -> list[Condition]:
    """Condition 1 with C = 1 and Gamma = 1 at both ends of the feature's path."""
    lists = []
    for size, classes, place in product(study.size, study.classes, FEATURE_ENDS):
        n, rank = size * classes, float(d - classes)
        norm = (10**place * rank / size) ** 0.25
        speed = norm**2 / classes + (d**0.5 + n**0.5) ** 2 / n
        one = np.ones(classes)
        square = np.ones((classes, classes))
        geometry = NoiseGeometry(rank * square, square, rank * one, rank * one, one)
        given = {"geometry": geometry, "norms": norm * one, "samples": n, "d": d}
        sigma_0 = study.sigma_0 / d**0.5
        lists.append(condition_1(**given, **_training(study, speed), sigma_0=sigma_0))
    return [worst(line) for line in zip(*lists, strict=True)]
