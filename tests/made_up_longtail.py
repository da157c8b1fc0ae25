"""Made-up results of long-tailed pre-training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study
from rarefy.studies import get_study

RANKS, EPOCHS = 10, 2
WAYS = ("simclr", "pruned:0.5", "branches:0.3")
SPREAD = np.array([0.0, 0.01, 0.03])
"""Seeds differ by more than methods do."""


def study(rho: Sequence[float] = (10.0, 100.0), **more: Any) -> Study:
    chosen = {"rho": tuple(rho), "way": WAYS, "seeds": 3, "images": ("long-tail",), **more}
    return get_study("longtail-table").at("tiny", **chosen)


def results(
    gains: dict[str, Sequence[float]],
    rho: Sequence[float] = (10.0, 100.0),
    images: tuple[str, ...] = ("long-tail",),
    seeds: int = 3,
    gaps: dict[str, float] | None = None,
    slopes: np.ndarray | None = None,
) -> xr.Dataset:
    """``gains``: over simclr at each rho, the same for all seeds but a little; ``gaps``: how much
    accuracy falls from head to tail."""
    cells = ("images", "rho", "way", "seed")
    shape = (len(images), len(rho), len(WAYS), seeds)
    little = np.array([-0.001, 0.0, 0.001])[:seeds]
    accuracy = np.full((*shape, 1, RANKS), 0.5)
    for number, way in enumerate(WAYS):
        noise = little if number else np.zeros(seeds)
        gain = np.asarray(gains.get(way, [0.0] * len(rho)))[:, None] + noise + SPREAD[:seeds]
        fall = np.linspace(0.5, -0.5, RANKS) * ((gaps or {}).get(way, 0.1) + noise)[:, None]
        accuracy[:, :, number, :, 0] += gain[..., None] + fall
    found = {
        "accuracy": ((*cells, "protocol", "rank"), accuracy),
        "masked_accuracy": ((*cells, "protocol", "rank"), accuracy - 0.1),
        "class_count": ((*cells, "rank"), np.ones((*shape, RANKS))),
        "nonfinite_step": (cells, np.full(shape, -1)),
        "mask_slope": (cells, np.zeros(shape) if slopes is None else slopes),
        "epoch_loss": ((*cells, "epoch"), np.ones((*shape, EPOCHS))),
        "watched_knn": ((*cells, "watched_epoch"), np.ones((*shape, 1))),
        "separability": ((*cells, "watched_epoch", "rank"), np.ones((*shape, 1, RANKS))),
    }
    for name in ("mask_excess", "mask_low", "mask_high"):
        values = np.zeros((*shape, RANKS))
        values[..., -1] = np.nan  # no unit prefers the last class, in any network
        found[name] = ((*cells, "rank"), values)
    coordinates = {
        **{"images": list(images), "rho": list(rho), "way": list(WAYS)},
        **{"protocol": ["linear"], "rank": np.arange(RANKS)},
        **{"epoch": np.arange(1, EPOCHS + 1), "watched_epoch": [EPOCHS]},
    }
    return xr.Dataset(found, coords=coordinates)
