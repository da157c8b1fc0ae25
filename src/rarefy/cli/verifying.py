"""The verb ``verify``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.frame import app, complain, exit_on_error, judge_path, results_in
from rarefy.core.errors import RarefyError, UsageError
from rarefy.core.place import as_place

if TYPE_CHECKING:
    from rarefy.core.contracts import Study, Verdict
    from rarefy.ledger.answers import Answer, Part
    from rarefy.ledger.verdicts import Change


@app.command()
@exit_on_error
def verify(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Results, folders of them, or stores; addresses too."
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the fresh verdicts into the ledger.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Every reading that differs, not only the answers.")
    ] = False,
) -> None:
    """Judge results afresh; say which answers changed, and why.

    Without paths: the committed results in the folder [bold]results[/]. Exit code
    1 when an answer changed, when a reading has other numbers than the ledger, or
    when an answer's words no longer fit its numbers.

    Example: [bold]rarefy verify[/]
    Example: [bold]rarefy run topk-regimes --scale paper && rarefy verify runs/topk-regimes-paper[/]
    """
    from rarefy.ledger.api import answers_with, current_answers
    from rarefy.ledger.quotes import unfounded
    from rarefy.ledger.verdicts import compare, load_verdicts, save_verdicts

    unusable: list[str] = []
    unknown: list[str] = []
    fresh: list[Verdict] = []
    changes: list[Change] = []
    ledger, before = load_verdicts(), current_answers()
    if not paths and not Path("results").is_dir():
        raise UsageError(
            "no committed results here (results/ is missing): name result files or stores, or run "
            "it in a checkout"
        )
    for study, scale, verdicts in _judged(paths or ["results"], unusable):
        found = compare(verdicts, ledger)
        known = any((v.study, v.scale) == (study.name, scale) for v in ledger)
        if verdicts and not known and not update:
            unknown.append(f"{study.name} at scale {scale}")
            continue
        changes += found
        fresh += verdicts
        if update:
            save_verdicts(verdicts, drop=[change.identity for change in found if not change.after])
    if unknown:
        said = f"the ledger has no verdict of {', '.join(unknown)}"
        if not fresh:
            raise UsageError(said)
        typer.echo(said)
    after = answers_with(fresh)
    changed = [name for name in after if after[name].state != before[name].state]
    for name in changed:
        typer.echo(f"{name}: {before[name].state} -> {after[name].state}{_why(after[name])}")
        for part in after[name].parts:
            if said := _moved(part, before[name]):
                typer.echo(f"  {said}")
    touched = {verdict.about for verdict in fresh}
    wrong = [(name, said) for name in after if name in touched for said in unfounded(after[name])]
    for name, said in wrong:
        typer.echo(f"{name}, the words: {said}")
    readings = [] if update else changes
    for change in readings if show_all else ():
        claim, study_name, _, setting = change.identity
        typer.echo(
            f"{claim or 'own'} in {study_name}, {setting}: {change.before} -> {change.after}"
        )
    if readings:
        hint = "" if show_all else " (--all lists them)"
        typer.echo(f"{len(readings)} of {len(fresh)} readings differ from the ledger{hint}")
    if unusable:
        typer.echo(f"{len(unusable)} results cannot be judged: {', '.join(unusable)}")
    if (changed and not update) or wrong or readings or unusable:
        raise typer.Exit(1)
    typer.echo(f"{len(touched - {''})} answers and {len(fresh)} readings are as in the ledger")


def _why(answer: Answer) -> str:
    return f" ({answer.why})" if answer.why else ""


def _moved(part: Part, before: Answer) -> str:
    """How a primary reading changed, or "" where it did not."""
    known = next((one.verdict for one in before.parts if one.id == part.id), None)
    was, now = (
        f"{one.outcome}, {one.measured}, n {one.n}" if one else "no verdict"
        for one in (known, part.verdict)
    )
    return f"{part.id}: {was} -> {now}" if was != now else ""


def _judged(paths: list[str], unusable: list[str]) -> Iterator[tuple[Study, str, list[Verdict]]]:
    """Results that are damaged or do not fit are named, and the next ones judged."""
    for path in dict.fromkeys(as_place(one, "path") for one in paths):
        found = results_in(path)
        for one in found:
            try:
                study, scale, _, verdicts = judge_path(one)
            except RarefyError as error:
                if found == [path]:
                    raise
                unusable.append(one.name)
                complain(str(error), 1)
                continue
            yield study, scale, verdicts
