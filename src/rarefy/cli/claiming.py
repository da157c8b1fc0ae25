"""The verb ``claims``: what the papers say, and what came out."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from rarefy.cli.frame import app, exit_on_error, print_
from rarefy.cli.options import AsJson
from rarefy.ledger.claims import SIGNS

if TYPE_CHECKING:
    from rarefy.core.tables import Table
    from rarefy.core.verdict import Verdict
    from rarefy.ledger.answers import Answer, Part

_COLOURS = ("green", "red", "magenta", "cyan", "yellow", "dim")
MARKS = {state: (SIGNS[state], colour) for state, colour in zip(SIGNS, _COLOURS, strict=True)}
_OUTCOMES = {
    "holds": MARKS["supported"],
    "fails": MARKS["contradicted"],
    "inconclusive": MARKS["undecided"],
    "premise-not-met": MARKS["premise not met"],
    "not-run": MARKS["not run"],
}
LABEL = 17
"""Columns for the names of an answer's parts."""
WIDEST = 110
TOO_SMALL, OTHER_SETTING = "too small to tell", "another setting"
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
    """What the papers claim, and our answer to each.

    With an id, or words that one claim fits: the whole answer, the numbers it
    stands on, how far it carries, and the command that runs it.

    ✓ supported; ✗ contradicted; < there, but smaller than published; ∅ the
    claim's premise is not met; ? undecided: too few repeats, or the numbers allow
    both; – not run. An answer stands on one to three readings that were declared
    for it, never on how many others agree.

    Example: [bold]rarefy claims B6[/]
    Example: [bold]rarefy claims "Xu Chen figure 3"[/]
    Example: [bold]rarefy claims --paper 002 --figure "Table 1"[/]
    """
    from rarefy.ledger.claims import load_claims
    from rarefy.ledger.search import families, find

    words = " ".join(what or [])
    wanted = find(load_claims(), words, paper or "", figure or "")
    grouped = families(wanted)
    first = next(iter(grouped), "")
    if not as_json:  # to be read while scipy is imported
        print_(Text(first, "bold"))
    from rarefy.ledger.api import current_answers, in_full

    found = current_answers()
    if as_json:
        typer.echo(json.dumps([in_full(found[claim.id]) for claim in wanted], indent=1))
        return
    for heading, mine in grouped.items():
        if heading != first:
            print_(Text(heading, "bold"))
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
    return hanging(Text(f"{mark} {answer.claim.id:<4}", colour), answer.claim.sentence)


def hanging(start: Text, text: str) -> Text:
    """The text goes on under itself, to the right of ``start``."""
    lines = textwrap.wrap(text, _width() - start.cell_len) or [""]
    return start + Text(("\n" + " " * start.cell_len).join(lines))


def _width() -> int:
    from rich.console import Console

    return max(40, min(Console().width, WIDEST))


def _count(answers: list[Answer]) -> None:
    states = [answer.state for answer in answers]
    counted = [f"{mark} {word} {states.count(word)}" for word, (mark, _) in MARKS.items()]
    lines = [""]
    for one in counted:
        if not one.endswith(" 0"):  # a line ends between two, never within one
            wide = len(f"{lines[-1]}   {one}") > _width()
            lines[-1:] = [lines[-1], one] if wide else [f"{lines[-1]}   {one}".strip()]
    there = "\n".join(lines)
    print_(Text(f"\n{there}\nrarefy claims {answers[0].claim.id} shows one of them whole"))


def _show(answer: Answer) -> None:
    """The whole answer."""
    from rarefy.ledger.api import command

    claim = answer.claim
    mark, colour = MARKS[answer.state]
    print_(Text(f"{mark} {claim.id} {answer.state}", colour) + Text(f"  ({claim.where})"))
    print_(hanging(Text(), claim.line))
    typer.echo()
    parts = {
        "under review": claim.review,
        "paper says": claim.statement,
        "its setting": claim.setting,
        "left open": claim.choices,
        "the figure": claim.figure,
        "we ran": claim.ran,
        "we saw": claim.saw,
        "so": claim.so,
        "mind changed by": claim.change,
        "not run": claim.not_run,
    }
    for name, text in parts.items():
        if text:
            print_(hanging(Text(f"{name:<{LABEL}}", "bold"), text))
    if answer.parts:
        declared = f"declared {claim.declared}, {claim.seen} results were seen"
        print_(Text(f"\nIt stands on ({declared}):"))
    for part in answer.parts:
        _show_part(part)
    if answer.why:
        print_(hanging(Text("why: "), answer.why))
    if answer.others:
        print_(Text(f"\n{spell_robustness(answer)}"))
        for one in answer.exceptions[:SHOWN]:
            short = f"{one.outcome}: {one.setting}"
            print_(Text("  " + textwrap.shorten(short, _width() - 2, placeholder=" …")))
        if len(answer.exceptions) > SHOWN:
            print_(Text(f"  and {len(answer.exceptions) - SHOWN} more (--json has all)"))
    if answer.parts:
        typer.echo(f"\nrun it: {command(claim)}")
        # our figure before the margins of all readings; outside a checkout there is neither
        pages = Path("docs/claims")
        names = [f"{one.study}-{one.scale}" for one in claim.primaries if claim.figure]
        paths = [pages / f"{name}.png" for name in (*names, claim.id)]
        if drawn := [path for path in paths if path.exists()]:
            typer.echo(f"picture: {drawn[0]}")


