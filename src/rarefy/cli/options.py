"""Options that several verbs have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarefy.cli.completing import scales
from rarefy.cli.folding import IMAGES, MACHINE

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
    typer.Option(help="Stop then; the same command goes on."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-folder",
        metavar="DIR",
        help="Folder of the named image sets; RAREFY_DATA or the user's cache if not given.",
        rich_help_panel=IMAGES,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Trainings at once, each in its own process; one per core on a CPU if not given. "
        "Small networks leave a GPU idle: try 4 or more there, best with NVIDIA's MPS running.",
        rich_help_panel=MACHINE,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Compute on a Dask cluster: its scheduler's address or file (.json), or local:N. "
        "Needs rarefy\\[cluster].",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Inside each training; 1 on a CPU if not given, so that results do not depend on "
        "--jobs. Kept with the store. More make few large trainings faster on many cores.",
        rich_help_panel=MACHINE,
    ),
]
Precision = Annotated[
    str, typer.Option(help="auto (bf16 on a GPU), bf16 or float32.", rich_help_panel=MACHINE)
]
Compile = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Compile the network; pays for large ones on a GPU.",
        rich_help_panel=MACHINE,
    ),
]
Size = Annotated[
    int | None,
    typer.Option(
        help="Of a folder: side of the images; their own if equal and small, else 32.",
        rich_help_panel=IMAGES,
    ),
]
TestShare = Annotated[
    float | None,
    typer.Option(
        help="Of a folder without a test part: its share; 0.2 if not given.", rich_help_panel=IMAGES
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Of a folder: leave out files that cannot be read.",
        rich_help_panel=IMAGES,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
