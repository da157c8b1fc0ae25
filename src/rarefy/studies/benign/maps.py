"""Heat maps of test accuracy, as 003 Fig. 3 and 4 have them."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from rarefy.core.picture import Curve, HeatMap
from rarefy.studies.kit.chart import heat_map
from rarefy.studies.kit.words import seeds_in_words

AXIS_LABELS = {
    "strength": "feature strength |u|",
    "gamma": "noise correlation ratio Gamma",
    "size": "training samples a class |S|",
}
LEVELS = (0.5, 0.9)
"""Accuracies whose level lines are drawn."""


def accuracy_map(
    accuracy: xr.DataArray, x: str, y: str, title: str, curves: Sequence[Curve] = ()
) -> HeatMap:
    """A panel of the mean over seeds."""
    look = {"curves": curves, "levels": LEVELS}
    return heat_map(accuracy, x, y, AXIS_LABELS, "test accuracy", title, **look)


def counted(results: xr.Dataset) -> str:
    """How many seeds a mean stands on, in words."""
    return f"mean of {seeds_in_words(results)}"
