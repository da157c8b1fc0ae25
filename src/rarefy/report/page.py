"""Results and verdicts as one HTML page that opens offline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined

from rarefy import __version__
from rarefy.core.contracts import OUTCOMES, Study
from rarefy.core.errors import UsageError
from rarefy.core.writing import write_output
from rarefy.ledger.claims import load_claims
from rarefy.report import interactive, static, style
from rarefy.report.sections import Entry, PanelView, Section, section, slug

MOST_BYTES = 8_000_000
"""What a page should not exceed. Pictures give way before it does: they become small bitmaps, then
live figures go, heaviest first, then still images. Words always stay."""
_MANY_ENTRIES = 6
"""With more, still images (what is seen before the page's script runs) are small bitmaps, and the
figures and the list of all verdicts are packed: written out, they would fill ten megabytes."""


def write_report(
    path: Path | str,
    fresh: Sequence[Entry],
    committed: Sequence[Entry] = (),
    advance: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the page to ``path``: fresh results first, then the committed ones. ``advance`` is
    told of each entry that has been drawn."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"path={str(target)!r}: is a folder; name a file such as report.html")
    page = render(fresh, committed, advance).encode()
    write_output(target, page, "report", overwrite)
    return target


def render(
    fresh: Sequence[Entry],
    committed: Sequence[Entry] = (),
    advance: Callable[[float], None] | None = None,
) -> str:
    """The page as text."""
    small = len(fresh) + len(committed) > _MANY_ENTRIES
    sections = _sections(fresh, committed, small, advance)
    page = _filled(sections, small)
    if len(page.encode()) > MOST_BYTES and not small:
        small = True
        sections = _sections(fresh, committed, small, None)
        page = _filled(sections, small)
    while (excess := len(page.encode()) - MOST_BYTES) > 0 and _give_way(sections, excess):
        page = _filled(sections, small)
    return page


def _sections(
    fresh: Sequence[Entry],
    committed: Sequence[Entry],
    small: bool,
    advance: Callable[[float], None] | None,
) -> list[Section]:
    statements = {claim.id: vars(claim) for claim in load_claims()}
    sections = []
    for group, entries in (("this run", fresh), ("committed", committed)):
        for entry in entries:
            sections.append(section(entry, group, statements, small))
            if advance is not None:
                advance(1.0)
    return sections


def _give_way(sections: Sequence[Section], excess: int) -> bool:
    """Drop live figures, or else still images, until so many bytes are free: the heaviest first,
    what this run gave last. False if there is nothing left to drop."""

    def heaviest(weight: Callable[[PanelView], int]) -> list[PanelView]:
        ordered = [
            (entry.group == "this run", -weight(panel), index, panel)
            for index, (entry, panel) in enumerate(
                (entry, panel) for entry in sections for panel in entry.panels()
            )
            if weight(panel)
        ]
        return [panel for *_, panel in sorted(ordered)]

    freed = 0
    for panel in heaviest(lambda panel: len(panel.live)):
        if freed >= excess:
            return True
        freed, panel.live = freed + len(panel.live), ""
    if freed:  # without any live figure plotly is not needed either: see how large the page is now
        return True
    for panel in heaviest(lambda panel: len(panel.image)):
        if freed >= excess:
            return True
        freed, panel.image = freed + len(panel.image), ""
    return freed > 0


def _filled(sections: Sequence[Section], small: bool) -> str:
    """The template with the sections in it; ``small``: the list of all verdicts is packed."""
    environment = Environment(
        loader=PackageLoader("rarefy.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = style.number
    verdicts = [verdict for entry in sections for verdict in entry.verdicts]
    told = {
        "verdicts": verdicts,
        "counts": [(word, Counter(v["outcome"] for v in verdicts)[word]) for word in OUTCOMES],
        "claims": sorted({v["claim"] for v in verdicts}, key=_natural),
        "signs": style.OUTCOMES,
    }
    every = environment.get_template("verdicts.html.j2").render(told)
    live = any(panel.live for entry in sections for panel in entry.panels())
    return environment.get_template("report.html.j2").render(
        told,
        sections=sections,
        overview=_overview(verdicts),
        every=interactive.gzip_base64(every) if small else every,
        small=small,
        plotly=interactive.plotly_script() if live else "",
        version=__version__,
    )


def _overview(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per claim: its statement, and for each study and scale how often which outcome."""
    rows = []
    for claim in sorted({v["claim"] for v in verdicts}, key=_natural):
        mine = [v for v in verdicts if v["claim"] == claim]
        places = []
        for anchor in dict.fromkeys(v["anchor"] for v in mine):
            here = [v for v in mine if v["anchor"] == anchor]
            tally = Counter(v["outcome"] for v in here)
            counts = [(word, tally[word]) for word in OUTCOMES if tally[word]]
            places.append({**here[0], "counts": counts})
        rows.append({"claim": claim, "statement": mine[0]["statement"], "places": places})
    return rows


def save_pictures(study: Study, results: xr.Dataset, folder: Path | str) -> list[Path]:
    """Every picture of a study as a PNG file of 150 dots per inch, for README files and docs."""
    paths = []
    for picture in study.picture(results):
        path = Path(folder) / f"{slug(study.name)}-{slug(picture.name)}.png"
        write_output(path, static.as_png(static.draw_picture(picture)))
        paths.append(path)
    return paths


def _natural(claim: str) -> tuple[str, int]:
    digits = "".join(filter(str.isdigit, claim))
    return (claim.rstrip("0123456789"), int(digits or 0))
