"""The command line. Heavy imports happen inside the verbs, so that ``--help`` is instant."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from rarefy import __version__
from rarefy.core.errors import RarefyError, UsageError

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.core.contracts import Study, Verdict
    from rarefy.sweep.runner import Execution

    Judged = tuple[Study, str, xr.Dataset, list[Verdict]]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
_debug = False
_arguments: list[str] = []

Verb = TypeVar("Verb", bound=Callable[..., None])

Scale = Annotated[str, typer.Option(help="tiny, quick or paper (see [bold]rarefy studies[/]).")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what the store holds.")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(help="Stop cleanly after so many seconds; the same command goes on."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main(arguments: list[str] | None = None) -> int:
    """Run a command line and give its exit code: 0, 1 (failure), 2 (wrong use) or 130 (stopped)."""
    global _debug
    _debug = False
    _arguments[:] = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(args=list(_arguments), prog_name="rarefy", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except Exception as error:
        if hasattr(error, "format_message"):  # the parser's own complaints, in our one-line form
            return _complain(error.format_message(), getattr(error, "exit_code", 2))
        if type(error).__name__ == "Abort":  # Ctrl-C outside a run
            return _complain("stopped", 130)
        raise


def _complain(message: str, code: int) -> int:
    print("error:" if code else "note:", " ".join(message.split()), file=sys.stderr)
    return code


def _told(verb: Verb) -> Verb:
    """Errors end a verb with one line and their exit code, never with a traceback."""

    @functools.wraps(verb)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            verb(*args, **options)
        except RarefyError as error:
            if _debug:
                raise
            raise typer.Exit(_complain(str(error), error.exit_code)) from None
        except BrokenPipeError:
            # the reader (head, less) has seen enough; nor must the last flush complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except Exception as error:
            if _debug or isinstance(error, typer.Exit) or hasattr(error, "format_message"):
                raise
            message = f"{type(error).__name__}: {error} (rarefy --debug ... shows where)"
            raise typer.Exit(_complain(message, 1)) from None

    return wrapped  # type: ignore[return-value]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rarefy {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", hidden=True)] = False,
) -> None:
    """How networks learn or lose rare features: studies of theory papers, each with a verdict.

    Start with [bold]rarefy demo[/], then [bold]rarefy studies[/].
    """
    global _debug
    _debug = debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
@_told
def studies(as_json: AsJson = False) -> None:
    """List the studies: their claims, scales and sizes.

    Example: [bold]rarefy studies[/]
    """
    from rarefy.studies import load_studies
    from rarefy.sweep.overview import overview, studies_table

    entries = [overview(kind) for kind in load_studies().values()]
    if as_json:
        typer.echo(json.dumps(entries, indent=1))
    else:
        _print(studies_table(entries))


@app.command()
@_told
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
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    out: Annotated[Path | None, typer.Option(help="Store; runs/STUDY-SCALE if not given.")] = None,
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    results: Annotated[
        Path | None, typer.Option(help="Also write small Parquet + JSON files into this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study over its grid and judge its claims.

    The store keeps what is finished: stopped or killed, the same command goes on; more --seeds
    extend it.

    Example: [bold]rarefy run contrast-alignment --scale quick --seeds 20[/]
    """
    from rarefy.studies import get_study
    from rarefy.sweep.overview import verdict_table, verdicts_as_json
    from rarefy.sweep.parse import parse_settings
    from rarefy.sweep.results import write_results

    kind = get_study(study)
    parameters = parse_settings(kind, settings or [])
    if seeds is not None:
        if "seeds" in parameters:
            raise UsageError("seeds is given twice, with --seeds and with --set")
        parameters["seeds"] = seeds
    at_scale = kind.at(scale, **parameters)
    store = out if out is not None else Path("runs") / f"{kind.name}-{scale}"
    execution = _execute(at_scale, scale, store, device, dtype, overwrite, max_seconds)
    verdicts = []
    if execution.finished:
        verdicts = at_scale.verdicts(execution.dataset, scale)
        if results is not None:
            written = write_results(at_scale, scale, execution.dataset, results)
            print(f"results: {written}", file=sys.stderr)
    if as_json:
        typer.echo(json.dumps(_described(at_scale, scale, execution, verdicts), indent=1))
    elif execution.finished:
        _print(verdict_table(f"{kind.name}, {scale}", verdicts_as_json(verdicts)))
        typer.echo(f"{execution.cells} cells in {execution.path}{_stopped_runs(execution)}")
    if not execution.finished:
        _complain(execution.note, 0)


