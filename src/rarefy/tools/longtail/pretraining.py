"""Pre-train one encoder on one image set and say how good its features are.

``rarefy pretrain`` and the studies of 000 Table 2 both come here: there is one such training.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value, unknown
from rarefy.core.rng import key
from rarefy.nets.backbones import Encoder, Features, Projection, build_backbone
from rarefy.nets.builder import identity
from rarefy.pruning.finishing.batchnorm import reestimate
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.evaluation import Evaluation, Quality, evaluate_features
from rarefy.tools.longtail.features import STATISTICS_BATCHES, features_of, final_encoder
from rarefy.tools.longtail.mechanism import Mechanism, look_inside
from rarefy.tools.longtail.overtraining import overtraining_note
from rarefy.tools.longtail.sets import Parts, Tail, parts_of
from rarefy.tools.longtail.watching import Look, Watcher, asked_places
from rarefy.tools.saved_networks import BACKBONE, save_network
from rarefy.tools.sparse_training import own_random_state
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Scaling
from rarefy.train.precision import PRECISIONS, resolve_precision
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.data_parallel import World
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import Pretraining, PretrainingHistory
from rarefy.train.simclr.view_batches import ViewBatches
from rarefy.train.views.views import Views

HELPS = (
    "a lower --lr, a longer --warm-up, a larger share kept, a larger --temperature, or "
    "--precision float32"
)
_log = logging.getLogger("rarefy")


@dataclass(frozen=True)
class PretrainTask:
    """Everything about a pre-training but its method and the random numbers it draws."""

    data: str
    network: str
    recipe: Recipe
    tail: Tail
    views: Views | None = None
    """None: the usual ones for such images."""
    batch: int = 512
    temperature: float = 0.2
    head_depth: int = 2
    head_out: int = 128
    head_norm: str = "batch"
    evaluation: Evaluation = field(default_factory=Evaluation)
    watched: tuple[int, ...] = ()
    """Epochs after which features are looked at."""
    best: bool = False
    """The network of the best look, by neighbours of held-out images, is kept, not the last."""
    stop: bool = False
    """End where over-training is certain."""
    precision: str = "auto"
    compiled: bool = False
    graphs: bool = field(default=True, repr=False)  # (checkpoints go by the rest)
    """On a GPU, start an update as a recorded graph: the same operations, without the waiting."""
    look: Look | None = field(default=None, repr=False)
    """What is seen at a look; None: the usual (``watching.watched_features``)."""

    def __post_init__(self) -> None:
        for name, least in (("batch", 2), ("head_depth", 1), ("head_out", 1)):
            if getattr(self, name) < least:
                raise bad_value(name, getattr(self, name), f"must be at least {least}")
        if not 0 < self.temperature < float("inf"):
            raise bad_value("temperature", self.temperature, "must be positive and finite")
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class PretrainResult:
    """What one pre-training gave."""

    quality: Quality | None
    """None without labels, or where the loss stopped being a number."""
    masked_quality: Quality | None
    """Of the masked network, where there is one."""
    mechanism: Mechanism | None
    history: PretrainingHistory
    parts: Parts

    def held_out(self, protocol: str, most: int) -> tuple[Tensor, Tensor]:
        """Of at most so many held-out images, whether they were classified right (by a probe on
        all labels of the protocol; where it has none, by the nearest neighbours), and their
        labels."""
        if self.quality is not None and protocol in self.quality.held_out:
            right, labels = self.quality.held_out[protocol]
            some = slice(None, None, max(-(-len(right) // most), 1))
            return right[some].double().cpu(), labels[some].cpu()
        looked = self.history.watched if self.history.nonfinite_step < 0 else {}
        right = torch.tensor(looked.get("best_right", []))
        return right, self.parts.labelled.labels[asked_places(self.parts)].cpu()[: len(right)]


def pretrain_one(
    task: PretrainTask,
    method: Method,
    run_key: int,
    order: int,
    context: Context,
    name: str = "run",
    world: World | None = None,
) -> PretrainResult:
    """Train and measure. The same ``run_key`` means the same first weights, images and views,
    whatever the method: outcomes can be compared in pairs. ``order``: seed of the order of classes
    (and of the images drawn)."""
    parts = parts_of(task.data, task.tail, order, context.device)
    if not method.trained:
        return _untrained(task, method, parts, run_key, context)
    with own_random_state(run_key, context.device):
        training = new_pretraining(task, method, parts, run_key, context, world)
        watch = Watcher(task.watched, parts, context, name, task.look, task.best, task.stop)
        checkpoint = None
        if context.scratch is not None:
            # another file for other settings: none may go on with another one's training
            named = key(run_key, order, task, method, parts.seen.ids, identity(task.network))
            path = context.scratch / f"{named & (2**64 - 1):016x}.pt"
            # (of several processes all read, one writes)
            checkpoint = Checkpoint(path, written=training.world.rank == 0)
        history = training.run(context, checkpoint, watch)
        if history.nonfinite_step >= 0:
            if training.world.rank == 0:
                _complain(training, checkpoint, name)
            return PretrainResult(None, None, None, history, parts)
        training.world.barrier()
        if training.world.rank > 0:  # the first process judges, and saves
            return PretrainResult(None, None, None, history, parts)
        training.go_back()
        encoder = final_encoder(training)
        masked = training.export_encoder("masked") if method.masked else None
        found = _measured(task, training, encoder, masked, parts)
        notes = [] if found.quality is None else list(found.quality.notes)
        if history.stopped_epoch or not task.best:  # (else the run's own lines have it)
            notes.append(overtraining_note(method, task.watched, history))
        for note in filter(None, notes):
            _log.warning("%s: %s", name, note)
        if context.models is not None:
            save_network(
                context.models,
                name,
                encoder.backbone,
                on_device(task.data, context.device),
                _described(task, method, parts, order, history),
            )
        if checkpoint is not None:
            checkpoint.remove()
    return found


def _untrained(
    task: PretrainTask, method: Method, parts: Parts, run_key: int, context: Context
) -> PretrainResult:
    """What features are worth without any training."""
    context.check_time()
    quality = None
    if parts.has_labels:
        scaling = Scaling(parts.mean, parts.std)
        channels, size, _ = parts.seen.images.shape[1:]
        backbone: nn.Module = nn.Flatten()
        if method.kind == "untrained":
            with own_random_state(run_key, context.device):
                backbone, _ = build_backbone(task.network, channels, size)
                backbone = backbone.to(context.device, context.dtype)
                views = task.views or Views.default(channels, size)
                batches = ViewBatches(
                    parts.seen.images, views, scaling, task.batch, run_key, context.dtype
                )
                shown = (batch.flatten(0, 1) for batch in batches.epoch(0))
                reestimate(backbone, shown, STATISTICS_BATCHES)
        quality = evaluate_features(
            lambda images: features_of(backbone, images, scaling), parts, task.evaluation
        )
    context.advance(task.recipe.epochs)
    return PretrainResult(quality, None, None, PretrainingHistory(), parts)


def new_pretraining(
    task: PretrainTask,
    method: Method,
    parts: Parts,
    run_key: int,
    context: Context,
    world: World | None = None,
    own: tuple[Features, int] | None = None,
) -> Pretraining:
    """An encoder with its first weights, its images and its optimiser. ``own``: a backbone that is
    there already and the numbers it gives, instead of the task's network."""
    channels, height, width = parts.seen.images.shape[1:]
    if height != width:
        raise bad_value("data", task.data, f"images must be square, these are {height} x {width}")
    cuda = context.device.type == "cuda"
    precision = resolve_precision(task.precision, context.device, context.dtype)
    backbone, features = own or build_backbone(task.network, channels, height)
    depth = method.head_depth or task.head_depth
    encoder = Encoder(backbone, Projection(features, task.head_out, depth, task.head_norm))
    encoder = encoder.to(context.device, context.dtype)
    if cuda:  # convolutions on a GPU are made for channels that lie side by side
        encoder = encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    batches = ViewBatches(
        parts.seen.images,
        task.views or Views.default(channels, height),
        Scaling(parts.mean, parts.std),
        task.batch,
        run_key,
        torch.bfloat16 if precision == "bf16" else context.dtype,
        world,
    )
    return Pretraining(
        encoder,
        batches,
        task.recipe,
        method,
        task.temperature,
        precision,
        task.compiled,
        task.graphs,
    )