def spell_robustness(answer: Answer) -> str:
    """ "12 of 18 readings under other choices agree"."""
    exceptions = "; exceptions:" if answer.exceptions else ""
    verb = "agree" if answer.state in ("supported", "contradicted") else "hold"
    return f"{answer.agree} of {len(answer.others)} readings under other choices {verb}{exceptions}"


def _show_part(part: Part) -> None:
    mark, colour = MARKS[part.state]
    print_(hanging(Text(f"  {mark} {part.id:<5} ", colour), part.primary.asks))
    verdict, said = part.verdict, []
    if verdict is not None:
        published = "" if verdict.published is None else f"; published {verdict.published:g}"
        said = [f"expected {verdict.predicted}; {verdict.measured}; n {verdict.n}{published}"]
    said.append(f"a trivial model: {part.primary.null}")
    if part.primary.premise:
        said.append(f"premise: {part.primary.premise}")
    for line in said:
        print_(hanging(Text(" " * 10), line))


def show_touched(verdicts: Iterable[Verdict], scale: str, declared: bool) -> None:
    """What a run says about the claims it touched: a row each, beside it the ledger's answer, or
    the answer computed again where the run is one that was ``declared`` for it."""
    from rarefy.ledger.api import answers_with, current_answers

    verdicts, known = list(verdicts), current_answers()
    fresh = answers_with(verdicts) if declared else known
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.about in known:
            by_claim.setdefault(verdict.about, []).append(verdict)
    rows: list[list[str | Text]] = []
    for name, mine in by_claim.items():
        now, before = fresh[name], known[name]
        mark, colour = MARKS[now.state]
        said = now.claim.sentence
        if now.state != before.state:
            why = f" ({now.why})" if now.why else ""
            said = f"changed: {before.state} in the ledger, {now.state} by this run{why}"
        rows.append([name, spell_run(mine, now, declared), Text(f"{mark} ", colour) + Text(said)])
    if rows:
        print_(short_table({"claim": 5, f"this run ({scale})": 20, "answer": 0}, rows))
    for word in (TOO_SMALL, OTHER_SETTING):
        if word in (row[1] for row in rows):
            typer.echo(f"{word}: the answer stands on other runs, which rarefy claims ID names")


def spell_run(verdicts: list[Verdict], answer: Answer, declared: bool) -> str:
    """How the primary readings came out in one run; without any, how many of the others hold. A
    rehearsal that comes out otherwise than the answer contradicts nothing."""
    primaries = [verdict for verdict in verdicts if verdict.role == "primary"]
    counted = primaries or verdicts
    decided = answer.state in ("supported", "contradicted")
    agrees = decided and all(verdict.outcome == answer.word for verdict in counted)
    scale = counted[0].scale
    deciding = {part.primary.scale for part in answer.parts}
    if scale == "tiny" or (scale == "quick" and "quick" not in deciding and not agrees):
        return TOO_SMALL
    if not agrees and not declared:
        return OTHER_SETTING
    if all(verdict.outcome == "premise-not-met" for verdict in counted):
        return "premise not met"
    least = min(verdict.n for verdict in counted)
    holding = sum(verdict.outcome == "holds" for verdict in counted)
    words = f"{holding} of {len(counted)}"
    return f"{words} hold, n {least}" if primaries else f"{words} others hold"


def show_readings(verdicts: Iterable[Verdict]) -> None:
    """Every reading of a run, those that decide first."""
    roles = ("primary", "robustness", "diagnostic")
    columns = {"claim": 7, "predicted": 0, "measured": 0, "n": 4, "setting": 0}
    rows: list[list[str | Text]] = []
    for one in sorted(verdicts, key=lambda one: roles.index(one.role)):
        sign, colour = _OUTCOMES[one.outcome]
        name = Text(f"{sign} ", colour) + Text(one.claim or "own")
        rows.append([name, one.predicted, one.measured, str(one.n), one.setting])
    print_(short_table(columns, rows))
    typer.echo(", ".join(f"{sign} {outcome}" for outcome, (sign, _) in _OUTCOMES.items()) + "\n")


def short_table(columns: dict[str, int], rows: list[list[str | Text]]) -> Table:
    """No row takes more than two lines. ``columns``: heads with their widths; those of 0 share what
    is left."""
    from rich.console import Console

    from rarefy.core.tables import make_table

    console = Console()
    wide = max(40, console.width) - 2 * (len(columns) - 1) - sum(columns.values())
    widths = [width or wide // list(columns.values()).count(0) for width in columns.values()]

    def short(cell: str | Text, width: int) -> Text:
        lines = (Text(cell) if isinstance(cell, str) else cell).wrap(console, width)
        for line in lines:
            line.rstrip()
        if len(lines) > 2:
            lines[1].truncate(width - 2)
            lines[1].append(" …")
        return Text("\n").join(lines[:2])

    heads = {short(head, width).plain: "" for head, width in zip(columns, widths, strict=True)}
    return make_table(
        heads, [[short(*pair) for pair in zip(row, widths, strict=True)] for row in rows]
    )
