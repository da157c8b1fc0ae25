"""What is taken home of one network: its features of images in a file, one row per image, as
influence, checkup and scikit-learn take it, and the network as a program."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import nn

from rarefy.core.cells import defused
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.settings import resolve_device
from rarefy.core.text import printable
from rarefy.core.writing import check_output, write_output
from rarefy.data.images.ids import digest_of
from rarefy.nets.backbones import build_backbone
from rarefy.sweep.runner import network_folder
from rarefy.sweep.spec import spec_hash, spec_of
from rarefy.tools.exported_networks import ENDING, exported, write_exported
from rarefy.tools.image_data import with_options
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.probing import open_file
from rarefy.tools.longtail.readings import LONG_TAIL
from rarefy.tools.longtail.sets import AS_IS, Parts, Tail, parts_of
from rarefy.train.image_batches import Scaling

if TYPE_CHECKING:
    from rarefy.tools.longtail.pretrain_run import PretrainImages, PretrainRun

ENDINGS = (".parquet", ".csv", ".npz")
ABOUT = ("id", "label", "split", "pretraining", "method")
"""Columns that are no features."""
KEYS = {"label": "labels"}
"""As readers of .npz files call them."""
SEEN, UNSEEN, UNKNOWN = "seen", "unseen", "unknown"
"""By the pre-training: images of these very pixels."""


@dataclass(frozen=True)
class TrainedBackbone:
    """A network and the images that it is asked about."""

    network: nn.Module
    parts: Parts
    scaling: Scaling
    name: str
    method: str
    knows_seen: bool
    """``parts.seen`` are the images of its pre-training; else nobody knows them."""

    @classmethod
    def of_file(
        cls, path: Path, data: str | None, device: str = "auto", network: str | None = None
    ) -> TrainedBackbone:
        """A file of ``rarefy pretrain --save``."""
        place = resolve_device(device)
        found, about, parts, _ = open_file(path, data, place, network)
        scaling = Scaling(tuple(about["mean"]), tuple(about["std"]))
        knows = data is None or data == about["data"]
        return cls(found.to(place), parts, scaling, path.stem, str(about["way"]), knows)

    @classmethod
    def of_network(
        cls, network: nn.Module, name: str, data: str, device: str = "auto"
    ) -> TrainedBackbone:
        """Anybody's, with its own weights."""
        place = resolve_device(device)
        parts = parts_of(data, Tail(AS_IS), 0, place)
        return cls(network.to(place), parts, Scaling(parts.mean, parts.std), name, name, False)

    def table(self) -> pd.DataFrame:
        """Columns id (file, or hash of the pixels), label (if there are any), split (train, test),
        pretraining (whether it saw these pixels), method and f0, f1, ... (float32)."""
        labelled = self.parts.has_labels
        seen = {digest_of(one) for one in self.parts.seen.ids}
        tables = []
        for split, images in (("train", self.parts.labelled), ("test", self.parts.test)):
            if split == "test" and not labelled:  # (they are the same)
                continue
            told = [SEEN if digest_of(one) in seen else UNSEEN for one in images.ids]
            names = [images.classes[label] for label in images.labels.tolist()]
            about = {
                "id": [*map(printable, images.files or images.ids)],
                **({"label": [*map(printable, names)]} if labelled else {}),
                "split": split,
                "pretraining": told if self.knows_seen else UNKNOWN,
                "method": self.method,
            }
            # (on a GPU convolutions would round to TF32: a file is of no device)
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                rows = features_of(self.network, images.images, self.scaling).cpu().numpy()
            numbers = pd.DataFrame(rows, columns=[f"f{place}" for place in range(rows.shape[1])])
            tables.append(pd.concat([pd.DataFrame(about), numbers], axis=1))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True)
class Outputs:
    """The files that one network is written to."""

    features: Path | None = None
    export: Path | None = None

    def __bool__(self) -> bool:
        return self != Outputs()

    def check(self, of: str, inputs: Sequence[str] = (), overwrite: bool | None = None) -> None:
        """Before any work: endings, folders, what is in the way."""
        given = {"features": (self.features, ENDINGS), "export": (self.export, (ENDING,))}
        for option, (path, endings) in given.items():
            if path is None:
                continue
            if path.suffix.lower() not in endings:
                raise bad_value(option, str(path), f"must end in {', '.join(endings)}")
            if not path.absolute().parent.is_dir():
                raise bad_value(option, str(path), f"there is no folder {path.parent}")
            check_output(path, of, inputs, overwrite, option)

    def write(self, one: TrainedBackbone, of: str, overwrite: bool = False) -> dict[str, str]:
        """What was written, by option."""
        if self.export is not None:
            size = one.parts.seen.images.shape[2]
            program = exported(one.network, one.scaling, size, one.name)
            write_exported(program, self.export, of, overwrite)
        if self.features is not None:
            table, ending = one.table(), self.features.suffix.lower()
            write_output(self.features, lambda path: _write(table, path, ending), of, overwrite)
        return {name: str(path) for name, path in vars(self).items() if path is not None}


