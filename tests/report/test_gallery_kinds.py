"""Galleries of unusual tables: no images, few columns, one class, broken files, odd names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from toy_scores import Page, digit, four, scores

from rarefy.report.gallery import write_gallery


def test_a_table_without_images_has_bars_and_values(tmp_path: Path) -> None:
    table = scores({"a": 9, "b": 6})
    values = np.random.default_rng(1).normal(size=(15, 3))
    values[4, 1] = np.nan
    report = write_gallery(
        tmp_path / "g.html",
        table,
        title="columns",
        classes=("a", "b"),
        columns=lambda row: list(zip(("x", "y", "z"), values[row], strict=True)),
    )
    page = Page.read(tmp_path / "g.html")
    assert report.pictures == 15
    names, given = page.numbers["columns"]
    assert names == ["x", "y", "z"]
    assert given == [[four(value) for value in values[row]] for row in page.numbers["index"]]
    for place, row in enumerate(page.numbers["index"]):
        heights = (np.asarray(page.picture(place).convert("RGBA"))[:, :, 3] > 0).sum(axis=0)[1::4]
        for column in range(3):
            low, high = np.nanmin(values[:, column]), np.nanmax(values[:, column])
            share = (values[row, column] - low) / (high - low)
            expected = 0 if np.isnan(share) else 1 + round(31 * share)
            assert heights[column] == expected


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
    assert "Triage" not in page.text


def test_one_class_has_no_matrix(tmp_path: Path) -> None:
    write_gallery(
        tmp_path / "g.html", scores({"a": 9}), title="t", classes=("a",), covariance=np.eye(1)
    )
    page = Page.read(tmp_path / "g.html")
    assert "Covariance" not in page.text
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
