"""Verbs that show results: ``report``, ``demo``."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import time
import webbrowser
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from rarefy.cli.claiming import MARKS, TOO_SMALL, spell_run
from rarefy.cli.config import configured, keep_options
from rarefy.cli.frame import (
    app,
    complain,
    exit_on_error,
    judge_path,
    print_,
    results_in,
    run_study,
)
from rarefy.cli.options import Device, MaxSeconds, Overwrite
from rarefy.core.errors import OutOfTime, RarefyError
from rarefy.core.papers import paper_names
from rarefy.core.processes import ctrl_c_waits
from rarefy.core.progress import Progress, spell_seconds
from rarefy.core.writing import check_output

if TYPE_CHECKING:
    from rarefy.cli.frame import Judged
    from rarefy.core.place import Place
    from rarefy.report.page import Drawn
    from rarefy.sweep.estimate import Forecast

_PER_PROCESS = 10
"""Results that pay for the start of one more process, a few seconds."""
OpenIt = Annotated[bool, typer.Option("--open", help="Show the page in the browser.")]


@configured
def report(
    folders: Annotated[
        list[str], typer.Argument(metavar="DIR...", help="Stores, or results; addresses too.")
    ],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    open_it: OpenIt = False,
) -> None:
    """Write one self-contained HTML page about stores and committed results.

    It begins with what these results say about the papers, a sentence each, and a filter by
    paper, outcome and study. Each study is folded; one click shows its figures and readings.

    Example: [bold]rarefy report runs/contrast-dynamics-quick results --open[/]
    """
    check_output(out, "report")
    _start_server(folders)
    paths = [one for folder in folders for one in results_in(folder)]
    waiting = _judged_and_drawn(paths)
    drawn = [next(waiting)]  # before the bar: a wrong name is one line
    from rarefy.report.page import write_drawn

    with Progress("report", len(paths)) as progress:
        progress.advance(1)
        for one in waiting:
            drawn.append(one)
            progress.advance(1)
        write_drawn(out, drawn)
    keep_options(out)
    _show_page(out, open_it)


_HAS_SERVER = "forkserver" in multiprocessing.get_all_start_methods()


def _start_server(folders: Sequence[str]) -> None:
    """Where there are many results, a process of which others are forked: it imports what they need
    once for all, while this one does its own imports. (A fork of this one would copy locks that its
    threads hold.)"""
    count = sum(len(list(Path(one).glob("*.parquet"))) for one in folders)
    if _HAS_SERVER and count >= 2 * _PER_PROCESS:
        from multiprocessing import forkserver

        multiprocessing.set_forkserver_preload(["rarefy.cli.showing", "rarefy.cli.preloaded"])
        with ctrl_c_waits():
            forkserver.ensure_running()


def _judge_and_draw(path: Place, entries: int) -> Drawn:
    from rarefy.report.page import draw

    return draw(judge_path(path), path.suffix not in (".json", ".parquet"), entries)


def _judged_and_drawn(paths: Sequence[Place]) -> Iterator[Drawn]:
    """In their order: many of them by as many processes as there are cores."""
    from rarefy.core.provenance import usable_cores

    jobs = min(usable_cores(), len(paths) // _PER_PROCESS)
    if jobs < 2:
        yield from (_judge_and_draw(path, len(paths)) for path in paths)
        return
    # before the first result comes: a thread of the pool reads it, and two threads that import
    # modules that import each other may see half of one (the server is importing too, meanwhile)
    import rarefy.report.page
    import rarefy.studies.api  # noqa: F401

    method = "forkserver" if _HAS_SERVER else "spawn"
    fresh = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(jobs, fresh, initializer=_prepare_process)
    try:
        with ctrl_c_waits():
            futures = [pool.submit(_judge_and_draw, path, len(paths)) for path in paths]
        yield from (future.result() for future in futures)
    finally:
        pool.shutdown(cancel_futures=True)


_while_it_lives = contextlib.ExitStack()


def _prepare_process() -> None:
    from rarefy.core.threads import exactly

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the others
    _while_it_lives.enter_context(exactly(1))  # one core each


def _show_page(page: Path, open_it: bool) -> None:
    typer.echo(f"report: {page}")
    if open_it and not webbrowser.open(page.absolute().as_uri()):
        complain("there is no browser here to open it with", 0)


@app.command()
@exit_on_error
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and runs/demo.")] = Path("."),
    results: Annotated[Path, typer.Option(help="Committed results, if there are any.")] = Path(
        "results"
    ),
    device: Device = "auto",
    overwrite: Overwrite = False,
    max_seconds: MaxSeconds = None,
    open_it: OpenIt = False,
) -> None:
    """Run the headline study of each laboratory at quick scale, say what is found, and write
    report.html.

    Beside it the page shows what the same studies gave at larger scales, if there are committed
    results; [bold]rarefy report results[/] makes a page of all of those.

    Example: [bold]rarefy demo[/]
    """
    from rarefy.core.settings import resolve_device
    from rarefy.report import write_report
    from rarefy.studies import load_studies
    from rarefy.studies.api import judge, open_store
    from rarefy.sweep.estimate import Forecast
    from rarefy.sweep.grid import grid_of
    from rarefy.sweep.results import find_results

    page, stores = out / "report.html", out / "runs" / "demo"
    check_output(page, "report", overwrite=overwrite)
    headlines = [kind.at("quick") for kind in load_studies().values() if kind.headline]
    work = {}
    for study in headlines:
        store, cells = stores / f"{study.name}-quick", len(grid_of(study))
        if store.exists() and not overwrite:
            cells -= int(open_store(store).done().sum())
        work[study.name] = cells * study.cost().steps_per_cell
    forecast = Forecast(work, resolve_device(device))
    about = f": {forecast.left()} on this machine" if forecast.left() else ""
    typer.echo(f"a study of each of {len(work)} laboratories, at quick scale{about}")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    fresh: list[Judged] = []
    for study in headlines:
        left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
        store = stores / f"{study.name}-quick"
        # elsewhere than on a terminal the findings are the progress
        bar = sys.stderr.isatty()
        ran = run_study(study, "quick", store, device, "float32", overwrite, left, progress=bar)
        if not ran.finished:
            raise OutOfTime(f"{study.name} is not judged: {ran.note}")
        fresh.append((study, "quick", ran.dataset, judge(study, ran.dataset, "quick")))
        forecast.done(study.name)
        _tell(fresh[-1], forecast)
    committed: list[Judged] = []
    for path in find_results(results):
        if path.stem.rpartition("-")[0] not in work:
            continue
        try:
            committed.append(judge_path(path))
        except RarefyError as error:  # results of a study that has moved on must not stop a demo
            complain(f"{path} is left out: {error}", 0)
    write_report(page, fresh=fresh, committed=committed, overwrite=overwrite)
    forecast.done("page")
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in forecast.took.items())
    typer.echo(f"took {spell_seconds(sum(forecast.took.values()))}: {took}")
    typer.echo("rarefy claims: the answers to all claims of the papers")
    _show_page(page, open_it)


def _tell(judged: Judged, forecast: Forecast) -> None:
    """The question of one study, the finding in a sentence, and the answer."""
    from rarefy.ledger.api import current_answers
    from rarefy.report.findings import touched

    study, scale, _, verdicts = judged
    about = ", ".join(filter(None, (paper_names(study.papers), study.shows.partition(";")[0])))
    left = f" ({forecast.left()} left)" if forecast.left() else ""
    print_(Text(study.title, "bold") + Text(f"  [{about}]{left}"), fold=False)
    for answer in touched(judged, current_answers())[:1]:
        mark, colour = MARKS[answer.state]
        mine = [verdict for verdict in verdicts if verdict.about == answer.claim.id]
        came_out = spell_run(mine, answer, declared=True)
        run = f"this {scale} run is {came_out}" if came_out == TOO_SMALL else f"here {came_out}"
        print_(Text(f"  {answer.claim.sentence}"), fold=False)
        said = f" by larger runs (rarefy claims {answer.claim.id}); {run}"
        print_(Text(f"  {mark} {answer.state}", colour) + Text(said), fold=False)
