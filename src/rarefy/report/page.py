"""Results and verdicts as one HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import xarray as xr

from rarefy import __version__
from rarefy.core.contracts import Study
from rarefy.core.errors import UsageError
from rarefy.core.writing import write_output
from rarefy.ledger.claims import SIGNS
from rarefy.report import interactive, static, style
from rarefy.report.findings import Finding, find_findings
from rarefy.report.sections import Entry, PanelView, Section, section, slug
from rarefy.report.templating import template

MOST_BYTES = 8_000_000
"""What a page should not exceed. Pictures give way before it does: they become small bitmaps, then
live figures go, heaviest first, then still images. Words always stay."""
_MANY_ENTRIES = 6
"""With more, still images (what is seen before the page's script runs) are small bitmaps, and the
figures are packed: written out, they would fill ten megabytes."""


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
    findings = find_findings([*fresh, *committed], sections)
    page = _filled(sections, findings)
    if len(page.encode()) > MOST_BYTES and not small:
        drawn = _sections(fresh, committed, True, None)
        for section_, again in zip(sections, drawn, strict=True):
            section_.pictures = again.pictures
        page = _filled(sections, findings)
    while (excess := len(page.encode()) - MOST_BYTES) > 0 and _give_way(sections, findings, excess):
        page = _filled(sections, findings)
    return page


def _sections(
    fresh: Sequence[Entry],
    committed: Sequence[Entry],
    small: bool,
    advance: Callable[[float], None] | None,
) -> list[Section]:
    sections = []
    for group, entries in (("this run", fresh), ("committed", committed)):
        for entry in entries:
            sections.append(section(entry, group, small))
            if advance is not None:
                advance(1.0)
    return sections


def _give_way(sections: Sequence[Section], findings: Sequence[Finding], excess: int) -> bool:
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
    for panel in [
        *heaviest(lambda panel: len(panel.image)),
        *(finding.picture for finding in findings if finding.picture and finding.picture.image),
    ]:
        if freed >= excess:
            return True
        freed, panel.image = freed + len(panel.image), ""
    return freed > 0


def _filled(sections: Sequence[Section], findings: Sequence[Finding]) -> str:
    live = any(panel.live for entry in sections for panel in entry.panels())
    return template("report.html.j2", number=style.number).render(
        findings=findings,
        sections=sections,
        signs={**style.OUTCOMES, **SIGNS},
        plotly=interactive.plotly_script() if live else "",
        version=__version__,
    )


def save_pictures(study: Study, results: xr.Dataset, folder: Path | str) -> list[Path]:
    """Every picture of a study as a PNG file of 150 dots per inch, for README files and docs."""
    paths = []
    for picture in study.picture(results):
        path = Path(folder) / f"{slug(study.name)}-{slug(picture.name)}.png"
        write_output(path, static.as_png(static.draw_picture(picture)))
        paths.append(path)
    return paths