@app.command()
@_told
def verify(
    names: Annotated[list[str] | None, typer.Argument(metavar="[STUDY]...")] = None,
    scale: Scale = "quick",
    device: Device = "auto",
    max_seconds: MaxSeconds = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the fresh verdicts into the ledger.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the stores while they fill.")] = Path(
        "runs/verify"
    ),
    overwrite: Overwrite = False,
) -> None:
    """Run studies afresh and compare their verdicts with the ledger; exit code 1 when one changed.

    Verdicts are compared at the same scale and setting. Without names: all studies.

    Example: [bold]rarefy verify contrast-dynamics --scale tiny[/]
    """
    from rarefy.core.ledger import compare, load_verdicts, save_verdicts
    from rarefy.studies import get_study, load_studies
    from rarefy.sweep.overview import verdict_table, verdicts_as_json

    kinds = [get_study(name) for name in names] if names else list(load_studies().values())
    chosen = [kind.at(scale) for kind in kinds]
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    committed = load_verdicts()
    changed = 0
    for study in chosen:
        store = out / f"{study.name}-{scale}"
        left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
        execution = _execute(study, scale, store, device, "float32", overwrite, left)
        if not execution.finished:
            _complain(f"{study.name} is not compared: {execution.note}", 0)
            continue
        fresh = study.verdicts(execution.dataset, scale)
        changes = compare(fresh, committed)
        beside = {change.identity: change for change in changes}
        rows = verdicts_as_json(fresh)
        for row, verdict in zip(rows, fresh, strict=True):
            change = beside.get(verdict.identity)
            row["ledger"] = "same" if change is None else change.before or "new"
        _print(verdict_table(f"{study.name}, {scale}", rows, ledger=True))
        for change in changes:
            if change.kind == "new":
                continue
            after = change.after or "no verdict"
            typer.echo(f"{change.identity[0]} in {study.name}: {change.before} became {after}")
        broken = [change for change in changes if change.kind != "new"]
        if update:
            save_verdicts(fresh, drop=[change.identity for change in changes if not change.after])
        else:
            changed += len(broken)
        # the next verification must run afresh; only an unfinished one is gone on with
        shutil.rmtree(store, ignore_errors=True)
    if update:
        typer.echo("the ledger is up to date")
    elif changed:
        typer.echo(f"{changed} verdicts differ from the ledger")
        raise typer.Exit(1)


@app.command()
@_told
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Stores, or results.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one self-contained HTML page about stores and committed results.

    Example: [bold]rarefy report runs/contrast-dynamics-quick results --out report.html[/]
    """
    from rarefy.report import write_report
    from rarefy.sweep.results import find_results
    from rarefy.sweep.store import open_store

    fresh: list[Judged] = []
    committed: list[Judged] = []
    for folder in folders:
        found = find_results(folder) if folder.is_dir() else []
        if found:
            committed += [_committed(path) for path in found]
            continue
        store = open_store(folder)
        done = store.done()
        if not done.all():
            raise UsageError(
                f"store {folder} has {done.sum()} of {len(done)} cells; finish its run first"
            )
        dataset = store.read()
        verdicts = store.study.verdicts(dataset, store.scale)
        fresh.append((store.study, store.scale, dataset, verdicts))
    write_report(out, fresh=fresh, committed=committed)
    typer.echo(f"report: {out}")


@app.command()
@_told
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and runs/demo.")] = Path("."),
    results: Annotated[Path, typer.Option(help="Committed results, if there are any.")] = Path(
        "results"
    ),
    device: Device = "auto",
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
) -> None:
    """Run the headline study of each laboratory at quick scale and write report.html.

    Example: [bold]rarefy demo[/]
    """
    from rarefy.report import write_report
    from rarefy.studies import load_studies
    from rarefy.sweep.overview import verdict_table, verdicts_as_json
    from rarefy.sweep.results import find_results

    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    fresh: list[Judged] = []
    for kind in load_studies().values():
        if not kind.headline:
            continue
        study = kind.at("quick")
        store = out / "runs" / "demo" / f"{kind.name}-quick"
        left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
        execution = _execute(study, "quick", store, device, "float32", overwrite, left)
        if not execution.finished:
            _complain(execution.note, 0)
            return
        verdicts = study.verdicts(execution.dataset, "quick")
        fresh.append((study, "quick", execution.dataset, verdicts))
    for study, scale, _, verdicts in fresh:
        _print(verdict_table(f"{study.name}, {scale}", verdicts_as_json(verdicts)))
    committed: list[Judged] = []
    for path in find_results(results):
        try:
            committed.append(_committed(path))
        except RarefyError as error:  # results of a study that has moved on must not stop a demo
            _complain(f"{path} is left out: {error}", 0)
    page = out / "report.html"
    write_report(page, fresh=fresh, committed=committed)
    typer.echo(f"report: {page}")


def _execute(
    study: Study,
    scale: str,
    out: Path,
    device: str,
    dtype: str,
    overwrite: bool,
    max_seconds: float | None,
) -> Execution:
    from rarefy.sweep.runner import execute

    # going on must not begin by replacing what was finished
    again = [argument for argument in _arguments if argument != "--overwrite"]
    return execute(
        study,
        scale,
        device,
        dtype,
        out,
        overwrite,
        max_seconds,
        progress=True,
        go_on=f"rarefy {shlex.join(again)}",
    )


def _stopped_runs(execution: Execution) -> str:
    from rarefy.core.contracts import NONFINITE_STEP

    count = int((execution.dataset[NONFINITE_STEP.name] >= 0).sum())
    return f"; {count} of them stopped being finite" if count else ""


def _committed(path: Path) -> Judged:
    from rarefy.sweep.results import read_results

    study, scale, dataset = read_results(path)
    return study, scale, dataset, study.verdicts(dataset, scale)


def _described(
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


def _print(what: Any) -> None:
    from rich.console import Console

    console = Console()
    with console.capture() as drawn:
        console.print(what)
    # written by us: rich would end the process itself when the reader is gone
    typer.echo(drawn.get(), nl=False)
