"""Results and verdicts as one HTML page that opens offline."""

from __future__ import annotations

import base64
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined

from rarefy import __version__
from rarefy.core.contracts import OUTCOMES, Study, Verdict
from rarefy.core.errors import RunError, UsageError
from rarefy.core.ledger import load_claims
from rarefy.core.picture import HeatMap, Lines, Picture, Table
from rarefy.report import interactive, static, style
from rarefy.report.shaping import colour_limits, shape

MOST_BYTES = 8_000_000
_SVG_BYTES = 200_000  # a drawing with more is smaller as an image
_MANY_ENTRIES = 6
"""With more, the still images (what is seen before the page's script runs) are small bitmaps: as
vectors they would make up most of a page of ten megabytes and more."""

Entry = tuple[Study, str, xr.Dataset, list[Verdict]]
"""One run of a study: the study, its scale, what it gave and how it was judged."""


@dataclass
class PanelView:
    """One panel: its title, static image and interactive figure, or what went wrong."""

    title: str = ""
    image: str = ""
    figure: interactive.Figure | None = None
    note: str = ""
    problem: str = ""


@dataclass
class PictureView:
    """One picture: its words and its panels."""

    title: str = ""
    caption: str = ""
    panels: list[PanelView] = field(default_factory=list)
    problem: str = ""


@dataclass
class Section:
    """All that the page shows of one entry."""

    anchor: str
    name: str
    title: str
    scale: str
    group: str
    paper_says: str
    command: str
    verdicts: list[dict[str, Any]]
    pictures: list[PictureView]
    tables: list[Table]
    parameters: list[tuple[str, str, str]]
    provenance: list[tuple[str, str]]
    remarks: list[str]
    problems: list[str]


def write_report(
    path: Path | str,
    fresh: Sequence[Entry],
    committed: Sequence[Entry] = (),
    advance: Callable[[float], None] | None = None,
) -> Path:
    """Write the page to ``path``: fresh results first, then the committed ones. ``advance`` is
    told of each entry that has been drawn."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"path={str(target)!r}: is a folder; name a file such as report.html")
    page = render(fresh, committed, advance).encode()
    if len(page) > MOST_BYTES:
        raise RunError(
            f"the report has {len(page) / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:g} MB: "
            "report fewer studies at a time"
        )
    _write_whole(target, page)
    return target


def render(
    fresh: Sequence[Entry],
    committed: Sequence[Entry] = (),
    advance: Callable[[float], None] | None = None,
) -> str:
    """The page as text."""
    statements = {claim["id"]: claim for claim in load_claims()}
    small = len(fresh) + len(committed) > _MANY_ENTRIES
    sections = []
    for group, entries in (("this run", fresh), ("committed", committed)):
        for entry in entries:
            sections.append(_section(entry, group, statements, small))
            if advance is not None:
                advance(1.0)
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    figures = any(panel.figure for s in sections for p in s.pictures for panel in p.panels)
    environment = Environment(
        loader=PackageLoader("rarefy.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = style.number
    return environment.get_template("report.html.j2").render(
        sections=sections,
        verdicts=verdicts,
        overview=_overview(verdicts),
        counts=[(word, Counter(v["outcome"] for v in verdicts)[word]) for word in OUTCOMES],
        claims=sorted({v["claim"] for v in verdicts}, key=_natural),
        signs=style.OUTCOMES,
        plotly=interactive.plotly_script() if figures else "",
        version=__version__,
    )


def _overview(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a claim: its statement, and for each study and scale how often which outcome."""
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
    """Every picture of a study as a PNG file of 150 dots an inch, for README files and docs."""
    paths = []
    for picture in study.picture(results):
        path = Path(folder) / f"{_slug(study.name)}-{_slug(picture.name)}.png"
        _write_whole(path, static.as_png(static.draw_picture(picture)))
        paths.append(path)
    return paths


# ---------------------------------------------------------------------------------- sections


def _section(
    entry: Entry, group: str, statements: Mapping[str, Mapping[str, str]], small: bool
) -> Section:
    study, scale, results, verdicts = entry
    problems: list[str] = []
    anchor = _slug(f"{group}-{study.name}-{scale}")
    told: set[str] = set()
    rows = []
    for verdict in verdicts:
        rows.append(
            asdict(verdict)
            | {
                "anchor": anchor,
                "group": group,
                "repeated": verdict.claim in told,
                "statement": statements.get(verdict.claim, {}).get("statement", ""),
                "where": statements.get(verdict.claim, {}).get("where", ""),
            }
        )
        told.add(verdict.claim)
    return Section(
        anchor=anchor,
        name=study.name,
        title=study.title,
        scale=scale,
        group=group,
        paper_says=study.paper_says,
        command=rerun_command(study, scale),
        verdicts=rows,
        pictures=_pictures(study, results, problems, small),
        tables=_tables(study, results, problems),
        parameters=_parameters(study),
        provenance=[(str(name), _spelled(value)) for name, value in results.attrs.items()],
        remarks=_remarks(results),
        problems=problems,
    )


