"""The page of a check-up in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from browser import browser, needs_browser

from rarefy.report.checkup import write_checkup
from rarefy.tools.checkup.api import Checkup
from rarefy.tools.checkup.ranking import ToDo
from rarefy.tools.checkup.sections import Rows, Section
from rarefy.tools.samples.arrays import from_arrays

pytestmark = needs_browser
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
