"""Linear probe of frozen features: multi-class logistic regression, trained to the end.

Full batches and a convergence that is checked, because a probe that is only nearly trained measures
its optimiser. How strongly it is regularised is chosen on validation data, never on what is
reported. ``measure.probes`` has the probes of the laboratory: many runs at once, yes or no labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.measure.representation.labelled import (
    LabelledFeatures,
    accuracy_by_class,
    balanced_accuracy,
    check_features,
    check_labelled,
)
from rarefy.measure.representation.probe_problem import ProbeProblem, standardised

STRENGTHS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""From a probe that is little more than class means to one that is hardly held back."""
TOLERANCE = 1e-3
"""A trained probe's coefficients are this close to the best, relative to their norm: a thousandth
moves a score by a thousandth, and one sample in thousands to another class. Float32 reaches it."""
PATH_TOLERANCE = 0.05
"""The same while strengths are compared, a decade apart: on features of real images the accuracy on
validation samples was the same to all digits from 0.001 to 0.1, in a third of the time."""
MOST_STEPS = 2000
PATIENCE = 2
"""Strengths in a row that may be no better before weaker ones are not tried: they take most of the
time. Two, because on few validation samples accuracy over strengths is no smooth hill."""
_ROWS = 8192
"""Rows scored at a time."""


@dataclass(frozen=True)
class LinearProbe:
    """Scores = coefficients (x - centre) / scale + intercept, all float64.

    centre, scale: (d,), of the training samples (scale 0: constant there, left out); coefficients:
    (class, d); intercept: (class,), -inf for a class without training samples, which is therefore
    never predicted. error: bound on the relative distance of the coefficients to the best ones (up
    to rounding); converged: whether it is within the tolerance.
    """

    centre: Tensor
    scale: Tensor
    coefficients: Tensor
    intercept: Tensor
    strength: float
    converged: bool
    error: float
    steps: int

    def scores(self, features: Tensor) -> Tensor:
        """Logits, (sample, class), float64."""
        features = check_features(features, least=0)
        if features.shape[1] != len(self.centre):
            raise bad_value(
                "features", tuple(features.shape), f"must have {len(self.centre)} columns"
            )
        parts = [
            standardised(part, self.centre, self.scale) @ self.coefficients.T + self.intercept
            for part in features.to(self.centre.device).split(_ROWS)
        ]
        return torch.cat(parts)

    def predict(self, features: Tensor) -> Tensor:
        """The label of the highest score, (sample,)."""
        return self.scores(features).argmax(dim=1)


class StrengthRow(NamedTuple):
    """How a probe of one strength did on the validation samples."""

    strength: float
    balanced_accuracy: float
    accuracy: float
    converged: bool
    steps: int


class StrengthChoice(NamedTuple):
    """The strength that was best on validation samples, and all that were tried, strongest
    first."""

    best: float
    table: tuple[StrengthRow, ...]


class ChosenProbe(NamedTuple):
    """A probe of the strength that was chosen, trained on everything it was given; ``held_out``:
    what the one that was not trained on them answered for the held-out samples."""

    probe: LinearProbe
    choice: StrengthChoice
    held_out: Tensor


def fit_linear(
    features: Tensor,
    labels: Tensor,
    classes: int,
    strength: float,
    start: LinearProbe | None = None,
    *,
    tolerance: float = TOLERANCE,
    most_steps: int = MOST_STEPS,
) -> LinearProbe:
    """Minimise mean of -log p(label | x) + strength / 2 |W|^2 over standardised features x.

    features: (sample, d); labels: (sample,). The mean, not the sum: ``strength`` is a weight decay
    (1 / (samples C) in scikit-learn's words), and larger is stronger. The intercept is free.
    ``start``: a probe of the same width and number of classes; it saves some steps and changes
    nothing else. Products are made in the precision of the features, float32 at least.
    """
    _check_strengths([strength])
    features, labels = check_labelled((features, labels), classes, "training")
    problem = ProbeProblem(features, labels, classes)
    return _fit(problem, classes, strength, start, tolerance, most_steps)


