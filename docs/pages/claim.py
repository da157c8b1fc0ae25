"""docs/claims/ID.md: the whole answer to one claim, and its plots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pages.margins import forest, margin, multiverse, small_png
from pages.markdown import MADE, plain, table, tile, verdict_table
from rarefy.core.papers import PAPERS
from rarefy.core.verdict import Verdict
from rarefy.ledger.answers import Answer, Part
from rarefy.ledger.api import command
from rarefy.ledger.claims import Claim
from rarefy.report.static import draw_picture
from rarefy.studies.api import read_results

WORDS = {
    "Paper says": "statement",
    "Its setting": "setting",
    "Left open": "choices",
    "We ran": "ran",
    "We saw": "saw",
    "So": "so",
    "Would change our mind": "change",
    "Not run": "not_run",
}


def page(answer: Answer, results: Path) -> str:
    """``results``: folder of committed results; a figure is shown where its file is there."""
    claim = answer.claim
    said = {name: plain(getattr(claim, field)) for name, field in WORDS.items()}
    parts = [
        f"# {claim.id}: {plain(claim.line)}\n\n{MADE}",
        f"{tile(answer.state)} **{answer.state[0].upper()}{answer.state[1:]}.** "
        f"{_papers(claim)}, {plain(claim.where)}. [All claims](../claims.md)",
        *(f"**{name}.** {text}" for name, text in said.items() if text),
        *_figure(claim, results),
        *_stands_on(answer),
        *_carries(answer),
        *_published(answer),
        *_run_it(claim),
    ]
    return "\n\n".join(parts) + "\n"


def pictures(answer: Answer, results: Path) -> dict[str, bytes]:
    """The images of its page, by name."""
    claim, own = answer.claim, _primaries(answer)
    name = _study_picture(claim, results)
    drawn = {
        f"{claim.id}.png": multiverse(own, answer.others),
        f"{claim.id}-published.png": forest([*own, *answer.others]),
        name: _drawn(claim, results) if name else None,
    }
    return {name: image for name, image in drawn.items() if image is not None}


def _papers(claim: Claim) -> str:
    names = [plain(PAPERS[key]) for key in claim.papers if key in PAPERS]
    return "; ".join(names) or "A question of our own"


def _primaries(answer: Answer) -> list[Verdict]:
    return [part.verdict for part in answer.parts if part.verdict is not None]


# ------------------------------------------------------------------------------------------- pieces


def _figure(claim: Claim, results: Path) -> Iterator[str]:
    """Words about the published figure beside our picture."""
    if not claim.figure:
        return
    yield "## The figure"
    yield f"**Published.** {plain(claim.figure)}"
    if name := _study_picture(claim, results):
        yield "**Ours.** From the committed results of the first primary reading's study:"
        yield f"[![our picture]({name})]({name})"


def _stands_on(answer: Answer) -> Iterator[str]:
    if not answer.parts:
        return
    claim = answer.claim
    yield "## What it stands on"
    seen = f"{claim.seen} its results were seen"
    yield f"Declared on {claim.declared}, {seen}." + (
        f" {plain(answer.why[0].upper() + answer.why[1:])}." if answer.why else ""
    )
    columns = [_part(part) for part in answer.parts]
    kept = [name for name in columns[0] if any(column[name] for column in columns)]
    heads = ["", *(part.id for part in answer.parts)]
    yield table(heads, [[name, *(column[name] for column in columns)] for name in kept])


def _part(part: Part) -> dict[str, str]:
    """A primary reading, line by line."""
    primary, verdict = part.primary, part.verdict
    said = {
        "asks": plain(primary.asks),
        "expected": plain(primary.expects),
        "tolerance": f"{plain(primary.tolerance)}: {plain(primary.why)}",
        "premise": plain(primary.premise),
        "a trivial model": plain(primary.null),
    }
    measured = dict.fromkeys(
        ("measured", "interval, 95 %", "n", "published", "p, Holm", "note"), ""
    )
    if verdict is not None:
        interval = "{:.4g} to {:.4g}".format(*verdict.interval) if verdict.interval else ""
        published = "" if verdict.published is None else f"{verdict.published:g}"
        p = f"{part.p:.2g}" if part.p < 1 else ""
        n = f"{verdict.n} (at least {primary.least_n} needed)"
        values = (plain(verdict.measured), interval, n, published, p, plain(verdict.note))
        measured = dict(zip(measured, values, strict=True))
    return {**said, **measured, "comes out": f"{tile(part.state)} {part.state}"}


def _carries(answer: Answer) -> Iterator[str]:
    """The fraction, its exceptions, the plot; the readings folded."""
    shown = [v for v in (*_primaries(answer), *answer.others) if margin(v) is not None]
    if not answer.others and len(shown) < 2:
        return
    yield "## How far it carries"
    if answer.others:
        verb = "agree" if answer.state in ("supported", "contradicted") else "hold"
        agree = f"{answer.agree} of {len(answer.others)} readings under other choices {verb}"
        yield agree + (". The others:" if answer.exceptions else ".")
        if answer.exceptions:
            yield "\n".join(
                f"- {tile(one.outcome)} {plain(one.setting)} (`{one.study}`)"
                for one in answer.exceptions
            )
    if len(shown) > 1:
        yield f"![margins over the conditions]({answer.claim.id}.png)"
    if answer.others:
        rows = verdict_table(answer.others, "study", "scale", "setting")
        yield f'<details markdown="1">\n<summary>All of them</summary>\n\n{rows}\n\n</details>'


def _published(answer: Answer) -> Iterator[str]:
    verdicts = [*_primaries(answer), *answer.others]
    if any(v.published is not None and v.value is not None for v in verdicts):
        yield "## Beside the published numbers"
        yield f"![ours and published]({answer.claim.id}-published.png)"


def _run_it(claim: Claim) -> Iterator[str]:
    if not claim.primaries:
        return
    yield "## Run it"
    yield "```\n" + command(claim).replace(" && ", "\n") + "\n```"
    studies = dict.fromkeys(primary.study for primary in claim.primaries)
    pages = ", ".join(f"[{study}](../studies/{study}.md)" for study in studies)
    yield f"About the study: {pages}. In a terminal: `rarefy claims {claim.id}`."


def _results(claim: Claim, results: Path) -> Path | None:
    """The committed results of the first primary that has any."""
    files = [results / f"{one.study}-{one.scale}.parquet" for one in claim.primaries]
    return next((path for path in files if path.exists()), None)


def _study_picture(claim: Claim, results: Path) -> str:
    """Its name, alike for claims that show the same; "" where there is nothing to show."""
    path = _results(claim, results) if claim.figure else None
    return f"{path.stem}{'-' * bool(claim.picture)}{claim.picture}.png" if path else ""


def _drawn(claim: Claim, results: Path) -> bytes:
    path = _results(claim, results)
    assert path is not None
    study, _, found = read_results(path)
    drawn = {picture.name: picture for picture in study.picture(found)}
    wanted = claim.picture or next(iter(drawn))
    if wanted not in drawn:
        raise SystemExit(f"{claim.id}: picture={wanted!r}; {study.name} has {', '.join(drawn)}")
    return small_png(draw_picture(drawn[wanted]))
