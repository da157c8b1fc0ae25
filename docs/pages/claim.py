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


def page(answer: Answer, results: Path) -> str:
    """``results``: folder of committed results; a figure is shown where its file is there."""
    claim = answer.claim
    papers = [plain(PAPERS[key]) for key in claim.papers if key in PAPERS]
    state = answer.state[0].upper() + answer.state[1:]
    said = {
        "Under review": claim.review and f"{claim.review[0].upper()}{claim.review[1:]}.",
        "Paper says": claim.statement,
        "Its setting": claim.setting,
        "Left open": claim.choices,
        "We ran": claim.ran,
        "We saw": claim.saw,
        "So": claim.so,
        "Would change our mind": claim.change,
        "Not run": claim.not_run,
    }
    parts = [
        f"# {claim.id}: {plain(claim.line)}\n\n{MADE}",
        f"{tile(answer.state)} **{state}.** {'; '.join(papers) or 'A question of our own'}, "
        f"{plain(claim.where)}. [All claims](../claims.md)",
        *(f"**{name}.** {plain(text)}" for name, text in said.items() if text),
        *_figure(claim, results),
        *_stands_on(answer),
        *_carries(answer),
        *_run_it(claim),
    ]
    return "\n\n".join(parts) + "\n"


def pictures(answer: Answer, results: Path) -> dict[str, bytes]:
    """The images of its page, by name."""
    name, readings = answer.claim.id, _readings(answer)
    drawn = {f"{name}.png": multiverse(readings), f"{name}-published.png": forest(readings)}
    if source := _source(answer.claim, results):
        drawn[source[1]] = _drawn(answer.claim, source[0])
    return {name: image for name, image in drawn.items() if image is not None}


def _readings(answer: Answer) -> list[Verdict]:
    """Primary ones first."""
    return [part.verdict for part in answer.parts if part.verdict is not None] + list(answer.others)


def _figure(claim: Claim, results: Path) -> Iterator[str]:
    if claim.figure:
        yield f"## The figure\n\n**Published.** {plain(claim.figure)}"
    if source := _source(claim, results):
        yield "**Ours**, from `{0.stem}`:\n\n[![our picture]({1})]({1})".format(*source)


def _stands_on(answer: Answer) -> Iterator[str]:
    if not answer.parts:
        return
    why = f" Why {answer.state}: {plain(answer.why)}." if answer.why else ""
    declared = f"Declared on {answer.claim.declared}, {answer.claim.seen} results were seen."
    yield f"## What it stands on\n\n{declared}{why}"
    columns = [_part(part) for part in answer.parts]
    kept = [name for name in columns[0] if any(column[name] for column in columns)]
    heads = ["", *(part.id for part in answer.parts)]
    yield table(heads, [[name, *(column[name] for column in columns)] for name in kept])


def _part(part: Part) -> dict[str, str]:
    """A primary reading, line by line."""
    primary, verdict = part.primary, part.verdict
    interval = verdict.interval if verdict else None
    published = verdict.published if verdict else None
    return {
        "asks": plain(primary.asks),
        "expected": plain(primary.expects),
        "tolerance": f"{plain(primary.tolerance)}. {plain(primary.why)}",
        "premise": plain(primary.premise),
        "a trivial model": plain(primary.null),
        "measured": plain(verdict.measured) if verdict else "",
        "interval, 95 %": "{:.4g} to {:.4g}".format(*interval) if interval else "",
        "n": f"{verdict.n if verdict else 0} (at least {primary.least_n} needed)",
        "published": "" if published is None else f"{published:g}",
        "p, Holm": f"{part.p:.2g}" if part.p < 1 else "",
        "note": plain(verdict.note) if verdict else "",
        "comes out": f"{tile(part.state)} {part.state}",
    }


def _carries(answer: Answer) -> Iterator[str]:
    """How many other readings agree and which do not, the plots, and all readings folded."""
    name, others = answer.claim.id, answer.others
    if others:
        verb = "agree" if answer.state in ("supported", "contradicted") else "hold"
        rest = [f"- {tile(one.outcome)} {plain(one.setting)}" for one in answer.exceptions]
        yield "## How far it carries"
        yield f"{answer.agree} of {len(others)} readings under other choices {verb}."
        yield from ["The others:", "\n".join(rest)] if rest else []
    if sum(margin(verdict) is not None for verdict in _readings(answer)) > 1:
        yield f"![margins over the conditions]({name}.png)"
    if any(one.published is not None and one.value is not None for one in _readings(answer)):
        yield f"Beside the published numbers:\n\n![ours and published]({name}-published.png)"
    if others:
        rows = verdict_table(others, "study", "scale", "setting")
        yield f'<details markdown="1">\n<summary>All of them</summary>\n\n{rows}\n\n</details>'


def _run_it(claim: Claim) -> Iterator[str]:
    if claim.primaries:
        studies = dict.fromkeys(primary.study for primary in claim.primaries)
        pages = ", ".join(f"[{study}](../studies/{study}.md)" for study in studies)
        yield "## Run it\n\n```\n" + command(claim).replace(" && ", "\n") + "\n```"
        yield f"About the study: {pages}. In a terminal: `rarefy claims {claim.id}`."


def _source(claim: Claim, results: Path) -> tuple[Path, str] | None:
    """The committed results that our figure is drawn from, of the first primary that has any; and
    its name, alike for claims that show the same."""
    files = [results / f"{one.study}-{one.scale}.parquet" for one in claim.primaries]
    path = next((path for path in files if path.exists()), None)
    if path is None or not claim.figure:
        return None
    return path, "-".join(filter(None, (path.stem, claim.picture))) + ".png"


def _drawn(claim: Claim, path: Path) -> bytes:
    study, _, found = read_results(path)
    drawn = {picture.name: picture for picture in study.picture(found)}
    wanted = claim.picture or next(iter(drawn))
    if wanted not in drawn:
        raise SystemExit(f"{claim.id}: picture={wanted!r}; {study.name} has {', '.join(drawn)}")
    return small_png(draw_picture(drawn[wanted]))
