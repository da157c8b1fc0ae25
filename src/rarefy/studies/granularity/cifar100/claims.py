"""The manual hierarchy, the order of kinds, rebalancing, re-training, checkpoints."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.granularity.images import claims as shared
from rarefy.tools.granularity.experiment import GranularityExperiment


def verdicts(experiment: GranularityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    asked = shared.Asked(experiment, results, scale)
    tuned = asked.at("checkpoints")
    return [
        *shared.manual(asked),
        *shared.order(asked),
        *shared.rebalanced(asked),
        *shared.one_pass(asked),
        *shared.checkpoint(tuned),
        *shared.length(tuned),
        *shared.probe(asked.at("")),
        *shared.hard_images(asked),
    ]
