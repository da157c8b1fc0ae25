"""How good trained networks are: which network is evaluated, and its scores."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from rarefy.core.contracts import Context
from rarefy.core.rng import key
from rarefy.data.images import ImageSet
from rarefy.measure.class_report import confusion_of
from rarefy.pruning.finishing.batchnorm import reestimate
from rarefy.train.evaluation import Score, evaluate, outputs
from rarefy.train.image_batches import Scaling
from rarefy.train.precision import mixed_precision
from rarefy.train.supervised import Training

REESTIMATED_BATCHES = 20


class Scorer:
    """Asks networks of one training; all see the same noise."""

    def __init__(
        self, training: Training, scaling: Scaling, run_key: int, context: Context
    ) -> None:
        self._training, self._scaling = training, scaling
        self._run_key, self._context = run_key, context

    def __call__(
        self, network: nn.Module, images: ImageSet, noise: float, which: str = ""
    ) -> Score:
        return evaluate(network, images.images, images.labels, *self._how(noise, which))

    def confusion(
        self, network: nn.Module, images: ImageSet, noise: float, which: str = ""
    ) -> NDArray[np.int64]:
        """Counts of (true class, answered class)."""
        found = [
            one.argmax(dim=1).cpu()
            for one in outputs(network, images.images, *self._how(noise, which))
        ]
        answers = torch.cat(found) if found else torch.empty(0)
        return confusion_of(images.labels.cpu(), answers, len(images.classes))

    def _how(self, noise: float, which: str) -> tuple[Any, ...]:
        return (
            self._scaling,
            noise,
            key(self._run_key, which),  # no two sets of images have the same noise
            self._context.dtype,
            self._training.precision,
            self._training.batches.memory_format,
        )


# -------------------------------------------------------------------------------- what comes of it


def final_network(training: Training, last: bool = True) -> nn.Module:
    """The network that answers. At the last, BatchNorm's statistics are measured anew on training
    images as they were shown, of dense and pruned networks alike: running ones lag behind weights
    that move fast or masks that have just changed, and that would be taken for what pruning does.
    """
    network = training.evaluation_model()
    if (last or network is not training.model) and is_normalised(network):
        network = copy.deepcopy(network) if network is training.model else network
        with mixed_precision(training.batches.device, training.precision):
            reestimate(network, training.batches.epoch(0), limit=REESTIMATED_BATCHES)
    return network


def is_normalised(network: nn.Module) -> bool:
    return any(isinstance(module, _BatchNorm) for module in network.modules())


def accuracy_without_noise(
    network: nn.Module, training: Training, parts: tuple[ImageSet, ImageSet], scorer: Scorer
) -> tuple[float, float]:
    """Accuracies on both halves with BatchNorm's statistics of clean images."""
    if is_normalised(network):
        network = copy.deepcopy(network)
        batches = training.batches.without_noise()
        with mixed_precision(batches.device, training.precision):
            reestimate(network, batches.epoch(0), limit=REESTIMATED_BATCHES)
    first, second = (scorer(network, part, 0.0).accuracy for part in parts)
    return first, second


def mean_score(pair: list[Score], parts: tuple[ImageSet, ImageSet]) -> Score:
    counted = [(score, len(part)) for score, part in zip(pair, parts, strict=True) if len(part)]
    total = sum(count for _, count in counted)
    return Score(
        sum(score.loss * count for score, count in counted) / total,
        sum(score.accuracy * count for score, count in counted) / total,
    )


def kept_share(training: Training, network: nn.Module) -> float:
    if training.pruner is None:
        return 1.0
    weights = dict(network.named_parameters())
    chosen = [weights[name] for name in training.pruner.masks]
    kept = sum(int((one != 0).sum()) for one in chosen)
    return kept / sum(one.numel() for one in chosen)
