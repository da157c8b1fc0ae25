"""Made-up results of long-tailed pre-training."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from pages.longtail import page
from pages.longtail.rows import Found
from rarefy.core.contracts import Study
from rarefy.studies import get_study

RANKS, EPOCHS = 10, 2
WAYS = ("simclr", "pruned:0.5", "branches:0.1")
SEEDS = 6
"""Three mirrored pairs of orders of the classes, the two of a pair alike."""
SPREAD = np.repeat([0.0, 0.01, 0.03], 2)
"""Seeds differ by more than methods do."""


Gains = dict[str, dict[str, float | None]]


def study(rho: Sequence[float] = (10.0, 100.0), **more: Any) -> Study:
    chosen = {
        "rho": tuple(rho),
        "algorithm": WAYS,
        "seeds": SEEDS,
        "images": ("long-tail",),
        **more,
    }
    return get_study("longtail-table").at("tiny", **chosen)


def results(
    gains: dict[str, Sequence[float]],
    rho: Sequence[float] = (10.0, 100.0),
    images: tuple[str, ...] = ("long-tail",),
    seeds: int = SEEDS,
    gaps: dict[str, float] | None = None,
    slopes: np.ndarray | None = None,
    knn: dict[str, Sequence[float]] | None = None,
) -> xr.Dataset:
    """``gains``: over simclr at each rho, the same for all seeds but a little; ``gaps``: how much
    accuracy falls from head to tail; ``knn``: of held-out images, look by look."""
    cells = ("images", "rho", "algorithm", "seed")
    shape = (len(images), len(rho), len(WAYS), seeds)
    little = np.repeat([-0.001, 0.0, 0.001], 2)[:seeds]
    accuracy = np.full((*shape, 1, RANKS), 0.5)
    for number, way in enumerate(WAYS):
        noise = little if number else np.zeros(seeds)
        gain = np.asarray(gains.get(way, [0.0] * len(rho)))[:, None] + noise + SPREAD[:seeds]
        fall = np.linspace(0.5, -0.5, RANKS) * ((gaps or {}).get(way, 0.1) + noise)[:, None]
        accuracy[:, :, number, :, 0] += gain[..., None] + fall
    looks = max(map(len, (knn or {"": [1.0]}).values()))
    seen = np.ones((*shape, looks))
    for number, way in enumerate(WAYS):
        seen[:, :, number] = np.asarray((knn or {}).get(way, [1.0] * looks)) + little[:, None]
    found = {
        "accuracy": ((*cells, "protocol", "rank"), accuracy),
        "validation": ((*cells, "protocol"), accuracy.mean(axis=-1)),
        "masked_accuracy": ((*cells, "protocol", "rank"), accuracy - 0.1),
        "class_count": ((*cells, "rank"), np.ones((*shape, RANKS))),
        "nonfinite_step": (cells, np.full(shape, -1)),
        "mask_slope": (cells, np.zeros(shape) if slopes is None else slopes),
        "epoch_loss": ((*cells, "epoch"), np.ones((*shape, EPOCHS))),
        "epoch_alignment": ((*cells, "epoch"), np.full((*shape, EPOCHS), 0.5)),
        "watched_knn": ((*cells, "watched_epoch"), seen),
        "separability": ((*cells, "watched_epoch", "rank"), np.ones((*shape, looks, RANKS))),
    }
    for name in ("mask_excess", "mask_low", "mask_high"):
        values = np.zeros((*shape, RANKS))
        values[..., -1] = np.nan  # no unit prefers the last class, in any network
        found[name] = ((*cells, "rank"), values)
    coordinates = {
        **{"images": list(images), "rho": list(rho), "algorithm": list(WAYS)},
        **{"protocol": ["linear"], "rank": np.arange(RANKS), "seed": np.arange(seeds)},
        **{"epoch": np.arange(1, EPOCHS + 1), "watched_epoch": EPOCHS * np.arange(1, looks + 1)},
    }
    return xr.Dataset(found, coords=coordinates)


Spoils = Callable[[xr.Dataset], xr.Dataset]


def found_of(
    gains: Gains, spoilt: Spoils | None = None, knn: dict[str, Sequence[float]] | None = None
) -> dict[str, Found]:
    """``gains``: by scale, of the methods over SimCLR (a method that is not named does not differ,
    one with None is not there); ``spoilt``: what is done to the results; ``knn``: see results."""
    found = {}
    for scale, by_way in gains.items():
        rho = float(scale.split("rho")[1].split("-")[0]) if "rho" in scale else 100.0
        images = ("balanced",) if "-control-" in scale else ("long-tail",)
        told = {way: (gain,) for way, gain in by_way.items() if gain is not None}
        made = results(told, (rho,), images, knn=knn)
        made = made if spoilt is None else spoilt(made)
        made = made.sel(algorithm=[way for way in WAYS if by_way.get(way, 0.0) is not None])
        made.attrs["provenance"] = json.dumps({"date": "2026-01-02T03", "machine": "a machine"})
        data, kind, epochs = scale.split("-")
        decay = 5e-4 if kind == "decay" else 1e-4
        which = study((rho,), data=data, epochs=int(epochs), images=images, weight_decay=decay)
        found[scale] = Found(which, scale, made)
    return found


def page_of(gains: Gains, spoilt: Spoils | None = None) -> str:
    """The page of 000 Table 2 that such results give."""
    return page(found_of(gains, spoilt))
