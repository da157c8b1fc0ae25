"""Results and verdicts as one HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from rarefy import __version__
from rarefy.core.contracts import Study
from rarefy.core.errors import UsageError
from rarefy.core.papers import PAPERS
from rarefy.core.writing import write_output
from rarefy.ledger.claims import SIGNS
from rarefy.report import interactive, static, style
from rarefy.report.findings import Finding, find_findings
from rarefy.report.sections import Entry, Section, section, slug
from rarefy.report.templating import template, typeset

MOST_BYTES = 5_000_000
"""What a page should not exceed. Still images give way first, then live figures, heaviest first.
Words always stay."""
MANY_ENTRIES = 6
"""A page of more has no still images: to draw them would take a minute per ten studies."""

Drawn = tuple[Entry, Section]


@dataclass
class Group:
    """The studies of one paper."""

    anchor: str
    short: str
    title: str
    sections: list[Section]


def write_report(
    path: Path | str,
    fresh: Sequence[Entry],
    committed: Sequence[Entry] = (),
    overwrite: bool = False,
) -> Path:
    """Write the page to ``path``: what these results say about the papers, then study by study."""
    return write_drawn(path, _draw_all(fresh, committed), overwrite)


def write_drawn(path: Path | str, drawn: Sequence[Drawn], overwrite: bool = False) -> Path:
    """The same from entries that ``draw`` has drawn already."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"path={str(target)!r}: is a folder; name a file such as report.html")
    write_output(target, _page(drawn).encode(), "report", overwrite)
    return target


def render(fresh: Sequence[Entry], committed: Sequence[Entry] = ()) -> str:
    """The page as text."""
    return _page(_draw_all(fresh, committed))


def draw(entry: Entry, stored: bool, entries: int) -> Drawn:
    """One of so many ``entries``; ``stored``: of a run of one's own, not a committed result."""
    group = "this run" if stored else "committed"
    return entry, section(entry, group, stills=entries <= MANY_ENTRIES)


def _draw_all(fresh: Sequence[Entry], committed: Sequence[Entry]) -> list[Drawn]:
    entries = [*((one, True) for one in fresh), *((one, False) for one in committed)]
    return [draw(entry, stored, len(entries)) for entry, stored in entries]


def _page(drawn: Sequence[Drawn]) -> str:
    sections = [section for _, section in drawn]
    findings = find_findings([entry for entry, _ in drawn], sections)
    page = _filled(sections, findings)
    if len(page.encode()) > MOST_BYTES:
        for panel in (panel for one in sections for panel in one.panels()):
            panel.image = ""
        page = _filled(sections, findings)
    while (excess := len(page.encode()) - MOST_BYTES) > 0 and _give_way(sections, excess):
        page = _filled(sections, findings)
    return page


def _give_way(sections: Sequence[Section], excess: int) -> bool:
    """Drop live figures until so many bytes are free: the heaviest first, what this run gave last.
    False if there is none left to drop."""
    live = [(one, panel) for one in sections for panel in one.panels() if panel.live]
    live.sort(key=lambda pair: (pair[0].group == "this run", -len(pair[1].live)))
    freed = 0
    for _, panel in live:
        if freed >= excess:
            break
        freed, panel.live = freed + len(panel.live), ""
    return freed > 0


def _grouped(sections: Sequence[Section]) -> list[Group]:
    """By paper, in the order of the papers; of one study the published size comes first."""
    groups: dict[str, Group] = {}
    for key in [*PAPERS, ""]:
        names = (
            (_named(PAPERS[key].short), str(PAPERS[key])) if key else ("Others", "Other studies")
        )
        groups[key] = Group(f"paper-{key or 'none'}", *names, [])
    for one in sections:
        key = one.papers[0] if one.papers and one.papers[0] in PAPERS else ""
        groups[key].sections.append(one)
    for group in groups.values():
        group.sections.sort(key=lambda one: (one.name, one.scale != "paper"))
    return [group for group in groups.values() if group.sections]


def _named(short: str) -> str:
    return short[0].upper() + short[1:]


def _filled(sections: Sequence[Section], findings: Sequence[Finding]) -> str:
    live = any(panel.live for entry in sections for panel in entry.panels())
    states = [finding.answer.state for finding in findings]
    met = {key for one in sections for key in one.papers}
    met |= {key for finding in findings for key in finding.answer.claim.papers}
    return template("report.html.j2", number=style.number, typeset=typeset).render(
        findings=findings,
        groups=_grouped(sections),
        papers={key: _named(PAPERS[key].short) for key in PAPERS if key in met},
        states={state: states.count(state) for state in SIGNS if state in states},
        count=len(sections),
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
