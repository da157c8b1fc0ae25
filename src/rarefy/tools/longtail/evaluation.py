"""How good features are for head and tail, asked in several ways with labels that the pre-training
never saw. What has to be chosen is chosen on held-out training images, never on test images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import bad_value, unknown
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.measure.class_report import confusion_of
from rarefy.measure.representation.few_shot import few_shot
from rarefy.measure.representation.knn import knn_predict
from rarefy.measure.representation.labelled import accuracy_by_class
from rarefy.measure.representation.linear_probe import STRENGTHS, StrengthChoice, fit_chosen
from rarefy.tools.longtail.sets import VALIDATION_SHARE, Parts

PROTOCOLS: dict[str, str] = {
    "linear": "logistic regression on all training images with labels",
    "long-tail": "logistic regression on the labels of the images of the pre-training alone",
    "few": "logistic regression on a few labels of each class",
    "knn": "labels of the most similar training images",
}
MANY, FEW_NEIGHBOURS, NEIGHBOURS = 10_000, 20, 200
"""With so many references 200 neighbours are asked (Wu et al. 2018), below 20."""


@dataclass(frozen=True)
class Evaluation:
    """``shots``: labels per class of the protocol ``few``, drawn ``draws`` times; ``neighbours`` 0:
    by the number of references."""

    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    shots: int = 10
    draws: int = 5
    neighbours: int = 0
    knn_temperature: float = 0.1
    strengths: tuple[float, ...] = STRENGTHS
    """Of the regularisation, from which one is chosen."""

    def __post_init__(self) -> None:
        for name in self.protocols:
            if name not in PROTOCOLS:
                raise unknown("protocol", name, PROTOCOLS)
        if not self.protocols:
            raise bad_value("protocols", self.protocols, "must have at least one")
        if len(set(self.protocols)) < len(self.protocols):
            raise bad_value("protocols", self.protocols, "has the same one twice")
        if self.shots < 1:
            raise bad_value("shots", self.shots, "must be at least 1 label per class")
        if self.draws < 1:
            raise bad_value("draws", self.draws, "must be at least 1")
        if self.neighbours < 0:
            raise bad_value("neighbours", self.neighbours, "must be at least 1, or 0: by itself")


@dataclass(frozen=True)
class Quality:
    """Test accuracy by protocol and rank (head first), and what was chosen on the way."""

    accuracy: dict[str, Tensor]
    """(rank,) each, float64; NaN for a class without test images."""
    strength: dict[str, float]
    """Of the regularisation, chosen on held-out images."""
    validation: dict[str, float]
    """Best balanced accuracy there: what a choice between methods may look at."""
    notes: tuple[str, ...] = ()
    confusion: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """By protocol, counts of (true label, answered label); of ``few`` the mean over draws."""
    held_out: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """By protocol with a probe on all its labels: of held-out images, whether they were classified
    right by one that was not trained on them, and their labels: to compare methods in pairs."""


@dataclass(frozen=True)
class ProbeData:
    """Features and labels of training samples, and of the test samples that are asked.

    ``held_out``: the training samples on which is chosen, (n,) bool; ``long_tail``: places of those
    that the pre-training saw, and which of them are held out.
    """

    features: Tensor
    labels: Tensor
    held_out: Tensor
    test_features: Tensor
    test_labels: Tensor
    classes: int
    long_tail: Callable[[], tuple[Tensor, Tensor]] | None = None


def evaluate_features(
    features: Callable[[Tensor], Tensor], parts: Parts, how: Evaluation
) -> Quality:
    """``features``: uint8 images to rows of numbers."""
    data = ProbeData(
        features(parts.labelled.images),
        parts.labelled.labels,
        parts.held_out,
        features(parts.test.images),
        parts.test.labels,
        parts.classes,
        lambda: (_places(parts), _held_out_of_seen(parts)),
    )
    return judge(data, how, parts.order)


def judge(data: ProbeData, how: Evaluation, order: Sequence[int], seed: int = 0) -> Quality:
    """``order``: labels, the class with most samples in the pre-training first; ``seed``: of the
    few labels."""
    labels, classes, out = data.labels, data.classes, data.held_out
    accuracy: dict[str, Tensor] = {}
    strength: dict[str, float] = {}
    validation: dict[str, float] = {}
    notes: list[str] = []
    confusion: dict[str, NDArray[np.float64]] = {}
    right: dict[str, tuple[Tensor, Tensor]] = {}

    def counted(name: str, answers: Tensor) -> None:
        """``answers``: (draw, sample)."""
        asked = data.test_labels.cpu()
        drawn = [confusion_of(asked, one, classes) for one in answers.cpu()]
        confusion[name] = np.mean(drawn, axis=0)

    def linear(name: str, rows: Tensor | slice, held_out: Tensor) -> Tensor:
        found, choice, answered = fit_chosen(
            data.features[rows], labels[rows], classes, held_out, how.strengths
        )
        asked = labels[rows][held_out]
        right[name] = answered == asked, asked
        strength[name], validation[name] = choice.best, _best(choice)
        if not found.converged:
            notes.append(f"{name}: the probe is not at its best weights (off by {found.error:.1g})")
        answers = found.predict(data.test_features)
        counted(name, answers[None])
        return accuracy_by_class(answers, data.test_labels, classes)

    def few() -> Tensor:
        found = few_shot(
            (data.features[~out], labels[~out]),
            (data.features[out], labels[out]),
            (data.test_features, data.test_labels),
            classes,
            how.shots,
            draws=how.draws,
            strengths=how.strengths,
            seed=seed,
        )
        strength["few"] = median(choice.best for choice in found.choices)
        validation["few"] = fmean(_best(choice) for choice in found.choices)
        fewer = int((found.picked < how.shots).sum())
        if fewer:
            notes.append(f"few: {fewer} of {classes} classes have fewer than {how.shots} labels")
        counted("few", found.answers)
        return found.mean_by_class

    def neighbours() -> Tensor:
        references = data.features
        k = how.neighbours or (NEIGHBOURS if len(references) >= MANY else FEW_NEIGHBOURS)
        vote = knn_predict(references, labels, data.test_features, classes, k, how.knn_temperature)
        if vote.limited and how.neighbours:
            notes.append(f"knn: all {vote.k} references vote, {k} were asked for")
        counted("knn", vote.predicted[None])
        return accuracy_by_class(vote.predicted, data.test_labels, classes)

    for name in how.protocols:
        if name == "linear":
            by_class = linear(name, slice(None), out)
        elif name == "long-tail":
            if data.long_tail is None:
                raise bad_value("protocols", name, "needs the images of the pre-training")
            by_class = linear(name, *data.long_tail())
        else:
            by_class = few() if name == "few" else neighbours()
        accuracy[name] = by_class[list(order)]
    return Quality(accuracy, strength, validation, tuple(notes), confusion, right)


def _places(parts: Parts) -> Tensor:
    """Where the images of the pre-training stand among the labelled ones."""
    where = {identity: place for place, identity in enumerate(parts.labelled.ids)}
    found = torch.tensor([where[identity] for identity in parts.seen.ids])
    return found.to(parts.labelled.images.device)


def _held_out_of_seen(parts: Parts) -> Tensor:
    """Some of each class of the long tail itself: whoever has these labels alone has no others."""
    contents = [digest_of(one) for one in parts.seen.ids]
    labels = parts.seen.labels
    chosen = choose_by_content(contents, labels.tolist(), VALIDATION_SHARE, "validation")
    return torch.tensor(chosen, device=labels.device)


def _best(choice: StrengthChoice) -> float:
    return max(row.balanced_accuracy for row in choice.table)
