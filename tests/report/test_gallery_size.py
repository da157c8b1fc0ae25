"""The gallery stays below its limit, shows less where it must, and says how much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from toy_scores import Page, scores

from rarefy.report.gallery import page as gallery_page
from rarefy.report.gallery import write_gallery

LIMIT = 2_000_000
"""A fifth of ten megabytes, for a fifth of 60,000 images."""


def _noisy(row: int) -> np.ndarray:
    """32 x 32 x 3 of noise: no picture of that size is harder to make small."""
    return _NOISE[row % len(_NOISE)]


_NOISE = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)


def test_many_images_stay_below_the_limit(tmp_path: Path) -> None:
    table = scores({f"class {number}": 1200 for number in range(10)})
    classes = [f"class {number}" for number in range(10)]
    report = write_gallery(
        tmp_path / "g.html",
        table,
        title="many",
        classes=classes,
        thumbnail=_noisy,
        neighbours=lambda rows: {row: [(row + s) % 12_000 for s in range(1, 6)] for row in rows},
        limit=LIMIT,
    )
    page = Page.read(tmp_path / "g.html")
    assert report.bytes == (tmp_path / "g.html").stat().st_size <= LIMIT
    assert report.per_class >= 8
    assert f"{report.shown:,} of 12,000 samples, {report.per_class} in a strip" in page.text
    assert report.pictures == report.shown == len(page.pictures)


@pytest.mark.slow
def test_many_classes_stay_below_the_limit(tmp_path: Path) -> None:
    classes = [f"class {number}" for number in range(200)]
    table = scores(dict.fromkeys(classes, 24))
    report = write_gallery(
        tmp_path / "g.html",
        table,
        title="many",
        classes=classes,
        thumbnail=_noisy,
        limit=LIMIT,
    )
    page = Page.read(tmp_path / "g.html")
    assert report.bytes <= LIMIT
    assert report.classes_shown == len(page.all("section", "card")) == 200
    assert report.per_class >= 1


@pytest.mark.quick("150000")
@pytest.mark.parametrize("limit", [150_000, 300_000, 600_000])
def test_less_room_shows_less_and_says_so(limit: int, tmp_path: Path) -> None:
    sizes = {f"class {number}": 20 + number for number in range(100)}
    report = write_gallery(
        tmp_path / "g.html",
        scores(sizes),
        title="small",
        classes=tuple(sizes),
        thumbnail=_noisy,
        limit=limit,
    )
    page = Page.read(tmp_path / "g.html")
    assert limit / 2 < report.bytes <= limit, "small enough, and not for want of trying"
    cards = [int(a["data-c"] or -1) for a in page.all("section", "card")]
    assert len(cards) == report.classes_shown
    if report.classes_shown < 100:
        assert f"The {len(cards)} largest of 100 classes are shown" in page.text
        assert cards == list(range(100 - len(cards), 100)), "the largest, in their order"


def test_large_images_are_made_small(tmp_path: Path) -> None:
    table = scores({"a": 30})
    wide = np.random.default_rng(0).integers(0, 256, (300, 500, 3), dtype=np.uint8)
    write_gallery(tmp_path / "g.html", table, title="t", classes=("a",), thumbnail=lambda row: wide)
    page = Page.read(tmp_path / "g.html")
    assert page.picture(0).size == (96, 58)
    assert "pixels" not in (page.all("body")[0]["class"] or ""), "smooth, not square"


@pytest.mark.slow
def test_classes_shorter_than_a_strip_are_not_tried_length_by_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strips of 24, 23, ... 5 of classes of five are the same page."""
    tried: list[int] = []
    filled = gallery_page._filled
    monkeypatch.setattr(
        gallery_page,
        "_filled",
        lambda content, plan, *more: tried.append(plan.room.strip) or filled(content, plan, *more),
    )
    classes = [f"class {number}" for number in range(120)]
    report = write_gallery(
        tmp_path / "g.html",
        scores(dict.fromkeys(classes, 5)),
        title="many",
        classes=classes,
        columns=lambda row: [(f"feature {place}", row + place / 7) for place in range(64)],
        limit=600_000,
    )
    assert report.bytes <= 600_000 and report.classes_shown == 120
    assert tried[0] == 24 and 1 <= report.per_class < 5
    assert len(tried) <= 7
