"""``rarefy.granularity``: pre-training with labels of many granularities on one's own images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.picture import Picture
from rarefy.core.tables import Table
from rarefy.core.writing import check_place
from rarefy.data.hierarchy.levels import agreement, label_levels, level_of, parents
from rarefy.data.hierarchy.made import check_spec
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images import ImageSet
from rarefy.measure.class_report import COLUMNS, ClassReport
from rarefy.nets.backbones import build_backbone
from rarefy.sweep.runner import execute
from rarefy.tools.compared_run import ComparedRun, given_or_usual, image_source
from rarefy.tools.granularity.advisor import Advice, advise
from rarefy.tools.granularity.cautions import ALIGNED
from rarefy.tools.granularity.images import ImageGranularity
from rarefy.tools.granularity.sets import ONCE, TARGET
from rarefy.tools.granularity.tables import error_picture, granularity_table
from rarefy.tools.image_data import on_device, some_of
from rarefy.tools.recipes import SMALL, usual_recipe

RANDOM = "random"
USUALLY_MADE = ("kmeans-within:2", RANDOM)
"""``random`` alone: as many ids as the finest level has classes."""
LEAST_IMAGES = 10
"""Per random id, where that would be fewer: less ids."""


@dataclass(frozen=True, kw_only=True)
class GranularityRun(ComparedRun):
    """What ``rarefy.granularity`` gives: per pre-training labels the target accuracy in per cent,
    its gain over re-training seed by seed, what follows (``advice``), and how the finished networks
    do on each target class (``reports``, ``by_class``).

    Attributes:
        advice: ``advice.sentence`` says how fine labels should be, ``advice.level`` is that level.
        frame: the comparison, one row per pre-training labels.
        by_class: one row per labels and target class.
        dataset, path, finished: all that was measured, the store, whether time was enough.

    Example:
        >>> found = rarefy.granularity("digits", network="lenet", epochs=1, seeds=1, samples=200,
        ...                            made=[])
        >>> isinstance(found, rarefy.GranularityRun), found.finished
        (True, True)
    """

    @cached_property
    def advice(self) -> Advice:
        experiment = cast(ImageGranularity, self.experiment)
        images, epochs = len(experiment.sets().source), experiment.cost().steps_per_cell
        return advise(self.dataset, experiment.target, images, epochs)

    @cached_property
    def reports(self) -> dict[str, ClassReport]:
        """By pre-training labels."""
        return cast(ImageGranularity, self.experiment).reports(self.dataset)

    @property
    def by_class(self) -> pd.DataFrame:
        """The judging tables below each other, one row per labels and target class."""
        tables = [one.table.assign(labels=labels) for labels, one in self.reports.items()]
        columns = ["labels", *COLUMNS]
        whole = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)
        return whole[columns]

    @property
    def shown(self) -> str:
        """The labels whose target classes are worth a look: the choice, else the best."""
        known = {row["labels"]: row["accuracy"] or 0.0 for row in self.rows}
        levels = [one for one in known if one not in (TARGET, ONCE)] or list(known)
        return self.advice.decision.choice or max(levels, key=lambda one: known[one])

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.advice.rows

    def table(self) -> Table:
        """For a terminal."""
        told = self.experiment.parameters()
        title = f"{told['data']}, target {told['target']}, {told['network']}, "
        epochs = f"{told['epochs']} + {told['tune_epochs']} epochs"
        return granularity_table(self.rows, title + epochs)

    def picture(self) -> Picture:
        """Error over the number of classes; ``rarefy.report.granularity`` writes the page."""
        return error_picture(self.rows, self.advice.target)

    def described(self) -> dict[str, Any]:
        judged = [{"labels": name, **one.described()} for name, one in self.reports.items()]
        return {**super().described(), **self.advice.described(), "judged": judged}


def granularity(
    data: str | Path,
    target: str | None = None,
    hierarchy: str | Path | None = None,
    levels: Sequence[str] | None = None,
    *,
    made: Sequence[str] = USUALLY_MADE,
    features: str | Path = TARGET,
    network: str = "cnn",
    epochs: int | None = None,
    tune_epochs: int | None = None,
    seeds: int = 5,
    checkpoints: Sequence[float] = (1.0,),
    looks: int = 2,
    held_out: float = 0.1,
    batch: int | None = None,
    optimizer: str | None = None,
    learning_rate: float | None = None,
    tune_rate: float | None = None,
    weight_decay: float | None = None,
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
    overwrite: bool = False,
    max_seconds: float | None = None,
    progress: bool = False,
    go_on: str = "the same call",
    before: Callable[[ImageGranularity, Path], None] | None = None,
) -> GranularityRun:
    """Pre-train on labels of each level, fine-tune on the target, and say how fine they should be.

    Every seed trains one network per kind of labels, from the same weights on the same images in
    the same order and for as many updates: on each level, on made labels, on the target itself
    (re-training, with which all are compared) and on the target in one pass. Which checkpoint and
    how much fine-tuning is chosen on held-out images. What is finished is kept in a store: the
    same call goes on where it was, more seeds extend it.

    Arguments:
        data: digits, mnist, cifar10, cifar100, or a folder of class folders.
        target: level that is asked for in the end; the coarsest if not given.
        hierarchy: file with parents of the classes; what the set itself has if not given.
        levels: to pre-train on; all that are finer than the target if not given.
        made: labels made beside them: kmeans-within:K, rebalanced:K, kmeans:K, random-within:K,
            random:K, samples; random alone has as many ids as the finest level has classes, and at
            least ten images per id.
        features: what is clustered: target (of a network trained on it), pixels, an embedding
            (.npy, a row per training image) or a backbone of ``rarefy pretrain`` (.pt).
        network: lenet, cnn, resnet9, resnet18, vit, ``timm:NAME``, ``torchvision:NAME``, or
            yours as ``module:callable``.
        epochs, tune_epochs: of pre-training and of fine-tuning, half as many if not given.
        seeds: repeats; fewer than 5 decide nothing.
        checkpoints: shares of the pre-training after which a copy is fine-tuned too.
        looks: how often a fine-tuning is looked at on its way.
        held_out: share of the training images by which everything is chosen.
        batch, optimizer, learning_rate, weight_decay, shift, flip: by the kind and size of the
            set if not given (``rarefy.tools.recipes``).
        tune_rate: learning rate of fine-tuning; a fifth of the other if not given.
        samples: training images used; 0: all.
        precision, compiled, size, test_share, skip_bad, device, jobs, threads, out, overwrite,
            max_seconds, progress, go_on: as of ``rarefy.train``.
        before: is told what will be run and where it is kept, before it starts.

    Returns:
        A run: ``advice`` has the sentence, the advised ``level`` and ``warnings``, ``frame`` is the
        comparison as a DataFrame, ``by_class`` that of the target classes, ``path`` the store,
        ``dataset`` all that was measured.

    Example:
        >>> found = rarefy.granularity("digits", network="lenet", epochs=1, seeds=1, samples=200,
        ...                            made=[])
        >>> found.frame["labels"].tolist()
        ['target', 'once', 'class']
        >>> print(found.advice.sentence)
        cannot tell: at least 4 more seeds would; ...
    """
    options = {"size": size, "test_share": test_share, "skip_bad": skip_bad}
    source, _ = image_source("granularity", str(data), **options)
    annotated = "" if hierarchy is None else str(hierarchy)
    images = with_hierarchy(on_device(source, torch.device("cpu")), annotated)
    if 0 < samples < (least := 2 * len(images.classes)):
        raise bad_value("samples", samples, f"must be 0 (all) or at least two per class, {least}")
    train = some_of(images.train, samples)
    target = _usual_target(train) if target is None else target
    labels = _labels(train, target, levels, made)
    _, usual_store = image_source("granularity", str(data), target, network, **options)
    given = {
        "epochs": epochs,
        "batch": batch,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "shift": shift,
        "flip": flip,
    }
    usual = usual_recipe(images, network, samples)
    if len(train) <= SMALL:  # many short trainings tell more than few long ones
        usual["epochs"] = -(-usual["epochs"] // 2)
    training = given_or_usual(given, usual)
    experiment = ImageGranularity.at(
        "quick",
        data=source,
        hierarchy=annotated,
        target=target,
        labels=labels,
        features=str(features),
        network=network,
        tune_epochs=max(training["epochs"] // 2, 1) if tune_epochs is None else tune_epochs,
        tune_rate=training["learning_rate"] / 5 if tune_rate is None else tune_rate,
        checkpoints=tuple(checkpoints),
        looks=looks,
        held_out=held_out,
        samples=samples,
        seeds=seeds,
        precision=precision,
        compile=compiled,
        **training,
    )
    if jobs is not None and jobs < 1:
        raise bad_value("jobs", jobs, "must be at least 1")
    # before anything is written: a model that cannot take these images never will
    channels, side, _ = images.shape
    build_backbone(network, channels, side)
    store = usual_store if out is None else Path(out)
    check_place(store)
    if before is not None:
        experiment.inputs()  # what cannot be is told first
        before(experiment, store)
    execution = execute(
        experiment,
        "quick",
        device,
        out=store,
        overwrite=overwrite,
        max_seconds=max_seconds,
        progress=progress,
        go_on=go_on,
        jobs=jobs,
        threads=threads,
    )
    return GranularityRun.of(experiment, execution)


# ------------------------------------------------------------------------------ what is compared


def _usual_target(images: ImageSet) -> str:
    """The coarsest level that another lies in."""
    for name in label_levels(images):
        if _finer(images, name):
            return name
    known = ", ".join(f"{name} ({len(one[1])})" for name, one in label_levels(images).items())
    raise UsageError(
        f"there is no level that is finer than another (levels: {known}); --hierarchy FILE gives "
        "parents of the classes, e.g. a CSV with rows of child,parent"
    )


def _finer(images: ImageSet, target: str) -> list[str]:
    """Given levels with more classes than the target that lie in it, coarsest first."""
    asked, names = level_of(images, target)
    return [
        name
        for name, (labels, own) in label_levels(images).items()
        if len(own) > len(names) and agreement(labels, asked) >= ALIGNED
    ]


def _labels(
    images: ImageSet, target: str, levels: Sequence[str] | None, made: Sequence[str]
) -> tuple[str, ...]:
    usual = _finer(images, target)
    if levels is None:
        chosen = usual
    else:
        chosen = _several(levels)
        _check_levels(images, target, chosen)
    finest = max(len(level_of(images, one)[1]) for one in (target, *chosen))
    ids = max(min(finest, len(images) // LEAST_IMAGES), 2)
    specs = [f"{RANDOM}:{ids}" if one == RANDOM else one for one in _several(made)]
    for one in specs:
        check_spec(one)
    return tuple(dict.fromkeys((TARGET, ONCE, *chosen, *specs)))


def _several(names: str | Sequence[str]) -> list[str]:
    """A text is one name, or several with commas between them."""
    return names.split(",") if isinstance(names, str) else list(names)


def _check_levels(images: ImageSet, target: str, levels: Sequence[str]) -> None:
    """Some may be misaligned, which is told; not all."""
    asked = level_of(images, target)
    apart = []
    for name in levels:
        if name == target:
            raise bad_value("levels", name, "is the target; re-training on it is always compared")
        level = level_of(images, name)
        if agreement(level[0], asked[0]) < ALIGNED:
            apart.append(level)
    if levels and len(apart) == len(levels):
        try:
            parents(apart[0], asked)
        except UsageError as error:
            raise UsageError(
                f"target {target!r} is no ancestor of level {levels[0]!r}: {error}"
            ) from None
