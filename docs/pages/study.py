"""studies/NAME.md: a study with its answers, figures of its committed results, and their data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages import DOCS
from pages.figures import TEXT
from pages.markdown import folded, plain, table, tile, verdict_table
from rarefy.core.contracts import Study
from rarefy.core.papers import PAPERS
from rarefy.core.parameters import parameters_of
from rarefy.core.verdict import Verdict
from rarefy.ledger.answers import Answer
from rarefy.studies.api import read_results

LONG = 12
"""Values of an axis that are listed one by one."""


@dataclass(frozen=True)
class Results:
    """Committed results as a page describes them."""

    path: Path
    study: str
    scale: str
    parameters: dict[str, Any]
    cells: int
    provenance: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> Results:
        study, scale, found = read_results(path)
        made = json.loads(found.attrs["provenance"])
        return cls(path, study.name, scale, study.parameters(), found.attrs["cells_done"], made)

    @property
    def stem(self) -> str:
        return self.path.stem

    def made(self) -> str:
        """How many cells, where and when."""
        size, unit = float(self.provenance["wall_seconds"]), "seconds"
        for larger, parts in (("minutes", 60), ("hours", 60), ("days", 24)):
            if size < 2 * parts:
                break
            size, unit = size / parts, larger
        machine, date = self.provenance["machine"], self.provenance["date"][:10]
        return f"{self.cells:,} cells in {size:.3g} {unit} on {machine}, {date}"


def page(
    kind: type[Study],
    results: Sequence[Results],
    drawn: Mapping[str, Path],
    answers: Mapping[str, Answer],
    verdicts: Sequence[Verdict],
) -> str:
    """``results`` and ``verdicts`` of this study, the results to begin with first; ``drawn``: the
    folder with the figures of each."""
    mine = [answers[name] for name in kind.claims]
    papers = "; ".join(f"*{plain(PAPERS[key])}*" for key in kind.papers if key in PAPERS)
    parts = [
        f"# {plain(kind.title)}",
        f"Study `{kind.name}`: {plain(kind.shows)}" + f"<br>\n{papers}" * bool(papers),
        *_answers(mine),
        f"## What the paper says\n\n{plain(kind.paper_says)}",
        *_figures(kind, results, drawn, mine, verdicts),
        *_run_it(kind, results),
        *_data(results),
        *_readings(results, verdicts),
        "## Parameters",
        _parameters(kind, results),
        "## Outputs",
        table(
            ["output", "dimensions", "meaning", "unit"],
            [
                [f"`{one.name}`", plain(", ".join(one.dims)), plain(one.meaning), plain(one.unit)]
                for one in kind.at("paper").outputs()
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def in_order(results: Sequence[Results], answers: Sequence[Answer]) -> list[Results]:
    """The published size first, then what claims stand on, in their order."""
    stands_on = [(one.study, one.scale) for answer in answers for one in answer.claim.primaries]

    def place(one: Results) -> tuple[bool, int, str]:
        at = (one.study, one.scale)
        return (
            one.scale != "paper",
            stands_on.index(at) if at in stands_on else len(stands_on),
            one.stem,
        )

    return sorted(results, key=place)


def answer_line(answer: Answer, up: str = "../") -> str:
    """Sign, link and sentence."""
    name = answer.claim.id
    return f"{tile(answer.state)} [{name}]({up}claims/{name}.md) {plain(answer.claim.line)}"


def _answers(answers: Sequence[Answer]) -> Iterator[str]:
    if answers:
        yield "## The answer" + "s" * (len(answers) > 1)
        yield "\n".join(f"- {answer_line(one)}" for one in answers)


def _figures(
    kind: type[Study],
    results: Sequence[Results],
    drawn: Mapping[str, Path],
    answers: Sequence[Answer],
    verdicts: Sequence[Verdict],
) -> Iterator[str]:
    if not results:
        yield (
            "## Figures\n\nNone: this study has no committed results. What it shows depends on "
            "your images; the commands below give figures of them."
        )
        return
    yield "## Figures"
    for answer in answers:
        if answer.claim.figure and kind.name in {one.study for one in answer.claim.primaries}:
            yield f"**Published** ({plain(answer.claim.where)}). {plain(answer.claim.figure)}"
    yield f"**Ours**, at scale `{results[0].scale}`: {plain(results[0].made())}."
    yield _shown(drawn[results[0].stem])
    for name in dict.fromkeys(v.about for v in verdicts if v.published is not None):
        if (DOCS / "claims" / f"{name}-published.png").exists():
            image = f"../claims/{name}-published.png"
            yield f"Beside the published numbers ([{name}](../claims/{name}.md)):"
            yield f"![ours and published]({image})"
    for one in results[1:]:
        yield folded(f"The same at scale <code>{one.scale}</code>", _shown(drawn[one.stem]))


def _shown(folder: Path) -> str:
    return (folder / TEXT).read_text("utf-8").strip()


def _run_it(kind: type[Study], results: Sequence[Results]) -> Iterator[str]:
    scales = ["quick", *(one.scale for one in results[:1])]
    lines = [f"rarefy run {kind.name} --scale {scale}" for scale in scales]
    shown = f"rarefy report runs/{kind.name}-quick --open"
    yield "## Run it\n\n```\n" + "\n".join([*lines, shown]) + "\n```"
    yield f"It needs {plain(kind.needs)}."


def _data(results: Sequence[Results]) -> Iterator[str]:
    if not results:
        return
    rows = []
    for one in results:
        links = [
            f"[{file.suffix[1:]}](../data/{file.name}) {max(1, file.stat().st_size // 1024)} kB"
            for file in (one.path, one.path.with_suffix(".json"))
        ]
        changed = {
            name: value
            for name, value in one.parameters.items()
            if value != results[0].parameters.get(name)
        }
        other = "; ".join(f"{name} = {_short(value)}" for name, value in changed.items())
        rows.append([f"`{one.scale}`", plain(one.made()), "<br>".join(links), plain(other)])
    heads = ["scale", "made", "files", f"other than at `{results[0].scale}`"]
    if len(rows) == 1:
        heads, rows = heads[:3], [row[:3] for row in rows]
    yield "## Data"
    yield table(heads, rows)
    yield (
        "One row per cell, with an output that has dimensions of its own as a flat list: "
        f'`pandas.read_parquet("{results[0].stem}.parquet")`. The JSON file has the parameters, '
        "dimensions, versions, machine and checksum."
    )


def _readings(results: Sequence[Results], verdicts: Sequence[Verdict]) -> Iterator[str]:
    if not verdicts:
        return
    yield "## All readings"
    for scale in dict.fromkeys(one.scale for one in results):
        mine = [verdict for verdict in verdicts if verdict.scale == scale]
        counts = Counter(verdict.outcome.replace("-", " ") for verdict in mine)
        told = ", ".join(f"{word} {count}" for word, count in counts.most_common())
        if mine:
            heading = f"{len(mine)} at scale <code>{scale}</code>: {told}"
            yield folded(heading, verdict_table(mine, "claim", "setting"))


def _parameters(kind: type[Study], results: Sequence[Results]) -> str:
    scale = results[0].scale if results else "paper"
    values = results[0].parameters if results else kind.at("paper").parameters()
    rows = [
        [
            f"`{one.name}`" + (" (axis)" if one.name in kind.axes else ""),
            plain(_short(values.get(one.name, ""))),
            plain(". ".join(filter(None, (one.meaning, *(rule.allowed for rule in one.rules))))),
        ]
        for one in parameters_of(kind).values()
    ]
    return table(["parameter", f"at scale `{scale}`", "meaning"], rows)


def _short(value: object) -> str:
    if not isinstance(value, tuple | list):
        return str(value)
    if len(value) > LONG:
        return f"{len(value)} values, {value[0]} ... {value[-1]}"
    return ", ".join(map(str, value))
