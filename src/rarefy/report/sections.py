"""One section of the page: an entry's pictures, tables, verdicts and provenance, ready to print."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.errors import UsageError
from rarefy.core.picture import HeatMap, Lines, Picture, Table
from rarefy.ledger.answers import Answer
from rarefy.report import interactive, static
from rarefy.report.panel_data import colour_limits, prepare_lines

_SVG_BYTES = 200_000  # a drawing with more is smaller as an image

_SAID = ("study", "title", "scale", "parameters")
"""Attributes of results that the page shows elsewhere."""

ROLES = {
    "primary": "Readings that decide",
    "robustness": "The same questions under other choices",
    "diagnostic": "Readings of our own",
}

Entry = tuple[Study, str, xr.Dataset, list[Verdict]]
"""One run of a study: the study, its scale, what it gave and how it was judged."""


@dataclass
class PanelView:
    """One panel: its title, live figure (packed JSON) and, on a page of few studies, still image;
    or what went wrong."""

    title: str = ""
    image: str = ""
    live: str = ""
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
    papers: tuple[str, ...]
    differs: str
    """Choices by name, such as the data, that are not those the title speaks of."""
    paper_says: str
    command: str
    as_declared: bool
    """Whether only the number of seeds was set by hand: then its readings are the ledger's."""
    verdicts: list[tuple[str, list[Verdict]]]
    """By role, those that decide first, under a heading each."""
    pictures: list[PictureView]
    tables: list[Table]
    parameters: list[tuple[str, str, str]]
    provenance: list[tuple[str, str]]
    remarks: list[str]
    problems: list[str]
    answers: list[Answer] = field(default_factory=list)

    @property
    def decides(self) -> bool:
        """Whether an answer stands on this study at this scale: a rehearsal answers nothing."""
        primaries = [part.primary for answer in self.answers for part in answer.parts]
        return (self.name, self.scale) in {(reading.study, reading.scale) for reading in primaries}

    def panels(self) -> list[PanelView]:
        """Those that could be drawn."""
        every = [panel for picture in self.pictures for panel in picture.panels]
        return [panel for panel in every if not panel.problem]

    def left_out(self) -> str:
        """How much of this entry is not on the page, and how to see it; nothing if all is."""
        gone = sum(not (panel.image or panel.live) for panel in self.panels())
        if not gone:
            return ""
        return (
            f"To keep this page small, {gone} of {len(self.panels())} panels are left out. A page "
            f"of this study alone has them: rarefy report FOLDER, where FOLDER is the store of its "
            f"run or holds its result files ({self.name}-{self.scale}.*) and no others."
        )


def section(entry: Entry, group: str, stills: bool) -> Section:
    """``stills``: with an image per panel, for print and where scripts are off."""
    study, scale, results, verdicts = entry
    problems: list[str] = []
    by_role = [
        (heading, [verdict for verdict in verdicts if verdict.role == role])
        for role, heading in ROLES.items()
    ]
    parameters, command = _parameters(study), rerun_command(study, scale)
    return Section(
        anchor=slug(f"{group}-{study.name}-{scale}"),
        name=study.name,
        title=study.title,
        scale=scale,
        group=group,
        papers=study.papers,
        differs=_differs(study, parameters),
        paper_says=study.paper_says,
        command=command,
        as_declared=scale in study.scales and "--set" not in command,
        verdicts=[(heading, mine) for heading, mine in by_role if mine],
        pictures=_pictures(study, results, problems, stills),
        tables=_tables(study, results, problems),
        parameters=parameters,
        provenance=[
            (str(name), _spelled(value))
            for name, value in results.attrs.items()
            if name not in _SAID
        ],
        remarks=_remarks(results),
        problems=problems,
    )


def _differs(study: Study, parameters: list[tuple[str, str, str]]) -> str:
    """What a title cannot know: a study of one data set may have been run on another."""
    named = [row for row in parameters if row[2] and isinstance(getattr(study, row[0]), str)]
    return "; ".join(f"{name} {value}, not {default}" for name, value, default in named)


def _pictures(
    study: Study, results: xr.Dataset, problems: list[str], stills: bool
) -> list[PictureView]:
    # a study is other people's code and its results may be half there: whatever goes wrong in
    # one figure is shown in its place, and the rest of the page stands
    try:
        pictures = study.picture(results)
    except Exception as error:
        problems.append(f"The pictures could not be made: {_told(error)}")
        return []
    return [_picture(picture, stills) for picture in pictures]


def _picture(picture: Picture, stills: bool) -> PictureView:
    view = PictureView(picture.title, picture.caption)
    try:
        limits = colour_limits(picture)
    except Exception as error:
        view.problem = f"This picture could not be drawn: {_told(error)}"
        return view
    for panel in picture.panels:
        scale = limits.get(panel.colour_label) if isinstance(panel, HeatMap) else None
        try:
            view.panels.append(_panel(panel, scale, stills))
        except Exception as error:
            problem = f"This panel could not be drawn: {_told(error)}"
            view.panels.append(PanelView(title=panel.title, problem=problem))
    return view


def small_image(study: Study, results: xr.Dataset, name: str = "") -> PanelView | None:
    """The first panel of a study's first picture, or of the one with this name; None where it
    cannot be drawn (the section says why)."""
    try:
        pictures = [one for one in study.picture(results) if one.panels]
        picture = next((one for one in pictures if one.name == name), pictures[0])
        panel = picture.panels[0]
        scale = colour_limits(picture).get(getattr(panel, "colour_label", ""))
        image = static.as_small_webp(static.draw_panel(panel, scale), panel)
    except Exception:
        return None
    return PanelView(title=f"{picture.title}. {picture.caption}", image=_data("webp", image))


def _panel(panel: Lines | HeatMap, limits: tuple[float, float] | None, stills: bool) -> PanelView:
    figure = interactive.figure(panel, limits)
    view = PanelView(
        title=panel.title,
        live=interactive.gzip_base64(json.dumps(figure, separators=(",", ":"), allow_nan=False)),
        note=_note(panel) if isinstance(panel, Lines) else "",
    )
    if stills:
        drawing = static.draw_panel(panel, limits)
        kind, content = "svg+xml", static.as_svg(drawing)
        if len(content) > _SVG_BYTES:
            kind, content = "png", static.as_png(drawing)
        view.image = _data(kind, content)
    return view


def _note(panel: Lines) -> str:
    """What of a panel cannot be seen in it."""
    shaped = prepare_lines(panel)
    words = (
        "value is zero or less and has"
        if shaped.hidden == 1
        else "values are zero or less and have"
    )
    notes = [f"{shaped.hidden} {words} no place on a logarithmic axis."] if shaped.hidden else []
    for names in shaped.together:
        if all(names):
            listed = f"{', '.join(names[:-1])} and {names[-1]}"
            notes.append(f"{listed} lie on each other; the wider line is the one below.")
    return " ".join(notes)


def _data(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


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


def slug(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")
