"""Every page of a built site as a reader sees it: in a real browser, opened from disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from browser import Tab

WIDTHS = (1400, 390)
UNFOLD = """(async () => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const images = [...document.images];
  images.forEach((one) => { one.loading = "eager"; });
  await Promise.allSettled(images.map((one) => one.decode()));
  return images.filter((one) => !one.naturalWidth).map((one) => one.src);
})()"""
"""Everything folded opened and every image loaded; those that are not there."""


def wrong_with(tab: Tab, pages: Iterable[Path]) -> list[str]:
    """A line per fault: errors of the console, what was not loaded, and what is too wide."""
    found = []
    for page in pages:
        for width in WIDTHS:
            tab.errors.clear()
            tab.open(page, width)
            missing = tab.run(UNFOLD)
            faults = [*tab.errors, *(f"no image {name}" for name in missing), *tab.too_wide()]
            found += [f"{page.name} at {width} pixels: {fault}" for fault in faults]
    return found


def results_of_search(tab: Tab, page: Path, words: str) -> list[str]:
    """Addresses that the box of a page finds, best first."""
    tab.open(page, 1400)
    tab.click('#rtd-search-form input[name="q"]')
    tab.press(*words, "Enter")
    tab.wait('location.pathname.endsWith("search.html") && document.readyState === "complete"')
    tab.wait('!document.querySelector("#mkdocs-search-results").innerText.startsWith("Searching")')
    found: list[str] = tab.run(
        '[...document.querySelectorAll("#mkdocs-search-results a")].map((a) => a.href)'
    )
    return found
