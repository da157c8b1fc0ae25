"""The page: whole, offline, escaped, small enough, and standing when a study does not."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import toy
import xarray as xr
from PIL import Image

from rarefy.core.errors import RunError, UsageError
from rarefy.core.picture import Curve, HeatMap, Lines, Picture, Table
from rarefy.report import page, save_pictures, write_report


class Elements(HTMLParser):
    """Every element with its attributes, and the text of the page outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.append("/" + tag)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "new" / "report.html"
    committed = toy.entry(toy.Gallery.at("paper", neurons=30, seeds=7), "paper")
    assert write_report(path, [toy.entry()], [committed]) == path
    assert [item.name for item in path.parent.iterdir()] == ["report.html"], "no leftovers"
    assert path.stat().st_size < page.MOST_BYTES
    return path.read_text(encoding="utf-8")


def test_the_page_needs_nothing_from_outside(written: str) -> None:
    elements = Elements(written)
    for _, attributes in elements.found:
        for name in ("src", "href", "srcset", "action", "data"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/")), value
    assert not elements.all("link")
    assert "@import" not in written
    assert not re.search(r"https?://", written)
    policy = next(a["content"] for a in elements.all("meta") if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_plotly_is_embedded_once_and_whole(written: str) -> None:
    from plotly.offline import get_plotlyjs

    (packed,) = re.findall(r'<script type="text/plain" id="plotly">(.*?)</script>', written)
    assert gzip.decompress(base64.b64decode(packed)).decode() == get_plotlyjs()


def test_every_live_figure_has_its_data_and_a_still_image(written: str) -> None:
    elements = Elements(written)
    live = [a["data-figure"] for a in elements.all("div") if a.get("class") == "live"]
    stills = [a for a in elements.all("img") if a.get("class") == "still"]
    panels = sum(len(picture.panels) for picture in toy.PICTURES)
    assert len(live) == len(set(live)) == len(stills) == 2 * panels
    assert all(still["alt"] for still in stills)
    for identity in live:
        (text,) = re.findall(rf'id="{identity}">(.*?)</script>', written)
        assert json.loads(text)["data"]


def test_verdicts_come_fresh_first_with_words_and_links(written: str) -> None:
    elements = Elements(written)
    assert written.index("<caption>This run") < written.index("<caption>Committed results")
    rows = [a for a in elements.all("tr") if "data-claim" in a]
    assert [row["data-outcome"] for row in rows[:4]] == [
        "holds",
        "fails",
        "inconclusive",
        "not-run",
    ]
    anchors = {a["id"] for a in elements.all("section") if "id" in a}
    assert anchors == {"this-run-toy-gallery-tiny", "committed-toy-gallery-paper"}
    assert {(a["href"] or "")[1:] for a in elements.all("a")} == anchors
    assert "✓ holds" in elements.text
    said = elements.text.count("Stage 1: the per-step growth")
    assert said == 3, "from the ledger: in the overview, and once in each section"
    options = re.findall(r"<option>(.*?)</option>", written)
    assert options[:3] == ["C1", "C8", "C10"]


def test_the_section_says_how_it_was_made(written: str) -> None:
    text = Elements(written).text
    assert "rarefy run toy-gallery --scale tiny" in text
    assert "rarefy run toy-gallery --scale paper --seeds 7 --set neurons=30" in text
    assert "torch 2.13, cores 2" in text
    assert "0.1, 0.5, 1" in text
    assert "0.1235" in text
    assert "no value" in text
    assert "1 value is zero or less and has no place on a logarithmic axis." in text


EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"&"


@dataclass(frozen=True, kw_only=True)
class Evil(toy.Gallery):
    title: ClassVar[str] = EVIL
    paper_says: ClassVar[str] = EVIL
    eps_min: tuple[str, ...] = (EVIL,)  # type: ignore[assignment]

    def picture(self, results: xr.Dataset) -> list[Picture]:
        x = np.arange(3.0)
        lines = Lines([Curve(EVIL, x, x)], EVIL, EVIL, EVIL, marks=[(1.0, EVIL)])
        heat = HeatMap(np.eye(2), [EVIL, "b"], [EVIL, "b"], EVIL, EVIL, EVIL, EVIL, [(0, 0, EVIL)])
        return [Picture(EVIL, EVIL, EVIL, [lines, heat])]

    def tables(self, results: xr.Dataset) -> list[Table]:
        return [Table(EVIL, EVIL, EVIL, (EVIL,), [(EVIL,)])]


def test_everything_is_escaped() -> None:
    study = Evil()
    results = toy.results().assign_attrs({EVIL: EVIL})
    verdicts = [toy.verdict(EVIL, "holds", EVIL, EVIL, EVIL, EVIL)]
    text = page.render([(study, EVIL, results, verdicts)])
    elements = Elements(text)
    assert "alert(1)" in elements.text, "shown as text"
    assert not [a for a in elements.all("img") if not (a["src"] or "").startswith("data:image/")]
    kinds = [a.get("type") or a.get("id") for a in elements.all("script")]
    assert kinds == [None, "application/json", "application/json", "text/plain", None]
    assert not any(name.startswith("on") for _, a in elements.found for name in a)


@dataclass(frozen=True, kw_only=True)
class Broken(toy.Gallery):
    what: str = "picture"

    def picture(self, results: xr.Dataset) -> list[Picture]:
        if self.what == "picture":
            raise ZeroDivisionError("no <b>neurons</b>")
        wrong = Lines([Curve("a", np.arange(3), np.arange(4))], "x", "y", "Wrong")
        uneven = HeatMap(np.ones((2, 2)), [1], [1], "x", "y", "z")
        return [toy.picture(wrong, toy.noise_levels()), toy.picture(uneven), toy.picture()]

    def tables(self, results: xr.Dataset) -> list[Table]:
        raise KeyError("missing")


def test_a_failing_picture_or_table_is_shown_in_its_place() -> None:
    text = Elements(page.render([toy.entry(Broken()), toy.entry()])).text
    assert "The pictures could not be made: ZeroDivisionError: no <b>neurons</b>" in text
    assert "The tables could not be made: KeyError: 'missing'" in text
    assert "A picture of trajectories" in text, "the next study still stands"
    text = page.render([toy.entry(Broken(what="panel"))])
    assert "This panel could not be drawn: UsageError: y of curve" in text
    assert "This picture could not be drawn: UsageError: values of heat map" in text
    assert text.count('class="still"') == 1, "the good panel beside the wrong one"


@dataclass(frozen=True, kw_only=True)
class Small(toy.Gallery):
    def picture(self, results: xr.Dataset) -> list[Picture]:
        return [toy.picture(toy.noise_levels(), name="small one")]


def test_nothing_done_or_nothing_finite_is_said() -> None:
    empty = page.render([])
    assert "There are no verdicts yet." in empty
    assert 'id="plotly"' not in empty, "five megabytes for nothing"
    for results in (toy.results(np.nan), xr.Dataset()):
        text = page.render([(Small(), "tiny", results, [])])
        assert "Nothing has been computed yet" in text
    half = toy.results()
    half["nonfinite_step"] = half["nonfinite_step"].astype(float)
    half["nonfinite_step"][0, 0], half["nonfinite_step"][1, 0] = np.nan, 40
    text = page.render([(Small(), "tiny", half, [])])
    assert "1 of 6 cells have not been computed yet." in text
    assert "1 of 6 runs stopped being finite on the way." in text


def test_too_large_a_page_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_BYTES", 10_000)
    with pytest.raises(RunError, match=r"more than 0\.01 MB"):
        write_report(tmp_path / "report.html", [toy.entry(Small())], [])
    assert list(tmp_path.iterdir()) == []


def test_bad_paths_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        write_report(tmp_path, [], [])
    (tmp_path / "file").write_text("kept")
    with pytest.raises(RunError, match="cannot write"):
        write_report(tmp_path / "file" / "report.html", [], [])
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
    write_report(tmp_path / "file", [], [])
    assert "There are no verdicts yet." in (tmp_path / "file").read_text(encoding="utf-8")


def test_pictures_are_saved_as_files(tmp_path: Path) -> None:
    paths = save_pictures(Small(), toy.results(), tmp_path / "figures")
    assert [path.name for path in paths] == ["toy-gallery-small-one.png"]
    with Image.open(paths[0]) as image:
        assert image.size[0] == 5 * 150


def test_many_entries_have_small_bitmaps_in_place_of_vector_stills() -> None:
    entry = toy.entry()
    few, many = page.render([entry]), page.render([entry] * (page._MANY_ENTRIES + 1))
    assert "data:image/svg+xml" in few
    assert "data:image/svg+xml" not in many and "data:image/png" in many
