"""Galleries of unusual tables: no images, few columns, one class, broken files, odd names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from toy_scores import Page, digit, four, scores

from rarefy.report.gallery import write_gallery


def test_a_table_without_images_has_names_and_values(tmp_path: Path) -> None:
    table = scores({"a": 9, "b": 6})
    names = ("height", "girth", "age", "rings", "leaves")
    values = np.random.default_rng(1).normal(size=(15, 5))
    values[4, 1] = np.nan
    values[:, 4] = 3.0
    values[7] = [*values[table["label"] == table["label"][7]].mean(axis=0)[:4], 99.0]
    report = write_gallery(
        tmp_path / "g.html",
        table,
        title="columns",
        classes=("a", "b"),
        columns=lambda row: list(zip(names, values[row], strict=True)),
    )
    page = Page.read(tmp_path / "g.html")
    assert report.pictures == 0 and report.shown == 15
    told = page.numbers["columns"]
    assert told["names"] == list(names)
    assert told["values"] == [[four(value) for value in values[row]] for row in range(15)]
    for number, name in enumerate(("a", "b")):
        usual = np.nanmedian(values[table["label"] == name], axis=0)
        assert told["usual"][str(number)] == [four(value) for value in usual]
    for row in range(15):
        mine = values[table["label"] == table["label"][row]]
        middle = np.nanmedian(mine, axis=0)
        spread = np.nanmedian(np.abs(mine - middle), axis=0)[:4]
        far = np.nan_to_num(np.abs(values[row] - middle)[:4] / spread, nan=-1.0)
        expected = np.argsort(-far, kind="stable").tolist()
        if row == 7:
            expected = [4, *expected]
        assert told["told"][row] == expected[:4]
    assert "leaves 99" in page.text, "what never varies elsewhere is the oddest"


def test_bare_numbers_make_a_page(tmp_path: Path) -> None:
    table = scores({"a": 9, "b": 6})[["label", "influence"]]
    report = write_gallery(tmp_path / "g.html", table, title="bare", classes=("a", "b"))
    page = Page.read(tmp_path / "g.html")
    assert report.pictures == 0
    assert not page.pictures
    assert list(page.numbers["numbers"]) == ["influence"]
    assert page.numbers["id"] == [str(row) for row in range(15)]
    assert "sample 3, influence" in page.text
    highest = page.numbers["percentiles"]["influence"]
    assert max(highest) == 100 and min(highest) == 0


def test_a_column_without_values_is_left_out(tmp_path: Path) -> None:
    table = scores({"a": 9, "b": 6}).assign(disagreement=np.nan, triage="")
    write_gallery(tmp_path / "g.html", table, title="t", classes=("a", "b"))
    page = Page.read(tmp_path / "g.html")
    assert [name for name, *_ in page.numbers["measures"]] == [
        "influence",
        "distance",
        "mahalanobis",
    ]
    assert "Triage" not in page.text and "Map" not in page.text


def test_one_class_is_a_page(tmp_path: Path) -> None:
    write_gallery(tmp_path / "g.html", scores({"a": 9}), title="t", classes=("a",))
    page = Page.read(tmp_path / "g.html")
    assert len(page.all("section", "card")) == 1


def test_a_class_with_an_empty_name_can_be_seen(tmp_path: Path) -> None:
    write_gallery(tmp_path / "g.html", scores({"": 9, "b": 4}), title="t", classes=("", "b"))
    assert "(no name)" in Page.read(tmp_path / "g.html").text


def test_images_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    def broken(row: int) -> np.ndarray:
        if row in (2, 5):
            raise OSError("truncated")
        return digit(row)

    table = scores({"a": 9, "b": 6})
    report = write_gallery(
        tmp_path / "g.html", table, title="t", classes=("a", "b"), thumbnail=broken
    )
    page = Page.read(tmp_path / "g.html")
    assert report.unreadable == (2, 5)
    assert report.pictures == 13
    assert "2 pictures could not be read." in page.text
    assert {page.numbers["index"][place] for place in page.pictures} == set(range(15)) - {2, 5}
