"""The verb ``explore``."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rarefy.cli.completing import study_names
from rarefy.cli.folding import FoldedVerb
from rarefy.cli.frame import app, complain, exit_on_error, results_in
from rarefy.cli.showing import OpenIt
from rarefy.core.errors import UsageError
from rarefy.core.progress import Progress
from rarefy.core.writing import check_output

if TYPE_CHECKING:
    from rarefy.core.contracts import Study
    from rarefy.report.explore.page import Explorer
    from rarefy.report.explore.sources import Source


@app.command(cls=FoldedVerb)
@exit_on_error
def explore(
    study: Annotated[
        str,
        typer.Argument(help="A name from [bold]rarefy studies[/].", autocompletion=study_names),
    ],
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Stores, or results, to begin with; addresses too. The folder results if not "
            "given.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=V1,V2,...",
            help="For what is computed: a parameter, or the values of a slider, also as "
            "first:last:step. Can be repeated.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Write the page as one file that needs no server, and end."),
    ] = None,
    port: Annotated[int, typer.Option(help="0: any that is free.")] = 0,
    open_it: OpenIt = False,
) -> None:
    """Move sliders over a study's axes and see its figures change.

    It is for students and lectures. The page is served on this machine alone,
    at an address with a secret token; Ctrl-C ends it. Stored results are shown
    at once. What is not stored is computed at quick size when a slider gets
    there, with a progress bar; trainings of whole networks are not. The figures
    are the study's own, theory and measurement together, for the values that
    you choose; or a chart of any output along any axis. The address keeps where
    the sliders stand.

    Saved as one file the page works from a disk or a web site, with what has
    been computed. Where nothing is stored, and with --set, --save computes the
    study at quick size first.

    Example: [bold]rarefy explore contrast-alignment --open[/]

    Example: [bold]rarefy explore benign-correlation --set gamma=0:4:0.5[/]

    Example: [bold]rarefy explore topk-phase runs/topk-phase-quick --save page.html[/]
    """
    from rarefy.report.explore.live import Live, refusal
    from rarefy.report.explore.page import Explorer
    from rarefy.report.explore.server import Server
    from rarefy.studies import get_study
    from rarefy.sweep.parse import parse_settings

    kind = get_study(study)
    chosen = parse_settings(kind, settings or [])
    if save is not None:
        check_output(save, "explore", option="save")
    if chosen and refusal(kind):
        raise UsageError(f"--set is for what is computed. {refusal(kind)}")
    stored = _stored(kind, folders)
    if not stored and refusal(kind):
        raise UsageError(f"{refusal(kind)} None is in {' '.join(folders or ['results'])}.")
    if folders and not stored:
        raise UsageError(
            f"no results of {study} are in {' '.join(folders)}; name no folder to compute them"
        )
    with tempfile.TemporaryDirectory(prefix="rarefy-") as scratch:
        live = None if refusal(kind) else Live(kind, chosen, Path(scratch))
        explorer = Explorer(kind, stored, live)
        with contextlib.closing(live) if live else contextlib.nullcontext():
            if save is not None:
                return _save(explorer, save)
            with Server(explorer, port) as server:
                typer.echo(f"{server.address}\nCtrl-C ends it.")
                if open_it:  # (some browsers are waited for, and they wait for the page)
                    threading.Thread(target=_open, args=(server.address,), daemon=True).start()
                # to stop a server is how it ends
                with contextlib.suppress(KeyboardInterrupt):
                    server.serve_forever()


def _open(address: str) -> None:
    if not webbrowser.open(address):
        complain("there is no browser here: open the address above", 0)


def _stored(kind: type[Study], folders: list[str] | None) -> dict[str, Source]:
    """What is stored of this study, paper scale first, by names that differ."""
    from rarefy.report.explore.sources import Source
    from rarefy.studies.api import open_store, read_results
    from rarefy.sweep.results import find_results

    found: dict[str, Source] = {}
    paths = [path for folder in folders for path in results_in(folder)] if folders else None
    for path in find_results("results") if paths is None else paths:
        files = path.suffix in (".json", ".parquet")
        if files and path.stem[: len(kind.name) + 1] != f"{kind.name}-":
            continue
        if files:
            of, scale, results = read_results(path)
        else:
            store = open_store(path)
            of, scale, results = cast("Study", store.study), store.scale, store.read()
        if of.name == kind.name:
            key = next(
                name
                for number in range(1, len(found) + 2)
                if (name := f"stored-{scale}" + f"-{number}" * (number > 1)) not in found
            )
            where = f"{scale} scale, {path.name}" if paths else f"{scale} scale, stored"
            found[key] = Source(key, where, of, results)
        elif paths is not None and not files:
            raise UsageError(f"store {path} is of {of.name}, not of {kind.name}")
    return found


def _save(explorer: Explorer, path: Path) -> None:
    from rarefy.report.explore.page import save

    if explorer.live is not None and (explorer.live.settings or not explorer.stored):
        source = explorer.live.source({})
        steps = len(explorer.live.missing(source)) * explorer.live.study.cost().steps_per_cell
        with Progress(explorer.kind.name, steps) as progress:
            explorer.live.compute(source, heard=progress.advance)
    with Progress("figures", len(explorer.positions())) as progress:
        save(explorer, path, progress.advance)
    typer.echo(f"page: {path}")