def _write(table: pd.DataFrame, path: Path, ending: str) -> None:
    if ending == ".parquet":
        table.to_parquet(path, index=False)
    elif ending == ".csv":
        # all text in quotes: pandas would leave a carriage return in a name without
        quotes = {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
        defused(table).to_csv(path, index=False, **quotes)
    else:
        about = [name for name in ABOUT if name in table]
        arrays = {KEYS.get(name, name): table[name].to_numpy(dtype=str) for name in about}
        with path.open("wb") as file:  # (given a name, numpy wants that ending)
            np.savez(file, features=table.drop(columns=about).to_numpy(), **arrays)


# ------------------------------------------------------------------------------- of a pre-training


def check_chosen(outputs: Outputs, experiment: PretrainImages, overwrite: bool) -> str:
    """Before anything is trained: refuse what could not be written after it. Gives what that is
    made of: the same run with more seeds may replace it."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        word = "export" if outputs.features is None else "features"
        raise UsageError(f"{word}: not under torchrun; rarefy probe FILE --{word} makes it after")
    if not experiment.trained_share():
        raise bad_value("method", ",".join(experiment.algorithm), "trains no network to write")
    of = spec_hash(spec_of(experiment, "float32"), experiment.renamed)
    outputs.check(of, overwrite=overwrite)
    if outputs.export is not None:
        task = experiment.tasks()[0]
        parts = parts_of(task.data, task.tail, 0, torch.device("cpu"))
        channels, size = parts.seen.images.shape[1:3]
        network, _ = build_backbone(task.network, channels, size)
        exported(network, Scaling(parts.mean, parts.std), size, task.network)
    return of


def write_chosen(outputs: Outputs, run: PretrainRun, of: str, device: str, overwrite: bool) -> None:
    """Of the network that the decision names; ``run.written`` says which and where."""
    one, path = chosen_network(run, device)
    run.written["network"] = str(path)
    run.written.update(outputs.write(one, of, overwrite))


def chosen_network(run: PretrainRun, device: str = "auto") -> tuple[TrainedBackbone, Path]:
    """The first seed (that came to its end) of the method that the decision names, or else of the
    first that trains (of several rho the largest), and its file. No other one stands in for it."""
    if run.networks is None:
        raise UsageError("features: no networks were kept; run it with save or features")
    experiment = run.experiment
    assert isinstance(experiment, LongTailPretraining)
    network_folder(experiment, "float32", run.networks, False)  # (those of another run are told)
    chosen = run.decision.choice if run.decision else None
    methods = [str(chosen)] if chosen in run.trained else run.trained
    rho = max(experiment.rho)
    ended = run.dataset["nonfinite_step"].sel(images=LONG_TAIL, rho=rho)
    for method, seed in product(methods, range(experiment.seeds)):
        if ended.sel(algorithm=method, seed=seed) >= 0:  # (its loss was no number)
            continue
        path = run.networks / f"{experiment.run_name(method, LONG_TAIL, rho, seed)}.pt"
        if not path.exists():
            raise UsageError(
                f"features: {path} is missing: it was trained without --save, or the folder was "
                "not moved along; copy it there, or --overwrite trains all again"
            )
        own = experiment.network if ":" in experiment.network else None
        return TrainedBackbone.of_file(path, None, device, own), path
    raise UsageError(f"features: no training of {' or '.join(methods)} came to its end")


# ----------------------------------------------------------------------------------------- of files


def features(
    path: Path | str,
    on: str | Path | None = None,
    *,
    network: str | None = None,
    size: int | None = None,
    skip_bad: bool = False,
    unlabelled: bool = False,
    device: str = "auto",
) -> pd.DataFrame:
    """What a saved backbone makes of images, one row per image.

    Arguments:
        path: a file of ``rarefy pretrain --save``.
        on: digits, mnist, cifar10, cifar100 or a folder; what it was trained on if not given.
        size, skip_bad: of that folder, as in ``rarefy.pretrain_images``.
        unlabelled: all images below the folder, no classes.
        network: the ``module:callable`` that its network was made by, if that is yours.
        device: auto, cpu or cuda.

    Returns:
        A DataFrame: ``id`` (the file, or a hash of the pixels), ``label`` (not of unlabelled
        folders), ``split`` (train or test), ``pretraining`` (seen or unseen by it; unknown of other
        images), ``method``, and ``f0``, ``f1``, ... as float32.

    Example:
        >>> found = rarefy.pretrain_images("digits", ["simclr", "pixels"], "lenet", epochs=1,
        ...                                seeds=1, save="nets")
        >>> table = rarefy.features("nets/digits-lenet-simclr-as-is-seed-0.pt")
        >>> X, y = table.filter(regex=r"^f\\d+$"), table["label"]
        >>> X.shape
        (1797, 84)
    """
    data = None if on is None else with_options(str(on), size, None, skip_bad, unlabelled)
    return TrainedBackbone.of_file(Path(path), data, device, network).table()
