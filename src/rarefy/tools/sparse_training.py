"""Train one network on one image set, dense or pruned while it trains, and measure it.

``rarefy train`` and the studies about real images both come here: there is one such training.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value, unknown
from rarefy.core.rng import key
from rarefy.data.images import ImageData, ImageSet
from rarefy.measure.gradient_noise import LEAST_BATCHES
from rarefy.nets.builder import build, identity
from rarefy.tools.image_data import halves_of_test, on_device, places_of, some_of
from rarefy.tools.keep_advisor import Advice, advise
from rarefy.tools.network_evaluation import (
    Scorer,
    accuracy_without_noise,
    final_network,
    kept_share,
    mean_score,
)
from rarefy.tools.saved_networks import save_network
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.evaluation import Score
from rarefy.train.image_batches import Augmentation, ImageBatches, Scaling
from rarefy.train.precision import PRECISIONS, resolve_precision
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import History, Training

TRAIN_SCORED = 10_000
"""Training images on which the final network is asked: as many as the usual test sets have."""


@dataclass(frozen=True)
class Task:
    """Everything about a training but what is pruned and which random numbers it draws."""

    data: str
    network: str
    recipe: Recipe
    changes: Augmentation
    batch: int = 128
    samples: int = 0
    """Training images used, the same share of every class; 0: all."""
    test_samples: int = 0
    """Test images used, in the same way."""
    test_noise: tuple[float, ...] = (0.0,)
    watched: tuple[int, ...] = ()
    """Epochs after which the test set is looked at (only to show it: nothing is chosen by it)."""
    precision: str = "auto"
    compiled: bool = False
    probed: int = 0
    """Batches of the probe that suggests a keep ratio, before a dense training; 0: no probe."""
    confused: bool = False
    """Whether test images are counted by true and answered class."""
    graphs: bool = True
    """On a GPU, start the network as recorded graphs: the same operations, without the waiting."""

    def __post_init__(self) -> None:
        for noise in self.test_noise:
            if not 0 <= noise < float("inf"):
                raise bad_value("test_noise", noise, "must be finite and at least 0")
        for name in ("samples", "test_samples"):
            if getattr(self, name) < 0:
                raise bad_value(name, getattr(self, name), "must be at least 0 (all)")
        if self.batch < 2:
            raise bad_value("batch", self.batch, "must be at least 2")
        if len(set(self.test_noise)) < len(self.test_noise):
            raise bad_value("test_noise", self.test_noise, "has the same value twice")
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class Outcome:
    """What one training gave: scores per test noise, on training images with new noise and without
    any, and what was seen on the way (there, noise drawn once can be memorised)."""

    test: list[Score]
    halves: list[tuple[float, float]]
    """Accuracies on two halves of the test images, split by content: what is chosen by one half can
    be judged on the other."""
    clean_halves: tuple[float, float]
    """The same without noise, BatchNorm measured anew on training images without noise: a network
    trained with noise has other statistics, which hide what it knows."""
    train: Score
    train_clean: Score
    kept: float
    """Share of the weights that can be pruned which are not zero in the end."""
    history: History
    advised: tuple[float, float] = (float("nan"), float("nan"))
    """Keep ratios that the probe suggested, lowest and highest; NaN where none was made, or where
    it saw no signal."""
    confusions: list[list[list[int]]] = field(default_factory=list)
    """Per test noise, test images by (true class, answered class); where the task wants them."""


def train_one(
    task: Task, spec: PruningSpec, run_key: int, context: Context, name: str = "run"
) -> Outcome:
    """Train and measure. The same ``run_key`` means the same first weights, order of images and
    noise, whatever is pruned: outcomes can be compared in pairs. ``name`` is for files and the
    progress bar."""
    data = on_device(task.data, context.device)
    train = some_of(data.train, task.samples)
    parts = halves_of_test(task.data, task.test_samples, context.device)
    asked = train.take(places_of(train, TRAIN_SCORED))
    with own_random_state(run_key, context.device):
        training = new_training(task, spec, data, train, run_key, context)
        advised = (float("nan"), float("nan"))
        if task.probed and spec.keep == 1:
            found = probe(training, task)
            advised = (found.low, found.high)
        scorer = Scorer(training, Scaling(data.mean, data.std), run_key, context)

        def watch(now: Training) -> None:
            seen = now.history.watched
            if now.epoch in task.watched:
                network = final_network(now, last=False)
                found = mean_score([scorer(network, part, 0.0) for part in parts], parts)
                seen.setdefault("accuracy", []).append(found.accuracy)
                seen.setdefault("loss", []).append(found.loss)
            words = f"{name}: epoch {now.epoch}/{task.recipe.epochs}"
            words += f", loss {now.history.loss[-1]:.3f}"
            if seen:
                words += f", test accuracy {100 * seen['accuracy'][-1]:.1f} %"
            context.say(words)

        checkpoint = None
        if context.scratch is not None:
            # another file for other settings: none may go on with another one's training
            named = key(run_key, task, spec, data.fingerprint, identity(task.network))
            file = f"{named & (2**64 - 1):016x}.pt"
            checkpoint = Checkpoint(context.scratch / file)
        history = training.run(context, checkpoint, watch)
        network = final_network(training)
        asked_twice = [
            [scorer(network, part, noise, f"half {half}") for half, part in enumerate(parts)]
            for noise in task.test_noise
        ]
        outcome = Outcome(
            test=[mean_score(pair, parts) for pair in asked_twice],
            halves=[(first.accuracy, second.accuracy) for first, second in asked_twice],
            clean_halves=accuracy_without_noise(network, training, parts, scorer),
            train=scorer(network, asked, task.changes.noise, "training images"),
            train_clean=scorer(network, asked, 0.0),
            kept=kept_share(training, network),
            history=history,
            advised=advised,
            confusions=[_confusion(scorer, network, parts, noise) for noise in task.test_noise]
            if task.confused
            else [],
        )
        if context.models is not None:
            save_network(context.models, name, network, data, _described(task, spec, outcome))
        if checkpoint is not None:
            checkpoint.remove()
    return outcome


def _confusion(
    scorer: Scorer, network: nn.Module, parts: tuple[ImageSet, ImageSet], noise: float
) -> list[list[int]]:
    first, second = (
        scorer.confusion(network, part, noise, f"half {half}") for half, part in enumerate(parts)
    )
    found: list[list[int]] = (first + second).tolist()
    return found


# ------------------------------------------------------------------------------------- what is used


def new_training(
    task: Task,
    spec: PruningSpec,
    data: ImageData,
    train: ImageSet,
    run_key: int,
    context: Context,
) -> Training:
    """A network with its first weights, its images and its optimiser."""
    channels, height, width = data.shape
    if height != width:
        raise bad_value("data", task.data, f"images must be square, these are {height} x {width}")
    model = build(task.network, channels=channels, size=height, classes=len(data.classes))
    scaling = Scaling(data.mean, data.std)
    return training_on(model, train.images, train.labels, scaling, task, run_key, context, spec)


def training_on(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    scaling: Scaling,
    task: Task,
    run_key: int,
    context: Context,
    spec: PruningSpec | None = None,
) -> Training:
    """A model on its way to learn these labels."""
    # convolutions on a GPU are made for channels that lie side by side
    cuda = context.device.type == "cuda"
    layout = torch.channels_last if cuda else torch.contiguous_format
    precision = resolve_precision(task.precision, context.device, context.dtype)
    model = model.to(context.device, context.dtype)
    model = model.to(memory_format=layout)  # type: ignore[call-overload]
    dtype = torch.bfloat16 if precision == "bf16" else context.dtype
    batches = ImageBatches(
        images, labels, scaling, task.batch, run_key, task.changes, dtype, layout
    )
    chosen = spec or PruningSpec()
    return Training(model, batches, task.recipe, chosen, precision, task.compiled, task.graphs)


def probe(training: Training, task: Task) -> Advice:
    """Ask the network at its first weights which keep ratios promise something. No image is used
    twice: what chooses weights must know nothing of what measures them."""
    shown = training.batches
    images = len(shown.labels)
    if images < 2 * LEAST_BATCHES:
        raise bad_value("samples", images, f"a probe needs at least {2 * LEAST_BATCHES} images")
    batch = min(shown.batch, images // LEAST_BATCHES)
    some = (
        (x.to(training.model_dtype), y)
        for _, (x, y) in zip(range(task.probed), shown.in_batches_of(batch).epoch(0), strict=False)
    )
    model = copy.deepcopy(training.model)
    for module in model.modules():
        # a residual branch that begins switched off has no gradients to look at
        if isinstance(module, _BatchNorm) and module.affine and not bool(module.weight.any()):
            nn.init.ones_(module.weight)
    return advise(model, some, lr=task.recipe.learning_rate, samples=images)


def advised_for(task: Task, run_key: int, context: Context) -> Advice:
    """The keep ratios that a probe of a new network suggests for a task, without training it."""
    data = on_device(task.data, context.device)
    train = some_of(data.train, task.samples)
    with own_random_state(run_key, context.device):
        return probe(new_training(task, PruningSpec(), data, train, run_key, context), task)


@contextlib.contextmanager
def own_random_state(run_key: int, device: torch.device) -> Iterator[None]:
    """torch's own generators seeded for this training (first weights, dropout), and given back; all
    batches have one shape, for which convolutions on a GPU may look for their fastest way."""
    devices = [device] if device.type == "cuda" else []
    tuned = torch.backends.cudnn.flags(
        enabled=True, benchmark=True, deterministic=False, allow_tf32=True
    )
    with torch.random.fork_rng(devices=devices), tuned:
        # (torch.manual_seed would also seed a GPU that this training does not use)
        seed = key(run_key, "network") & (2**63 - 1)
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed(seed)
        yield


def _described(task: Task, spec: PruningSpec, outcome: Outcome) -> dict[str, Any]:
    return {
        "network": task.network,
        "data": task.data,
        "recipe": asdict(task.recipe),
        "thinning": asdict(spec),
        "test_noise": list(task.test_noise),
        "test_accuracy": [score.accuracy for score in outcome.test],
    }
