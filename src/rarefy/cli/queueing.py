"""The verb ``queue``: runs of studies from a file, one after the other."""

from __future__ import annotations

import dataclasses
import gc
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.frame import (
    AsJson,
    DataFolder,
    Device,
    Jobs,
    MaxSeconds,
    Threads,
    app,
    complain,
    print_,
    run_study,
    told,
    use_data_folder,
)
from rarefy.core.errors import Interrupted, RarefyError, bad_value

if TYPE_CHECKING:
    from rarefy.core.tables import Table
    from rarefy.sweep.queue import Entry, Standing

COLOURS = {
    "done in results": "green",
    "done": "green",
    "to be written": "yellow",
    "partly": "yellow",
    "waiting": "dim",
    "busy": "yellow",
    "refused": "red",
    "failed": "red",
}
LOCKED = "is being written by another process"
"""How the store's lock says so."""


@app.command()
@told
def queue(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="One run a line; # begins a comment.")],
    list_: Annotated[
        bool, typer.Option("--list", help="Only show how far each line is; run nothing.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of the stores, STUDY-SCALE each; those with --set: a hash.")
    ] = Path("runs"),
    results: Annotated[
        Path | None,
        typer.Option(help="Write what is finished here; what is here already is not run again."),
    ] = None,
    max_seconds: MaxSeconds = None,
    stop_at_error: Annotated[
        bool, typer.Option("--stop-at-error", help="Do not go on with the next line.")
    ] = False,
    device: Device = "auto",
    jobs: Jobs = None,
    threads: Threads = None,
    folder: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Run the studies that a file lists, one after the other; exit code 1 when one failed.

    A line holds the arguments of [bold]rarefy run[/] without the word run: a study, and any of
    --scale, --seeds, --set, --dtype, --jobs. For example

        contrast-alignment --scale quick --seeds 20

        contrast-pruning --scale quick --set alpha=0,0.2   # a comment

    All lines are checked before the first one runs. Stopped, killed or out of time, the same
    command goes on where it was; a line that fails is told, and the next one runs. Two processes
    may share a queue: each leaves alone what the other is running.

    Example: [bold]rarefy queue table.txt --list[/]

    Example: [bold]rarefy queue table.txt --results results --max-seconds 3600[/]
    """
    from rarefy.core.settings import resolve_device
    from rarefy.studies import load_studies
    from rarefy.sweep.queue import (
        State,
        check_jobs,
        check_results,
        in_words,
        read_queue,
        refuse_other_results,
        standing,
    )

    use_data_folder(folder)
    if max_seconds is not None and not max_seconds > 0:
        raise bad_value("max_seconds", max_seconds, "must be more than 0")
    if jobs is not None:
        check_jobs(jobs)
    resolve_device(device)
    if out.exists() and not out.is_dir():
        raise bad_value("out", str(out), "is a file; name a folder")
    entries = read_queue(file, load_studies())
    if results is not None:
        check_results(entries, results)
    if list_:
        rows = [Row(standing(entry, out, results)) for entry in entries]
    else:
        if results is not None:
            refuse_other_results(entries, results)
        debug = bool(context.parent and context.parent.params.get("debug"))
        runner = Runner(out, results, device, jobs, threads, max_seconds, stop_at_error, debug)
        rows = list(runner.run(entries))
    standings = [row.standing for row in rows]
    words = in_words(standings)
    if not list_ and not all(each.finished for each in standings):
        words += "; the same command goes on"
    if as_json:
        described = {"lines": [row.as_json() for row in rows], "summary": words}
        typer.echo(json.dumps(described, indent=1))
    else:
        print_(_table(str(file), rows, list_))
        reasons: dict[str, list[int]] = {}
        for each in standings:
            if each.state in (State.REFUSED, State.FAILED, State.BUSY):  # said long ago, maybe
                why = f"{each.state}: {' '.join(each.note.split())}"
                reasons.setdefault(why, []).append(each.entry.line)
        for why, lines in reasons.items():  # (one missing data set stops many lines)
            typer.echo(f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))} {why}")
        typer.echo(words)
    if any(each.state == State.FAILED for each in standings):
        raise typer.Exit(1)


@dataclass(frozen=True)
class Row:
    """A line and the wall time that this call spent on it; None: it was not run."""

    standing: Standing
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        now = self.standing
        return {
            "line": now.entry.line,
            "study": now.entry.study.name,
            "scale": now.entry.scale,
            "changes": now.entry.changes,
            "store": str(now.path),
            "cells": now.cells,
            "cells_done": now.cells_done,
            "state": now.state,
            "note": now.note,
            "seconds": None if self.seconds is None else round(self.seconds, 2),
            "stored_seconds": round(now.seconds, 2),
        }


@dataclass(frozen=True)
class Runner:
    """How the lines of a queue are run."""

    out: Path
    results: Path | None
    device: str
    jobs: int | None
    threads: int | None
    max_seconds: float | None
    stop_at_error: bool
    debug: bool

    def run(self, entries: list[Entry]) -> Iterator[Row]:
        """Every line in order; those after the end of the time, or after an error that is to stop
        the queue, as they stand."""
        from rarefy.sweep.queue import State, standing

        deadline = None if self.max_seconds is None else time.monotonic() + self.max_seconds
        over = False
        for place, entry in enumerate(entries, 1):
            # looked at now, not at the beginning: another process may have finished it meanwhile
            before = standing(entry, self.out, self.results)
            left = None if deadline is None else deadline - time.monotonic()
            over = over or (left is not None and left <= 0)
            if before.finished or over:
                yield Row(before)
                continue
            print(f"{place} of {len(entries)}: {entry.title}", file=sys.stderr, flush=True)
            began = time.monotonic()
            row = Row(self._tried(before, left), time.monotonic() - began)
            yield row
            state = row.standing.state
            # what is unfinished without being wrong ran out of time
            over = state in (State.PARTLY, State.WAITING) or (
                self.stop_at_error and state == State.FAILED
            )

    def _tried(self, before: Standing, left: float | None) -> Standing:
        from rarefy.sweep.queue import State, in_a_queue, standing

        entry = before.entry
        if before.state == State.REFUSED:  # running it could replace what is there
            complain(f"{entry.place}: {before.note}", 1)
            return dataclasses.replace(before, state=State.FAILED)
        try:
            note = self._run_one(entry, left)
        except Interrupted:
            raise
        except Exception as error:
            if self.debug:
                raise
            message = in_a_queue(_in_one_line(error))
            busy = isinstance(error, RarefyError) and LOCKED in message
            complain(f"{entry.place}: {message}", 0 if busy else 1)
            now = standing(entry, self.out, self.results)
            state = State.BUSY if busy else State.FAILED
            return dataclasses.replace(now, state=state, note=message)
        return dataclasses.replace(standing(entry, self.out, self.results), note=note)

    def _run_one(self, entry: Entry, left: float | None) -> str:
        """Run a line as far as time allows; a few words if there is something to know."""
        from rarefy.core.contracts import NONFINITE_STEP
        from rarefy.sweep.results import write_results

        _give_memory_back()
        jobs = entry.jobs
        if jobs is None and entry.study.one_at_a_time:
            jobs = self.jobs
        store = self.out / entry.store_name
        asked = (entry.study, entry.scale, store, self.device, entry.dtype, False, left, jobs)
        execution = run_study(*asked, threads=self.threads)
        if not execution.finished:
            complain(execution.note, 0)
            return execution.note
        if self.results is not None:
            written = write_results(entry.study, entry.scale, execution.dataset, self.results)
            print(f"results: {written}", file=sys.stderr)
        lost = int((execution.dataset[NONFINITE_STEP.name] >= 0).sum())
        return f"{lost} of {execution.cells} cells stopped being finite" if lost else ""


def _give_memory_back() -> None:
    """The size of batches follows from what is free on a GPU, and torch keeps what the line before
    has used."""
    import torch

    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def _in_one_line(error: Exception) -> str:
    if isinstance(error, RarefyError):
        return str(error)
    return f"{type(error).__name__}: {error} (rarefy --debug ... shows where)"


def _table(title: str, rows: list[Row], listed: bool) -> Table:
    from rich import box
    from rich.text import Text

    from rarefy.core.progress import spell_seconds
    from rarefy.core.tables import Table
    from rarefy.core.text import printable

    table = Table(
        title=printable(title),
        title_justify="left",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
        caption=f"time: spent {'on finished cells so far' if listed else 'by this command'}",
        caption_justify="left",
    )
    table.add_column("line", justify="right", no_wrap=True)
    table.add_column("study", ratio=1, overflow="fold")
    table.add_column("scale", overflow="fold")
    table.add_column("cells", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for row in rows:
        now = row.standing
        seconds = (now.seconds or None) if listed else row.seconds
        below = [now.entry.changes, now.note if now.finished else ""]
        table.add_row(
            str(now.entry.line),
            Text("\n").join([Text(now.entry.study.name), *(Text(x, "dim") for x in below if x)]),
            now.entry.scale,
            f"{now.cells_done}/{now.cells}",
            Text(now.state, COLOURS[now.state]),
            "-" if seconds is None else spell_seconds(seconds),
        )
    return table
