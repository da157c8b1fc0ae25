"""Sliders of ``rarefy explore`` in a real browser, served and saved."""

from __future__ import annotations

import json
import re
from pathlib import Path

from browser import Tab, browser, needs_browser
from explored import ask, save_pages, serving

pytestmark = needs_browser

WATCH = """
window.heard = [];
addEventListener("error", event => heard.push(String(event.message)));
addEventListener("unhandledrejection", event => heard.push(String(event.reason)));
addEventListener("securitypolicyviolation", event => heard.push(event.blockedURI));
console.error = (...words) => heard.push(words.join(" "));
"""
LABELS = "[...document.querySelectorAll('.legendtext')].map(one => one.textContent).join()"
HEIGHT = "JSON.stringify(document.querySelector('.js-plotly-plot').data[0].y)"


def go(tab: Tab, address: str, width: int = 1400) -> None:
    tab.size(width, 900)
    tab.ask("Page.navigate", url=address)
    tab.wait("document.documentElement?.dataset.ready === 'yes'")


def move(tab: Tab, slider: str, key: str, shown: str) -> None:
    """A real key on a slider; then until the address says that it was heard."""
    tab.run(f"document.querySelector('input[data-name={slider}]').focus()")
    tab.press(key)
    tab.wait(f"location.search.includes({shown!r})")


def test_sliders_move_the_figure_served_and_saved(
    toy_environment: dict[str, str], tmp_path: Path
) -> None:
    ready = "document.getElementById('computing').hidden && !!document.querySelector('.legendtext')"
    with browser(tmp_path) as tab:
        tab.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        with serving(toy_environment, tmp_path) as address:
            go(tab, address)
            assert tab.run(LABELS) == "drift 0"  # nothing is stored: one line was computed
            move(tab, "drift", "ArrowRight", "a.drift=0.5")
            tab.wait(f"{ready} && {LABELS} === 'drift 0.5'")
            link = tab.run("location.href")
            go(tab, link, 390)  # the link keeps where the sliders stand
            assert tab.run(LABELS) == "drift 0.5"
            assert tab.run("document.documentElement.scrollWidth") <= 390
            chart = re.sub("view=[^&]*", "view=chart", link)
            go(tab, chart + "&output=end&x=sigma")
            before = tab.run(HEIGHT)
            move(tab, "drift", "ArrowRight", "a.drift=1")
            tab.wait(f"{HEIGHT} !== {json.dumps(before)}")
            page = tmp_path / "saved.html"
            page.write_bytes(ask(address, "save")[1])
            assert tab.run("heard") == [] and not tab.errors

        tab.ask("Network.enable")
        tab.ask("Network.emulateNetworkConditions", offline=True, latency=0,
                downloadThroughput=0, uploadThroughput=0)  # fmt: skip
        for width in (1400, 390):
            go(
                tab,
                f"{page.as_uri()}?source=quick&view=chart&output=end&x=sigma&a.drift=0.5",
                width,
            )
            before = tab.run(HEIGHT)
            move(tab, "drift", "ArrowRight", "a.drift=1")
            tab.wait(f"{HEIGHT} !== {json.dumps(before)}")
            assert tab.run("document.documentElement.scrollWidth") <= width
        go(tab, f"{page.as_uri()}?source=quick&view=walk&a.drift=0.5")
        assert tab.run(LABELS) == "drift 0.5"  # it had been looked at
        move(tab, "sigma", "ArrowRight", "a.sigma")
        tab.wait("document.getElementById('status').textContent.includes('were not saved')")
        assert tab.run("performance.getEntriesByType('resource').length") == 0
        assert tab.run("heard") == [] and not tab.errors


def test_sliders_of_a_saved_page_move(tmp_path: Path) -> None:
    with browser(tmp_path) as tab:
        for page in save_pages(tmp_path):
            go(tab, page.as_uri())
            assert tab.run(LABELS) == "drift 0,drift 0.5,drift 1"
            move(tab, "drift", "ArrowRight", "a.drift=0")
            tab.wait(f"{LABELS} === 'drift 0'")
        assert not tab.errors
