"""The verb ``verify``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.frame import (
    app,
    complain,
    exit_on_error,
    print_,
    run_in_turn,
)
from rarefy.cli.options import (
    Device,
    MaxSeconds,
    Overwrite,
    Scale,
)
from rarefy.core.errors import RarefyError, UsageError

if TYPE_CHECKING:
    from rarefy.core.contracts import Study, Verdict
    from rarefy.ledger.verdicts import Change


@app.command()
@exit_on_error
def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="[STUDY]...")] = None,
    scale: Scale = "quick",
    device: Device = "auto",
    max_seconds: MaxSeconds = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Judge the results in this folder, at their own scales; run nothing."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the fresh verdicts into the ledger.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the stores while they fill.")] = Path(
        "runs/verify"
    ),
    overwrite: Overwrite = False,
) -> None:
    """Run studies afresh and compare their verdicts with the ledger; exit code 1 when one changed.

    Verdicts are compared at the same scale and setting: the outcome, the measured value, its
    interval and n. Without names: all studies.

    Example: [bold]rarefy verify contrast-dynamics --scale quick[/]
    """
    from rarefy.ledger.verdicts import load_verdicts, save_verdicts
    from rarefy.studies import get_study, load_studies

    kinds = [get_study(name) for name in names] if names else list(load_studies().values())
    unusable: list[str] = []
    if results is not None:
        judged = _from_results(results, [kind.name for kind in kinds] if names else None, unusable)
    else:
        judged = _from_runs(
            [kind.at(scale) for kind in kinds], scale, out, device, overwrite, max_seconds
        )
    ledger = load_verdicts()
    changed = compared = 0
    for study, at, verdicts in judged:
        changes = _show_changes(study, at, verdicts, ledger)
        compared += len(verdicts) - sum(change.kind == "new" for change in changes)
        if update:
            save_verdicts(
                verdicts, drop=[change.identity for change in changes if not change.after]
            )
        else:
            changed += sum(change.kind != "new" for change in changes)
    if unusable:
        typer.echo(f"{len(unusable)} results cannot be judged: {', '.join(unusable)}")
    if changed:
        typer.echo(f"{changed} verdicts differ from the ledger")
    if changed or unusable:
        raise typer.Exit(1)
    if update:
        typer.echo("the ledger is up to date")
    elif not compared:
        raise UsageError("nothing was compared: the ledger has no verdict of these at this scale")
    else:
        typer.echo(f"{compared} verdicts are as in the ledger")


def _from_results(
    folder: Path, names: list[str] | None, unusable: list[str]
) -> Iterator[tuple[Study, str, list[Verdict]]]:
    """Results that are damaged or do not fit are named, and the next ones judged."""
    from rarefy.studies.api import read_results
    from rarefy.sweep.results import find_results

    found = find_results(folder)
    if not found:
        raise UsageError(f"results={str(folder)!r}: no results there (Parquet with JSON beside it)")
    for path in found:
        try:
            study, scale, dataset = read_results(path)
        except RarefyError as error:
            if names is None or any(path.name.startswith(f"{name}-") for name in names):
                unusable.append(path.name)
                complain(str(error), 1)
            continue
        if names is None or study.name in names:  # (judging takes its time)
            yield study, scale, study.verdicts(dataset, scale)


def _from_runs(
    studies: list[Study],
    scale: str,
    out: Path,
    device: str,
    overwrite: bool,
    max_seconds: float | None,
) -> Iterator[tuple[Study, str, list[Verdict]]]:
    for study, at, _, verdicts in run_in_turn(studies, scale, out, device, overwrite, max_seconds):
        yield study, at, verdicts
    # the next verification must run afresh; only an unfinished one is gone on with
    for study in studies:
        shutil.rmtree(out / f"{study.name}-{scale}", ignore_errors=True)


def _show_changes(
    study: Study, scale: str, verdicts: list[Verdict], ledger: list[Verdict]
) -> list[Change]:
    """Print the verdicts beside the ledger's, and give what differs."""
    from rarefy.ledger.verdicts import compare
    from rarefy.sweep.overview import verdict_table

    changes = compare(verdicts, ledger)
    beside = {change.identity: change for change in changes}
    words = [_beside(beside.get(verdict.identity)) for verdict in verdicts]
    print_(verdict_table(f"{study.name}, {scale}", verdicts, words))
    for change in changes:
        if change.kind != "new":
            claim, _, _, setting = change.identity
            became = f"{change.before} -> {change.after or 'no verdict'}"
            typer.echo(f"{claim} in {study.name}, {setting}: {became}")
    return changes


def _beside(change: Change | None) -> str:
    """A word for the ledger's column."""
    if change is None:
        return "same"
    return "other numbers" if change.kind == "numbers" else change.before or "new"
