"""The directions of Fig. 5 on small images: readings under another choice, none decides."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.granularity.images import claims as shared
from rarefy.tools.granularity.experiment import GranularityExperiment


def verdicts(experiment: GranularityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    asked = shared.Asked(experiment, results, scale, decides="")
    families = (shared.each_sample, shared.manual, shared.order, shared.one_pass)
    return [
        *(verdict for family in families for verdict in family(asked)),
        *shared.hard_images(asked),
    ]