def _measured(
    task: PretrainTask,
    training: Pretraining,
    encoder: Encoder,
    masked: Encoder | None,
    parts: Parts,
) -> PretrainResult:
    if not parts.has_labels:
        return PretrainResult(None, None, None, training.history, parts)
    scaling = training.batches.scaling

    def quality(network: Encoder) -> Quality:
        def features(images: Tensor) -> Tensor:
            return features_of(network.backbone, images, scaling, training.precision)

        return evaluate_features(features, parts, task.evaluation)

    mechanism = None
    if training.method.masked:
        mechanism = look_inside(training, encoder, parts)
    return PretrainResult(
        quality(encoder),
        None if masked is None else quality(masked),
        mechanism,
        training.history,
        parts,
    )


def _complain(training: Pretraining, checkpoint: Checkpoint | None, name: str) -> None:
    step = training.history.nonfinite_step
    epoch = step // training.batches.steps + 1
    kept = "no checkpoint was written before"
    if checkpoint is not None and checkpoint.path.exists():
        kept = f"the last good checkpoint is {_set_aside(checkpoint.path, name)}"
    _log.warning(
        "%s: the loss is no number from update %d (epoch %d) on; %s; what usually helps: %s",
        name,
        step,
        epoch,
        kept,
        HELPS,
    )


