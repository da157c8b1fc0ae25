"""The documentation, built of committed results and read in a real browser from disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import browser, needs_browser
from site_pages import results_of_search, wrong_with

from pages import ROOT, site

pytestmark = needs_browser


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write(folder / "docs", ROOT / "results", ROOT / "build" / "figures")
    site.build(folder / "docs", folder / "site")
    return folder / "site"


def test_every_page_of_the_site_opens_and_fits(
    built: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Every page of the documentation at 1400 and 390 pixels: no error, nothing too wide."""
    pages, begun = sorted(built.rglob("*.html")), time.monotonic()
    with browser(tmp_path) as tab:
        assert wrong_with(tab, pages) == []
    record_property("pages", len(pages))
    record_property("seconds in the browser", round(time.monotonic() - begun))
    record_property("megabytes", round(sum(f.stat().st_size for f in built.rglob("*.*")) / 1e6, 1))


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("B6", "claims/B6.html"),
        ("mislabelled", "influence.html"),
        ("slurm", "batch.html"),
        ("topk-phase", "studies/topk-phase.html"),
    ],
)
def test_search_finds_pages_from_disk(built: Path, tmp_path: Path, words: str, page: str) -> None:
    """Typing a word into the box of a page that was opened from disk."""
    with browser(tmp_path) as tab:
        found = results_of_search(tab, built / "studies" / "index.html", words)
        assert any(page in address for address in found[:5]), found[:10]
        assert not tab.errors
