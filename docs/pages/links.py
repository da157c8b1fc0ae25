"""Links of a built site that lead nowhere, and whatever it would load from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}
"""What a browser fetches without being asked."""


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        """each with whether it is loaded with the page"""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.names.add(value)
            elif name in ("href", "src", "action"):
                self.links.append((value or "", (tag, name) in LOADED))


def dead(site: Path) -> list[str]:
    """A line per link that names a page, anchor or file that is not there."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}: {link}: {wrong}"
        for path, page in pages.items()
        for link, loaded in dict.fromkeys(page.links)
        if (wrong := _wrong(path, link, loaded, pages))
    ]


def _wrong(path: Path, link: str, loaded: bool, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "is loaded from elsewhere" if loaded else ""
    target = path.parent / unquote(parts.path) if parts.path else path
    target = target.resolve()
    if not target.is_file():
        return "is not there"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
        return "has no such anchor"
    return ""
