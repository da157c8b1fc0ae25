"""Both renderers: they draw what is there, say when nothing is, and take any label as text."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import numpy as np
import plotly.graph_objects
import pytest
import toy
from matplotlib.colors import to_rgb
from PIL import Image

from rarefy.core.errors import UsageError
from rarefy.core.picture import Curve, HeatMap, Lines
from rarefy.report import interactive, static, style
from rarefy.report.panel_data import (
    MOST_POINTS,
    grows_upward,
    prepare_lines,
    round_cells,
    shown_cells,
    tick_labels,
)

PANELS = [panel for picture in toy.PICTURES for panel in picture.panels]
NAN = np.full(5, np.nan)
BARE = [
    Lines([], "step", "loss"),
    Lines([Curve("nothing", NAN, NAN, NAN, NAN)], "step", "loss", y_log=True),
    Lines([Curve("zeros", np.arange(5), np.zeros(5))], "step", "loss", x_log=True, y_log=True),
    Lines([Curve("empty", np.empty(0), np.empty(0))], "step", "loss", marks=[(np.nan, "T1")]),
    HeatMap(np.full((2, 2), np.nan), [1, 2], [1, 2], "x", "y", "z", notes=[(0, 0, "?")]),
    HeatMap(np.empty((0, 0)), [], [], "x", "y", "z"),
]


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)


def inked(png: bytes, colour: str) -> int:
    """How many pixels have this colour, but for smoothing."""
    return int((np.abs(pixels(png) - 255 * np.array(to_rgb(colour))).max(axis=2) < 12).sum())


@pytest.mark.quick("Alignment", "Phase diagram", "Counts")
@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_panels_are_drawn_by_both(panel: Lines | HeatMap) -> None:
    png = static.as_png(static.draw_panel(panel), dpi=60)
    assert (pixels(png) < 250).any(axis=2).mean() > 0.03, "a blank page"
    assert static.as_svg(static.draw_panel(panel)).startswith(b"<?xml")
    drawn = interactive.figure(panel)
    plotly.graph_objects.Figure(drawn)  # raises for a property plotly does not know
    json.dumps(drawn, allow_nan=False)


@pytest.mark.parametrize("panel", BARE)
def test_no_data_is_said(panel: Lines | HeatMap) -> None:
    static.as_png(static.draw_panel(panel), dpi=40)
    assert "no values to show" in json.dumps(interactive.figure(panel), allow_nan=False)


def test_the_same_picture_gives_the_same_bytes() -> None:
    first, second = (static.as_svg(static.draw_panel(toy.crowded())) for _ in range(2))
    assert first == second


def test_a_whole_picture_on_one_sheet() -> None:
    sheet = pixels(static.as_png(static.draw_picture(toy.PICTURES[2]), dpi=40))
    assert sheet.shape[1] == 3 * style.PANEL_WIDTH * 40
    assert static.as_png(static.draw_picture(toy.picture()), dpi=40), "a picture without panels"


def test_a_role_has_one_colour_in_both() -> None:
    panel = toy.trajectories()
    png = static.as_png(static.draw_panel(panel), dpi=100)
    assert inked(png, style.ROLES["majority"]) > 100
    assert inked(png, style.GREEN) == 0
    traces = {trace.get("name"): trace for trace in interactive.figure(panel)["data"]}
    assert traces["minority"]["line"]["color"] == style.ROLES["minority"]
    assert traces["growth rate of (7)"]["line"]["dash"] == "9px,9px"
    assert traces["growth rate of (7)"]["meta"]["ink"], "black follows the page's text colour"
    x = np.arange(3.0)
    first = style.looks([Curve("a", x, x, role="a word of its own")])[0]
    again = style.looks([Curve("b", x, x), Curve("a", x, x, role="a word of its own")])[1]
    assert first.colour == again.colour
    ratios = [Curve("", x, x, role=f"NSR {ratio}") for ratio in range(6)]
    assert len({look.colour for look in style.looks(ratios)}) == 6, "no two words look alike"


def test_curves_of_one_role_can_be_told_apart() -> None:
    looks = style.looks(toy.crowded().curves)[:4]
    assert len({look.colour for look in looks}) == 4
    assert len({look.symbol for look in looks}) == 4
    assert looks[0].colour == style.ROLES["minority"]


def test_hover_names_the_values() -> None:
    trace = next(t for t in interactive.figure(toy.noise_levels())["data"] if "name" in t)
    assert trace["hovertemplate"] == (
        "<b>σ = 0.01</b><br>minority frequency ε<sub>min</sub>: %{x:.4~g}"
        "<br>maximal cosine: %{y:.4~g}"
        "<br>interval: %{customdata[0]:.4~g} to %{customdata[1]:.4~g}<extra></extra>"
    )
    assert trace["customdata"][0] == pytest.approx([0.195, 0.255])
    cell = interactive.figure(toy.cosines())["data"][0]
    assert "neuron: %{y}<br><b>squared cosine: %{z:.4~g}</b>" in cell["hovertemplate"]
    assert cell["z"][3][2] is None
    assert cell["x"][:2] == ["M1", "M2"]


def test_a_point_alone_shows_its_interval() -> None:
    one, two = (
        Lines(
            [Curve("a", np.arange(n) + 1.0, np.ones(n), np.zeros(n), np.full(n, 2.0))],
            "x",
            "y",
            x_log=True,
        )
        for n in (1, 2)
    )
    for panel, width in ((one, 2), (two, 0)):
        assert interactive.figure(panel)["data"][0]["line"]["width"] == width
    low, high = static.draw_panel(one).axes[0].get_ylim()
    assert low <= 0 and high >= 2


def test_log_axes_leave_zeros_out_and_count_them() -> None:
    shaped = prepare_lines(toy.crowded())
    assert shaped.hidden == 1
    measured = shaped.curves[4]
    assert np.isnan(measured.y[[0, 4]]).all()
    assert measured.low is not None
    assert np.nanmin(measured.low) > 0, "an interval down to zero ends at the picture's bottom"
    assert len(measured.band()) == 2, "the missing value splits the band"
    plain = Lines([Curve("a", np.arange(3), np.zeros(3))], "x", "y")
    assert prepare_lines(plain).hidden == 0
    assert not prepare_lines(plain).empty


@pytest.mark.parametrize(("top", "step"), [(3.0, "D1"), (100.0, "D2"), (1e4, 1), (1e20, 3)])
def test_log_axes_are_neither_bare_nor_crowded(top: float, step: object) -> None:
    x = np.array([1.0, top])
    panel = Lines([Curve("a", x, x)], "x", "y", x_log=True)
    assert interactive.figure(panel)["layout"]["xaxis"]["dtick"] == step
    drawn = static.draw_panel(panel)
    drawn.canvas.draw()
    low, high = drawn.axes[0].get_xlim()
    shown = [tick for tick in drawn.axes[0].get_xticks() if low <= tick <= high]
    assert 3 <= len(shown) <= 11


@pytest.mark.parametrize("logarithmic", [False, True])
def test_long_trajectories_are_thinned_between_their_ends(logarithmic: bool) -> None:
    x = np.arange(1, 50_001)
    (curve,) = prepare_lines(Lines([Curve("a", x, x)], "x", "y", x_log=logarithmic)).curves
    assert len(curve.x) <= MOST_POINTS
    assert (curve.x[0], curve.x[-1]) == (1, 50_000)
    assert (np.median(curve.x) < 5000) == logarithmic


def test_wrong_lengths_are_named() -> None:
    with pytest.raises(UsageError, match="y of curve 'a'"):
        prepare_lines(Lines([Curve("a", np.arange(3), np.arange(4))], "x", "y"))
    with pytest.raises(UsageError, match="heat map"):
        static.draw_panel(HeatMap(np.ones((2, 3)), [1, 2], [1, 2, 3], "x", "y", "z"))


def test_quantities_grow_upward_and_names_are_read_downward() -> None:
    assert grows_upward([0.1, 0.2, 0.5])
    assert not grows_upward(range(24))
    assert not grows_upward(["a", "b"])
    assert "autorange" not in interactive.figure(toy.phases())["layout"]["yaxis"]
    assert interactive.figure(toy.cosines())["layout"]["yaxis"]["autorange"] == "reversed"


def test_equal_labels_stay_two_columns() -> None:
    panel = HeatMap(np.eye(2), ["a", "a"], ["b", "b"], "x", "y", "z")
    assert len(set(interactive.figure(panel)["data"][0]["x"])) == 2
    assert tick_labels([0.12341, 0.12342]) == ["0.12341", "0.12342"]


def test_a_fine_axis_names_round_values() -> None:
    assert round_cells(list(np.arange(1, 101) / 100), 8) == [19, 39, 59, 79, 99]
    assert round_cells(list(range(2, 201)), 12) == list(range(18, 199, 20))
    assert round_cells(list(range(100, 0, -1)), 8) == list(range(0, 100, 20))
    for labels in (["a", "b"] * 30, [2.0**k for k in range(40)], [1.0] * 40, [0.1], []):
        assert round_cells(labels, 8) == []
    assert round_cells(list(np.linspace(0.013, 1, 60)), 8) == [], "no round value among them"
    panel = toy.phase_boundaries()
    names = interactive.figure(panel)["layout"]["xaxis"]["tickvals"]
    axes = static.draw_panel(panel).axes[0]
    assert names == ["0.2", "0.4", "0.6", "0.8", "1"]
    assert [text.get_text() for text in axes.get_xticklabels()] == names
    assert axes.get_yticks() == pytest.approx(np.arange(18, 199, 20) + 0.5)


HOSTILE = "<script>alert('1')</script> <a href='x'>%{y} $\\frac{$ _{"


def hostile_lines(text: str) -> Lines:
    x = np.arange(3.0)
    curves = [Curve(text, x, x), Curve("_hidden", x, x + 1)]
    return Lines(curves, text, text, text, marks=[(1.0, text)])


def hostile_heat_map(text: str) -> HeatMap:
    return HeatMap(np.eye(2), [text, 1], [text, 2], text, text, text, text, [(0, 0, text)])


@pytest.mark.parametrize("make", [hostile_lines, hostile_heat_map])
def test_labels_are_text(make: Callable[[str], Lines | HeatMap]) -> None:
    panel = make(HOSTILE)
    static.as_svg(static.draw_panel(panel))
    static.as_png(static.draw_picture(toy.picture(panel, name=HOSTILE)), dpi=40)
    figure = json.dumps(interactive.figure(panel))
    assert "<script" not in figure
    assert "<a " not in figure
    assert "%{y} " not in figure


def test_text_is_large_enough_for_a_phone() -> None:
    # 5 inches are 480 CSS pixels; on a 390 px phone the image is about 350 px wide
    smallest = min(
        value
        for name, value in style.MATPLOTLIB.items()
        if name.endswith("size") and name != "lines.markersize"
    )
    assert smallest * 96 / 72 * 350 / (96 * style.PANEL_WIDTH) >= 9.5
    assert style.FONT_PIXELS - 1 >= 11


def test_stagger_keeps_close_labels_apart() -> None:
    assert style.stagger(np.array([0.1, 0.12, 0.5]), 0.1) == [0, 1, 0]
    assert style.stagger(np.array([0.3, 0.1, 0.2]), 0.05) == [0, 0, 0]


@pytest.mark.parametrize(
    ("panels", "columns", "rows"),
    [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 2, 2), (5, 3, 2), (6, 3, 2)],
)
def test_four_panels_stand_two_by_two(panels: int, columns: int, rows: int) -> None:
    x = np.arange(3.0)
    every = [Lines([Curve(f"{i}", x, x)], "x", "y", f"panel {i}") for i in range(panels)]
    sheet = static.draw_picture(toy.picture(*every))
    width, height = sheet.get_size_inches()
    assert width == columns * style.PANEL_WIDTH
    assert height == pytest.approx(rows * style.LINES_HEIGHT + 0.5)
    titles = [axes.get_title(loc="left") for axes in sheet.get_axes()]
    assert titles == [f"panel {i}" for i in range(panels)]


def test_curves_keep_their_colours_in_a_small_bitmap() -> None:
    """Thin dashed ones too: chosen by how often they occur, two were given one between them."""
    share = np.linspace(0, 0.7, 5)
    curves = [
        Curve(
            role, share, 97 - place * share, 96 - place * share, 98 - place * share, role, "dashed"
        )
        for place, role in enumerate(("high", "low", "noise", "distance", "mahalanobis"))
    ]
    panel = Lines(curves, "share left out", "per cent right")
    small = static.as_small_webp(static.draw_panel(panel), panel)
    colours = [look.colour for look in style.looks(curves)]
    assert len(set(colours)) == 5
    for colour in colours:
        exact = (pixels(small) == np.round(255 * np.array(to_rgb(colour)))).all(axis=2)
        assert exact.sum() > 100, colour


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    x, y = np.arange(4.0), np.array([0.0, 0.02, 0.5, 0.99])
    half = np.array([0.0, 0.1, 0.05, 0.2])
    curve = Curve("", x, y, y - half, y + half)

    def drawn(label: str) -> tuple[np.ndarray, np.ndarray]:
        (shaped,) = prepare_lines(Lines([curve], "x", label)).curves
        assert shaped.low is not None and shaped.high is not None
        return shaped.low, shaped.high

    low, high = drawn("test accuracy")
    assert (low >= 0).all() and (high <= 1).all()
    assert (low <= y).all() and (y <= high).all() and (low[1:] < y[1:]).all()
    assert low[2] == pytest.approx(0.45, abs=0.001), "in the middle it is Student's"
    for label in ("test loss", "accuracy gain", "error, pruned over dense"):
        assert drawn(label)[0] == pytest.approx(y - half), "what is no share may leave the range"


def test_curves_that_lie_on_each_other_both_show() -> None:
    x = np.arange(10.0)
    curves = [Curve("a", x, x), Curve("b", x, x + 0.01), Curve("c", x, 9 - x)]
    panel = Lines(curves, "x", "y")
    assert prepare_lines(panel).together == [("a", "b")]
    below, above, apart = static.draw_panel(panel).axes[0].get_lines()
    assert below.get_linewidth() > above.get_linewidth() == apart.get_linewidth()
    traces = interactive.figure(panel)["data"]
    assert traces[0]["line"]["width"] > traces[1]["line"]["width"]


def test_few_cells_are_all_named_and_many_evenly() -> None:
    names = [f"{0.001 * 3**power:.4g}" for power in range(7)]
    panel = HeatMap(np.ones((2, 7)), names, [1, 2], "x", "y", "z")
    assert interactive.figure(panel)["layout"]["xaxis"]["tickvals"] == names
    texts = static.draw_panel(panel).axes[0].get_xticklabels()
    assert [text.get_text() for text in texts] == names
    assert shown_cells([2.0**power for power in range(40)], 8) == list(range(0, 40, 5))
