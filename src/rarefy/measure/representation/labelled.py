"""What every measurement of features asks of its input, and accuracy class by class."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value

LabelledFeatures = tuple[Tensor, Tensor]
"""Features (sample, d) and their labels (sample,), whole numbers 0 .. classes - 1."""
_NAMED_ROWS = 5
_SCANNED = 1 << 22
"""Values looked at in one step of a search."""


def check_features(features: Tensor, name: str = "features", *, least: int = 1) -> Tensor:
    """The features in float32, or in float64 if they are that; an error names bad rows."""
    if features.ndim != 2 or features.shape[1] == 0:
        raise bad_value(name, tuple(features.shape), "must have the shape (samples, features)")
    if features.is_complex():
        raise bad_value(name, str(features.dtype), "must be real numbers")
    if len(features) < least:
        raise bad_value(name, tuple(features.shape), f"must have at least {least} rows")
    # a probe does not train what it looks at
    made = features.detach()
    made = made if made.dtype == torch.float64 else made.float()
    _check_finite(made, name)
    return made


def _check_finite(features: Tensor, name: str) -> None:
    step = max(1, _SCANNED // features.shape[1])
    bad = [
        (~torch.isfinite(features[first : first + step]).all(dim=1)).nonzero()[:, 0] + first
        for first in range(0, len(features), step)
    ]
    rows = torch.cat(bad).tolist() if bad else []
    if rows:
        named = ", ".join(str(row) for row in rows[:_NAMED_ROWS])
        more = ", ..." if len(rows) > _NAMED_ROWS else ""
        raise UsageError(
            f"{name}: {len(rows)} of {len(features)} rows hold NaN or infinite values "
            f"(rows {named}{more})"
        )


def check_labels(labels: Tensor, count: int, classes: int, name: str = "labels") -> Tensor:
    """The labels as int64: one for each of ``count`` rows, all in 0 .. classes - 1."""
    if classes < 1:
        raise bad_value("classes", classes, "must be at least 1")
    if tuple(labels.shape) != (count,):
        raise bad_value(name, tuple(labels.shape), f"must be one for each of {count} rows")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise bad_value(name, str(labels.dtype), "must be whole numbers")
    labels = labels.to(torch.int64).contiguous()
    outside = (labels < 0) | (labels >= classes)
    if bool(outside.any()):
        raise bad_value(name, int(labels[outside][0]), f"must be in 0..{classes - 1}")
    return labels


def check_labelled(pair: LabelledFeatures, classes: int, name: str) -> LabelledFeatures:
    """Both halves checked, and on one device; an error names the half."""
    features = check_features(pair[0], f"{name} features")
    labels = check_labels(pair[1], len(features), classes, f"{name} labels")
    return features, labels.to(features.device)


def class_counts(labels: Tensor, classes: int) -> Tensor:
    """Rows of every class, (class,), int64."""
    return torch.bincount(labels, minlength=classes)


def class_sums(rows: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Sum of the rows of every class, (class, d), in float64: a GPU leaves the order of a sum to
    chance, which then does not show."""
    sums = rows.new_zeros(classes, rows.shape[1], dtype=torch.float64)
    step = max(1, _SCANNED // rows.shape[1])
    for first in range(0, len(rows), step):
        part = rows[first : first + step].to(torch.float64)
        sums.index_add_(0, labels[first : first + step], part)
    return sums


def accuracy_by_class(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Share of each class's samples that got their own label, (class,), float64 on the CPU; NaN for
    a class without samples."""
    predicted = check_labels(predicted, len(labels), classes, "predicted")
    labels = check_labels(labels, len(labels), classes).to(predicted.device)
    right = class_counts(labels[predicted == labels], classes)
    return (right.to(torch.float64) / class_counts(labels, classes)).cpu()


def balanced_accuracy(by_class: Tensor) -> float:
    """Mean over the classes that have samples: what a rare class is worth as much as any."""
    return float(torch.nanmean(by_class))
