"""Recall of every class of one's own images, rarest first, and what to use; then the curves of
S8."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.studies.sparse.keep_curve import charts as kept
from rarefy.tools.judged_classes import decision, first_level
from rarefy.tools.sparse_experiment import SparseTraining


def pictures(experiment: SparseTraining, results: xr.Dataset) -> list[Picture]:
    curves = []
    for one in first_level(results):
        rarest_first = one.report.table.iloc[::-1]
        style = "dashed" if one.keep == 1 else "solid"
        rank = np.arange(1, len(rarest_first) + 1)
        recall, low, high = (
            rarest_first[name].to_numpy() for name in ("recall", "recall_low", "recall_high")
        )
        curves.append(Curve(one.name, rank, recall, low, high, one.name, style))
    caption = (
        f"{decision(results).sentence}. Means over seeds, bands: 95 % for the number of test "
        "images of a class; dashed: the dense network."
    )
    panel = Lines(curves, "class, rarest first", "recall, per cent")
    return [
        Picture("use", "What to use, and the recall of every class", caption, [panel]),
        *kept.pictures(experiment, results),
    ]
