"""``rarefy.pretrain`` and ``rarefy.probe``: for one's own images and features, in Python."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import RunError, UsageError, bad_value
from rarefy.core.progress import Progress
from rarefy.core.rng import key
from rarefy.core.settings import resolve_device
from rarefy.data.images import ImageData, ImageSet
from rarefy.data.images.ids import choose_by_content
from rarefy.data.images.unlabelled import UNLABELLED
from rarefy.measure.class_report import COLUMNS, class_report
from rarefy.measure.representation.groups import delta_20
from rarefy.nets.backbones import Features
from rarefy.tools.compared_run import given_or_usual
from rarefy.tools.exported_networks import exported, write_exported
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.evaluation import Evaluation, ProbeData, judge
from rarefy.tools.longtail.features import features_of, final_encoder
from rarefy.tools.longtail.features_file import Outputs
from rarefy.tools.longtail.pretraining import HELPS, PretrainTask, new_pretraining
from rarefy.tools.longtail.recipes import usual_pretraining
from rarefy.tools.longtail.sets import AS_IS, VALIDATION_SHARE, Parts, Tail
from rarefy.tools.sparse_training import own_random_state
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Scaling
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import Pretraining
from rarefy.train.views.views import Views

WITHOUT_IMAGES = ("linear", "few", "knn")
"""Protocols that need features and labels alone."""


@dataclass(frozen=True)
class PretrainedBackbone:
    """A trained backbone. ``features(images)`` gives (n, d) for uint8 images like those that it was
    trained on; the module itself wants pixels in [0, 1], less ``mean``, over ``std``.

    Attributes:
        backbone: the module.
        mean, std: of the pixels, per channel.
        history: one row per epoch: loss, alignment, uniformity, churn of the mask.
        device, precision, size: where and how it was trained, and the side of the images.

    Example:
        >>> images = (load_digits().images * 15).astype("uint8")[:128, None]
        >>> learnt = rarefy.pretrain(images, "lenet", epochs=1, progress=False)
        >>> learnt.history.columns.tolist()
        ['epoch', 'loss', 'alignment', 'uniformity', 'churn']
    """

    backbone: nn.Module
    mean: tuple[float, ...]
    std: tuple[float, ...]
    history: pd.DataFrame
    """One row per epoch: loss, alignment, uniformity, churn of the mask."""
    device: torch.device
    precision: str
    size: int
    """Side of the images."""

    def features(self, images: Tensor | ArrayLike) -> Tensor:
        """What the backbone makes of images.

        Arguments:
            images: uint8 (n, channels, size, size).

        Returns:
            A tensor (n, d), on the CPU.

        Example:
            >>> images = (load_digits().images * 15).astype("uint8")[:128, None]
            >>> learnt = rarefy.pretrain(images, "lenet", epochs=1, progress=False)
            >>> learnt.features(images).shape
            torch.Size([128, 84])
        """
        shown = _as_images(images).to(self.device)
        scaling = Scaling(self.mean, self.std)
        return features_of(self.backbone, shown, scaling, self.precision).cpu()

    def export(self, path: Path | str) -> None:
        """Write it as a program (.pt2): ``torch.export.load(path).module()`` takes pixels in [0, 1]
        and needs neither rarefy nor the network's code.

        Arguments:
            path: a file that ends in ``.pt2``.

        Example:
            >>> images = (load_digits().images * 15).astype("uint8")[:128, None]
            >>> learnt = rarefy.pretrain(images, "lenet", epochs=1, progress=False)
            >>> learnt.export("learnt.pt2")
        """
        Outputs(export=Path(path)).check("pretrain")
        name = type(self.backbone).__name__
        program = exported(self.backbone, Scaling(self.mean, self.std), self.size, name)
        write_exported(program, Path(path), "pretrain")


def pretrain(
    images: Tensor | ArrayLike | str,
    network: str | nn.Module | None = None,
    method: str = "simclr",
    *,
    epochs: int | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    warm_up: float | None = None,
    weight_decay: float = 1e-4,
    temperature: float = 0.2,
    views: Views | None = None,
    head_depth: int = 2,
    head_out: int = 128,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool = False,
    graphs: bool = True,
    checkpoint: Path | str | None = None,
    max_seconds: float | None = None,
    progress: bool = True,
) -> PretrainedBackbone:
    """Learn features of images without labels, by one method, and give the network.

    (``rarefy.pretrain_images`` compares methods on a set over several seeds, as the verb does; both
    train by ``tools.longtail.pretraining``.)

    Arguments:
        images: uint8 (n, channels, size, size), or a set by name (its training images).
        network: a name, ``module:callable``, or a module that gives a row of numbers per image
            (which is trained in place); by the images and the device if not given.
        method: ``simclr``, ``pruned:0.7``, ``branches:0.1``, ...
            (``rarefy.train.simclr.method``).
        epochs, batch, learning_rate, warm_up: by the number of images if not given.
        weight_decay, temperature: of the optimiser and of the loss.
        views: how random views are made; the usual crops and colours if not given.
        head_depth, head_out: layers of the projection head, and its width.
        seed: of weights, views and masks.
        device: auto, cpu or cuda.
        precision: auto (bf16 on a GPU), bf16 or float32.
        compiled: by torch.compile.
        graphs: on a GPU, start an update as one recorded CUDA graph. A network that decides
            something in Python anew at every call needs ``graphs=False`` (one that draws random
            numbers there is found out by itself).
        checkpoint: a file that keeps what is trained so far; the same call goes on from it.
        max_seconds: ``OutOfTime`` is raised when they are over: with a checkpoint, call it again.
        progress: show a bar.

    Returns:
        The backbone, with ``features(images)`` and the history of its training.

    Example:
        >>> images = (load_digits().images * 15).astype("uint8")[:128, None]
        >>> learnt = rarefy.pretrain(images, "lenet", "branches:0.1", epochs=1, progress=False)
        >>> learnt.features(images).shape
        torch.Size([128, 84])
    """
    place = resolve_device(device)
    data = _data_of(images, place)
    way = Method.parse(method)
    if not way.trained:
        raise bad_value("method", method, "learns nothing: there is nothing to train")
    parts = _parts_of(data)
    channels, size = parts.seen.images.shape[1:3]
    usual = usual_pretraining(len(parts.seen), size, None, batch, place.type)
    network = usual["network"] if network is None else network
    given = {
        "epochs": epochs,
        "batch": batch,
        "learning_rate": learning_rate,
        "warm_up": warm_up,
    }
    chosen = given_or_usual(given, usual)
    recipe = Recipe(
        epochs=chosen["epochs"],
        learning_rate=chosen["learning_rate"],
        weight_decay=weight_decay,
        warm_up=chosen["warm_up"],
    )
    task = PretrainTask(
        data.name,
        network if isinstance(network, str) else type(network).__name__,
        recipe,
        Tail(AS_IS),
        views,
        chosen["batch"],
        temperature,
        head_depth,
        head_out,
        precision=precision,
        compiled=compiled,
        graphs=graphs,
    )
    run_key = key("rarefy.pretrain", seed)
    with own_random_state(run_key, place):
        own = None if isinstance(network, str) else _backbone(network, channels, size)
        here = Context(device=place)
        training = new_pretraining(task, way, parts, run_key, here, own=own)
        # (a file that is named by hand may be of another training)
        training.about = f"{key(task, way, seed, parts.seen.ids) & (2**64 - 1):016x}"
        kept = None if checkpoint is None else Checkpoint(Path(checkpoint))
        bar = Progress(method, recipe.epochs) if progress else nullcontext()
        deadline = None if max_seconds is None else time.monotonic() + max_seconds
        try:
            with bar as shown_bar:
                context = replace(here, deadline=deadline)
                if shown_bar is not None:
                    context = replace(context, advance=shown_bar.advance, say=shown_bar.say)
                seen = training.run(context, kept, lambda now: context.say(_words(now)))
            if seen.nonfinite_step >= 0:
                last = ""
                if checkpoint is not None and Path(checkpoint).exists():
                    last = f"; the last good checkpoint is {checkpoint}"
                raise RunError(
                    f"the loss is no number from update {seen.nonfinite_step} on{last}; what "
                    f"usually helps: {HELPS.replace('--', '').replace('-', '_')}"
                )
            learnt = final_encoder(training).backbone.eval()
        finally:  # stopped or not: a caller's own network must not keep our masks
            if training.pruner is not None:
                training.pruner.detach()
    if kept is not None:
        kept.remove()
    names = ("loss", "alignment", "uniformity", "churn")
    history = pd.DataFrame({name: getattr(seen, name) for name in names})
    history.insert(0, "epoch", np.arange(1, len(history) + 1))
    if isinstance(network, nn.Module):
        network.load_state_dict(learnt.network.state_dict())  # type: ignore[union-attr]
    made = (learnt, data.mean, data.std, history, place, training.precision)
    return PretrainedBackbone(*made, size=size)


def _words(now: Pretraining) -> str:
    seen = now.history
    words = f"loss {seen.loss[-1]:.3f}, alignment {seen.alignment[-1]:.2f}"
    return f"{words}, uniformity {seen.uniformity[-1]:.2f}"


def _data_of(images: Tensor | ArrayLike | str, device: torch.device) -> ImageData:
    if isinstance(images, str):
        return on_device(images, device)
    shown = _as_images(images)
    labels = torch.zeros(len(shown), dtype=torch.int64)
    whole = ImageSet(shown, labels, UNLABELLED)
    return ImageData("images", whole, whole, "an array").to(device)


def _parts_of(data: ImageData) -> Parts:
    """All training images, without labels."""
    images = data.train
    nobody = torch.zeros(len(images), dtype=torch.bool, device=images.images.device)
    everyone = (images, images, nobody, images)
    return Parts(*everyone, (0,), (len(images),), None, data.mean, data.std)


def _as_images(images: Tensor | ArrayLike) -> Tensor:
    found = images if isinstance(images, Tensor) else torch.as_tensor(np.asarray(images))
    if found.dtype != torch.uint8 or found.ndim != 4:
        shape = f"{found.dtype} {tuple(found.shape)}"
        raise bad_value("images", shape, "must be uint8 (n, channels, height, width)")
    if found.shape[2] != found.shape[3]:
        hint = " (channels come first)" if found.shape[1] == found.shape[2] else ""
        raise bad_value("images", tuple(found.shape), f"must be square{hint}")
    if found.shape[1] not in (1, 3):
        hint = "; channels come first" if found.shape[3] in (1, 3) else ""
        raise bad_value("images", tuple(found.shape), f"must have 1 or 3 channels{hint}")
    return found


def _backbone(network: nn.Module, channels: int, size: int) -> tuple[Features, int]:
    backbone = Features(network)
    first = next(iter(network.parameters()), None)
    if first is None:
        raise bad_value("network", type(network).__name__, "has no weights to train")
    was = network.training
    example = torch.zeros(2, channels, size, size, device=first.device, dtype=first.dtype)
    try:
        with torch.no_grad():
            found = backbone.eval()(example)
    except (RuntimeError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        sizes = " x ".join(map(str, example.shape))
        raise UsageError(
            f"network {type(network).__name__} does not take images of {sizes}: {reason}"
        ) from error
    finally:
        backbone.train(was)
    if found.ndim != 2 or len(found) != 2:
        shape = tuple(found.shape)
        raise bad_value("network", shape, "must give a row of numbers per image, for 2 images")
    return backbone, found.shape[1]


# -------------------------------------------------------------------------------------------- probe


def probe(
    train: tuple[Tensor | ArrayLike, Tensor | ArrayLike],
    test: tuple[Tensor | ArrayLike, Tensor | ArrayLike],
    counts: Sequence[int] | None = None,
    *,
    protocols: Sequence[str] = ("linear", "few", "knn"),
    shots: int = 10,
    draws: int = 5,
    neighbours: int = 0,
    seed: int = 0,
    per_class: bool = False,
) -> pd.DataFrame:
    """Judge features (n, d) with labels 0 .. classes - 1, in per cent of test samples.

    Regularisation is chosen on a tenth of ``train``. What went otherwise than asked (fewer labels
    than shots, say) is a warning.

    Arguments:
        train, test: features and labels each.
        counts: samples of each class in whatever the features were learnt from, by label: they say
            which classes are head and tail; those of ``train`` if not given.
        protocols: linear, few (labels), knn.
        shots, draws: labels per class of few, and how often they are drawn.
        neighbours: of knn; 0: by the number of samples.
        seed: of held-out samples and few labels.
        per_class: a row per protocol and class, with the columns of
            ``measure.class_report.COLUMNS``; else a row per protocol: balanced_accuracy, macro_f1,
            head, middle, tail (thirds of the classes by counts), worst_class, majority_accuracy,
            delta_20 (head fifth less tail fifth), strength, warnings.

    Returns:
        A DataFrame.

    Example:
        >>> X, y = load_digits(return_X_y=True)  # raw pixels for features
        >>> table = rarefy.probe((X[:300], y[:300]), (X[300:600], y[300:600]), protocols=["knn"])
        >>> table.loc[0, "balanced_accuracy"].round(1)
        np.float64(82.8)
    """
    x, y = (torch.as_tensor(np.asarray(part)) for part in train)
    asked, answers = (torch.as_tensor(np.asarray(part)) for part in test)
    if len(y) == 0 or y.is_floating_point():
        raise bad_value("train", str(y.dtype), "labels must be whole numbers, at least one")
    for name, features, labels in (("train", x, y), ("test", asked, answers)):
        if len(features) != len(labels):
            both = f"{len(features)} features, {len(labels)} labels"
            raise bad_value(name, both, "must be as many")
    y, answers = y.long(), answers.long()
    classes = int(max(y.max(), answers.max())) + 1
    if counts is None:
        sizes = torch.bincount(y, minlength=classes).tolist()
    else:
        sizes = [int(count) for count in counts]
    if len(sizes) != classes:
        raise bad_value("counts", len(sizes), f"must be one for each of {classes} classes")
    order = sorted(range(classes), key=lambda label: -sizes[label])
    names = [str(row) for row in range(len(y))]
    out = torch.tensor(choose_by_content(names, y.tolist(), VALIDATION_SHARE, f"probe {seed}"))
    for protocol in protocols:
        if protocol not in WITHOUT_IMAGES:
            known = f"{', '.join(WITHOUT_IMAGES[:-1])} or {WITHOUT_IMAGES[-1]}"
            raise bad_value("protocols", protocol, f"must be {known}")
    how = Evaluation(tuple(protocols), shots, draws, neighbours)
    found = judge(ProbeData(x, y, out, asked, answers, classes), how, order, seed)
    for note in found.notes:
        warnings.warn(note, stacklevel=2)
    told = {
        name: class_report(confusion, sizes, [str(label) for label in range(classes)])
        for name, confusion in found.confusion.items()
    }
    if per_class:
        tables = [one.table.assign(protocol=name) for name, one in told.items()]
        return pd.concat(tables, ignore_index=True)[["protocol", *COLUMNS]]
    return pd.DataFrame(
        {
            "protocol": name,
            **asdict(one.summary),
            "delta_20": 100 * delta_20(found.accuracy[name].numpy()),
            "strength": found.strength.get(name, float("nan")),
            "warnings": list(one.warnings),
        }
        for name, one in told.items()
    )
