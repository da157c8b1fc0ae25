"""Much data.

Tests compare two sizes, in calls that are counted or in the time of this process alone, and never
look at seconds: four times as much may take eight times as long, where what is quadratic takes
sixteen times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rarefy.cli.scored_tables import classes_table
from rarefy.measure.influence import neighbours as nearby
from rarefy.measure.influence import work
from rarefy.measure.influence.rows import Rows
from rarefy.report.gallery import choice, write_gallery
from rarefy.tools.influence import neighbours
from rarefy.tools.influence.percentiles import percentiles
from rarefy.tools.influence.scored_samples import ScoredSamples
from rarefy.tools.influence.scoring import ScoreSettings, score_samples
from rarefy.tools.influence.triage import robust_deviation
from rarefy.tools.samples import tables
from rarefy.tools.samples.arrays import from_arrays

LINEAR = 8.0
"""What four times as much may take: 4 where all is linear, 16 where all is quadratic."""


def growth(made: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times as long four times as much takes; ``made`` makes what is timed. The least of
    three, because others use this machine too."""

    def least(size: int) -> float:
        run, found = made(size), []
        for _ in range(3):
            began = time.process_time()
            run()
            found.append(time.process_time() - began)
        return min(found)

    return least(4 * size) / least(size)


def classes_of_three(count: int, width: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(0).normal(size=(3 * count, width))
    return rows, np.repeat(np.arange(count), 3)


def scored(count: int, asked: int = 0) -> ScoredSamples:
    samples = from_arrays(*classes_of_three(count))
    return score_samples(samples, ScoreSettings(neighbours=asked, check_labels=False))


@pytest.mark.fault(
    when="a table has very many classes",
    then="ranks and robust spreads within classes take time by the number of samples alone",
    lost="nothing",
)
def test_d9_ranks_within_classes_are_linear() -> None:
    values, labels = np.random.default_rng(0).normal(size=60_000), np.arange(60_000)
    for function in (percentiles, robust_deviation):

        def made(few: int, function: Callable[..., Any] = function) -> Callable[[], object]:
            return lambda: function(values, labels % few)

        assert growth(made, 5_000) < 3, "the same samples in four times as many classes"


@pytest.mark.fault(
    when="the classes of a scored set are counted for the terminal",
    then="the table is gone through once a word, not once a class; twenty are printed",
    lost="nothing",
)
def test_d9_classes_are_counted_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    get = pd.DataFrame.__getitem__
    few, many = scored(30), scored(300)
    monkeypatch.setattr(
        pd.DataFrame, "__getitem__", lambda self, key: looks.append(key) or get(self, key)
    )
    assert len(few.by_class()) == 30
    before = len(looks)
    assert many.by_class()["samples"].tolist() == [3] * 300
    assert len(looks) <= 2 * before + 4, "there may be up to four words more"
    assert classes_table(many).row_count == 21


@pytest.mark.fault(
    when="pandas copies what is known about a table at each step",
    then="the names of its classes are not copied",
    lost="nothing",
)
def test_d9_names_of_classes_are_kept_once() -> None:
    table = scored(10).table
    again = table.assign(more=1).reset_index()
    assert again.attrs["classes"] is table.attrs["classes"]
    assert again.attrs["counts"] == [3] * 10


@pytest.mark.fault(
    when="typical samples are looked for in many classes",
    then="each class is searched alone, and the set is not gone through for each",
    lost="nothing",
)
def test_d9_typical_neighbours_read_the_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(
        nearby, "Rows", lambda features, *more: made.append(len(features)) or Rows(features, *more)
    )
    for count in (10, 40):
        rows, labels = classes_of_three(count)
        found = nearby.typical_neighbours(rows, labels, np.zeros(len(rows)), np.arange(len(rows)))
        assert (labels[found.indices[:, :2]] == labels[:, None]).all()
        assert (found.indices[:, 2:] == -1).all()
    assert made == [30, 30, 120, 120], "once for the space, once for all classes"


@pytest.mark.fault(
    when="there are more classes than samples among which neighbours are looked for (20,000)",
    then="neighbours are not asked for labels, and the table and the page say so",
    lost="what neighbours would say",
)
def test_d9_too_many_classes_are_not_asked_by_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "REFERENCE", 20)
    assert scored(20, asked=5).table["disagreement"].notna().all()
    found = scored(21, asked=5)
    assert found.table["disagreement"].isna().all()
    assert found.table.attrs["notes"] == ["21 classes are too many to ask neighbours for labels"]
    assert ("note", found.table.attrs["notes"][0]) in found.facts()
    assert "too many to ask" in str(classes_table(found).caption)


@pytest.mark.fault(
    when="work on many small classes is told to a progress bar",
    then="what is to be done in all is added up once",
    lost="nothing",
)
def test_d9_progress_adds_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[int] = []
    monkeypatch.setattr(work, "sum", lambda flops: sums.append(1) or sum(flops), raising=False)
    told: list[float] = []
    samples = from_arrays(*classes_of_three(50, width=4))
    score_samples(samples, ScoreSettings(neighbours=0, check_labels=False), progress=told.append)
    assert len(told) == 50
    assert sum(told) == pytest.approx(1)
    assert len(sums) == 1


@pytest.mark.fault(
    when="a gallery has more classes than a page can show",
    then="the largest are shown, the page says how many are left out and where they are, and it "
    "does not name the others",
    lost="small classes on the page; the table has them",
)
def test_d9_a_gallery_of_many_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MOST_SAMPLES", 90)
    sizes = [4] * 30 + [3] * 2970
    labels = np.repeat([f"class-{number}" for number in range(3000)], sizes)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"label": labels, "influence": rng.normal(size=len(labels))})
    names = [f"class-{number}" for number in range(3000)]
    report = write_gallery(tmp_path / "g.html", table, title="t", classes=names)
    page = (tmp_path / "g.html").read_text("utf-8")
    assert (report.classes, report.classes_shown) == (3000, 30)
    assert "The 30 largest of 3,000 classes are shown" in page
    assert "the other 2,970 are in the table of scores" in page
    assert "class-29" in page and "class-30" not in page.replace("class-300", "")


@pytest.mark.fault(
    when="a table has 100,000 columns",
    then="its names are compared once, not each with all others",
    lost="nothing",
)
def test_d9_columns_of_a_table_are_linear() -> None:
    def made(count: int) -> Callable[[], object]:
        names = [f"column {place}" for place in range(count)]
        table = pa.table({name: [0.5, 1.5] for name in names} | {"label": ["a", "b"]})

        def look() -> None:
            tables._check_columns(table.column_names, "label", None, None, "t")
            chosen, _ = tables.chosen_columns(table, "label", None, None, "t")
            assert chosen == names

        return look

    assert growth(made, 1_000) < LINEAR
