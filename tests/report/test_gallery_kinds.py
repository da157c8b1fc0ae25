"""Galleries of unusual tables: no images, few columns, one class, broken files, odd names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from toy_scores import Page, digit, four, scores

from rarefy.report.gallery import choice, write_gallery
from rarefy.report.gallery.pictures import MOST_PICTURE


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


# --------------------------------------------------------------------------------------------- size


LIMIT = 10_000_000
_RANDOM = np.random.default_rng(0)
NOISE = {side: _RANDOM.integers(0, 256, (side, side, 3), dtype=np.uint8) for side in (31, 48, 200)}
"""No picture of its size is harder to make small."""


def test_twenty_thousand_images_stay_below_the_limit(tmp_path: Path) -> None:
    classes = [f"class {number}" for number in range(10)]
    table = scores(dict.fromkeys(classes, 2000))
    doubtful = table["triage"] == choice.MISLABELLED
    table.loc[doubtful & (doubtful.cumsum() > 500), "triage"] = "rare but right"
    report = write_gallery(
        tmp_path / "g.html",
        table,
        title="many",
        classes=classes,
        thumbnail=lambda row: NOISE[31],
        neighbours=lambda rows: {row: [(row + s) % 20_000 for s in range(1, 6)] for row in rows},
    )
    page = Page.read(tmp_path / "g.html")
    assert report.bytes == (tmp_path / "g.html").stat().st_size
    assert report.bytes + 2000 * (MOST_PICTURE - len(page.pictures[0])) <= LIMIT
    assert (report.per_class, report.classes_shown) == (choice.STRIP, 10)
    assert 1990 <= report.shown <= choice.MOST_SAMPLES
    assert f"{report.shown:,} of 20,000 samples, 12 in a strip" in page.text
    assert "maybe mislabelled 500 of 500 shown" in page.text
    assert f"rare but right 400 of {doubtful.sum() - 500:,} shown" in page.text
    assert report.pictures == report.shown == len(page.pictures)


@pytest.mark.parametrize(("count", "strip", "shown"), [(40, 12, 40), (100, 6, 100), (700, 1, 666)])
def test_more_classes_have_shorter_strips(
    count: int, strip: int, shown: int, tmp_path: Path
) -> None:
    sizes = {f"class {number}": 4 + number % 9 for number in range(count)}
    table = scores(sizes).assign(triage="")
    report = write_gallery(tmp_path / "g.html", table, title="many", classes=tuple(sizes))
    page = Page.read(tmp_path / "g.html")
    cards = [int(attributes["data-c"] or -1) for attributes in page.all("section", "card")]
    assert (report.per_class, report.classes_shown, len(cards)) == (strip, shown, shown)
    assert cards == sorted(cards), "in their order"
    left_out = set(range(count)) - set(cards)
    assert {sizes[f"class {number}"] for number in left_out} <= {4}, "the largest are shown"
    assert (f"The {shown} largest of {count} classes are shown" in page.text) == (shown < count)


@pytest.mark.parametrize(("side", "size"), [(31, (31, 31)), (48, (48, 48)), (200, (56, 56))])
def test_a_picture_that_is_hard_to_make_small_gets_worse(
    side: int, size: tuple[int, int], tmp_path: Path
) -> None:
    write_gallery(
        tmp_path / "g.html",
        scores({"a": 2}),
        title="t",
        classes=("a",),
        thumbnail=lambda row: NOISE[side],
    )
    page = Page.read(tmp_path / "g.html")
    assert page.picture(0).size == size and len(page.pictures[0]) <= MOST_PICTURE


def test_large_images_are_made_small(tmp_path: Path) -> None:
    table = scores({"a": 30})
    wide = np.zeros((300, 500, 3), dtype=np.uint8)
    write_gallery(tmp_path / "g.html", table, title="t", classes=("a",), thumbnail=lambda row: wide)
    page = Page.read(tmp_path / "g.html")
    assert page.picture(0).size == (96, 58)
    assert "pixels" not in (page.all("body")[0]["class"] or ""), "smooth, not square"