def fit_chosen(
    features: Tensor,
    labels: Tensor,
    classes: int,
    held_out: Tensor,
    strengths: Sequence[float] = STRENGTHS,
    *,
    tolerance: float = TOLERANCE,
    most_steps: int = MOST_STEPS,
) -> ChosenProbe:
    """Choose the strength on the samples ``held_out``, (sample,) boolean, with probes trained on
    the others; then train on all."""
    if held_out.dtype != torch.bool or held_out.shape != features.shape[:1]:
        raise bad_value(
            "held_out",
            f"{held_out.dtype} {tuple(held_out.shape)}",
            f"must be boolean, one for each of {len(features)} rows",
        )
    amount = int(held_out.sum())
    if not 0 < amount < len(features):
        raise bad_value("held_out", amount, f"must mark some of {len(features)} rows, not all")
    # on the whole, so that an error names rows as the caller counts them
    features, labels = check_labelled((features, labels), classes, "training")
    out = held_out.to(features.device)
    train, validation = (features[~out], labels[~out]), (features[out], labels[out])
    path = max(tolerance, PATH_TOLERANCE)
    choice, best = strength_path(train, validation, classes, strengths, path, most_steps)
    problem = ProbeProblem(features, labels, classes)
    found = _fit(problem, classes, choice.best, best, tolerance, most_steps)
    return ChosenProbe(found, choice, best.predict(validation[0]))


def strength_path(
    train: LabelledFeatures,
    validation: LabelledFeatures,
    classes: int,
    strengths: Sequence[float] = STRENGTHS,
    tolerance: float = PATH_TOLERANCE,
    most_steps: int = MOST_STEPS,
    patience: int = PATIENCE,
) -> tuple[StrengthChoice, LinearProbe]:
    """The strength with the best balanced accuracy on the validation samples, of equals the
    strongest, and its probe. Classes without validation samples do not count; one that has some and
    was not trained on counts 0. Each probe starts from the one before, strongest first, until
    ``patience`` of them in a row are no better."""
    _check_strengths(strengths)
    features, labels = check_labelled(train, classes, "training")
    held, theirs = check_labelled(validation, classes, "validation")
    if held.shape[1] != features.shape[1]:
        raise bad_value(
            "validation features", tuple(held.shape), f"must have {features.shape[1]} columns"
        )
    problem = ProbeProblem(features, labels, classes)
    table: list[StrengthRow] = []
    probe = best = None
    in_vain = 0
    for strength in sorted(set(strengths), reverse=True):
        if in_vain >= patience:
            break
        probe = _fit(problem, classes, strength, probe, tolerance, most_steps)
        predicted = probe.predict(held)
        share = balanced_accuracy(accuracy_by_class(predicted, theirs, classes))
        plain = float((predicted.cpu() == theirs.cpu()).double().mean())
        in_vain += 1
        if best is None or share > max(row.balanced_accuracy for row in table):
            best, in_vain = probe, 0
        table.append(StrengthRow(strength, share, plain, probe.converged, probe.steps))
    assert best is not None  # there is at least one strength
    return StrengthChoice(best.strength, tuple(table)), best


def _check_strengths(strengths: Sequence[float]) -> None:
    if len(strengths) == 0:
        raise bad_value("strengths", tuple(strengths), "must hold at least one")
    for strength in strengths:
        if not 0 < strength < float("inf"):
            raise bad_value("strength", strength, "must be positive and finite")


def _fit(
    problem: ProbeProblem,
    classes: int,
    strength: float,
    start: LinearProbe | None,
    tolerance: float,
    most_steps: int,
) -> LinearProbe:
    centre, scale, present = problem.centre, problem.scale, problem.present
    coefficients = centre.new_zeros(classes, len(centre))
    intercept = centre.new_full((classes,), -torch.inf)
    first = torch.zeros_like(coefficients), torch.zeros_like(intercept)
    if start is not None:
        first = _restandardised(start, centre, scale, classes)
    found = problem.solve(strength, first[0][present], first[1][present], tolerance, most_steps)
    coefficients[present], intercept[present] = found.coefficients, found.intercept
    return LinearProbe(
        centre, scale, coefficients, intercept, strength, found.converged, found.error, found.steps
    )


def _restandardised(
    probe: LinearProbe, centre: Tensor, scale: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """The same scores as coefficients and intercept on features standardised otherwise."""
    if probe.coefficients.shape != (classes, len(centre)):
        raise bad_value(
            "start", tuple(probe.coefficients.shape), f"must be ({classes}, {len(centre)})"
        )
    there = centre.device
    inverse = torch.where(probe.scale > 0, 1 / probe.scale, 0.0)
    raw = (probe.coefficients * inverse).to(there)
    intercept = probe.intercept.to(there) + raw @ (centre - probe.centre.to(there))
    # a class it did not know starts like one of which nothing is known
    return raw * scale, torch.where(torch.isfinite(intercept), intercept, 0.0)
