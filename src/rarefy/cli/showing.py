"""Verbs that show results: ``report``, ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarefy.cli.frame import (
    app,
    complain,
    exit_on_error,
    judge_path,
    print_,
    results_in,
    run_in_turn,
)
from rarefy.cli.options import Device, MaxSeconds, Overwrite
from rarefy.core.errors import RarefyError
from rarefy.core.progress import Progress
from rarefy.core.writing import check_output

if TYPE_CHECKING:
    from rarefy.cli.frame import Judged


@app.command()
@exit_on_error
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Stores, or results.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
) -> None:
    """Write one self-contained HTML page about stores and committed results.

    Example: [bold]rarefy report runs/contrast-dynamics-quick results --out report.html[/]
    """
    from rarefy.report import write_report

    check_output(out, "report")
    paths = [one for folder in folders for one in results_in(folder)]
    with Progress("report", 2 * len(paths)) as progress:
        judged = []
        for path in paths:
            judged.append(judge_path(path))
            progress.advance(1)
        stored = [path.suffix not in (".json", ".parquet") for path in paths]
        fresh = [one for one, own in zip(judged, stored, strict=True) if own]
        committed = [one for one, own in zip(judged, stored, strict=True) if not own]
        write_report(out, fresh, committed, progress.advance)
    typer.echo(f"report: {out}")


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
) -> None:
    """Run the headline study of each laboratory at quick scale and write report.html.

    Beside it the page shows what the same studies gave at larger scales, if there are committed
    results; [bold]rarefy report results[/] makes a page of all of those.

    Example: [bold]rarefy demo[/]
    """
    from rarefy.report import write_report
    from rarefy.studies import load_studies
    from rarefy.sweep.overview import verdict_table
    from rarefy.sweep.results import find_results

    check_output(out / "report.html", "report", overwrite=overwrite)
    headlines = [kind.at("quick") for kind in load_studies().values() if kind.headline]
    stores = out / "runs" / "demo"
    fresh = list(run_in_turn(headlines, "quick", stores, device, overwrite, max_seconds))
    for study, scale, _, verdicts in fresh:
        print_(verdict_table(f"{study.name}, {scale}", verdicts))
    committed: list[Judged] = []
    names = {study.name for study, *_ in fresh}
    for path in find_results(results):
        if path.stem.rpartition("-")[0] not in names:
            continue
        try:
            committed.append(judge_path(path))
        except RarefyError as error:  # results of a study that has moved on must not stop a demo
            complain(f"{path} is left out: {error}", 0)
    page = out / "report.html"
    write_report(page, fresh=fresh, committed=committed, overwrite=overwrite)
    typer.echo(f"report: {page}")
