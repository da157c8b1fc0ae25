"""Accuracy on another set rises with the number of pre-training classes."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.granularity.images.claims import Asked
from rarefy.studies.granularity.images.numbers import PERCENT, at_end, classes, of_kind
from rarefy.studies.kit.arrays import by_seed
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import GIVEN

JUDGED = {"test_accuracy": "fine-tuned", "probe_accuracy": "linear probe"}


def verdicts(experiment: GranularityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """G11; also whether the last step, to the finest labels, still helps."""
    asked, found = Asked(experiment, results, scale), []
    levels = of_kind(results, GIVEN)
    sizes = [classes(results, one) for one in levels]
    for number, (name, words) in enumerate(JUDGED.items(), 1):
        values = PERCENT * by_seed(at_end(results[name]).sel(labels=levels), "labels")
        means = ", ".join(f"{mean:.2f}" for mean in st.mean_band(values).mean)
        note = f"{means} % at {', '.join(f'{size:.0f}' for size in sizes)} classes"
        identity = asked.named(f"G11.{number}", f"{words}, accuracy over the number of classes")
        # all cells of a seed share first weights and images
        trend = st.spearman_trend(np.asarray(sizes), values, within_rows=True)
        found.append(st.judge_trend(identity, trend, "increasing", note=note))
        if len(levels) > 1:
            identity = asked.named("G11", f"{words}, {levels[-1]} less {levels[-2]}, points")
            step = values[:, -1] - values[:, -2]
            found.append(st.judge_difference(identity, step, "positive"))
    return found
