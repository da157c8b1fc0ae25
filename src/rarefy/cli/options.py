"""Options that several verbs have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarefy.cli.completing import scales

Scale = Annotated[
    str,
    typer.Option(
        help="tiny, quick, paper, or another the study has (see [bold]rarefy studies[/]).",
        autocompletion=scales,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what was written before.")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help="Stop cleanly after so many seconds, with exit code 3; the same command goes on."
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Folder of the image sets; RAREFY_DATA or the user's cache if not given."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Trainings at once, each in its own process; one per core on a CPU if not given. "
        "Small networks leave a GPU idle: try 4 or more there, best with NVIDIA's MPS running."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Compute on a Dask cluster: the address of its scheduler, the scheduler's file "
        "(.json), or local:N for N processes here; the numbers are the same. For GPUs start each "
        "worker with --resources GPU=1. Needs rarefy\\[cluster].",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Inside each training; 1 on a CPU if not given, so that results do not depend on "
        "--jobs. Kept with the store. More make few large trainings faster on many cores."
    ),
]
Size = Annotated[
    int | None,
    typer.Option(help="Of a folder: side of the images; their own if equal and small, else 32."),
]
TestShare = Annotated[
    float | None, typer.Option(help="Of a folder without a test part: its share; 0.2.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Of a folder: leave out files that cannot be read.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
