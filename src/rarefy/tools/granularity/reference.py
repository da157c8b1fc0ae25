"""Networks that stand beside an experiment: one whose features are clustered, and judges that say
which test images are hard. None of them is among those that are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import nn

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.rng import key
from rarefy.data.hierarchy.made import check_rows
from rarefy.nets.backbones import Headed
from rarefy.sweep.cached import Numbers, cached_npz, hash_of
from rarefy.tools.granularity.evaluation import probe_backbone, right_answers
from rarefy.tools.granularity.sets import (
    TARGET,
    Source,
    TransferSets,
    data_of,
    load_sets,
    pretraining_labels,
)
from rarefy.tools.granularity.transfer import (
    TransferTask,
    pretrain_stage,
)
from rarefy.tools.longtail.features import features_of
from rarefy.tools.samples.arrays import load_npy
from rarefy.tools.saved_networks import load_backbone
from rarefy.tools.sparse_training import own_random_state
from rarefy.train.image_batches import Scaling

PIXELS = "pixels"


class Diverged(Exception):
    """A network whose features were to be clustered stopped being finite."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step


class HardImages(NamedTuple):
    """Which test images only the judge of fine labels gets right, and which only the judge of
    target labels does: the mirror image of the choice."""

    hard: NDArray[np.bool_]
    mirror: NDArray[np.bool_]


def clustering_features(
    features: str, source: Source, task: TransferTask, run_key: int, context: Context
) -> NDArray[np.float32]:
    """(n, d) of the images that are pre-trained on: their pixels, the user's embedding (``.npy``,
    a row per training image), what a backbone of ``rarefy pretrain --save`` (``.pt``) makes of
    them, or a network that was trained on the target labels."""
    sets = load_sets(source, context.device)
    images = sets.source.images
    if features == PIXELS:
        return np.asarray(images.flatten(1).float().cpu().numpy() / 255, dtype=np.float32)
    if features == TARGET:
        judge = _judge(TARGET, source, task, run_key, context)
        if judge["nonfinite_step"] >= 0:
            raise Diverged(int(judge["nonfinite_step"]))
        return judge["features"].astype(np.float32)
    if features.endswith(".npy"):
        return _embedding(features, source, sets)
    return _by_backbone(features, sets, context)


def check_features(features: str, source: Source) -> None:
    """Raise ``UsageError`` for what cannot be clustered, before anything is trained."""
    sets = load_sets(source, torch.device("cpu"))
    if features.endswith(".npy"):
        _embedding(features, source, sets)
    elif features not in (PIXELS, TARGET):
        _backbone(features, sets)


def _embedding(path: str, source: Source, sets: TransferSets) -> NDArray[np.float32]:
    if not Path(path).is_file():
        raise UsageError(f"there is no embedding {path}")
    found = load_npy(path)
    whole = data_of(source, torch.device("cpu")).train
    if found.ndim != 2 or len(found) not in (len(whole), len(sets.source)):
        shape = " x ".join(map(str, found.shape))
        raise UsageError(
            f"{path}: an embedding of {shape}; it must have a row per training image, "
            f"{len(whole):,} rows"
        )
    check_rows(found, path)
    if len(found) == len(sets.source):
        return found.astype(np.float32)
    place = {one: row for row, one in enumerate(whole.ids)}
    return found[[place[one] for one in sets.source.ids]].astype(np.float32)


def _backbone(path: str, sets: TransferSets) -> tuple[nn.Module, dict[str, Any]]:
    if not path.endswith(".pt"):
        known = f"{TARGET}, {PIXELS}, an embedding (.npy) or a backbone (.pt)"
        raise bad_value("features", path, f"must be {known}")
    backbone, about = load_backbone(path)
    channels, size, _ = sets.shape
    if (about["channels"], about["size"]) != (channels, size):
        made_for = f"{about['channels']} x {about['size']} x {about['size']}"
        raise bad_value("features", path, f"is for images of {made_for}, not {channels} x {size}")
    return backbone, about


def _by_backbone(path: str, sets: TransferSets, context: Context) -> NDArray[np.float32]:
    backbone, about = _backbone(path, sets)
    scaling = Scaling(tuple(about["mean"]), tuple(about["std"]))
    found = features_of(backbone.to(context.device), sets.source.images, scaling)
    return np.asarray(found.cpu().numpy(), dtype=np.float32)


def hard_images(source: Source, task: TransferTask, run_key: int, context: Context) -> HardImages:
    """Wrong by a judge that learnt the target labels, right by a probe of one that learnt the
    finest given level. A sample that lacks what its target class has in common is of this kind in
    Hong et al.'s model. Judges that differ by luck alone choose both kinds alike."""
    finest = load_sets(source, context.device).finest()
    coarse, fine = (
        _judge(which, source, task, run_key, context)["right"].astype(bool)
        for which in (TARGET, finest)
    )
    return HardImages(~coarse & fine, coarse & ~fine)


def _judge(
    which: str, source: Source, task: TransferTask, run_key: int, context: Context
) -> Numbers:
    """Its features of the images that are pre-trained on, and which test images it gets right."""
    own_key = key(run_key, "judge", which)
    # (its epochs are not those of the cell that happens to ask first)
    quiet = replace(context, advance=lambda amount: None)

    def compute() -> Numbers:
        sets = load_sets(source, context.device)
        labels = pretraining_labels(which, sets, None, 0)
        images = sets.tuned if which == TARGET else sets.source
        name = f"judge of {which} labels"
        with own_random_state(own_key, context.device):
            training = pretrain_stage(task, sets, labels, images, own_key, quiet, name)
            model = training.model
            assert isinstance(model, Headed)
            if training.history.nonfinite_step >= 0:
                right = torch.zeros(len(sets.test))
            elif which == TARGET:
                right = right_answers(model, sets.test, sets, task.precision(context), context)
            else:
                right = probe_backbone(model.backbone, sets, task.precision(context))[2]
            precision = task.precision(context)
            scaling = sets.source_scaling
            features = features_of(model.backbone, sets.source.images, scaling, precision)
        # half the bytes: clusters do not see the difference
        return {
            "right": right.cpu().numpy(),
            "features": features.half().cpu().numpy(),
            "nonfinite_step": np.asarray(training.history.nonfinite_step),
        }

    if context.scratch is None:
        return compute()
    path = context.scratch / f"judge-{hash_of(own_key, task)}.npz"
    with FileLock(f"{path}.lock"):  # (processes of one run would all begin with it)
        return cached_npz(path, compute, quiet.advance, 0)
