"""Lines over a heat map: in their place, cut at its edge, the same in both drawings."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import plotly.graph_objects
import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from PIL import Image

from rarefy.core.errors import UsageError
from rarefy.core.picture import Curve, HeatMap
from rarefy.report import interactive, static, style
from rarefy.report.overlay import axis_positions, overlay

X, Y = [0.1, 0.2, 0.3, 0.4], [10, 20, 30]


def heat_map(*curves: Curve, **options: Any) -> HeatMap:
    told: dict[str, Any] = {"x": X, "y": Y} | options
    x, y = told.pop("x"), told.pop("y")
    values = told.pop("values", np.zeros((len(y), len(x))))
    return HeatMap(values, x, y, "sigma", "K", "loss", curves=curves, **told)


def line(x: object, y: object, **options: Any) -> Curve:
    return Curve("line", np.asarray(x, dtype=float), np.asarray(y, dtype=float), **options)


# ---------------------------------------------------------------------------------- places


def test_cells_lie_at_whole_positions_and_the_rest_between() -> None:
    along = axis_positions([0.0, 1.0, 4.0, 5.0], "x")
    values = np.array([0.0, 1.0, 2.5, 4.0, 5.0, 5.5, -1.0])
    assert along.of(values) == pytest.approx([0, 1, 1.5, 2, 3, 3.5, -1])
    falling = axis_positions([5.0, 4.0, 1.0], "x")
    assert falling.of(np.array([5.0, 4.5, 1.0, 0.0])) == pytest.approx([0, 0.5, 2, 7 / 3])


def test_where_cells_follow_by_a_ratio_so_do_the_places_between() -> None:
    along = axis_positions([10, 100, 1000], "x")
    assert along.by_ratio
    assert along.of(np.array([10**1.5, 1e4])) == pytest.approx([0.5, 3])
    assert np.isnan(along.of(np.array([0.0, -1.0]))).all()
    assert not axis_positions([1, 2, 3, 4], "x").by_ratio
    assert not axis_positions([10, 20], "x").by_ratio, "two cells say nothing"


def test_one_cell_has_one_place() -> None:
    assert axis_positions([3], "x").of(np.array([3.0, 4.0])) == pytest.approx(
        [0, np.nan], nan_ok=True
    )
    drawn = overlay(heat_map(line([1, 1], [10, 30]), x=[1]))
    assert drawn[0].y == pytest.approx([0, 2])


@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=20, unique=True),
    st.booleans(),
    st.floats(0.01, 1e7),
)
def test_places_can_be_read_back(cells: list[int], falling: bool, value: float) -> None:
    along = axis_positions(sorted(cells, reverse=falling), "x")
    at = along.of(np.array([value]))
    if np.abs(at).max() < 1e3:  # far outside, rounding is all there is
        assert along.units(at) == pytest.approx([value], rel=1e-6, abs=1e-6 * max(cells))


@pytest.mark.parametrize("labels", [[1, 2, 2], [1, 3, 2], [3, 1, 2], [1, np.nan, 3], [1, np.inf]])
def test_an_axis_under_a_curve_rises_or_falls(labels: list[float]) -> None:
    panel = heat_map(line([1], [2]), x=labels)
    with pytest.raises(UsageError, match=r"x of heat map with curves=.* must rise all the way"):
        overlay(panel)


def test_a_curve_with_unequal_arrays_is_named() -> None:
    with pytest.raises(UsageError, match="y of curve 'line'"):
        overlay(heat_map(line([1, 2], [1, 2, 3])))


# ---------------------------------------------------------------------------------- curves


def test_a_curve_is_cut_where_it_crosses_the_edge() -> None:
    # K = 100 sigma + 5 enters at the left edge, sigma = 0.05, and leaves at the upper, K = 35
    (drawn,) = overlay(heat_map(line([0, 1], [5, 105])))
    assert drawn.x == pytest.approx([-0.5, 2])
    assert drawn.y == pytest.approx([0.0, 2.5])
    assert drawn.units is not None
    assert drawn.units[0] == pytest.approx([0.05, 0.3])
    assert drawn.units[1] == pytest.approx([10, 35])


def test_the_hyperbola_of_a_phase_diagram_lies_where_it_should() -> None:
    boundary = next(over for over in overlay(toy.phase_boundaries()) if "95" in over.label)
    assert boundary.units is not None
    sigma, keep = boundary.units
    assert keep[0] == pytest.approx(200.5), "cut half a cell above the last row"
    assert (boundary.y[0], boundary.x[-1]) == pytest.approx((198.5, 99.0))
    # between columns it is a chord; at columns exact
    assert keep[1:] == pytest.approx(95 / sigma[1:] ** 2)
    assert boundary.x[1:] == pytest.approx(100 * sigma[1:] - 1)
    assert boundary.y[1:] == pytest.approx(keep[1:] - 2)


def test_a_gap_or_a_way_out_and_back_splits_a_curve() -> None:
    (gap,) = overlay(heat_map(line([0.1, 0.2, np.nan, 0.3, 0.4], [10, 20, 20, 20, 30])))
    assert gap.x == pytest.approx([0, 1, np.nan, 2, 3], nan_ok=True)
    (out,) = overlay(heat_map(line([0.1, 0.2, 0.3, 0.4], [30, 50, 50, 30])))
    assert out.x == pytest.approx([0, 0.25, np.nan, 2.75, 3], nan_ok=True)
    assert out.y == pytest.approx([2, 2.5, np.nan, 2.5, 2], nan_ok=True)
    (through,) = overlay(heat_map(line([0.2, 0.2], [-100, 100])))
    assert through.y == pytest.approx([-0.5, 2.5]), "neither end lies on the map"
    assert through.x == pytest.approx([1, 1])


@given(st.lists(st.tuples(st.floats(-1, 2), st.floats(-50, 90)), min_size=2, max_size=30))
def test_nothing_is_drawn_outside_the_map(points: list[tuple[float, float]]) -> None:
    x, y = np.array(points).T
    for drawn in overlay(heat_map(line(x, y))):
        there = np.isfinite(drawn.x)
        assert (np.isfinite(drawn.y) == there).all()
        for positions, cells in ((drawn.x[there], 4), (drawn.y[there], 3)):
            assert positions.min() >= -0.5 - 1e-9
            assert positions.max() <= cells - 0.5 + 1e-9


def test_points_outside_are_left_out() -> None:
    (drawn,) = overlay(heat_map(line([0.1, 0.3, 0.9], [10, 25, 20], style="points")))
    assert drawn.x == pytest.approx([0, 2])
    assert drawn.y == pytest.approx([0, 1.5])


def test_a_curve_that_misses_the_map_is_not_named() -> None:
    panel = heat_map(line([0.1, 0.4], [100, 200]))
    assert overlay(panel) == []
    assert "xaxis2" not in interactive.figure(panel)["layout"]
    assert static.draw_panel(panel).legends == []


# ---------------------------------------------------------------------------------- levels


def test_a_level_line_lies_between_cells_and_reaches_the_edge() -> None:
    values = np.tile([0.0, 1.0, 2.0, 4.0], (3, 1))
    first, second = overlay(heat_map(values=values, levels=[0.5, 3]))
    assert first.label == "measured: 0.5" and second.label == "measured: 3"
    assert first.x == pytest.approx(np.full(len(first.x), 0.5))
    assert second.x == pytest.approx(np.full(len(second.x), 2.5))
    assert (first.y.min(), first.y.max()) == pytest.approx((-0.5, 2.5))
    assert (first.look.style, second.look.style) == ("solid", "dashed")
    assert first.thin


def test_levels_that_are_not_reached_or_have_no_values_give_no_line() -> None:
    values = np.tile([0.0, 1.0, 2.0, 4.0], (3, 1))
    assert overlay(heat_map(values=values, levels=[-1, 4, 5])) == []
    assert overlay(heat_map(values=np.full((3, 4), np.nan), levels=[0.5])) == []
    holes = np.where(np.arange(4) % 2 == 0, values, np.nan)
    assert overlay(heat_map(values=holes, levels=[1.5])) == [], "no two neighbours have values"
    (single,) = overlay(heat_map(values=values[:1], y=["only"], levels=[0.5]))
    assert single.x == pytest.approx(np.full(len(single.x), 0.5)), "one row, which has a name"


def test_single_cells_are_ringed_in_a_coarse_map_only() -> None:
    for size, rings in ((20, 1), (60, 0)):
        values = np.tile(np.arange(size, dtype=float), (size, 1))
        values[10, 3] = 18
        axis = list(range(size))
        (drawn,) = overlay(heat_map(values=values, x=axis, y=axis, levels=[12.5]))
        assert int(np.isnan(drawn.x).sum()) == rings
        assert np.nanmax(np.abs(drawn.x - 12.5)) < (10 if rings else 1e-9)


# ---------------------------------------------------------------------------------- drawings


def test_both_drawings_show_the_same_lines() -> None:
    panel = toy.phase_boundaries()
    lines = overlay(panel)
    labels = ["measured: 1", "K = 95 / σ²", "K = 20 / σ²"]
    assert [over.label for over in lines] == labels, "the third curve lies outside"
    drawn = static.draw_panel(panel)
    figure = interactive.figure(panel)
    plotly.graph_objects.Figure(figure)
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == labels
    shown = drawn.axes[0].get_lines()
    named = [trace for trace in figure["data"] if trace.get("showlegend")]
    assert [trace["name"] for trace in named] == labels
    for over, plotted, trace in zip(lines, shown, named, strict=True):
        assert plotted.get_xdata() == pytest.approx(over.x + 0.5, nan_ok=True)
        assert plotted.get_ydata() == pytest.approx(over.y + 0.5, nan_ok=True)
        assert plotted.get_color() == trace["line"]["color"] == over.look.colour
        numbers = np.array(trace["x"], dtype=float)
        assert numbers == pytest.approx(over.x, abs=0.01, nan_ok=True)
        assert (trace["xaxis"], trace["yaxis"]) == ("x2", "y2")
    assert [trace["line"]["dash"] for trace in named] == ["solid", "9px,9px", "solid"]
    assert [plotted.get_linestyle() for plotted in shown] == ["-", "--", "-"]
    assert named[2]["line"]["color"] == style.ROLES["minority"]
    assert drawn.axes[0].get_xlim() == (0, 100) and drawn.axes[0].get_ylim() == (0, 199)


def test_lines_have_an_outline_that_goes_with_the_page() -> None:
    traces = interactive.figure(toy.phase_boundaries())["data"][1:]
    for under, over in zip(traces[::2], traces[1::2], strict=True):
        assert under["x"] == over["x"] and under["legendgroup"] == over["legendgroup"]
        assert under["line"]["color"] == style.HALO
        assert under["line"]["width"] > over["line"]["width"] + 1
        assert under["meta"]["paper"] == over["meta"]["ink"]
        assert under["hoverinfo"] == "skip"
    png = static.as_png(static.draw_panel(toy.phase_boundaries()), dpi=100)
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)[:380, 60:420]
    assert (pixels.min(axis=2) > 250).sum() > 500, "white on the map"


def test_hovering_tells_a_curve_in_the_units_of_the_axes() -> None:
    trace = interactive.figure(toy.phase_boundaries())["data"][-1]
    assert trace["hovertemplate"] == (
        "<b>K = 20 / σ²</b><br>noise level σ<sub>p</sub>: %{customdata[0]:.4~g}"
        "<br>weights kept K: %{customdata[1]:.4~g}<extra></extra>"
    )
    assert trace["customdata"][-1] == pytest.approx([1.0, 20.0])
    level = interactive.figure(toy.phase_boundaries())["data"][2]
    assert level["hoverinfo"] == "skip", "the cell below speaks for itself"


@pytest.mark.parametrize("y", [[1, 2, 3], [3, 2, 1]])
def test_axes_of_the_lines_lie_over_those_of_the_map(y: list[int]) -> None:
    panel = heat_map(line([0.1, 0.4], [1, 3]), y=y)
    layout = interactive.figure(panel)["layout"]
    upward = y[0] == 1
    span = [-0.5, 2.5] if upward else [2.5, -0.5]
    assert layout["yaxis"]["range"] == layout["yaxis2"]["range"] == span
    assert layout["xaxis"]["range"] == layout["xaxis2"]["range"] == [-0.5, 3.5]
    assert (layout["xaxis2"]["overlaying"], layout["yaxis2"]["overlaying"]) == ("x", "y")
    assert "autorange" not in layout["yaxis"]
    low, high = static.draw_panel(panel).axes[0].get_ylim()
    assert (low < high) == upward, "numbers under a curve are a quantity and grow upward"


def test_points_over_a_map_are_markers_in_both() -> None:
    panel = heat_map(line([0.1, 0.3], [10, 25], style="points", role="minority"))
    under, over = interactive.figure(panel)["data"][1:]
    assert (over["mode"], over["marker"]["color"]) == ("markers", style.ROLES["minority"])
    assert under["marker"]["size"] > over["marker"]["size"]
    plotly.graph_objects.Figure(interactive.figure(panel))
    (shown,) = static.draw_panel(panel).axes[0].get_lines()
    assert (shown.get_linestyle(), shown.get_marker()) == ("None", "o")


def test_a_map_without_values_shows_no_lines() -> None:
    panel = heat_map(line([0.1, 0.3], [10, 25]), values=np.full((3, 4), np.nan), levels=[1])
    assert interactive.figure(panel)["data"] == []
    assert static.draw_panel(panel).axes[0].get_lines() == []


# ---------------------------------------------------------------------------------- weight


@pytest.mark.slow
def test_the_largest_map_stays_small() -> None:
    panel = toy.phase_boundaries()
    text = json.dumps(interactive.figure(panel), separators=(",", ":"), allow_nan=False)
    assert len(text) < 170_000
    assert len(interactive.gzip_base64(text)) < 75_000
    drawing = static.draw_panel(panel)
    small = static.as_small_webp(drawing, panel)
    assert len(small) < 40_000
    assert len(static.as_svg(drawing)) < 300_000
    pixels = np.asarray(Image.open(io.BytesIO(small)).convert("RGB"), dtype=float)
    for colour in (style.ROLES["minority"], "#fde725"):
        near = np.abs(pixels - 255 * np.array(to_rgb(colour))).max(axis=2) < 3
        assert near.sum() > 30, "curves and the rarest cells keep their colour"


@pytest.mark.parametrize(("low", "high", "step"), [(0, 4, 0.01), (100, 101, 0.01), (-3, 3, 0.01)])
def test_numbers_of_a_fine_map_are_as_fine_as_its_colours(
    low: float, high: float, step: float
) -> None:
    values = np.random.default_rng(0).uniform(low, high, (60, 50))
    shown = interactive.figure(heat_map(values=values, x=list(range(50)), y=list(range(60))))[
        "data"
    ][0]["z"]
    assert np.abs(np.array(shown) - values).max() <= step / 2 + 1e-9
    assert len(json.dumps(shown, separators=(",", ":"))) < 7 * values.size
    flat = heat_map(values=np.full((60, 50), 0.123456), x=list(range(50)), y=list(range(60)))
    assert interactive.figure(flat)["data"][0]["z"][0][0] == 0.123
