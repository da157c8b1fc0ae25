"""Pictures as data: what a heat map with lines over it refuses when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rarefy.core.errors import UsageError
from rarefy.core.picture import Curve, HeatMap, all_numbers


def heat_map(**options: Any) -> HeatMap:
    told: dict[str, Any] = {"x": [0.1, 0.2, 0.3], "y": [2, 4], "title": "map"} | options
    return HeatMap(np.zeros((2, 3)), told.pop("x"), told.pop("y"), "sigma", "K", "loss", **told)


CURVE = Curve("boundary", np.arange(3.0), np.arange(3.0))


def test_a_map_may_have_nothing_over_it_and_any_names() -> None:
    plain = heat_map(x=["a", "b", "c"])
    assert (plain.curves, plain.levels) == ((), ())
    assert heat_map(x=["a", "b", "c"], levels=[0.5]).levels == [0.5], "levels need no numbers"


@pytest.mark.parametrize("x", [[0.1, 0.2, 0.3], (1, 2, 3), np.arange(3), np.float32([1, 2, 3])])
def test_a_curve_lies_on_axes_of_numbers(x: Any) -> None:
    assert heat_map(x=x, curves=[CURVE]).curves == [CURVE]
    assert all_numbers(x)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"x": [0.1, "many", 0.3]}, "x of heat map with curve 'boundary'='many': must be a number"),
        ({"y": [True, False]}, "y of heat map with curve 'boundary'=True: must be a number"),
    ],
)
def test_a_curve_has_no_place_on_names(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        heat_map(curves=[CURVE], **axes)


def test_bands_and_endless_levels_are_refused() -> None:
    band = Curve("boundary", CURVE.x, CURVE.y, CURVE.y - 1, CURVE.y + 1)
    with pytest.raises(UsageError, match="curves of heat map 'map'='boundary': must have no band"):
        heat_map(curves=[band])
    with pytest.raises(UsageError, match="levels of heat map 'map'=nan: must be finite"):
        heat_map(levels=[1.0, float("nan")])
