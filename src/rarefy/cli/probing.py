"""The verb ``probe``: how good the features of a trained network are, for head and tail."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.frame import (
    AsJson,
    DataFolder,
    Device,
    Size,
    SkipBad,
    TestShare,
    app,
    print_,
    told,
    use_data_folder,
)
from rarefy.cli.longtail_tables import gain_in_words, per_cent, plain_table
from rarefy.core.errors import UsageError, bad_value

if TYPE_CHECKING:
    from rarefy.tools.longtail.probing import Probed

LEGEND = (
    "per cent of test images, mean over classes (and n seeds); many, medium, few: thirds of the "
    "classes by their images in pre-training (in the set itself where that is another one); "
    "Delta_20: head fifth less tail fifth; control: that of the balanced set of equal size; "
    "spread: std of the thirds; [ ]: 95 % interval of the difference, seed by seed"
)
READINGS = ("overall", "many", "medium", "few", "delta_20", "spread")


@app.command()
@told
def probe(
    networks: Annotated[
        list[str],
        typer.Argument(
            help="Files of [bold]rarefy pretrain --save[/], or yours as module:callable (--on)."
        ),
    ],
    on: Annotated[
        str | None,
        typer.Option(
            help="digits, mnist, cifar10, cifar100 or a folder of class folders; what a file was "
            "trained for if not given."
        ),
    ] = None,
    protocols: Annotated[
        str,
        typer.Option(
            help="linear (all labels), long-tail (labels of the pre-training's images), few, knn."
        ),
    ] = "linear,long-tail,few,knn",
    shots: Annotated[int, typer.Option(help="Labels a class of the protocol few.")] = 10,
    neighbours: Annotated[
        int, typer.Option(help="Of knn; 0: 200, or 20 below 10,000 references.")
    ] = 0,
    network: Annotated[
        str | None, typer.Option(help="The module:callable that a file's network was made by.")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="A line for every network, not for every method.")
    ] = False,
    table: Annotated[
        Path | None, typer.Option(help="Write accuracy class by class to this CSV file.")
    ] = None,
    device: Device = "auto",
    folder: DataFolder = None,
    size: Size = None,
    test_share: TestShare = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Judge features with labels: linear probe, few labels, nearest neighbours; head and tail.

    Regularisation is chosen on a tenth of the training images, never on test images. Of files with
    several methods and seeds, methods are compared seed by seed, with an interval: one order of
    the classes says little, as head classes may just be easier.

    Example: [bold]rarefy pretrain digits --rho 20 --save nets[/], then [bold]rarefy probe
    nets/*.pt[/]

    Example: [bold]rarefy probe my_models:backbone --on cifar10 --protocols linear,knn[/]
    """
    use_data_folder(folder)
    if table is not None and (table.is_dir() or not table.parent.is_dir()):
        raise bad_value("table", str(table), "must be a file in a folder that exists")
    from rarefy.core.progress import Progress
    from rarefy.tools.image_data import with_options
    from rarefy.tools.longtail.evaluation import Evaluation
    from rarefy.tools.longtail.probing import by_class, probe_file, probe_network, told_apart

    words = tuple(word.strip() for word in protocols.split(",") if word.strip())
    how = Evaluation(words, shots, neighbours=neighbours)
    if on is not None and Path(on).is_dir():
        on = os.path.normpath(on)
    data = None if on is None else with_options(on, size, test_share, skip_bad)
    _check_files(networks, data)
    found: list[Probed] = []
    with Progress("probing", len(networks)) as bar:
        for name in networks:
            if ":" in name and not Path(name).exists():
                assert data is not None  # checked
                found.append(probe_network(name, data, how, device=device))
            else:
                found.append(probe_file(Path(name), data, how, device, network))
            bar.advance(1)
    found = told_apart(found)
    if table is not None:
        by_class(found).to_csv(table, index=False)
    if as_json:
        typer.echo(json.dumps(_described(found, words), indent=1))
        return
    for protocol in words:
        if each:
            print_(_each(found, protocol))
        else:
            _print_grouped(found, protocol)
    typer.echo(LEGEND)
    for one in found:
        for note in one.quality.notes:
            typer.echo(f"note: {one.name}: {note}")
    if table is not None:
        typer.echo(f"class by class: {table}")


def _check_files(networks: list[str], data: str | None) -> None:
    for name in networks:
        if ":" in name and not Path(name).exists():
            if data is None:
                raise UsageError(f"{name}: say on which images, with --on")
        elif not Path(name).is_file():
            raise UsageError(f"cannot read {name}: there is no such file")


def _print_grouped(found: list[Probed], protocol: str) -> None:
    """A table for each setting, and below it how far methods are from the baseline."""
    from rarefy.tools.longtail.evaluation import PROTOCOLS
    from rarefy.tools.longtail.probing import baseline_among, grouped, settings_of

    for setting in settings_of(found):
        here = [one for one in found if one.setting == setting]
        lines, below = [], []
        for row in grouped(here, protocol):
            control, gain = row["control_delta_20"], row["gain"]
            lines.append(
                [
                    *(row["method"], row["images"]),
                    *(per_cent(row[name]) for name in READINGS),
                    "" if control is None else per_cent(control),
                    str(row["n"]),
                ]
            )
            if gain is not None:
                ends = (gain.low, gain.high) if gain.n > 1 else None
                words = gain_in_words(gain.mean, ends, baseline_among(here))
                below.append(f"{row['method']}: {words}, n = {gain.n}")
        heads = (
            *("method", "images", "all", "many", "medium", "few", "Delta_20", "spread"),
            *("control", "n"),
        )
        print_(plain_table(f"{protocol}: {PROTOCOLS[protocol]}", setting, heads, lines))
        for line in below:
            typer.echo(line)


def _each(found: list[Probed], protocol: str) -> Any:
    from rarefy.tools.longtail.evaluation import PROTOCOLS

    lines = []
    for one in found:
        told = one.told(protocol)
        strength = one.quality.strength.get(protocol)
        lines.append(
            [
                *(one.name, one.images),
                *(per_cent(100 * getattr(told, name)) for name in READINGS),
                "" if strength is None else f"{strength:g}",
            ]
        )
    heads = ("network", "images", "all", "many", "medium", "few", "Delta_20", "spread", "strength")
    return plain_table(f"{protocol}: {PROTOCOLS[protocol]}", "", heads, lines)


def _described(found: list[Probed], protocols: tuple[str, ...]) -> dict[str, Any]:
    from rarefy.tools.longtail.probing import baseline_among, paired, settings_of

    differences = []
    for setting in settings_of(found):
        here = [one for one in found if one.setting == setting]
        differences += [
            {
                "setting": setting,
                "protocol": protocol,
                "method": method,
                "baseline": baseline_among(here),
                "n": gain.n,
                **{name: _number(getattr(gain, name)) for name in ("mean", "low", "high")},
            }
            for protocol in protocols
            for method, gain in paired(here, protocol).items()
        ]
    return {
        "networks": [
            {
                "network": one.name,
                "method": one.method,
                "images": one.images,
                "setting": one.setting,
                "seed": one.seed,
                "class_order": one.order,
                **{protocol: _judged(one, protocol) for protocol in protocols},
                "notes": list(one.quality.notes),
            }
            for one in found
        ],
        "differences": differences,
    }


def _judged(one: Probed, protocol: str) -> dict[str, Any]:
    told = one.told(protocol)
    return {
        **{name: _number(100 * getattr(told, name)) for name in READINGS},
        "by_rank": [_number(100 * value) for value in told.by_rank],
        "strength": one.quality.strength.get(protocol),
    }


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return value if math.isfinite(value) else None
