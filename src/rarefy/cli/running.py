"""The verb ``run``."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.claiming import show_readings, show_touched
from rarefy.cli.completing import study_names
from rarefy.cli.config import configured, keep_options
from rarefy.cli.folding import MACHINE, TRAINING
from rarefy.cli.frame import (
    complain,
    judge_path,
    run_study,
    use_data_folder,
)
from rarefy.cli.options import (
    AsJson,
    Cluster,
    DataFolder,
    Device,
    Jobs,
    MaxSeconds,
    Overwrite,
    Scale,
    Threads,
)
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.core.place import as_place
from rarefy.core.text import as_argument

if TYPE_CHECKING:
    from rarefy.core.contracts import Study, Verdict
    from rarefy.core.place import Place
    from rarefy.sweep.runner import Execution


@configured
def run(
    study: Annotated[
        str,
        typer.Argument(help="A name from [bold]rarefy studies[/].", autocompletion=study_names),
    ],
    scale: Scale = "quick",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=V,...",
            help="A parameter of the study, a list or first:last:step for an axis; can be repeated "
            "(docs/grammar.md).",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Repeats of each grid point.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            help="Of unpruned training: primal (by weights), dual (by inner products alone, at any "
            "dimension) or auto.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    device: Device = "auto",
    dtype: Annotated[
        str, typer.Option(help="float32 or float64.", rich_help_panel=MACHINE)
    ] = "float32",
    out: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Store: a folder or address (s3://...); runs/STUDY-SCALE if not given.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Also write small result files into this folder or address; what is there is not "
            "run again.",
        ),
    ] = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    threads: Threads = None,
    folder: DataFolder = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every reading, not only the claims it touches.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a study over its grid and judge its claims.

    It ends with a row per claim: how many of its readings hold in this run, and
    the answer so far. Stopped or killed, the same command goes on; more --seeds
    extend it.

    Example: [bold]rarefy run contrast-alignment --scale quick --seeds 20[/]
    Example: [bold]rarefy run topk-regimes --set d=1e3,1e6,1e9 --form dual[/]
    Example: [bold]rarefy run topk-regimes --scale paper --cluster scheduler.json[/]
    """
    from rarefy.studies import get_study

    kind = get_study(study)  # before what takes seconds to import: a wrong name is told at once
    from rarefy.studies.api import judge
    from rarefy.sweep.growing import begin_with_results
    from rarefy.sweep.parse import parse_settings
    from rarefy.sweep.results import check_folder, find_finished, write_results

    use_data_folder(folder)
    if cluster is not None and jobs is not None:
        raise UsageError("--jobs is for this machine alone; leave it out with --cluster")
    parameters = parse_settings(kind, settings or [])
    if seeds is not None:
        if "seeds" in parameters:
            raise UsageError("seeds is given twice, with --seeds and with --set")
        parameters["seeds"] = seeds
    if form is not None:
        parameters |= _chosen_form(kind, form, parameters)
    at_scale = kind.at(scale, **parameters)
    store = as_place(out if out is not None else Path("runs") / f"{kind.name}-{scale}")
    folder_of_results = None if results is None else as_place(results, "results")
    if folder_of_results is not None:
        found = None if overwrite else find_finished(at_scale, scale, dtype, folder_of_results)
        if found is not None:
            return _skip(found, as_json)
        check_folder(at_scale, scale, dtype, folder_of_results)
        if not overwrite:
            taken = begin_with_results(at_scale, scale, dtype, folder_of_results, store)
            if taken:
                complain(f"{taken} cells are taken from {results}; only the others are run", 0)
    execution = run_study(
        at_scale,
        scale,
        store,
        device,
        dtype,
        overwrite,
        max_seconds,
        jobs,
        threads=threads,
        cluster=cluster,
    )
    keep_options(store)
    verdicts = []
    if execution.finished:
        verdicts = judge(at_scale, execution.dataset, scale)
        if folder_of_results is not None:
            written = write_results(at_scale, scale, execution.dataset, folder_of_results)
            print(f"results: {written}", file=sys.stderr)
    if as_json:
        typer.echo(json.dumps(_describe(at_scale, scale, execution, verdicts), indent=1))
    elif execution.finished:
        if show_all:
            show_readings(verdicts)
        show_touched(verdicts, scale, declared=parameters.keys() <= {"seeds"})
        typer.echo(f"{execution.cells} cells in {execution.path}{_stopped_runs(execution)}")
        typer.echo(f"next: rarefy report {as_argument(execution.path)} --open")
    if not execution.finished:
        raise OutOfTime(execution.note)


def _skip(found: Place, as_json: bool) -> None:
    """Nothing to run: say so, or as JSON what a run would have said."""
    from rarefy.sweep.runner import Execution

    complain(f"results {found} are there already (--overwrite runs it again)", 0)
    if as_json:
        study, scale, dataset, verdicts = judge_path(found)
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


def _stopped_runs(execution: Execution) -> str:
    from rarefy.core.contracts import NONFINITE_STEP

    count = int((execution.dataset[NONFINITE_STEP.name] >= 0).sum())
    return f"; {count} of them stopped being finite" if count else ""


def _describe(
    study: Study, scale: str, execution: Execution, verdicts: list[Verdict]
) -> dict[str, Any]:
    from rarefy.ledger.verdicts import verdict_to_json

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
