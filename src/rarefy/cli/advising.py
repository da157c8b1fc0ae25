"""The verb ``advise``: which keep ratios a short probe before training suggests."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from rarefy.cli.frame import app, exit_on_error, print_, use_data_folder
from rarefy.cli.options import AsJson, DataFolder, Device, Size, SkipBad, TestShare
from rarefy.core.errors import bad_value
from rarefy.core.writing import check_output, write_output

CAVEAT = (
    "The range says where the first gradients of TopK pruning are signal. On real networks it has "
    "not predicted the best keep: try some with rarefy train."
)


@app.command()
@exit_on_error
def advise(
    data: Annotated[
        str,
        typer.Argument(help="digits, mnist, cifar10, cifar100, or a folder of class folders."),
    ],
    network: Annotated[
        str, typer.Option(help="lenet, cnn, resnet18, vit, or yours as module:callable.")
    ] = "cnn",
    batches: Annotated[int, typer.Option(help="Batches whose gradients are taken.")] = 40,
    batch: Annotated[int, typer.Option(help="Images per batch.")] = 128,
    noise: Annotated[
        float, typer.Option(help="Std of Gaussian noise on the images (pixels in [0, 1]).")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the first weights and the batches.")] = 0,
    device: Device = "auto",
    folder: DataFolder = None,
    size: Size = None,
    test_share: TestShare = None,
    skip_bad: SkipBad = False,
    plot: Annotated[Path | None, typer.Option(help="Draw signal and memory into this PNG.")] = None,
    as_json: AsJson = False,
) -> None:
    """Suggest keep ratios for pruning while training, from a few gradients before it.

    For every layer: how large the part of the gradient that tells classes apart is against what is
    memory of single images, and the shares of weights at which TopK pruning would keep the first
    and leave out the second (002 App. I). A suggestion, not a prediction: see the note it prints.

    Example: [bold]rarefy advise digits --noise 0.5[/]
    """
    use_data_folder(folder)
    from rarefy.core.contracts import Context
    from rarefy.core.settings import resolve_device
    from rarefy.measure.gradient_noise import LEAST_BATCHES
    from rarefy.tools.image_data import with_options
    from rarefy.tools.sparse_training import Task, advised_for
    from rarefy.train.image_batches import Augmentation
    from rarefy.train.recipe import Recipe

    if batches < LEAST_BATCHES:
        raise bad_value("batches", batches, f"must be at least {LEAST_BATCHES}")
    if plot is not None:
        if plot.suffix.lower() != ".png":
            raise bad_value("plot", str(plot), "must end in .png")
        check_output(plot, "advice", option="plot")
    data = with_options(data, size, test_share, skip_bad)
    task = Task(data, network, Recipe(), Augmentation(noise=noise), batch=batch, probed=batches)
    advice = advised_for(task, seed, Context(device=resolve_device(device)))
    ratio = advice.network.ratio
    if as_json:
        typer.echo(
            json.dumps(
                {
                    "low": advice.low if advice.network.seen else None,
                    "high": advice.high if advice.network.seen else None,
                    "signal_to_noise": ratio if math.isfinite(ratio) else None,
                    "samples": advice.samples,
                    "probed": advice.probed,
                    "note": CAVEAT,
                },
                indent=1,
            )
        )
    else:
        print_(advice.table())
        typer.echo(CAVEAT)
    if plot is not None:
        from rarefy.report.static import as_png, draw_picture

        write_output(plot, as_png(draw_picture(advice.picture())), "advice")
        typer.echo(f"picture: {plot}", err=True)
