"""The verb ``probe``: how good the features of a trained network are, for head and tail."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarefy.cli.config import configured, keep_options
from rarefy.cli.folding import IMAGES, JUDGING
from rarefy.cli.frame import use_data_folder
from rarefy.cli.options import AsJson, DataFolder, Device, Size, SkipBad, TestShare
from rarefy.cli.probed_tables import describe, judged_by, last_lines, print_setting
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.writing import check_output, write_output

if TYPE_CHECKING:
    from rarefy.tools.longtail.evaluation import Evaluation
    from rarefy.tools.longtail.probing import ProbeResult


@configured
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
            "trained on if not given."
        ),
    ] = None,
    protocols: Annotated[
        str | None,
        typer.Option(
            help="linear (all labels), long-tail (labels of the pre-training's images), few, knn; "
            "a list; all if not given."
        ),
    ] = None,
    shots: Annotated[
        int, typer.Option(help="Labels per class of the protocol few.", rich_help_panel=JUDGING)
    ] = 10,
    network: Annotated[
        str | None,
        typer.Option(
            help="The module:callable that a file's network was made by.", rich_help_panel=IMAGES
        ),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write every network class by class to this CSV file.")
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            help="Of one network: write a row of features per image into this file (.parquet, "
            ".csv, .npz)."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Of one network: write it as a program (.pt2) for PyTorch alone."),
    ] = None,
    device: Device = "auto",
    folder: DataFolder = None,
    size: Size = None,
    test_share: TestShare = None,
    skip_bad: SkipBad = False,
    unlabelled: Annotated[
        bool,
        typer.Option(
            "--unlabelled",
            help="Of --on: all images below the folder, no classes; for --features, nothing is "
            "judged.",
            rich_help_panel=IMAGES,
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge features with labels, for common and rare classes.

    Methods are compared seed by seed, and with raw pixels where the set is small.
    The last line says which method to use, or how many seeds more would tell.

    Example: [bold]rarefy probe nets/*.pt[/] after [bold]rarefy pretrain digits --save nets[/]
    Example: [bold]rarefy probe my_models:backbone --on cifar10 --protocols linear,knn[/]
    """
    use_data_folder(folder)
    if table is not None:
        check_output(table, "probe", networks, option="table")
    from rarefy.core.progress import Progress
    from rarefy.tools.image_data import with_options
    from rarefy.tools.longtail.comparing import by_class, name_differences, settings_of
    from rarefy.tools.longtail.evaluation import PROTOCOLS, Evaluation
    from rarefy.tools.longtail.features_file import Outputs, TrainedBackbone
    from rarefy.tools.longtail.probing import (
        check_file,
        open_network,
        probe_file,
        probe_network,
        with_pixels,
    )

    words = tuple(PROTOCOLS)
    if protocols is not None:
        words = tuple(word.strip() for word in protocols.split(",") if word.strip())
    how = Evaluation(words, shots)
    if on is not None and Path(on).is_dir():
        on = os.path.normpath(on)
    reading: dict[str, Any] = {"size": size, "test_share": test_share}
    reading |= {"skip_bad": skip_bad or None, "unlabelled": unlabelled or None}
    for name, value in reading.items():
        if value is not None and (on is None or not Path(on).is_dir()):
            raise bad_value(name, value, "of a folder, which --on names")
    data = None if on is None else with_options(on, size, test_share, skip_bad, unlabelled)
    _check_files(networks, data)
    outputs = Outputs(features, export)
    if outputs:
        if len(networks) > 1:
            word = "export" if features is None else "features"
            raise UsageError(f"{word}: of one network, and {len(networks)} are named; name one")
        outputs.check(_made_of(networks[0], data), networks)
    others: dict[str, Any] = {}
    for name in networks:  # all of them before any is judged, which takes minutes
        if not _is_file(name):
            assert data is not None  # checked
            others[name] = open_network(name, data, device, not outputs)
        elif not outputs:
            check_file(Path(name), data, device, network)
    written: dict[str, str] = {}
    if outputs:
        (name,) = networks
        if name in others:
            taken = TrainedBackbone.of_network(others[name], name, str(data), device)
        else:
            taken = TrainedBackbone.of_file(Path(name), data, device, network)
        written = outputs.write(taken, _made_of(name, data))
        if not taken.parts.has_labels:
            lines = [f"{what}: {path}" for what, path in written.items()]
            lines = [json.dumps({"written": written}, indent=1)] if as_json else lines
            typer.echo("\n".join(lines))
            keep_options(features or export or Path())
            return
    found: list[ProbeResult] = []
    with Progress("probing", len(networks)) as bar:
        for name in networks:
            if name in others:
                assert data is not None
                asked = how if protocols is not None else _of_others(how)
                # (taken out, so that a device holds one at a time)
                one = probe_network(others.pop(name), data, asked, device=device, name=name)
                found.append(one if asked is how else _with_note(one))
            else:
                found.append(probe_file(Path(name), data, how, device, network))
            bar.advance(1)
    found = name_differences(found)
    if table is not None:
        from rarefy.core.cells import defused

        write_output(table, defused(by_class(found)).to_csv(index=False), "probe")
    found = with_pixels(found, how)
    if output := table or features or export:
        keep_options(output)
    if as_json:
        typer.echo(json.dumps({**describe(found, words), "written": written}, indent=1))
        return
    settings = settings_of(found)
    last = []
    for setting in settings:
        here = [one for one in found if one.setting == setting]
        by = judged_by(here, words)
        print_setting(here, by)
        last += last_lines(here, by, len(settings) > 1)
    told: dict[str, list[str]] = {}
    for one in found:
        for note in one.quality.notes:
            told.setdefault(note, []).append(one.name)
    for note, names in told.items():
        typer.echo(f"note: {names[0] if len(names) == 1 else f'{len(names)} networks'}: {note}")
    if table is not None:
        typer.echo(f"class by class: {table}")
    for what, path in written.items():
        typer.echo(f"{what}: {path}")
    for line in last:
        typer.echo(line)


def _is_file(name: str) -> bool:
    """Else it is somebody's ``module:callable``."""
    return ":" not in name or Path(name).exists()


def _made_of(name: str, data: str | None) -> str:
    """Other features may not take its place."""
    return f"probe {name} {data or ''}"


def _check_files(networks: list[str], data: str | None) -> None:
    seen: dict[str | Path, str] = {}
    for name in networks:
        which: str | Path = name
        if _is_file(name):
            which = Path(name).resolve()
            if which.is_dir():
                files = f"{shlex.quote(str(Path(name)))}/*.pt"
                raise UsageError(f"{name} is a folder: name the files in it, {files}")
            if not which.is_file():
                raise UsageError(f"cannot read {name}: there is no such file")
        elif data is None:
            raise UsageError(f"{name}: say on which images, with --on")
        if which in seen:  # it would count as two seeds
            also = "" if seen[which] == name else f", once as {seen[which]}"
            raise UsageError(f"{name} is given twice{also}: name it once")
        seen[which] = name


def _of_others(how: Evaluation) -> Evaluation:
    """Nobody knows which images the pre-training of somebody's network saw."""
    return replace(how, protocols=tuple(name for name in how.protocols if name != "long-tail"))


def _with_note(one: ProbeResult) -> ProbeResult:
    note = "long-tail is left out: which images its pre-training saw is not known"
    return replace(one, quality=replace(one.quality, notes=(note, *one.quality.notes)))
