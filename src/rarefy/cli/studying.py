"""Verbs that run studies: ``run``, ``verify``."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.frame import (
    AsJson,
    DataFolder,
    Device,
    Jobs,
    MaxSeconds,
    Overwrite,
    Scale,
    Threads,
    app,
    complain,
    exit_on_error,
    judge_results,
    print_,
    run_in_turn,
    run_study,
    use_data_folder,
)
from rarefy.core.errors import OutOfTime, RarefyError, UsageError

if TYPE_CHECKING:
    from rarefy.core.contracts import Study, Verdict
    from rarefy.core.ledger import Change
    from rarefy.sweep.runner import Execution


@app.command()
@exit_on_error
def run(
    study: Annotated[str, typer.Argument(help="A name from [bold]rarefy studies[/].")],
    scale: Scale = "quick",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=V1,V2,...",
            help="A parameter; for an axis a list, also as first:last:step. Can be repeated.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Repeats of each grid point.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            help="Of unpruned training: primal (by weights), dual (by inner products alone, at any "
            "dimension) or auto."
        ),
    ] = None,
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    out: Annotated[Path | None, typer.Option(help="Store; runs/STUDY-SCALE if not given.")] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Also write small Parquet + JSON files into this folder; what is there already, "
            "with at least as many seeds, is not run again."
        ),
    ] = None,
    jobs: Jobs = None,
    threads: Threads = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Run a study over its grid and judge its claims.

    The store keeps what is finished: stopped or killed, the same command goes on; more --seeds
    extend it. Exit code 3 when --max-seconds were over before the end.

    Example: [bold]rarefy run contrast-alignment --scale quick --seeds 20[/]

    Example: [bold]rarefy run topk-regimes --set d=1e3,1e6,1e9 --form dual[/]
    """
    from rarefy.studies import get_study
    from rarefy.sweep.overview import verdict_table
    from rarefy.sweep.parse import parse_settings
    from rarefy.sweep.results import check_folder, find_finished, write_results

    use_data_folder(folder)
    kind = get_study(study)
    parameters = parse_settings(kind, settings or [])
    if seeds is not None:
        if "seeds" in parameters:
            raise UsageError("seeds is given twice, with --seeds and with --set")
        parameters["seeds"] = seeds
    if form is not None:
        parameters |= _chosen_form(kind, form, parameters)
    at_scale = kind.at(scale, **parameters)
    if results is not None:
        found = None if overwrite else find_finished(at_scale, scale, dtype, results)
        if found is not None:
            return _skip(found, as_json)
        check_folder(at_scale, scale, dtype, results)
    store = out if out is not None else Path("runs") / f"{kind.name}-{scale}"
    execution = run_study(
        at_scale, scale, store, device, dtype, overwrite, max_seconds, jobs, threads=threads
    )
    verdicts = []
    if execution.finished:
        verdicts = at_scale.verdicts(execution.dataset, scale)
        if results is not None:
            written = write_results(at_scale, scale, execution.dataset, results)
            print(f"results: {written}", file=sys.stderr)
    if as_json:
        typer.echo(json.dumps(_describe(at_scale, scale, execution, verdicts), indent=1))
    elif execution.finished:
        print_(verdict_table(f"{kind.name}, {scale}", verdicts))
        typer.echo(f"{execution.cells} cells in {execution.path}{_stopped_runs(execution)}")
    if not execution.finished:
        raise OutOfTime(execution.note)


def _skip(found: Path, as_json: bool) -> None:
    """Nothing to run: say so, or as JSON what a run would have said."""
    from rarefy.sweep.runner import Execution

    complain(f"results {found} are there already (--overwrite runs it again)", 0)
    if as_json:
        study, scale, dataset, verdicts = judge_results(found)
        cells = int(dataset.attrs["cells"])
        execution = Execution(dataset, found, cells, cells)
        typer.echo(json.dumps(_describe(study, scale, execution, verdicts), indent=1))


def _chosen_form(kind: type[Study], form: str, parameters: dict[str, Any]) -> dict[str, str]:
    """What ``--form`` sets; a study without a choice has weights, which pruning needs."""
    from rarefy.train.forms import check_form

    check_form(form)
    if "form" in parameters:
        raise UsageError("form is given twice, with --form and with --set")
    if "form" in {field.name for field in dataclasses.fields(kind)}:
        return {"form": form}
    if form == "dual":
        raise UsageError(
            f"form='dual': {kind.name} has only the primal form (pruning acts on weights, and only "
            "full-batch training of the patch network can do without them)"
        )
    return {}


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
    from rarefy.core.ledger import load_verdicts, save_verdicts
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
    from rarefy.core.ledger import compare
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


def _stopped_runs(execution: Execution) -> str:
    from rarefy.core.contracts import NONFINITE_STEP

    count = int((execution.dataset[NONFINITE_STEP.name] >= 0).sum())
    return f"; {count} of them stopped being finite" if count else ""


def _describe(
    study: Study, scale: str, execution: Execution, verdicts: list[Verdict]
) -> dict[str, Any]:
    from rarefy.core.ledger import verdict_to_json

    return {
        "study": study.name,
        "scale": scale,
        "store": str(execution.path),
        "cells": execution.cells,
        "cells_done": execution.cells_done,
        "finished": execution.finished,
        "provenance": json.loads(execution.dataset.attrs["provenance"]),
        "verdicts": [verdict_to_json(verdict) for verdict in verdicts],
    }
