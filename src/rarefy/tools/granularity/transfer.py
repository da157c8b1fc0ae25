"""One transfer: pre-train a network on some labels, then fine-tune and probe it on the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.rng import key
from rarefy.data.images import ImageSet
from rarefy.measure.representation.linear_probe import fit_chosen
from rarefy.nets.backbones import Headed, build_backbone
from rarefy.sweep.cached import hash_of
from rarefy.tools.granularity.sets import ONCE, TARGET, PretrainingLabels, TransferSets
from rarefy.tools.longtail.features import features_of
from rarefy.tools.sparse_training import Task, own_random_state, training_on
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.evaluation import ROWS
from rarefy.train.image_batches import Scaling, unit_pixels
from rarefy.train.precision import mixed_precision, resolve_precision
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import History, Training

ENOUGH_TO_TELL = 20
"""Test images from which on a subclass counts, where one has so many."""


@dataclass(frozen=True)
class TransferTask:
    """Everything about a transfer but its images, its labels and its random numbers."""

    pretraining: Task
    tuning: Recipe
    checkpoints: tuple[int, ...]
    """Epochs of pre-training after which a copy is fine-tuned and probed; the last is the end."""
    looks: tuple[int, ...]
    """Epochs of fine-tuning after which it is asked; the last is the end."""

    @property
    def epochs(self) -> int:
        """Of pre-training."""
        return self.pretraining.recipe.epochs

    def lasting(self, epochs: int) -> Task:
        recipe = replace(self.pretraining.recipe, epochs=epochs)
        return replace(self.pretraining, recipe=recipe)

    def precision(self, context: Context) -> str:
        return resolve_precision(self.pretraining.precision, context.device, context.dtype)


@dataclass
class Transferred:
    """What one transfer gave; shares of right answers."""

    pretraining: History
    held_out: list[list[float]] = field(default_factory=list)
    """Per checkpoint and look."""
    test: list[list[float]] = field(default_factory=list)
    probe_held_out: list[float] = field(default_factory=list)
    probe_test: list[float] = field(default_factory=list)
    pretrained_test: float = float("nan")
    """After pre-training, where it was on the target labels."""
    right: Tensor | None = None
    """Per test image: whether the finished network is right."""
    nonfinite_step: int = -1


# ------------------------------------------------------------------------------------ the stages


def pretrain_stage(
    task: TransferTask,
    sets: TransferSets,
    labels: PretrainingLabels,
    images: ImageSet,
    run_key: int,
    context: Context,
    name: str,
    watch: Callable[[Training], None] | None = None,
    epochs: int | None = None,
    last: Callable[[Training], None] | None = None,
) -> Training:
    """Train a new network on ``images`` with these labels; ``epochs``: not the task's; ``last``
    is done before its checkpoint goes."""
    how = task.lasting(epochs or task.epochs)
    model = new_network(task, sets, labels.classes, context)
    scaling = sets.scaling if images is sets.tuned else sets.source_scaling
    training = training_on(model, images.images, labels.labels, scaling, how, run_key, context)
    checkpoint = _checkpoint(context, run_key, how, name)
    training.run(context, checkpoint, _said(context, name, how.recipe, watch))
    if last is not None:
        last(training)
    if checkpoint is not None:
        checkpoint.remove()
    return training


def new_network(task: TransferTask, sets: TransferSets, classes: int, context: Context) -> Headed:
    channels, size, _ = sets.shape
    backbone, width = build_backbone(task.pretraining.network, channels, size)
    return Headed(backbone, width, classes).to(context.device, context.dtype)


def transfer(
    task: TransferTask,
    which: str,
    sets: TransferSets,
    labels: PretrainingLabels,
    run_key: int,
    context: Context,
    name: str,
) -> Transferred:
    """Pre-train, then fine-tune and probe every checkpoint. The same ``run_key`` means the same
    first weights and the same images in the same order, whatever the labels."""
    if which == ONCE:
        return _one_pass(task, sets, labels, run_key, context, name)
    images = sets.tuned if which == TARGET else sets.source
    copies = _Copies(context, hash_of(run_key, task, name))
    history = copies.history(task.checkpoints)
    if history is None:

        def keep(now: Training) -> None:
            if now.epoch in task.checkpoints[:-1]:
                copies.save(now)

        training = pretrain_stage(
            task, sets, labels, images, run_key, context, name, keep, last=copies.save
        )
        history = training.history
    else:
        context.advance(task.epochs)
    found = Transferred(history, nonfinite_step=history.nonfinite_step)
    if history.nonfinite_step >= 0:
        context.advance(len(task.checkpoints) * task.tuning.epochs)
        return found
    for epoch in task.checkpoints:
        own_key = key(run_key, "tuning", epoch)
        # the new last layer is the same for all labels, and after a stop too
        with own_random_state(own_key, context.device):
            state = copies.load(epoch)
            _tune(task, sets, state, found, own_key, context, f"{name}, from epoch {epoch}")
            _probe(task, sets, state, found, context)
    if which == TARGET:
        model = new_network(task, sets, labels.classes, context)
        model.load_state_dict(copies.load(task.epochs))
        found.pretrained_test = _share(right_answers(model, sets.test, sets, task, context))
    copies.remove(task.checkpoints)
    return found


def _one_pass(
    task: TransferTask,
    sets: TransferSets,
    labels: PretrainingLabels,
    run_key: int,
    context: Context,
    name: str,
) -> Transferred:
    """As many epochs as pre-training and fine-tuning have together, in one piece."""
    epochs = task.epochs + task.tuning.epochs
    training = pretrain_stage(task, sets, labels, sets.tuned, run_key, context, name, epochs=epochs)
    context.advance((len(task.checkpoints) - 1) * task.tuning.epochs)
    found = Transferred(training.history, nonfinite_step=training.history.nonfinite_step)
    empty = [[float("nan")] * len(task.looks) for _ in task.checkpoints]
    found.held_out, found.test = empty, [list(row) for row in empty]
    found.probe_held_out = found.probe_test = [float("nan")] * len(task.checkpoints)
    found.right = right_answers(training.model, sets.test, sets, task, context)
    found.test[-1][-1] = _share(found.right)
    found.held_out[-1][-1] = _share(
        right_answers(training.model, sets.held_out, sets, task, context)
    )
    return found


def _tune(
    task: TransferTask,
    sets: TransferSets,
    state: Mapping[str, Tensor],
    found: Transferred,
    own_key: int,
    context: Context,
    name: str,
) -> None:
    """Fine-tune a copy with a new last layer on the target labels."""
    model = new_network(task, sets, len(sets.target), context)
    model.load_backbone(state)
    training = training_on(
        model,
        sets.tuned.images,
        sets.labels(sets.tuned),
        sets.scaling,
        replace(task.pretraining, recipe=task.tuning),
        own_key,
        context,
    )
    training.history.watched = {"held_out": [], "test": []}

    def look(now: Training) -> None:
        if now.epoch in task.looks:
            seen = now.history.watched
            seen["held_out"].append(
                _share(right_answers(now.model, sets.held_out, sets, task, context))
            )
            seen["test"].append(_share(right_answers(now.model, sets.test, sets, task, context)))

    checkpoint = _checkpoint(context, own_key, task, task.tuning, name)
    history = training.run(context, checkpoint, _said(context, name, task.tuning, look))
    if history.nonfinite_step >= 0:
        found.nonfinite_step = history.nonfinite_step
    short = [float("nan")] * len(task.looks)
    found.held_out.append((history.watched["held_out"] + short)[: len(short)])
    found.test.append((history.watched["test"] + short)[: len(short)])
    found.right = right_answers(training.model, sets.test, sets, task, context)
    if checkpoint is not None:
        checkpoint.remove()


def _probe(
    task: TransferTask,
    sets: TransferSets,
    state: Mapping[str, Tensor],
    found: Transferred,
    context: Context,
) -> None:
    """A linear probe of the frozen features; its strength is chosen on the held-out images."""
    model = new_network(task, sets, len(sets.target), context)
    model.load_backbone(state)
    held, accuracy, _ = probe_backbone(model.backbone, sets, task, context)
    found.probe_held_out.append(held)
    found.probe_test.append(accuracy)


def probe_backbone(
    backbone: nn.Module, sets: TransferSets, task: TransferTask, context: Context
) -> tuple[float, float, Tensor]:
    """Shares of right answers on held-out and on test images, and which test images are right."""
    parts = [sets.tuned, sets.held_out, sets.test]
    features = [
        features_of(backbone, one.images, sets.scaling, task.precision(context)) for one in parts
    ]
    tuned, held, test = features
    labels = [sets.labels(one) for one in parts]
    out = torch.arange(len(tuned) + len(held), device=tuned.device) >= len(tuned)
    chosen = fit_chosen(torch.cat([tuned, held]), torch.cat(labels[:2]), len(sets.target), out)
    best = max(chosen.choice.table, key=lambda row: row.balanced_accuracy)
    right = chosen.probe.predict(test).to(labels[2].device) == labels[2]
    return best.accuracy, _share(right), right


# ---------------------------------------------------------------------------------- small parts


@torch.no_grad()
def right_answers(
    model: nn.Module, images: ImageSet, sets: TransferSets, task: TransferTask, context: Context
) -> Tensor:
    """Per image: whether the network names its target class."""
    answers = _answers(model, images.images, sets.scaling, task.precision(context), context)
    return answers == sets.labels(images)


def _answers(
    model: nn.Module, images: Tensor, scaling: Scaling, precision: str, context: Context
) -> Tensor:
    was_training = model.training
    model.eval()
    layout = torch.channels_last if images.is_cuda else torch.contiguous_format
    found = []
    try:
        for first in range(0, len(images), ROWS):
            x = scaling(unit_pixels(images[first : first + ROWS], context.dtype), context.dtype)
            with mixed_precision(images.device, precision):
                found.append(model(x.contiguous(memory_format=layout)).argmax(dim=1))
    finally:
        model.train(was_training)
    return torch.cat(found)


def _share(right: Tensor) -> float:
    return float(right.double().mean())


def _checkpoint(context: Context, run_key: int, *parts: object) -> Checkpoint | None:
    if context.scratch is None:
        return None
    return Checkpoint(context.scratch / f"{hash_of(run_key, *parts)}.pt")


def _said(
    context: Context,
    name: str,
    recipe: Recipe,
    watch: Callable[[Training], None] | None = None,
) -> Callable[[Training], None]:
    def say(now: Training) -> None:
        if watch is not None:
            watch(now)
        words = f"{name}: epoch {now.epoch}/{recipe.epochs}, loss {now.history.loss[-1]:.3f}"
        if now.history.watched.get("held_out"):
            words += f", held-out accuracy {100 * now.history.watched['held_out'][-1]:.1f} %"
        context.say(words)

    return say


class _Copies:
    """Pre-trained networks on their way to fine-tuning: on disk, so that a stopped run need not
    pre-train again, or in memory where there is no folder."""

    def __init__(self, context: Context, name: str) -> None:
        self._folder, self._name, self._device = context.scratch, name, context.device
        self._memory: dict[int, dict[str, Any]] = {}

    def save(self, now: Training) -> None:
        state = {
            "model": {name: one.detach().clone() for name, one in now.model.state_dict().items()},
            "history": vars(now.history),
        }
        if self._folder is None:
            self._memory[now.epoch] = state
        else:
            Checkpoint(self._path(now.epoch)).save(state)

    def history(self, epochs: tuple[int, ...]) -> History | None:
        """Of a pre-training that is through, with all its copies."""
        states = [self._read(epoch) for epoch in epochs]
        return None if None in states else History(**(states[-1] or {})["history"])

    def load(self, epoch: int) -> dict[str, Tensor]:
        state = self._read(epoch)
        assert state is not None, "saved before the pre-training went on"
        model: dict[str, Tensor] = state["model"]
        return model

    def remove(self, epochs: tuple[int, ...]) -> None:
        for epoch in epochs if self._folder is not None else ():
            Checkpoint(self._path(epoch)).remove()

    def _read(self, epoch: int) -> dict[str, Any] | None:
        if self._folder is None:
            return self._memory.get(epoch)
        return Checkpoint(self._path(epoch)).load(self._device)

    def _path(self, epoch: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._name}-{epoch}.pt"


def worst_subclasses(right: Tensor, subclasses: Tensor) -> tuple[float, float]:
    """Accuracy on the worst subclass, and the mean over the worst tenth of them."""
    answered, labels = right.cpu().double().numpy(), subclasses.cpu().numpy()
    counts = np.bincount(labels)
    # one image is right or wrong: the worst of many such is always 0
    told = counts >= min(ENOUGH_TO_TELL, counts.max())
    shares = np.sort(np.bincount(labels, weights=answered)[told] / counts[told])
    return float(shares[0]), float(shares[: max(1, round(len(shares) / 10))].mean())
