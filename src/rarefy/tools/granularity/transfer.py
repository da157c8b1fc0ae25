"""One transfer: pre-train a network on some labels, then fine-tune and probe it on the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.rng import key
from rarefy.data.images import ImageSet
from rarefy.nets.backbones import Headed, build_backbone
from rarefy.sweep.cached import hash_of
from rarefy.tools.granularity.copies import Copies
from rarefy.tools.granularity.evaluation import (
    answers_of,
    probe_backbone,
    right_answers,
    share,
)
from rarefy.tools.granularity.sets import ONCE, TARGET, PretrainingLabels, TransferSets
from rarefy.tools.sparse_training import Task, own_random_state, training_on
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.precision import resolve_precision
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import History, Training


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
    """Per test image: whether the finished network is right,"""
    answers: Tensor | None = None
    """and what it says."""
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
    copies = Copies(context, hash_of(run_key, task, name))
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
        found.pretrained_test = share(
            right_answers(model, sets.test, sets, task.precision(context), context)
        )
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
    found.test[-1][-1] = share(_finish(task, training.model, sets, found, context))
    found.held_out[-1][-1] = share(
        right_answers(training.model, sets.held_out, sets, task.precision(context), context)
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
                share(
                    right_answers(now.model, sets.held_out, sets, task.precision(context), context)
                )
            )
            seen["test"].append(
                share(right_answers(now.model, sets.test, sets, task.precision(context), context))
            )

    checkpoint = _checkpoint(context, own_key, task, task.tuning, name)
    history = training.run(context, checkpoint, _said(context, name, task.tuning, look))
    if history.nonfinite_step >= 0:
        found.nonfinite_step = history.nonfinite_step
    short = [float("nan")] * len(task.looks)
    found.held_out.append((history.watched["held_out"] + short)[: len(short)])
    found.test.append((history.watched["test"] + short)[: len(short)])
    _finish(task, training.model, sets, found, context)
    if checkpoint is not None:
        checkpoint.remove()


def _finish(
    task: TransferTask,
    model: nn.Module,
    sets: TransferSets,
    found: Transferred,
    context: Context,
) -> Tensor:
    """What the finished network says of the test images, and whether it is right."""
    precision = task.precision(context)
    found.answers = answers_of(model, sets.test.images, sets.scaling, precision, context)
    found.right = found.answers == sets.labels(sets.test)
    return found.right


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
    held, accuracy, _ = probe_backbone(model.backbone, sets, task.precision(context))
    found.probe_held_out.append(held)
    found.probe_test.append(accuracy)


# ---------------------------------------------------------------------------------- small parts


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
