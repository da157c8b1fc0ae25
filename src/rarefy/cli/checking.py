"""The verb ``check``: is what was written still whole?"""

from __future__ import annotations

import contextlib
import json
from typing import Annotated

import typer

from rarefy.cli.frame import app, exit_on_error
from rarefy.cli.options import AsJson

PROGRESS_FROM = 10
"""Things to check; fewer are through before a bar could be read."""


@app.command()
@exit_on_error
def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Files, folders or addresses; the ledger if not given."
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Of a damaged store: keep what is whole; the same run computes the rest again.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say whether stores, results and saved networks are whole.

    Exit code 1 when one is damaged. Of what is older than checksums, or was
    written without, only gross damage can be seen.

    Example: [bold]rarefy check runs results nets[/]
    Example: [bold]rarefy check runs/contrast-init-quick s3://bucket/name --repair[/]
    """
    from rarefy.core.progress import Progress
    from rarefy.ledger.verdicts import ledger_folder
    from rarefy.studies import get_study
    from rarefy.sweep.checking import DAMAGED, find_things
    from rarefy.sweep.checking import check as look

    named = paths or [str(ledger_folder())]
    things = [thing for path in named for thing in find_things(path)]
    findings = []
    with contextlib.ExitStack() as stack:
        many = len(things) >= PROGRESS_FROM
        progress = stack.enter_context(Progress("check", len(things))) if many else None
        for thing in things:
            findings.append(look(thing, get_study, repair))
            if progress:
                progress.advance(1)
    damaged = sum(each.state == DAMAGED for each in findings)
    if as_json:
        rows = [
            {
                "path": str(each.thing.path),
                "kind": each.thing.kind,
                "state": each.state,
                "what": each.what,
            }
            for each in findings
        ]
        typer.echo(json.dumps(rows, indent=1))
    else:
        for each in findings:
            typer.echo(" ".join(str(each).split()))
        if len(findings) > 1:
            rest = "as far as can be told, all are whole"
            typer.echo(f"{damaged} of {len(findings)} are damaged" if damaged else rest)
    if damaged:
        raise typer.Exit(1)
