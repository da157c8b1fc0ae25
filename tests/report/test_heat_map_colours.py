"""The colours of heat maps, in both renderers: shared scales, readable notes, gains and losses."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects
import pytest
import toy
from matplotlib import colormaps

from rarefy.core.picture import HeatMap
from rarefy.report import interactive, static, style
from rarefy.report.panel_data import colour_limits, own_limits


def test_heat_maps_of_one_quantity_share_their_scale() -> None:
    limits = colour_limits(toy.PICTURES[2])
    assert limits["squared cosine"] == pytest.approx((0.0, 0.5), abs=0.01)
    assert set(limits) == {"squared cosine", "test loss (nats)"}
    flat = toy.picture(HeatMap(np.ones((1, 2)), [1, 2], [1], "x", "y", "z"))
    low, high = colour_limits(flat)["z"]
    assert low < 1 < high


def test_notes_are_readable_on_their_cell() -> None:
    notes = interactive.figure(toy.cosines())["layout"]["annotations"]
    assert [note["font"]["color"] for note in notes] == ["white", "black"]
    assert style.text_on_cell(float("nan"), 0, 1) == "black"


# --------------------------------------------------------------------------------- gains and losses


def signed_map(values: object, **options: object) -> HeatMap:
    matrix = np.atleast_2d(np.asarray(values, dtype=float))
    rows, columns = matrix.shape
    told: dict[str, object] = {"colour_label": "gain", "signed": True} | options
    return HeatMap(
        matrix,
        [f"c{i}" for i in range(columns)],
        [f"r{i}" for i in range(rows)],
        "share",
        "start",
        **told,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("values", "signed", "limits"),
    [
        ([-1.0, 3.0], True, (-3.0, 3.0)),
        ([-4.0, 3.0], True, (-4.0, 4.0)),
        ([2.0, 3.0], True, (-3.0, 3.0)),
        ([-2.0, -3.0], True, (-3.0, 3.0)),
        ([2.0, 2.0], True, (-2.0, 2.0)),
        ([0.0, 0.0], True, (-0.5, 0.5)),
        ([np.nan, np.inf], True, (-0.5, 0.5)),
        ([np.nan, -2.0], True, (-2.0, 2.0)),
        ([-1.0, 3.0], False, (-1.0, 3.0)),
        ([2.0, 2.0], False, (1.5, 2.5)),
        ([np.nan, 2.0, 5.0], False, (2.0, 5.0)),
    ],
)
def test_own_limits_of_gains_lie_evenly_about_zero(
    values: list[float], signed: bool, limits: tuple[float, float]
) -> None:
    assert own_limits(signed_map(values, signed=signed)) == limits


def test_zero_is_the_middle_of_the_colours_in_both_drawings() -> None:
    panel = signed_map([[-1.0, 0.0], [0.25, np.nan]], notes=[(0, 0, "-"), (0, 1, "0")])
    drawn = static.draw_panel(panel)
    (mesh,) = drawn.axes[0].collections
    assert mesh.get_clim() == (-1.0, 1.0)
    assert mesh.get_cmap().name == style.SIGNED_COLOUR_MAP
    trace = interactive.figure(panel)["data"][0]
    assert (trace["zmin"], trace["zmax"]) == (-1.0, 1.0)
    assert trace["colorscale"] == style.colour_steps(True)
    plotly.graph_objects.Figure(interactive.figure(panel))
    json.dumps(interactive.figure(panel), allow_nan=False)
    plain = HeatMap(panel.values, panel.x, panel.y, "share", "start", "gain")
    assert static.draw_panel(plain).axes[0].collections[0].get_cmap().name == style.COLOUR_MAP
    assert interactive.figure(plain)["data"][0]["zmax"] == 0.25
    assert interactive.figure(plain)["data"][0]["colorscale"] == style.colour_steps(False)


def test_colour_steps_are_the_colour_map() -> None:
    for signed in (False, True):
        steps = style.colour_steps(signed)
        assert [place for place, _ in steps] == pytest.approx(np.linspace(0, 1, 17))
        for place, colour in (steps[0], steps[5], steps[-1]):
            exact = 255 * np.array(colormaps[style.colour_map(signed)](place)[:3])
            spelled = [float(part) for part in colour[4:-1].split(",")]
            assert colour.startswith("rgb(") and spelled == pytest.approx(exact, abs=0.51)
    assert style.colour_map(False) != style.colour_map(True)
    assert len(style.colour_steps(True, 5)) == 5
    # gains and losses of one size are equally far from the middle, which is nearly white
    ends = [np.array(colormaps[style.colour_map(True)](place)[:3]) for place in (0.0, 0.5, 1.0)]
    assert ends[1].min() > 0.95
    assert all(np.abs(end - ends[1]).max() > 0.5 for end in ends[::2])


def test_notes_are_readable_on_gains_too() -> None:
    values = np.array([-1.0, 0.0, 1.0])
    texts = [style.text_on_cell(value, -1.0, 1.0, signed=True) for value in values]
    assert texts == ["white", "black", "white"]
    panel = signed_map(values, notes=[(0, 0, "-"), (0, 1, "o"), (0, 2, "+")])
    notes = interactive.figure(panel)["layout"]["annotations"]
    assert [note["font"]["color"] for note in notes] == texts
    shown = {text.get_text(): text.get_color() for text in static.draw_panel(panel).axes[0].texts}
    assert [shown[sign] for sign in "-o+"] == texts


def test_gains_side_by_side_share_a_scale_about_zero() -> None:
    pair = toy.picture(signed_map([-1.0, 0.5]), signed_map([0.0, 3.0]), signed_map([np.nan]))
    assert colour_limits(pair) == {"gain": (-3.0, 3.0)}
    meshes = [
        axes.collections[0]
        for axes in static.draw_picture(pair).get_axes()
        if axes.get_xlabel() == "share" and axes.collections
    ]
    assert [mesh.get_clim() for mesh in meshes] == [(-3.0, 3.0)] * 2


@pytest.mark.parametrize("signed", [False, True])
def test_a_panel_without_variation_does_not_stretch_the_scale_of_its_neighbours(
    signed: bool,
) -> None:
    """Half a unit about a constant is for a picture in which nothing else gives a scale."""
    flat, other = signed_map([0.0, 0.0], signed=signed), signed_map([-0.01, 0.01], signed=signed)
    for panels in ((flat, other), (other, flat)):
        assert colour_limits(toy.picture(*panels))["gain"] == pytest.approx((-0.01, 0.01))
    assert colour_limits(toy.picture(flat, flat)) == {"gain": (-0.5, 0.5)}
