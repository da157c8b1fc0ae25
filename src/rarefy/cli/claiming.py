"""The verb ``claims``: what the papers say, and what came out."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from rarefy.cli.frame import app, exit_on_error, print_
from rarefy.cli.options import AsJson

if TYPE_CHECKING:
    from rarefy.core.verdict import Verdict
    from rarefy.ledger.answers import Answer, Part

MARKS = {
    "supported": ("✓", "green"),
    "contradicted": ("✗", "red"),
    "smaller than published": ("<", "magenta"),
    "premise not met": ("∅", "cyan"),
    "undecided": ("?", "yellow"),
    "not run": ("–", "dim"),
}
SHOWN = 5
"""Exceptions named in a terminal."""


@app.command()
@exit_on_error
def claims(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CLAIM | WORDS]...", help="An id, or what it is about."),
    ] = None,
    paper: Annotated[str | None, typer.Option(help="Of one paper: 003, or its authors.")] = None,
    figure: Annotated[str | None, typer.Option(help="Of one figure, table or theorem.")] = None,
    as_json: AsJson = False,
) -> None:
    """What the papers claim, and our answer to each: one line per claim.

    With an id, or words that one claim fits: the whole answer, the numbers it stands on, how far it
    carries, and the command that runs it.

    Example: [bold]rarefy claims B6[/]

    Example: [bold]rarefy claims "Xu Chen figure 3"[/]

    Example: [bold]rarefy claims --paper 002 --figure "Table 1"[/]
    """
    from rarefy.ledger.api import current_answers, in_full
    from rarefy.ledger.claims import load_claims
    from rarefy.ledger.search import families, find

    words = " ".join(what or [])
    wanted = find(load_claims(), words, paper or "", figure or "")
    found = current_answers()
    if as_json:
        typer.echo(json.dumps([in_full(found[claim.id]) for claim in wanted], indent=1))
        return
    for heading, mine in families(wanted).items():
        print_(Text(f"{heading}", "bold"))
        for claim in mine:
            if len(wanted) == 1:
                _show(found[claim.id])
            else:
                print_(answer_line(found[claim.id]))
    if len(wanted) > 1:
        _count([found[claim.id] for claim in wanted])


def answer_line(answer: Answer) -> Text:
    """Mark, id and sentence; a long one goes on under itself."""
    mark, colour = MARKS[answer.state]
    text = Text.assemble((f"{mark} {answer.claim.id:<4}", colour), answer.claim.line)
    return hanging(text, 6)


def hanging(text: Text, indent: int) -> Text:
    """Lines after the first stand ``indent`` to the right."""
    from rich.console import Console

    console = Console()
    lines = text[indent:].wrap(console, max(console.width, 40) - indent)
    return text[:indent] + Text("\n" + " " * indent).join(lines)


def _count(answers: list[Answer]) -> None:
    states = [answer.state for answer in answers]
    counted = [f"{mark} {word} {states.count(word)}" for word, (mark, _) in MARKS.items()]
    typer.echo()
    print_(Text("   ".join(one for one in counted if not one.endswith(" 0"))))
    typer.echo(f"rarefy claims {answers[0].claim.id} shows one of them whole")


def _show(answer: Answer) -> None:
    """The whole answer."""
    from rarefy.ledger.api import command

    claim = answer.claim
    mark, colour = MARKS[answer.state]
    print_(Text.assemble((f"{mark} {claim.id}: {answer.state}", colour), f"   ({claim.where})"))
    typer.echo()
    parts = {
        "paper says": claim.statement,
        "its setting": claim.setting,
        "left open": claim.choices,
        "the figure": claim.figure,
        "we ran": claim.ran,
        "we saw": claim.saw,
        "so": claim.so,
        "would change our mind": claim.change,
        "not run": claim.not_run,
    }
    for name, text in parts.items():
        if text:
            typer.echo(textwrap.fill(f"{name.upper()}: {text}", _width(), subsequent_indent="  "))
    if answer.parts:
        declared = f"declared {claim.declared}, results seen: {claim.seen}"
        typer.echo(f"\nIt stands on ({declared} the declaration):")
    for part in answer.parts:
        _show_part(part)
    if answer.why:
        typer.echo(textwrap.fill(f"why: {answer.why}", _width(), subsequent_indent="  "))
    if answer.others:
        typer.echo(f"\n{spell_robustness(answer)}")
        for one in answer.exceptions[:SHOWN]:
            typer.echo(textwrap.shorten(f"  {one.outcome}: {one.setting}", _width()))
        if len(answer.exceptions) > SHOWN:
            typer.echo(f"  and {len(answer.exceptions) - SHOWN} more (--json has all)")
    if answer.parts:
        typer.echo(f"\nrun it: {command(claim)}\npicture: docs/claims/{claim.id}.png")


def spell_robustness(answer: Answer) -> str:
    """ "12 of 18 readings under other choices agree"."""
    exceptions = "; exceptions:" if answer.exceptions else ""
    return f"{answer.agree} of {len(answer.others)} readings under other choices agree{exceptions}"


def _show_part(part: Part) -> None:
    mark, colour = MARKS[part.state]
    primary = part.primary
    print_(hanging(Text.assemble((f"  {mark} {part.id:<5}", colour), primary.asks), 10))
    verdict = part.verdict
    if verdict is not None:
        said = f"expected {verdict.predicted}; {verdict.measured}; n {verdict.n}"
        if verdict.published is not None:
            said += f"; published {verdict.published:g}"
        typer.echo(_indented(said))
    typer.echo(_indented(f"a trivial model: {primary.null}"))
    if primary.premise:
        typer.echo(_indented(f"premise: {primary.premise}"))


def _indented(text: str) -> str:
    return textwrap.fill(text, _width(), initial_indent=" " * 10, subsequent_indent=" " * 10)


def _width() -> int:
    from rich.console import Console

    return max(40, min(Console().width, 100))


def show_touched(verdicts: Iterable[Verdict], scale: str) -> None:
    """What a run says about the claims it touched: a line each, the ledger's answer beside it."""
    from rarefy.core.tables import make_table
    from rarefy.ledger.api import current_answers

    found = current_answers()
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.about in found:
            by_claim.setdefault(verdict.about, []).append(verdict)
    rows = []
    for name, mine in by_claim.items():
        mark, colour = MARKS[found[name].state]
        line = Text.assemble((f"{mark} ", colour), found[name].claim.line)
        rows.append([name, _here(mine), line])
    if rows:
        columns = dict.fromkeys(("claim", f"this run ({scale})", "the ledger's answer"), "")
        print_(make_table(columns, rows))


def _here(verdicts: list[Verdict]) -> str:
    """How the primary readings came out in one run; without any, how many of the others hold."""
    primaries = [verdict for verdict in verdicts if verdict.role == "primary"] or verdicts
    holds = sum(verdict.outcome == "holds" for verdict in primaries)
    least = min(verdict.n for verdict in primaries)
    return f"{holds} of {len(primaries)} hold, n {least}"
