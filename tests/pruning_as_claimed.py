"""Results of contrast-pruning that are 000 Theorem 3.2 to the letter, and verdicts on them."""

from __future__ import annotations

from functools import partial

import pytest
import xarray as xr
from made_up_results import Made, fabricated
from pruning_results import by_group, one, pruning, with_pruning

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import bootstrap_interval
from rarefy.studies import get_study

ContrastPruning = get_study("contrast-pruning")
JUDGED = pruning(
    **{"alpha": (0.0, 2 / 81, 9 / 81), "eps_min": (0.2, 0.4, 0.8), "neurons": 81},
    **{"majority": 8, "minority": 1},
)
"""As many neurons as d^2: trained networks decide too."""
SEEDS = 25
PURE = JUDGED.neurons / JUDGED.d


def begins(random: Made, theorem: Made) -> Made:
    return lambda c: xr.where(c["begin"] == "theorem", theorem(c), random(c))


def logits(contains: float, lacks: float) -> Made:
    """The positive logit, and by how much the mask changes it on samples of each kind."""
    return lambda c: (
        0.5 + (c["network"] == "masked") * xr.where(c["contains"] == "contains", contains, lacks)
    )


AS_CLAIMED: dict[str, Made] = {
    "energy": by_group(with_pruning(one, lambda c: c["eps_min"] ** 2), one),
    "pure": begins(by_group(with_pruning(lambda c: PURE, lambda c: PURE - 1), one), lambda c: PURE),
    "norm": by_group(lambda c: c["eps_min"], one),
    "pure_pruned": lambda c: 0.9,
    "pruned_rare": lambda c: 0.9,
    "neurons_rare": lambda c: 0.4,
    "lucky_pruned": lambda c: 2.0,
    "lucky": lambda c: 2.0,
    "positive": logits(-0.2, -0.01),
}
"""Theorem 3.2 to the letter."""


def judged(study: ContrastPruning = JUDGED, **changed: Made) -> list[Verdict]:
    few = partial(bootstrap_interval, resamples=20)  # the seeds are all alike: 20 are as good
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.measure.statistics.bootstrap_interval", few)
        patch.setattr("rarefy.studies.contrastive.exponents.bootstrap_interval", few)
        return study.verdicts(fabricated(study, SEEDS, AS_CLAIMED | changed), "tiny")
