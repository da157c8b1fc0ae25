"""The page: whole, offline, escaped, small enough, and standing when a study does not."""

from __future__ import annotations

import base64
import gzip
import json
import re
from copy import deepcopy
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import toy
import xarray as xr
from folders import seen_in
from made_up_ledger import claim, made_up_ledger
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


@dataclass(frozen=True, kw_only=True)
class Small(toy.Gallery):
    def picture(self, results: xr.Dataset) -> list[Picture]:
        return [toy.picture(toy.noise_levels(), name="small one")]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "new" / "report.html"
    committed = toy.entry(Small.at("paper", neurons=30, seeds=7), "paper")
    primary = {"study": "toy-gallery", "scale": "tiny"}
    growth = claim("C1", where="Lemma 1", line="Growth is linear.", primary=primary)
    figure = claim("C10", where="Fig. 2", line="It rises.", answer="undecided", primary=primary)
    with made_up_ledger(folder, growth, figure):
        assert write_report(path, [toy.entry()], [committed]) == path
    assert [item.name for item in seen_in(path.parent)] == ["report.html"], "no leftovers"
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


def packed_text(text: str, identity: str) -> str:
    (found,) = re.findall(rf'<script type="text/plain" id="{identity}">(.*?)</script>', text)
    return gzip.decompress(base64.b64decode(found)).decode()


def test_every_live_figure_has_its_data_and_a_still_image(written: str) -> None:
    elements = Elements(written)
    live = [a["data-figure"] for a in elements.all("div") if a.get("class") == "live"]
    stills = [a for a in elements.all("img") if a.get("class") == "still"]
    panels = sum(len(picture.panels) for picture in toy.PICTURES)
    assert len(live) == len(set(live)) == len(stills) == panels + 1
    assert all(still["alt"] for still in stills)
    for identity in live:
        assert json.loads(packed_text(written, identity or ""))["data"]


def test_the_page_begins_with_the_findings(written: str) -> None:
    contents, _, rest = written.partition('<h2 id="findings">')
    first, _, rest = rest.partition('<section class="group"')
    elements = Elements(first)
    # what the study's own figure shows comes first, and has its picture
    assert elements.text.index("It rises.") < elements.text.index("Growth is linear.")
    assert len(elements.all("img")) == 1
    assert "Xu & Chen, Fig. 2" in elements.text
    assert "? undecided" in elements.text
    assert "changed: the ledger says not run" in elements.text
    anchors = {a["id"] for a in Elements(rest).all("details") if a.get("class") == "study"}
    assert anchors == {"this-run-toy-gallery-tiny", "committed-toy-gallery-paper"}
    assert {(a["href"] or "")[1:] for a in elements.all("a")} == {"this-run-toy-gallery-tiny"}
    assert [a["href"] for a in Elements(contents).all("a")] == ["#findings", "#paper-000"]
    options = re.findall("<option[^>]*>([^<]*)", contents)
    assert options == ["all", "Liao et al.", "Xu &amp; Chen", "all", "undecided"]


def test_readings_are_folded_and_those_that_decide_come_first(written: str) -> None:
    _, committed, fresh = written.split('<details class="study"')
    for section in (fresh, committed):
        (folded,) = re.findall(r"<details>\n<summary>Readings.*?</details>", section, re.DOTALL)
        names = re.findall(r'<th scope="row" data-label="Claim"><span>([^<]*?) ?<', folded)
        assert names == ["C1.1", "C10.1", "C1", ""]
        assert "✓ holds" in Elements(folded).text
        assert section.count("Growth is linear.") == 1


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
    assert kinds == [None, "text/plain", "text/plain", "text/plain", None]
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
    text = Elements(page.render([toy.entry(Broken()), toy.entry(Small())])).text
    assert "The pictures could not be made: ZeroDivisionError: no <b>neurons</b>" in text
    assert "The tables could not be made: KeyError: 'missing'" in text
    assert "A picture of small one" in text, "the next study still stands"
    text = page.render([toy.entry(Broken(what="panel"))])
    assert "This panel could not be drawn: UsageError: y of curve" in text
    assert "This picture could not be drawn: UsageError: values of heat map" in text
    assert text.count('class="still"') == 1, "the good panel beside the wrong one"


