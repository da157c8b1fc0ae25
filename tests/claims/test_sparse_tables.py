"""Tables and pictures of the sparse-training studies say what is in the results, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sparse_results import made

from rarefy.core.errors import UsageError
from rarefy.core.picture import HeatMap, Lines, Table
from rarefy.report.interactive import figure
from rarefy.report.static import draw_panel
from rarefy.studies import get_study

NAMES = ("sparse-mnist", "sparse-cifar100-noise", "sparse-vit-mnist")
STUDIES: Any = [get_study(name) for name in NAMES]
"""(sparse-cifar10 is judged and drawn by the code of sparse-mnist)"""
SparseMnist, SparseCifar100Noise, SparseVitMnist = STUDIES
CURVE = SparseMnist.at("paper", seeds=4)
GRID = SparseCifar100Noise.at("paper", update=("project",), seeds=4)
DIGITS = SparseCifar100Noise.at("quick", seeds=4)
NOISE, KEEP = GRID.noise, GRID.keep


def gain(noise: float, test_noise: float, keep: float) -> float:
    return 0.7 if keep >= 0.2 else -1.5


def named(tables: list[Table], name: str) -> Table:
    (one,) = [table for table in tables if table.name == name]
    return one


def entry(table: Table, column: str, **where: str) -> object:
    """The entry of a column in the row with these others; a column is named by how it begins."""
    places = {name: _place(table, name.replace("_", " ")) for name in where}
    (row,) = [row for row in table.rows if all(row[places[n]] == v for n, v in where.items())]
    return row[_place(table, column)]


def _place(table: Table, begins: str) -> int:
    return next(i for i, name in enumerate(table.columns) if name.startswith(begins))


# -------------------------------------------------------------------------------------------- curve


def test_the_curve_has_a_row_for_every_reading_and_keep() -> None:
    table = named(CURVE.tables(made(CURVE, gain)), "kept")
    assert len(table.rows) == 2 * 2 * len(CURVE.keep)
    at = {"reading": "project, noise drawn once", "keep": "0.5"}
    assert str(entry(table, "less dense without noise", **at)).startswith("+0.7")
    assert str(entry(table, "less dense without noise", **at)).endswith("]*")
    assert entry(table, "training accuracy", **at) == "92.50"
    assert entry(table, "n", **at) == 4
    dense = {**at, "keep": "1"}
    assert entry(table, "less dense without noise", **dense) == "–"
    # 4 readings, 8 keeps below 1, 2 test noises: all are apart from 0 here
    assert "64 of 64, where chance alone would give 3.2" in table.caption


def test_training_scores_are_those_of_the_last_epoch() -> None:
    """With the noise as it was shown; new noise would hide what was memorised."""
    study = SparseMnist.at("tiny", seeds=3)
    data = made(study, spread=0.0)
    for name, values in {"accuracy": (0.2, 0.9), "loss": (3.0, 0.25)}.items():
        data[f"epoch_{name}"][:] = xr.DataArray(list(values), dims="epoch")
        data[f"train_{name}"][:] = 0.111
    table = named(study.tables(data), "kept")
    assert entry(table, "training accuracy", keep="0.5") == "90.00"
    assert entry(table, "training loss", keep="0.5") == "0.2500"
    assert "over the last epoch" in table.caption
    panels = {panel.title: panel for panel in study.picture(data)[0].panels}
    for title, value in {"Training accuracy": 90.0, "Training loss": 0.25}.items():
        panel = panels[title]
        assert isinstance(panel, Lines)
        np.testing.assert_allclose(panel.curves[0].y, value)


def test_the_test_with_noise_is_in_the_table_beside_that_without() -> None:
    study = SparseMnist.at("tiny", seeds=3)
    data = made(study, lambda noise, test, keep: 10 * test)
    table = named(study.tables(data), "kept")
    assert "reading" not in table.columns
    noisy = float(str(entry(table, "less dense at noise 0.1", keep="0.5")).split()[0])
    assert noisy == pytest.approx(1.0, abs=0.05)
    assert abs(float(str(entry(table, "less dense without", keep="0.5")).split()[0])) < 0.05
    alone = named(study.tables(data.isel(test_noise=[0])), "kept")
    assert not any("at noise" in name for name in alone.columns)


def test_one_seed_is_marked_and_has_no_interval() -> None:
    table = named(CURVE.tables(made(CURVE, gain).isel(seed=[0])), "kept")
    at = {"reading": "dense update, noise drawn anew", "keep": "0.3"}
    assert str(entry(table, "less dense without", **at)).endswith("†")
    assert "one seed" in table.caption and "0 of 0" in table.caption


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
    assert close.curves[0].x.min() == 0.2
    assert len(second.panels) == 4


# --------------------------------------------------------------------------------------------- grid


def test_ours_stands_beside_the_published() -> None:
    tables = GRID.tables(made(GRID, gain, spread=0.1))
    table = named(tables, "beside-both")
    assert len(table.rows) == len(NOISE) * (len(KEEP) - 1)
    at = {"noise_std": "5", "keep": "0.1"}
    assert entry(table, "published difference", **at) == "+1.07"
    assert entry(table, "published dense", **at) == "14.98"
    assert str(entry(table, "difference", **at)).startswith("-1.")
    assert entry(table, "ours apart", **at) == entry(table, "the same, pooled", **at) == "yes"
    # seeds of these results differ by a point, far more than pairs do: 1.07 could be chance
    assert entry(table, "theirs apart", **at) == "no"
    assert {"beside-training", "beside-test", "matrix-both"} <= {each.name for each in tables}


def test_theirs_are_told_from_chance_where_trainings_hardly_differ() -> None:
    data = made(GRID, gain, spread=0.1)
    data["test_accuracy"] = data["test_accuracy"] - data["test_accuracy"].mean(
        [name for name in data["test_accuracy"].dims if name != "seed"]
    )
    table = named(GRID.tables(data), "beside-both")
    assert entry(table, "theirs apart", noise_std="5", keep="0.1") == "yes"
    assert entry(table, "theirs apart", noise_std="10", keep="0.5") == "no"  # 0.02 points
    rows = named(GRID.tables(data), "apart").rows
    (row,) = [r for r in rows if r[:3] == ("noise in training and test", "moderate", "0.8")]
    assert row[3:] == ("6 of 6", "6 of 6", "6 of 6", "0.3")


def test_for_other_images_the_published_numbers_stay_away() -> None:
    tables = DIGITS.tables(made(DIGITS, gain))
    table = named(tables, "beside-both")
    assert {row[table.columns.index("published difference")] for row in table.rows} == {"–"}
    assert "are for cifar100" in table.caption
    assert "which" not in {each.name for each in tables}


def test_the_matrix_is_laid_out_as_in_the_paper() -> None:
    data = made(GRID, gain, spread=0.0)
    data["test_accuracy"].loc[{"noise": 0.1, "seed": slice(1, None)}] = np.nan
    table = named(GRID.tables(data), "matrix-both")
    assert list(table.columns) == ["noise std", "dense", *(f"keep {keep:g}" for keep in KEEP[1:])]
    assert [row[0] for row in table.rows] == [f"{noise:g}" for noise in NOISE]
    assert "(+0.70 ±0.00)*" in str(entry(table, "keep 0.8", noise_std="0.2"))
    assert str(entry(table, "dense", noise_std="0.1")).endswith("†")
    assert "(+0.70†)" in str(entry(table, "keep 0.8", noise_std="0.1"))


def test_the_reading_nearest_to_the_paper_has_the_smallest_distance() -> None:
    data = made(GRID, spread=0.0)
    shown = named(GRID.tables(data), "which")
    theirs = {row[0]: float(str(row[1])) for row in shown.rows if row[1] != "–"}
    for noise in NOISE:
        for test in NOISE:
            level = theirs[f"{test:g}"] if noise == 0 else 50.0
            data["test_accuracy"].loc[{"noise": noise, "test_noise": test}] = level / 100
    table = named(GRID.tables(data), "which")
    far = {row[0]: row[2:] for row in table.rows if str(row[0]).startswith("distance")}
    assert set(far) == {"distance, moderate", "distance, extreme"}
    place = list(table.columns[2:]).index("noise in the test only")
    assert {row[place] for row in far.values()} == {"0.00"}
    assert all(float(str(value)) > 5 for row in far.values() for value in np.delete(row, place))
    assert entry(table, "002 Table 1", noise_std="0.3") == "51.93"


def test_maps_show_gains_and_stars() -> None:
    data = made(GRID, gain, spread=0.1)
    data["test_accuracy"].loc[{"noise": 0.1, "seed": slice(1, None)}] = np.nan
    pictures = {picture.name: picture for picture in GRID.picture(data)}
    assert list(pictures) == [
        *["gain-both", "gain-training", "gain-adapted", "gain-test"],
        *["map", "transfer"],
    ]
    panel = pictures["map"].panels[0]
    assert isinstance(panel, HeatMap) and panel.signed
    np.testing.assert_allclose(panel.values[:, 0], 0.7, atol=0.3)
    notes = {(row, column): text for row, column, text in panel.notes}
    assert notes[1, 0] == "†" and notes[0, 0] == "*" and len(notes) == 12 * 4
    lines = [panel for panel in pictures["gain-both"].panels if isinstance(panel, Lines)]
    styles = {curve.style for panel in lines for curve in panel.curves}
    assert styles == {"solid", "dotted"}
    transfer = pictures["transfer"].panels[0]
    assert isinstance(transfer, HeatMap)
    expected = 100 * data["test_accuracy"].sel(keep=1.0, noise=5.0, test_noise=0.3).mean()
    assert transfer.values[6, 3] == pytest.approx(float(expected))


# ------------------------------------------------------------------------------------------- advice


def test_advice_stands_beside_the_measured_best() -> None:
    data = made(GRID, lambda noise, test, keep: 1.0 if keep == 0.3 else -1.0, advised=(0.2, 0.6))
    table = named(GRID.tables(data), "advice")
    assert len(table.rows) == len(NOISE)
    assert entry(table, "advised", setting="noise 0.3") == "0.2 to 0.6"
    assert entry(table, "of those trained", setting="noise 0.3") == "0.5, 0.3"
    assert entry(table, "best keep", setting="noise 0.3") == "0.3"
    assert entry(table, "right", setting="noise 0.3") == "yes"
    assert entry(table, "chance", setting="noise 0.3") == "0.40"
    gained = str(entry(table, "advised less dense", setting="noise 0.3"))  # of 0.5 and 0.3
    assert float(gained.split()[0]) == pytest.approx(0.0, abs=0.02)
    for advised, words in ((None, "no signal seen"), ((0.6, 0.2), "none (0.6 to 0.2 is crossed)")):
        other = named(GRID.tables(made(GRID, gain, advised=advised)), "advice")
        assert entry(other, "advised", setting="noise 5") == words
    assert not [t for t in GRID.tables(data.drop_vars("advised_low")) if t.name == "advice"]


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
    found += [data.isel(keep=[0, 1]), data.isel(keep=slice(1, None)), data.isel(test_noise=[0])]
    return [*found, data.isel(test_noise=[-1]), data.isel(noise=[-1], test_noise=[0], seed=[0])]


@pytest.mark.parametrize("kind", STUDIES)
def test_nothing_breaks_where_cells_are_missing(kind: Any) -> None:
    study = kind.at("quick", seeds=3, noise_resampling=("fresh",), keep=(1.0, 0.5, 0.1))
    for data in thinned(made(study, gain, spread=0.2)):
        verdicts = study.verdicts(data, "quick")
        assert {each.claim for each in verdicts} == set(study.claims)
        assert len({each.identity for each in verdicts}) == len(verdicts)
        for each in verdicts:
            assert each.n > 0 or each.outcome in ("inconclusive", "not-run")
            assert each.setting and each.predicted and each.measured and each.tolerance
        tables = study.tables(data)
        assert len({table.name for table in tables}) == len(tables)
        for table in tables:
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


@pytest.mark.parametrize("kind", [SparseCifar100Noise, SparseVitMnist])
def test_the_scales_of_the_tables_of_the_paper(kind: Any) -> None:
    """The rule of the paper, noise in units of the pixels' std; beside it another unit, other
    rules."""
    found = {scale: kind.at(scale).parameters() for scale in ("quick", "paper", "pixel", "rules")}
    units = {scale: values["noise_unit"] for scale, values in found.items()}
    assert units == {"quick": "pixel", "paper": "std", "pixel": "pixel", "rules": "std"}
    rules = found.pop("rules")
    assert {values["update"] for values in found.values()} == {("project",)}
    assert found["pixel"]["noise"] == found["paper"]["noise"] == NOISE
    assert rules["noise"] == rules["test_noise"] == (0.0, 0.5) and rules["keep"] == (1.0, 0.1)
    assert len(set(rules["update"])) == 7 and rules["update"][0] == "project"


def test_other_rules_are_readings_with_verdicts_and_tables_of_their_own() -> None:
    study = SparseCifar100Noise.at("rules", seeds=3)
    data = made(study, gain)
    verdicts = study.verdicts(data, "rules")
    assert len({each.identity for each in verdicts}) == len(verdicts)
    for rule in study.update:
        words = "dense update" if rule == "dense" else rule
        assert any(each.setting.startswith(f"{words}: noise in training and") for each in verdicts)
    assert "matrix-both-6" in {table.name for table in study.tables(data)}


@pytest.mark.parametrize("words", ["project+globl", "project+once", "global"])
def test_a_rule_that_cannot_be_is_told_before_anything_is_run(words: str) -> None:
    with pytest.raises(UsageError, match="update='"):
        SparseCifar100Noise.at("tiny", update=(words,))


def test_several_readings_of_a_grid_are_told_apart() -> None:
    study = SparseVitMnist.at("tiny", update=("project", "dense"), keep=(1.0, 0.5, 0.1))
    data = made(study, gain)
    names = [table.name for table in study.tables(data)]
    assert {"matrix-both-0", "matrix-both-1"} <= set(names) and len(set(names)) == len(names)
    pictures = [picture.name for picture in study.picture(data)]
    assert len(set(pictures)) == len(pictures) == 2 * 6
    verdicts = study.verdicts(data, "tiny")
    assert sum(each.setting.startswith("project: ") for each in verdicts) == 4 * 5
