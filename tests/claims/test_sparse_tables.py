"""Tables and pictures of the sparse-training studies say what is in the results, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sparse_results import made

from rarefy.core.picture import HeatMap, Lines, Table
from rarefy.report.interactive import figure
from rarefy.report.static import draw_panel
from rarefy.studies import get_study

NAMES = ("sparse-mnist", "sparse-cifar100-noise", "sparse-vit-mnist")
STUDIES: Any = [get_study(name) for name in NAMES]
"""(sparse-cifar10 is judged and drawn by the code of sparse-mnist)"""
SparseMnist, SparseCifar100Noise, SparseVitMnist = STUDIES
TWO = {"update": ("project", "dense"), "noise_resampling": ("fresh", "once")}
CURVE = SparseMnist.at("paper", seeds=4, **TWO)
NOISE = (0.0, 0.5, 5.0)
GRID = SparseCifar100Noise.at("paper", noise=NOISE, test_noise=NOISE, keep=(1.0, 0.8, 0.1), seeds=4)
DIGITS = SparseCifar100Noise.at("quick", seeds=4)


def gain(noise: float, test_noise: float, keep: float) -> float:
    return 0.7 if keep >= 0.2 else -1.5


def entry(table: Table, column: str, **where: str) -> object:
    """The entry of a column in the row with these others; a column is named by how it begins."""
    places = {name: _place(table, name.replace("_", " ")) for name in where}
    (row,) = [row for row in table.rows if all(row[places[n]] == v for n, v in where.items())]
    return row[_place(table, column)]


def _place(table: Table, begins: str) -> int:
    return next(i for i, name in enumerate(table.columns) if name.startswith(begins))


# -------------------------------------------------------------------------------------------- curve


def test_the_curve_has_a_row_for_every_reading_and_keep() -> None:
    (table,) = CURVE.tables(made(CURVE, gain))
    assert len(table.rows) == 2 * 2 * len(CURVE.keep)
    at = {"reading": "project, noise drawn once", "keep": "0.5"}
    assert str(entry(table, "less dense without noise", **at)).startswith("+0.7")
    assert str(entry(table, "less dense without noise", **at)).endswith("]*")
    assert entry(table, "training accuracy", **at) == "92.50"
    assert entry(table, "n", **at) == 4
    assert entry(table, "less dense without noise", **{**at, "keep": "1"}) == "–"


def test_training_scores_are_those_of_the_last_epoch() -> None:
    """With the noise as it was shown; new noise would hide what was memorised."""
    study = SparseMnist.at("tiny", seeds=3)
    data = made(study, spread=0.0)
    for name, values in {"accuracy": (0.2, 0.9), "loss": (3.0, 0.25)}.items():
        data[f"epoch_{name}"][:] = xr.DataArray(list(values), dims="epoch")
        data[f"train_{name}"][:] = 0.111
    (table,) = study.tables(data)
    assert entry(table, "training accuracy", keep="0.5") == "90.00"
    assert entry(table, "training loss", keep="0.5") == "0.2500"
    panels = {panel.title: panel for panel in study.picture(data)[0].panels}
    for title, value in {"Training accuracy": 90.0, "Training loss": 0.25}.items():
        panel = panels[title]
        assert isinstance(panel, Lines)
        np.testing.assert_allclose(panel.curves[0].y, value)


def test_the_test_with_noise_is_in_the_table_beside_that_without() -> None:
    study = SparseMnist.at("tiny", seeds=3)
    data = made(study, lambda noise, test, keep: 10 * test)
    (table,) = study.tables(data)
    assert "reading" not in table.columns
    noisy = float(str(entry(table, "less dense at noise 0.1", keep="0.5")).split()[0])
    assert noisy == pytest.approx(1.0, abs=0.05)
    assert abs(float(str(entry(table, "less dense without", keep="0.5")).split()[0])) < 0.05
    (alone,) = study.tables(data.isel(test_noise=[0]))
    assert not any("at noise" in name for name in alone.columns)


def test_one_seed_is_marked_and_two_are_not_believed() -> None:
    data, at = made(CURVE, gain), {"reading": "dense update, noise drawn anew", "keep": "0.3"}
    (alone,) = CURVE.tables(data.isel(seed=[0]))
    assert str(entry(alone, "less dense without", **at)).endswith("†")
    (two,) = CURVE.tables(data.isel(seed=[0, 1]))
    assert str(entry(two, "less dense without", **at)).endswith("]")


def test_curves_have_their_bands_and_keeps_that_rise() -> None:
    first, second = CURVE.picture(made(CURVE, gain))
    assert [panel.title for panel in first.panels][0] == "Test accuracy"
    panel = first.panels[0]
    assert isinstance(panel, Lines) and len(panel.curves) == 4 and panel.x_log
    curve = panel.curves[0]
    assert (np.diff(curve.x) > 0).all() and curve.low is not None
    assert curve.y[-1] == pytest.approx(curve.y[-2] - 0.7, abs=0.1)  # dense is the last
    close = first.panels[1]
    assert isinstance(close, Lines) and len(close.curves) == 5
    np.testing.assert_allclose(close.curves[0].y, 0.7, atol=0.05)
    assert close.curves[0].x.min() == 0.3
    assert len(second.panels) == 4


# --------------------------------------------------------------------------------------------- grid


def test_ours_stands_beside_the_published() -> None:
    (table,) = GRID.tables(made(GRID, gain, spread=0.1))
    assert len(table.rows) == 3 * len(NOISE) * 2
    at = {"noise": "noise in training and test", "std": "5", "keep": "0.1"}
    assert entry(table, "published difference", **at) == "+1.07"
    assert entry(table, "published dense", **at) == "14.98"
    assert str(entry(table, "less dense", **at)).startswith("-1.")
    assert str(entry(table, "less dense", **at)).endswith("]*")
    assert {row[-1] for row in table.rows} == {4}


def test_for_other_images_the_published_numbers_stay_away() -> None:
    (table,) = DIGITS.tables(made(DIGITS, gain))
    assert {row[_place(table, "published difference")] for row in table.rows} == {"–"}
    assert "for cifar100" in table.caption


def test_maps_show_gains_and_stars() -> None:
    data = made(GRID, gain, spread=0.1)
    data["test_accuracy"].loc[{"noise": 0.5, "seed": slice(1, None)}] = np.nan
    pictures = {picture.name: picture for picture in GRID.picture(data)}
    assert list(pictures) == ["gain", "map", "learnt"]
    panel = pictures["map"].panels[0]
    assert isinstance(panel, HeatMap) and panel.signed
    np.testing.assert_allclose(panel.values[:, 0], 0.7, atol=0.3)
    assert {(row, column) for row, column, _ in panel.notes} == {(0, 0), (0, 1), (2, 0), (2, 1)}
    lines = [panel for panel in pictures["gain"].panels if isinstance(panel, Lines)]
    assert [panel.title for panel in lines] == ["moderate noise", "extreme noise"]
    styles = {curve.style for panel in lines for curve in panel.curves}
    assert styles == {"solid", "dotted"}
    (learnt,) = pictures["learnt"].panels
    assert isinstance(learnt, Lines) and len(learnt.curves) == len(NOISE)
    np.testing.assert_allclose(learnt.curves[0].y, 95.0, atol=0.1)


# ------------------------------------------------------------------------------------ bad or little


def thinned(data: xr.Dataset) -> list[xr.Dataset]:
    """The same with much missing."""
    some, none = data.copy(deep=True), xr.full_like(data, np.nan)
    generator = np.random.default_rng(5)
    lost = xr.DataArray(
        generator.random([data.sizes[name] for name in ("noise", "keep", "seed")]) < 0.5,
        dims=("noise", "keep", "seed"),
    )
    some = some.where(~lost)
    found = [data, some, none, data.isel(seed=[0]), data.isel(noise=[0]), data.isel(keep=[0])]
    found += [data.isel(keep=[0, 1]), data.isel(test_noise=[0])]
    return [*found, data.isel(test_noise=[-1]), data.isel(noise=[-1], test_noise=[0], seed=[0])]


@pytest.mark.quick("SparseMnist", "SparseVitMnist")
@pytest.mark.parametrize("kind", STUDIES)
def test_nothing_breaks_where_cells_are_missing(kind: Any) -> None:
    study = kind.at("quick", seeds=3, keep=(1.0, 0.8, 0.5, 0.1))
    for data in thinned(made(study, gain, spread=0.2)):
        verdicts = study.verdicts(data, "quick")
        assert {each.about for each in verdicts} <= set(study.claims)
        assert len({each.identity for each in verdicts}) == len(verdicts)
        for each in verdicts:
            assert each.n > 0 or each.outcome in ("inconclusive", "premise-not-met")
            assert each.setting and each.predicted and each.measured and each.tolerance
        for table in study.tables(data):
            assert table.rows and all(len(row) == len(table.columns) for row in table.rows)
            assert not any("nan" in str(value) for row in table.rows for value in row)
        pictures = study.picture(data)
        assert len({picture.name for picture in pictures}) == len(pictures)


@pytest.mark.parametrize("kind", STUDIES[:2])
def test_pictures_can_be_drawn(kind: Any) -> None:
    study = kind.at("tiny")
    for picture in study.picture(made(study, gain)):
        assert picture.title and picture.caption and picture.panels
        for panel in picture.panels:
            draw_panel(panel).clear()
            figure(panel)


def test_several_readings_of_a_grid_are_told_apart() -> None:
    study = SparseVitMnist.at("tiny", update=("project", "dense"), keep=(1.0, 0.8, 0.1))
    data = made(study, gain)
    (table,) = study.tables(data)
    assert {str(row[0]).partition(",")[0] for row in table.rows} == {"project", "dense update"}
    pictures = [picture.name for picture in study.picture(data)]
    assert len(set(pictures)) == len(pictures) == 2 * 2 + 1
    verdicts = study.verdicts(data, "tiny")
    assert sum(each.setting.startswith("project: ") for each in verdicts) == 3 * 4
