"""Few labels: linear probes trained on a handful of samples of each class, several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws, key
from rarefy.measure.representation.labelled import (
    LabelledFeatures,
    accuracy_by_class,
    balanced_accuracy,
    check_labelled,
    check_labels,
    class_counts,
)
from rarefy.measure.representation.linear_probe import (
    STRENGTHS,
    StrengthChoice,
    strength_path,
)


@dataclass(frozen=True)
class FewShot:
    """by_class: (draw, class), accuracy on the test samples, NaN for a class without any; picked:
    (class,), samples a probe was trained on (fewer than asked where a class has fewer); choices and
    converged: of every draw; answers: (draw, test sample), the label that was predicted."""

    by_class: Tensor
    picked: Tensor
    choices: tuple[StrengthChoice, ...]
    converged: tuple[bool, ...]
    answers: Tensor

    @property
    def mean_by_class(self) -> Tensor:
        """(class,): mean over the draws."""
        return self.by_class.mean(dim=0)

    @property
    def each(self) -> tuple[float, ...]:
        """Balanced accuracy of every draw: how much the choice of samples matters."""
        return tuple(balanced_accuracy(row) for row in self.by_class)

    @property
    def mean(self) -> float:
        """Mean over draws and classes."""
        return sum(self.each) / len(self.each)


def pick_few(labels: Tensor, classes: int, per_class: int, seed: int = 0, draw: int = 0) -> Tensor:
    """Row numbers of ``per_class`` samples of each class, or all it has, class by class.

    The samples of a class are put in an order that depends on (seed, draw) and the row number, and
    the first ones taken: fewer per class are a subset of more.
    """
    if per_class < 1:
        raise bad_value("per_class", per_class, "must be at least 1")
    labels = check_labels(labels, len(labels), classes)
    draws = Draws([key("few shot", seed, draw)], labels.device)
    chance = draws.integers("order", 1 << 31, (len(labels),))[0]
    order = (labels * (1 << 31) + chance).argsort(stable=True)
    sorted_labels = labels[order]
    first = torch.searchsorted(sorted_labels, torch.arange(classes, device=labels.device))
    place = torch.arange(len(labels), device=labels.device) - first[sorted_labels]
    return order[place < per_class]


def few_shot(
    train: LabelledFeatures,
    validation: LabelledFeatures,
    test: LabelledFeatures,
    classes: int,
    per_class: int,
    *,
    draws: int = 5,
    seed: int = 0,
    strengths: Sequence[float] = STRENGTHS,
) -> FewShot:
    """Probes trained on ``per_class`` samples of each class, drawn ``draws`` times from ``train``.

    The strength is chosen on ``validation`` for each draw anew; ``test`` is looked at once, by the
    probe that was chosen.
    """
    if draws < 1:
        raise bad_value("draws", draws, "must be at least 1")
    features, labels = check_labelled(train, classes, "training")
    held, theirs = check_labelled(test, classes, "test")
    answers, rows, choices, converged = [], [], [], []
    for draw in range(draws):
        picked = pick_few(labels, classes, per_class, seed, draw)
        few = features[picked], labels[picked]
        choice, probe = strength_path(few, validation, classes, strengths)
        answers.append(probe.predict(held))
        rows.append(accuracy_by_class(answers[-1], theirs, classes))
        choices.append(choice)
        converged.append(probe.converged)
    amount = class_counts(labels, classes).clamp(max=per_class).cpu()
    told = tuple(choices), tuple(converged), torch.stack(answers)
    return FewShot(torch.stack(rows), amount, *told)