def _pictures(
    study: Study, results: xr.Dataset, problems: list[str], small: bool
) -> list[PictureView]:
    # a study is other people's code and its results may be half there: whatever goes wrong in
    # one figure is shown in its place, and the rest of the page stands
    try:
        pictures = study.picture(results)
    except Exception as error:
        problems.append(f"The pictures could not be made: {_told(error)}")
        return []
    return [_picture(picture, small) for picture in pictures]


def _picture(picture: Picture, small: bool) -> PictureView:
    view = PictureView(picture.title, picture.caption)
    try:
        limits = colour_limits(picture)
    except Exception as error:
        view.problem = f"This picture could not be drawn: {_told(error)}"
        return view
    for panel in picture.panels:
        scale = limits.get(panel.colour_label) if isinstance(panel, HeatMap) else None
        try:
            view.panels.append(_panel(panel, scale, small))
        except Exception as error:
            problem = f"This panel could not be drawn: {_told(error)}"
            view.panels.append(PanelView(title=panel.title, problem=problem))
    return view


def _panel(panel: Lines | HeatMap, limits: tuple[float, float] | None, small: bool) -> PanelView:
    drawing = static.draw_panel(panel, limits)
    if small:
        kind, content = "png", static.as_small_png(drawing)
    else:
        kind, content = "svg+xml", static.as_svg(drawing)
        if len(content) > _SVG_BYTES:
            kind, content = "png", static.as_png(drawing)
    hidden = shape(panel).hidden if isinstance(panel, Lines) else 0
    words = "value is zero or less and has" if hidden == 1 else "values are zero or less and have"
    return PanelView(
        title=panel.title,
        image=f"data:image/{kind};base64,{base64.b64encode(content).decode()}",
        figure=interactive.figure(panel, limits),
        note=f"{hidden} {words} no place on a logarithmic axis." if hidden else "",
    )


def _tables(study: Study, results: xr.Dataset, problems: list[str]) -> list[Table]:
    try:
        return list(study.tables(results))
    except Exception as error:
        problems.append(f"The tables could not be made: {_told(error)}")
        return []


def _remarks(results: xr.Dataset) -> list[str]:
    """What a reader must know about the data before trusting a picture."""
    numeric = [v for v in results.data_vars.values() if np.issubdtype(v.dtype, np.number)]
    measured = [variable for variable in numeric if variable.name != "nonfinite_step"]
    if not any(np.isfinite(variable.values).any() for variable in measured):
        return ["Nothing has been computed yet: there are no values to show."]
    remarks = []
    if "nonfinite_step" in results:
        steps = np.asarray(results["nonfinite_step"].values, dtype=np.float64)
        stopped, waiting = int((steps >= 0).sum()), int(np.isnan(steps).sum())
        if waiting:
            remarks.append(f"{waiting} of {steps.size} cells have not been computed yet.")
        if stopped:
            remarks.append(f"{stopped} of {steps.size} runs stopped being finite on the way.")
    return remarks


def _parameters(study: Study) -> list[tuple[str, str, str]]:
    """(name, value, the paper's value where it differs)."""
    usual = study.__dataclass_fields__
    rows = []
    for name, value in study.parameters().items():
        default = usual[name].default
        differs = default != value and _spelled(default) != _spelled(value)
        rows.append((name, _spelled(value), _spelled(default) if differs else ""))
    return rows


def rerun_command(study: Study, scale: str) -> str:
    """The command that computes this entry again, with what was set by hand."""
    words = ["rarefy", "run", study.name, "--scale", scale]
    try:
        plain = type(study).at(scale).parameters()
    except UsageError:  # the scale is the caller's own name for it
        plain = {}
    for name, value in study.parameters().items():
        if plain and value != plain[name]:
            listed = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += ["--seeds", listed] if name == "seeds" else ["--set", f"{name}={listed}"]
    return shlex.join(words)


# ---------------------------------------------------------------------------------- workings


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _spelled(value: object) -> str:
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(_spelled(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_spelled(item)}" for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")


def _natural(claim: str) -> tuple[str, int]:
    digits = "".join(filter(str.isdigit, claim))
    return (claim.rstrip("0123456789"), int(digits or 0))


def _write_whole(path: Path, content: bytes) -> None:
    """All of the file or none: a reader never sees half a page."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    finally:
        Path(name).unlink(missing_ok=True)
