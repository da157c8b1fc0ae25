"""Results of contrast-pruning that are 000 Theorem 3.2 to the letter, and verdicts on them."""

from __future__ import annotations

from functools import partial

import pytest
import xarray as xr
from pruning_results import Made, by_group, fabricated, one, pruning, with_pruning

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import bootstrap_interval
from rarefy.studies import get_study
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order

ContrastPruning = get_study("contrast-pruning")
JUDGED = pruning(alpha=(0.0, 0.1, 0.3), eps_min=(0.2, 0.4, 0.8), start=(0,), bias_scale=(0.0,))
LAST, SEEDS = JUDGED.reads[-1], 25  # with fewer a share of 0.95 is never certain


def rare_rate(c: xr.Dataset) -> xr.DataArray:
    return minority_rate_order(c["eps_min"], c["alpha"], JUDGED.lr, JUDGED.growth_constant)


def other_rate(c: xr.Dataset) -> xr.DataArray:
    rate = (JUDGED.lr, JUDGED.growth_constant, JUDGED.d)
    return other_rate_order(c["eps_min"], c["alpha"], *rate)


def begins(random: Made, theorem: Made) -> Made:
    return lambda c: xr.where(c["begin"] == "theorem", theorem(c), random(c))


def logits(contains: float, lacks: float, control: tuple[float, float] = (-0.1, -0.1)) -> Made:
    """The positive logit, and by how much each mask changes it on samples of each kind."""

    def change(c: xr.Dataset, values: tuple[float, float]) -> xr.DataArray:
        return xr.where(c["contains"] == "contains", *values)

    return lambda c: (
        0.5
        + (c["network"] == "masked") * change(c, (contains, lacks))
        + (c["network"] == "random") * change(c, control)
    )


def scores(share: float, fall: float, by_chance: float, size: float) -> Made:
    return lambda c: xr.zeros_like(c["score"], dtype=float) + [share, fall, by_chance, size]


PURE_AT_FIRST = JUDGED.neurons / JUDGED.d
AS_CLAIMED: dict[str, Made] = {
    "energy": by_group(with_pruning(one, lambda c: c["eps_min"] ** 2), one),
    "weight": by_group(with_pruning(one, lambda c: c["eps_min"]), one),
    "pure": begins(
        by_group(with_pruning(lambda c: PURE_AT_FIRST, lambda c: 0.0), one),
        lambda c: PURE_AT_FIRST,
    ),
    "extra_growth": by_group(lambda c: 2 * rare_rate(c), lambda c: other_rate(c) / 2),
    "pruned_rare": lambda c: 0.9,
    "neurons_rare": lambda c: 0.4,
    "lucky_pruned": lambda c: 2.0,
    "lucky": lambda c: 2.0,
    "positive": logits(-0.2, -0.01),
    "negative": one,
    "predicted_fall": lambda c: 0.2,
    "simple_fall": lambda c: 0.2,
    "telling": scores(0.8, 0.9, 0.5, 0.6),
    "loss": one,
    "neuron": one,
}
"""Theorem 3.2 to the letter."""


def judged(study: ContrastPruning = JUDGED, **changed: Made) -> list[Verdict]:
    few = partial(bootstrap_interval, resamples=20)  # the seeds are all alike: 20 are as good
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.studies.contrastive.pruning.strength.bootstrap_interval", few)
        patch.setattr("rarefy.studies.contrastive.exponents.bootstrap_interval", few)
        return study.verdicts(fabricated(study, SEEDS, AS_CLAIMED | changed), "tiny")
