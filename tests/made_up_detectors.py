"""Results of the study of detectors, made up as the paper has them, and ways to spoil them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from made_up_results import coordinates_of
from small_granularity import AS_CHOSEN

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study
from rarefy.theory.granularity import first_rates, initial_sets, phase_1_steps

SUBCLASSES = (2, 4, 8, 16)
WIDE = {"d": 40, "neurons": 2560, "ratio": 40}
"""Sizes nearer to the theory than what was run."""


def study(**parameters: Any) -> Any:
    given = {"variation": (AS_CHOSEN,), "subclasses": SUBCLASSES, "seeds": 12, **WIDE}
    return get_study("granularity-detectors").at("paper", **{**given, **parameters})


# ---------------------------------------------------------------------------------- made-up results


def ideal(of: Any) -> xr.Dataset:
    """Results as the paper would have them, each value a per mille or so off."""
    noise = np.random.default_rng(3)
    reads = np.array(of.reads, dtype=float)
    shape = (1, len(SUBCLASSES), of.seeds, 2)
    over = {one.name: np.zeros((*shape, len(reads))) for one in of.outputs() if "read" in one.dims}
    start = {one.name: np.zeros(shape) for one in of.outputs() if "read" not in one.dims}
    s = of.feature_patches
    given = {"lr": of.lr, "feature_patches": s, "patches": of.patches}
    for place, k in enumerate(SUBCLASSES):
        for kind, labels in enumerate(("coarse", "fine")):
            at = (0, place, slice(None), kind)
            per_side = 1 if labels == "coarse" else k
            rates = first_rates(**given, plus=k, minus=k, per_side=per_side, spread=of.spread)
            wide = of.of(labels)
            size = initial_sets(of.d, wide.neurons, wide.threshold).detectors
            # late scores grow with log t, and phase 1 takes as long as the rates have it
            score = np.log(1 + reads / (2 * phase_1_steps(rates, size, s, math.log(1.5))))
            if labels == "coarse":
                common = score / s * k / (k + 1) + 0.001
                own = score / s / (k + 1) + 0.001
            else:
                common, own = score / s / 3 + 0.001, score / s * 2 / 3 + 0.001
            values = {
                "loss": np.log1p(np.exp(-score)),
                "common_response": common,
                "subclass_response": own,
                "other_response": 0.02 * np.exp(-reads / 10),
                "common_growth": rates.common * reads,
                "subclass_growth": rates.subclass * reads,
            }
            for name, share in (("printed", 0.95), ("able", 1.0)):
                values[f"common_by_{name}"] = common * share
                values[f"subclass_by_{name}"] = own * share
            for name, value in values.items():
                over[name][at] = value * (1 + 0.001 * noise.standard_normal((of.seeds, 1)))
            over["loss"][at][:, 0] = np.nan
            sizes = {
                "printed_size": size,
                "start_common": 0.01,
                "start_subclass": 0.01,
                "start_spread": 0.0001,
            }
            for name, value in sizes.items():
                start[name][at] = value * (1 + 0.001 * noise.standard_normal(of.seeds))
    dims = ("variation", "subclasses", "seed", "labels")
    return xr.Dataset(
        {
            **{name: ((*dims, "read"), values) for name, values in over.items()},
            **{name: (dims, values) for name, values in start.items()},
        },
        coords=coordinates_of(of, of.seeds),
    )


def judged(of: Any, results: xr.Dataset) -> dict[str, Verdict]:
    """By claim and what they are about."""
    found = of.verdicts(results, "paper")
    by_words = {f"{each.claim} {each.setting.split(': ', 1)[1]}": each for each in found}
    assert len(by_words) == len(found)  # every setting says something of its own
    return by_words


def scaled(name: str, factor: float, labels: str | None = None) -> Callable[[xr.Dataset], None]:
    """Results with one output multiplied, for one kind of labels or both."""

    def change(results: xr.Dataset) -> None:
        where = results["labels"] == labels if labels else True
        results[name] = xr.where(where, results[name] * factor, results[name]).transpose(
            *results[name].dims
        )

    return change


def against_k(name: str, power: float) -> Callable[[xr.Dataset], None]:
    def change(results: xr.Dataset) -> None:
        k = results["subclasses"].astype(float)
        results[name] = (results[name] * k**power).transpose(*results[name].dims)

    return change
