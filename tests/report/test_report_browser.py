"""The report in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import toy
from browser import Tab, browser, needs_browser
from made_up_ledger import claim, made_up_ledger

from rarefy.report import write_report
from rarefy.report.checkup import write_checkup
from rarefy.tools.checkup.api import Checkup
from rarefy.tools.checkup.ranking import ToDo
from rarefy.tools.checkup.sections import Rows, Section
from rarefy.tools.samples.arrays import from_arrays

pytestmark = needs_browser
FRESH, COMMITTED = "this-run-toy-gallery-tiny", "committed-toy-gallery-paper"


def report(folder: Path) -> Path:
    primary = {"study": "toy-gallery", "scale": "tiny"}
    other = primary | {"scale": "paper"}  # with these seeds it is not what was declared: not run
    growth = claim("C1", where="Lemma 1", line="Growth is linear.", primary=other)
    figure = claim("C10", where="Fig. 2", line="It rises.", answer="undecided", primary=primary)
    committed = toy.entry(toy.Gallery.at("paper", neurons=30, seeds=7), "paper")
    with made_up_ledger(folder, growth, figure):
        return write_report(folder / "report.html", [toy.entry()], [committed])


def shown(tab: Tab, selector: str) -> list[str]:
    found = f"Array.from(document.querySelectorAll('{selector}'))"
    texts: list[str] = tab.run(f"{found}.filter(e => e.offsetHeight).map(e => e.innerText)")
    return texts


def fits(tab: Tab, width: int) -> None:
    assert tab.run("document.documentElement.scrollWidth") <= width
    dead = tab.run(
        "Array.from(document.querySelectorAll('a')).filter("
        "a => !document.getElementById(a.hash.slice(1))).map(a => a.href)"
    )
    assert dead == []


def test_it_fits_and_unfolds_what_is_asked_for(tmp_path: Path) -> None:
    written = report(tmp_path)
    with browser(tmp_path) as tab:
        for width in (1400, 390):
            tab.open(written, width)
            fits(tab, width)
            assert not shown(tab, ".live"), "all is folded"
            tab.run(f"location.hash = '{FRESH}'")
            tab.wait(f"document.getElementById('{FRESH}').querySelector('.live .main-svg')")
            tab.run("document.querySelectorAll('details').forEach(one => one.open = true)")
            tab.wait("Array.from(document.querySelectorAll('.live')).every("
                     "one => one.querySelector('.main-svg'))")  # fmt: skip
            fits(tab, width)
            assert not tab.run(
                "Array.from(document.querySelectorAll('.live')).filter("
                "one => !one.getAttribute('aria-label')).length"
            )
        dark = {"name": "prefers-color-scheme", "value": "dark"}
        tab.ask("Emulation.setEmulatedMedia", features=[dark])
        tab.wait("document.querySelector('.live text').style.fill === 'rgb(232, 234, 237)'")
        assert all(tab.run("Array.from(document.querySelectorAll('.live')).map("
                           "one => one.querySelector('.main-svg').clientHeight)"))  # fmt: skip
        assert not tab.errors


def test_the_filter_leaves_what_was_asked_for(tmp_path: Path) -> None:
    written = report(tmp_path)
    with browser(tmp_path) as tab:
        tab.open(written)
        for field, value, findings, studies in (
            ("outcome", "undecided", 1, 2),
            ("paper", "000", 0, 2),
            ("paper", "003", 2, 0),
            ("words", "rises", 1, 0),
            ("words", "Toy-gallery paper", 0, 1),
            ("words", "", 2, 2),
        ):
            tab.run("document.querySelector('form button').click()")
            tab.run(f"document.forms[0].{field}.value = '{value}'")
            tab.run("document.forms[0].dispatchEvent(new Event('input', {bubbles: true}))")
            assert len(shown(tab, "li[data-papers]")) == findings, (field, value)
            assert len(shown(tab, "details.study")) == studies, (field, value)
            said = tab.run("document.querySelector('output').innerText")
            assert said == f"{findings} of 2 findings, {studies} of 2 studies"
        tab.run("document.forms[0].words.value = 'nothing like this'")
        tab.run("document.forms[0].dispatchEvent(new Event('input', {bubbles: true}))")
        tab.run(f"location.hash = '{COMMITTED}'")
        tab.wait(f"document.getElementById('{COMMITTED}').offsetHeight")
        assert not tab.errors


# ------------------------------------------------------------------------------------- the check-up


LONG = "a_name_that_has_no_place_to_break_" * 4


def page(folder: Path) -> Path:
    pixels = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    samples = from_arrays(pixels, np.array([0, 0, 1, 1]))
    table = Rows("Samples", ("sample", "label"), ((LONG, "<b>a</b>"), ("1", "b")), (0, 1))
    section = Section("samples", "Odd samples", "two are odd", tables=(table,), notes=(LONG,))
    todo = ToDo("look at <i>this</i>", "it is odd", f"rarefy influence {LONG}", 2, 0.5)
    found = Checkup("photos", samples, (section,), (todo,), ("finer",), folder)
    return write_checkup(folder / "checkup.html", found)


def test_it_fits_and_shows_what_to_do_first(tmp_path: Path) -> None:
    written = page(tmp_path)
    assert "<i>this</i>" not in written.read_text() and "<b>a</b>" not in written.read_text()
    with browser(tmp_path) as tab:
        for width in (1400, 390):
            tab.open(written, width, 844)
            assert tab.run("document.documentElement.scrollWidth") <= width
            top = tab.run("document.querySelector('ol.first li').getBoundingClientRect().bottom")
            assert top < 844, "the first thing to do is on the first screen"
            assert "not run yet" in tab.run("document.body.innerText")
        assert not tab.errors


def test_nothing_to_do_is_said(tmp_path: Path) -> None:
    samples = from_arrays(np.eye(4), np.array([0, 0, 1, 1]))
    found = Checkup("table", samples, (), (), (), tmp_path)
    assert "no rule found anything" in write_checkup(tmp_path / "c.html", found).read_text()