@pytest.fixture
def no_stills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which take most of the time, where they are not asked about."""
    monkeypatch.setattr(page, "MANY_ENTRIES", 0)


@pytest.mark.usefixtures("no_stills")
def test_nothing_done_or_nothing_finite_is_said() -> None:
    empty = page.render([])
    assert "There are no results yet." in empty
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


@dataclass(frozen=True, kw_only=True)
class Maps(toy.Gallery):
    """One light and one heavy panel."""

    name: ClassVar[str] = "toy-maps"

    def picture(self, results: xr.Dataset) -> list[Picture]:
        x = np.arange(3.0)
        light = Lines([Curve("a", x, x)], "x", "y")
        heavy = HeatMap(
            np.sqrt(np.arange(900.0)).reshape(30, 30), range(30), range(30), "", "", "z"
        )
        return [toy.picture(light, heavy, name="maps")]


def still_and_live(text: str) -> tuple[int, int]:
    return text.count('class="still"'), text.count('class="live"')


GIVEN_WAY = "To keep this page small"


@pytest.mark.slow
def test_pictures_give_way_before_a_page_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = page._draw_all([toy.entry(Maps())], [toy.entry(Maps.at("paper"), "paper")])
    whole = page._page(deepcopy(drawn))
    assert still_and_live(whole) == (4, 4)
    assert GIVEN_WAY not in whole
    monkeypatch.setattr(page, "MOST_BYTES", len(whole) - 1)
    live = page._page(deepcopy(drawn))
    assert still_and_live(live) == (0, 4), "still images go first"
    assert GIVEN_WAY not in live

    monkeypatch.setattr(page, "MOST_BYTES", len(live.encode()) - 100)
    lighter = page._page(deepcopy(drawn))
    assert still_and_live(lighter) == (0, 3)
    committed, fresh = lighter.split('<details class="study" id="this-run')
    assert still_and_live(fresh)[1] == 2, "what this run gave goes last"
    assert 'data-figure="figure-1-1-1-1"' in committed, "the lighter one stays"
    assert GIVEN_WAY not in fresh
    assert "To keep this page small, 1 of 2 panels are left out." in committed

    monkeypatch.setattr(page, "MOST_BYTES", 10_000)
    words = page._page(deepcopy(drawn))
    assert still_and_live(words) == (0, 0) and 'id="plotly"' not in words
    assert words.count("2 of 2 panels are left out. A page of this study alone has them") == 2
    assert "A picture of maps" in words and "slope 0.98" in words


@pytest.mark.slow
def test_a_page_of_many_has_no_still_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MANY_ENTRIES", 1)
    entry = toy.entry(Maps())
    assert still_and_live(page.render([entry])) == (2, 2)
    assert still_and_live(page.render([entry], [entry])) == (0, 4)


@pytest.mark.usefixtures("no_stills")
def test_a_study_of_other_data_says_so() -> None:
    @dataclass(frozen=True, kw_only=True)
    class OnDigits(Small):
        data: str = "mnist"

    assert "data digits, not mnist" in page.render([toy.entry(OnDigits(data="digits"))])
    assert "not mnist" not in page.render([toy.entry(OnDigits())])


def test_bad_paths_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        write_report(tmp_path, [], [])
    (tmp_path / "file").write_text("kept")
    with pytest.raises(RunError, match="cannot write"):
        write_report(tmp_path / "file" / "report.html", [], [])
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
    with pytest.raises(RunError, match="file: it is there, and not as rarefy wrote it"):
        write_report(tmp_path / "file", [], [])
    page_of_none = write_report(tmp_path / "none", [], [])
    assert "There are no results yet." in page_of_none.read_text(encoding="utf-8")


def test_pictures_are_saved_as_files(tmp_path: Path) -> None:
    paths = save_pictures(Small(), toy.results(), tmp_path / "figures")
    assert [path.name for path in paths] == ["toy-gallery-small-one.png"]
    with Image.open(paths[0]) as image:
        assert image.size[0] == 5 * 150
