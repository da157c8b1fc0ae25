"""``rarefy.train``: networks on one's own images, dense and pruned beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from rarefy.core.tables import Table
from rarefy.nets.builder import build
from rarefy.sweep.runner import execute
from rarefy.tools.compared_run import ComparedRun, given_or_usual, image_source
from rarefy.tools.comparison import comparison, in_words
from rarefy.tools.image_data import on_device
from rarefy.tools.recipes import usual_recipe
from rarefy.tools.sparse_experiment import SMALLEST, SparseTraining


@dataclass(frozen=True, kw_only=True)
class TrainImages(SparseTraining):
    """Any image set, any network: what ``rarefy train`` runs."""

    name: ClassVar[str] = "train-images"
    title: ClassVar[str] = "Your own images: dense and pruned beside each other"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": SMALLEST,
        "quick": {},
        "paper": {"seeds": 10, "epochs": 40},
    }

    keep: tuple[float, ...] = (1.0, 0.3)
    batch: int = 64
    learning_rate: float = 0.05

    @property
    def setting(self) -> str:
        return f"{self.data}, {self.network}"


class TrainRun(ComparedRun):
    """What ``rarefy.train`` gives: per noise level and share kept, accuracies in per cent and the
    difference from the dense network, seed by seed, with its 95 % interval."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(comparison(self.dataset))

    def table(self) -> Table:
        """For a terminal."""
        told, rows = self.experiment.parameters(), self.rows
        noisy = any(row["noise"] or row["test_noise"] for row in rows)
        table = Table(
            title=f"{told['data']}, {told['network']}, {told['epochs']} epochs, "
            f"pruned by {told['granularity']} ({told['update'][0]}, every {told['every']})",
            caption="means over n seeds; train: over the last epoch; [ ]: 95 % interval of the "
            "difference, seed by seed",
        )
        for head in (("noise", "test noise") if noisy else ()) + (
            *("keep", "weights left", "train %", "test %", "from dense", "n", ""),
        ):
            table.add_column(head, justify="left" if head == "" else "right")
        for row in rows:
            ends = row["difference_interval"]
            gain = "" if row["difference"] is None else f"{row['difference']:+.2f}"
            gain += f" [{ends[0]:+.2f}, {ends[1]:+.2f}]" if ends else ""
            table.add_row(
                *((f"{row['noise']:g}", f"{row['test_noise']:g}") if noisy else ()),
                "dense" if row["keep"] == 1 else f"{row['keep']:g}",
                _number(row["weights_kept"], 100, ".1f", " %"),
                _number(row["train_accuracy"]),
                _number(row["test_accuracy"]),
                gain,
                str(row["n"]),
                in_words(row),
            )
        return table


def train(
    data: str | Path,
    keep: float | Sequence[float] = 0.3,
    network: str = "cnn",
    *,
    epochs: int | None = None,
    seeds: int = 3,
    update: str = "project",
    granularity: str = "filter",
    every: int = 1,
    noise: float | Sequence[float] = 0.0,
    test_noise: float | Sequence[float] = 0.0,
    noise_once: bool = False,
    batch: int | None = None,
    optimizer: str | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    schedule: str = "cosine",
    shift: int | None = None,
    flip: bool | None = None,
    samples: int = 0,
    precision: str = "auto",
    compiled: bool = False,
    size: int | None = None,
    test_share: float | None = None,
    skip_bad: bool = False,
    device: str = "auto",
    jobs: int | None = 1,
    threads: int | None = None,
    out: Path | str | None = None,
    save: Path | str | None = None,
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    go_on: str = "the same call",
) -> TrainRun:
    """Train a network on images, dense and pruned while it trains, and compare the two.

    Every seed trains the dense network and one for each share of ``keep``, from the same weights on
    the same batches, so that differences can be told from luck. What is finished is kept in a
    store: the same call goes on where it was, more seeds extend it.

    Arguments:
        data: digits, mnist, cifar10, cifar100, or a folder of class folders.
        keep: shares of the weights to keep; the dense network is always trained too.
        network: lenet, cnn, resnet18, vit, or yours as ``module:callable``.
        epochs, batch, optimizer, learning_rate, weight_decay, shift, flip: by the kind and size of
            the set if not given (``rarefy.tools.recipes``).
        seeds: repeats, each dense and pruned from one start.
        update: of pruned weights: project (zero, trained on), dense or masked.
        granularity: of what the share is kept: filter, layer, global or neuron.
        every: updates between two choices of masks.
        noise: stds of Gaussian noise in training, of pixels in [0, 1].
        test_noise: stds of noise in the test; every network is asked at all of them.
        noise_once: training noise is drawn once per image, not anew each time.
        schedule: of the learning rate: cosine, step or constant.
        samples: training images used; 0: all.
        precision: auto (bf16 on a GPU), bf16 or float32.
        compiled: by ``torch.compile``; pays for large networks on a GPU.
        size, test_share, skip_bad: of a folder: side of the images, share for the test, whether
            files that cannot be read are left out.
        device: auto, cpu or cuda.
        jobs: trainings at once, each in a process of its own; None: as many as usual (a script must
            then guard its main part).
        threads: inside each training; 1 on a CPU if not given.
        out: the store; ``runs/train-DATA-NETWORK`` if not given.
        save: a folder into which the trained networks are written.
        overwrite: replace what was written before.
        max_seconds: stop cleanly after so many seconds.
        progress: show a bar.
        go_on: what a message tells to do when it is not finished.

    Returns:
        A run: ``frame`` is the comparison as a DataFrame, ``path`` the store (``rarefy report``
        makes a page of it), ``dataset`` all that was measured, ``finished`` false when time was
        over before all was trained.

    Example:
        >>> found = rarefy.train("digits", keep=(0.5, 0.3), network="lenet", epochs=2)
        >>> found.frame[["keep", "test_accuracy", "difference", "difference_interval"]]
    """
    source, usual_store = image_source(
        "train", str(data), network, size=size, test_share=test_share, skip_bad=skip_bad
    )
    images = on_device(source, torch.device("cpu"))
    given = {
        "epochs": epochs,
        "batch": batch,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "shift": shift,
        "flip": flip,
    }
    experiment = TrainImages.at(
        "quick",
        data=source,
        network=network,
        keep=tuple(dict.fromkeys((1.0, *_several(keep)))),
        noise=_several(noise),
        test_noise=_several(test_noise),
        noise_resampling=("once" if noise_once else "fresh",),
        update=(update,),
        granularity=granularity,
        every=every,
        schedule=schedule,
        samples=samples,
        seeds=seeds,
        precision=precision,
        compile=compiled,
        **given_or_usual(given, usual_recipe(images, network, samples)),
    )
    # before anything is written: a model that cannot take these images never will
    channels, side, _ = images.shape
    build(network, channels=channels, size=side, classes=len(images.classes))
    execution = execute(
        experiment,
        "quick",
        device,
        out=usual_store if out is None else out,
        overwrite=overwrite,
        max_seconds=max_seconds,
        progress=progress,
        go_on=go_on,
        jobs=jobs,
        models=None if save is None else Path(save),
        threads=threads,
    )
    return TrainRun.of(experiment, execution)


def _several(values: float | Sequence[float]) -> tuple[float, ...]:
    many = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    return tuple(values) if many else (values,)  # type: ignore[arg-type,return-value]


def _number(value: float | None, unit: float = 1, form: str = ".2f", mark: str = "") -> str:
    return "-" if value is None else format(unit * value, form) + mark
