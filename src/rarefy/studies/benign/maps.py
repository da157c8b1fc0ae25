"""Heat maps of test accuracy, as 003 Fig. 3 and 4 have them, and words for captions."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from rarefy.core.picture import Curve, HeatMap

AXIS_LABELS = {
    "strength": "feature strength |u|",
    "gamma": "noise correlation ratio Gamma",
    "size": "training samples a class |S|",
}
LEVELS = (0.5, 0.9)
"""Accuracies whose level lines are drawn."""


def accuracy_map(
    accuracy: xr.DataArray,
    x: str,
    y: str,
    title: str,
    curves: Sequence[Curve] = (),
    levels: Sequence[float] = LEVELS,
) -> HeatMap:
    """A panel of the mean over seeds; ``accuracy`` has the dimensions x, y and seed."""
    return HeatMap(
        values=accuracy.mean("seed").transpose(y, x).values,
        x=_labels(accuracy[x]),
        y=_labels(accuracy[y]),
        x_label=AXIS_LABELS[x],
        y_label=AXIS_LABELS[y],
        colour_label="test accuracy",
        title=title,
        curves=curves,
        levels=levels,
    )


def difference_map(difference: xr.DataArray, x: str, y: str, title: str) -> HeatMap:
    """A panel of the mean gain (or loss) of accuracy over seeds."""
    return HeatMap(
        values=difference.mean("seed").transpose(y, x).values,
        x=_labels(difference[x]),
        y=_labels(difference[y]),
        x_label=AXIS_LABELS[x],
        y_label=AXIS_LABELS[y],
        colour_label="difference in test accuracy",
        title=title,
        signed=True,
    )


def seeds_in_words(results: xr.Dataset) -> str:
    n = results.sizes["seed"]
    return f"{n} seed{'s' if n > 1 else ''}"


def counted(results: xr.Dataset) -> str:
    """How many seeds a mean stands on, in words."""
    return f"mean of {seeds_in_words(results)}"


def power_of_ten(exponent: float) -> str:
    """10^exponent as a text, beyond what a float can hold too."""
    return f"{10**exponent:.3g}" if exponent < 300 else f"1e+{exponent:.0f}"


def _labels(axis: xr.DataArray) -> list[float]:
    """The values of an axis, whole ones as whole numbers: 1400, not 1.4e+03."""
    return [int(value) if float(value).is_integer() else float(value) for value in axis.values]
