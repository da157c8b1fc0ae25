"""The page itself: what the browser is told at the start, and the file that is saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarefy import __version__
from rarefy.core.contracts import Study
from rarefy.core.errors import UsageError
from rarefy.core.papers import paper_names
from rarefy.core.writing import write_output
from rarefy.report import interactive, style
from rarefy.report.explore.live import Live, refusal
from rarefy.report.explore.sources import ALL, Source, Stops
from rarefy.report.templating import template

MOST_SAVED = 300
"""Figures of one source that are drawn for a saved page; those that were looked at come on top."""


@dataclass
class Explorer:
    """One study: its stored results, and its cells that can be computed (None: they cannot)."""

    kind: type[Study]
    stored: dict[str, Source]
    live: Live | None

    def sources(self) -> dict[str, Source]:
        return {**self.stored, **(self.live.sources if self.live else {})}

    def find(self, key: str, places: Mapping[str, int]) -> Source:
        """A source by its name in an address; one that is computed begins here."""
        if self.live is not None and key not in self.stored:
            return self.live.source(places)
        return self.stored[key]

    def page(self, served: bool = True) -> str:
        """The page as text. A saved one has the numbers of all cells, and the figures so far."""
        if served and self.live is not None:
            self.live.source({})
        sources = {key: one for key, one in self.sources().items() if served or _begun(one)}
        if not sources:
            raise UsageError("there is nothing to save: no cell is computed yet")
        start = {
            "served": served,
            "sources": {key: one.numbers() for key, one in sources.items()},
            "figures": {
                f"{key}|{','.join(map(str, stops))}": one.pictures(stops)
                for key, one in ({} if served else sources).items()
                for stops in sorted(one.seen)
            },
            "computes": list(self.live.sources)[:1] if self.live and served else [],
            "parameters": self.live.parameters if self.live else {},
            "colours": style.PALETTE,
            "symbols": [name for _, name in style.SYMBOLS],
        }
        packed = interactive.gzip_base64(json.dumps(start, separators=(",", ":"), allow_nan=False))
        return template("explore.html.j2").render(
            study=self.kind,
            papers=paper_names(self.kind.papers),
            refused=refusal(self.kind),
            served=served,
            start=packed,
            plotly=interactive.plotly_script(),
            version=__version__,
        )

    def positions(self) -> list[tuple[Source, Stops]]:
        """Of the figures that a saved page should have: everything, and each slider by itself."""
        wanted = []
        for source in filter(_begun, self.sources().values()):
            whole = (ALL,) * len(source.sizes)
            alone = [
                (*whole[:axis], place, *whole[axis + 1 :])
                for axis, size in enumerate(source.sizes)
                for place in range(size if size > 1 else 0)
            ]
            wanted += [(source, stops) for stops in [whole, *alone][:MOST_SAVED]]
        return wanted


def _begun(source: Source) -> bool:
    return bool(source.results["nonfinite_step"].notnull().any())


def save(explorer: Explorer, path: Path, advance: Callable[[float], Any]) -> None:
    """Write the page as one file that needs neither server nor network."""
    for source, stops in explorer.positions():
        source.pictures(stops)
        advance(1.0)
    write_output(path, explorer.page(served=False).encode(), "explore")