def _set_aside(path: Path, name: str) -> Path:
    """Out of the folder of what is under way, which goes when all cells are through."""
    scratch = path.parent
    kept = scratch.with_name(f"{scratch.name.strip('.').removesuffix('scratch')}stopped")
    try:
        kept.mkdir(parents=True, exist_ok=True)
        return path.replace(kept / f"{name}.pt")
    except OSError:
        return path


def _described(
    task: PretrainTask, method: Method, parts: Parts, order: int, seen: PretrainingHistory
) -> dict[str, Any]:
    return {
        "kind": BACKBONE,
        "way": method.words,
        "network": task.network,
        "data": task.data,
        "method": asdict(method),
        "recipe": asdict(task.recipe),
        "tail": asdict(task.tail),
        "class_order_seed": order,
        "class_order": list(parts.order),
        "counts": list(parts.counts),
        "seen": len(parts.seen),
        "temperature": task.temperature,
        "epochs": task.recipe.epochs,
        "kept_epoch": seen.kept_epoch or task.recipe.epochs,
        "batch": task.batch,
        "head": [task.head_depth, task.head_out],
        "smallest_crop": None if task.views is None else task.views.scale[0],
    }


def check_task(task: PretrainTask, device: torch.device, seeds: int = 1) -> Parts:
    """Complain before anything is trained: about the set, the split, the batch, the network. The
    parts are those of the first seed."""
    if task.tail.head_count:  # then it depends on the order whether a small class is asked too much
        for seed in range(1, seeds):
            parts_of(task.data, task.tail, seed, device)
    parts = parts_of(task.data, task.tail, 0, device)
    if task.batch > len(parts.seen):
        raise bad_value(
            "batch", task.batch, f"must be at most the number of images, {len(parts.seen)}"
        )
    channels, height, width = parts.seen.images.shape[1:]
    if height != width:
        raise bad_value("data", task.data, f"images must be square, these are {height} x {width}")
    build_backbone(task.network, channels, height)
    return parts
