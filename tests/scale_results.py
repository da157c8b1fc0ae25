"""Results of ``regimes-at-scale`` made up for its tests: as the theorems have it, or otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from rarefy.measure.separation import separation
from rarefy.studies import get_study
from rarefy.theory.unpruned_limit import limit_ratio

STUDY = get_study("regimes-at-scale")
PLACES = ("low", "boundary", "high")
QUESTIONS = ("signal 0.5", "feature 0.1", "feature 0.01", "tail 2", "side 1", "side 2", "side 3")
DIMENSIONS = (100, 10**4, 10**6, 10**9)


def study_of(scale: str = "tiny", **parameters: Any) -> Any:
    return STUDY.at(scale, **parameters)


def read(word: str) -> tuple[str, float]:
    """Path and number of a question."""
    path, _, number = word.partition(" ")
    return path, float(number)


def ends_of(word: str, size: int, classes: int) -> tuple[float, float]:
    """Of its path, log10: x, Gamma, or n SNR^2/T at SNR = 1/n and at SNR = T n^(-1/4)."""
    path, n = read(word)[0], size * classes
    if path == "signal":
        return -math.log10(n * classes), math.log10(classes * math.sqrt(n))
    return (-2.0, 2.5) if path == "feature" else (0.0, 2.5)


Value = Callable[[str, int, int, int], float]
"""Of question, size, classes and d."""


def as_theory(word: str, size: int, classes: int, d: int) -> float:
    """Boundaries, log10, that are what the theorems ask for."""
    path, number = read(word)
    if path == "signal":
        return math.log10(float(limit_ratio(classes, 0.01, 0.8)))
    if path == "feature":
        chance = 1 - 1 / classes
        return 2 * math.log10(float(separation(number * chance, classes)))
    return math.log10(12 * number**-2)


def spread(seed: int) -> float:
    return 0.005 * math.sin(2.3 * seed)


def results_of(
    study: Any,
    place: Value = as_theory,
    outside: Value = lambda *_: 0,
    wobble: float = 1.0,
    **changed: dict[str, float] | float,
) -> xr.Dataset:
    """Results as ``simulate`` would give them. ``changed``: outputs by place (a number: all)."""
    shape = (len(study.question), len(study.size), len(study.classes), len(study.d), study.seeds)
    boundary, lies = np.zeros(shape), np.zeros(shape)
    outputs = {
        "train_loss": dict.fromkeys(PLACES, 0.0099),
        "test_loss": {"low": 0.9, "boundary": 0.5, "high": 0.02},  # of log T
        "test_error": {"low": 0.95, "boundary": 0.3, "high": 0.0},  # of chance
        "signal_learnt": {"low": 0.0, "boundary": 2.0, "high": 8.0},
        "noise_learnt": {"low": 9.0, "boundary": 5.0, "high": 0.1},
        "gamma_all": {"low": 0.01, "boundary": 2.0, "high": 9.0},
        "rho_all": {"low": 9.0, "boundary": 5.0, "high": 0.1},
        "noise_active": dict.fromkeys(PLACES, 0.8),
        "stopped_at": dict.fromkeys(PLACES, 100.0),
    }
    outputs |= {
        name: value if isinstance(value, dict) else dict.fromkeys(PLACES, value)
        for name, value in changed.items()
        if name in outputs
    }
    chance = np.array(study.classes, dtype=float)[:, None, None, None]
    units = {"test_loss": np.log(chance), "test_error": 1 - 1 / chance}
    arrays = {
        name: np.broadcast_to(
            units.get(name, 1.0) * np.array([values[place] for place in PLACES]), (*shape, 3)
        )
        for name, values in outputs.items()
    }
    gamma, power = np.zeros((*shape, 3)), changed.get("power", 1.0)
    assert isinstance(power, float)
    for index in np.ndindex(shape):
        word, size = study.question[index[0]], study.size[index[1]]
        classes, d, seed = study.classes[index[2]], study.d[index[3]], index[4]
        low, high = ends_of(word, size, classes)
        lies[index] = outside(word, size, classes, d)
        moved = place(word, size, classes, d) + wobble * spread(seed + 3 * index[1])
        boundary[index] = np.nan if lies[index] else moved
        gamma[index] = [10 ** (power * at) for at in (low, moved, high)]
    arrays |= {"gamma": gamma, "rho": np.ones_like(gamma)}
    dims = ("question", "size", "classes", "d", "seed")
    data: dict[str, Any] = {name: ((*dims, "place"), value) for name, value in arrays.items()}
    data |= {"boundary": (dims, boundary), "outside": (dims, lies)}
    for name, number in (("agree", 1.0), ("runs", 8), ("grid", 40), ("nonfinite_step", -1)):
        data[name] = (dims, np.full(shape, number))
    coords = {name: list(getattr(study, name)) for name in dims[:4]}
    return xr.Dataset(data, {**coords, "seed": range(study.seeds), "place": list(PLACES)})


def synthetic(**parameters: Any) -> Any:
    given = {"question": QUESTIONS, "size": (8, 16, 32), "classes": (2, 4), "d": DIMENSIONS}
    return study_of(**{**given, "seeds": 8, "tail_level": 0.05, **parameters})
