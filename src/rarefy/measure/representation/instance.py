"""How much of a feature is the image itself, and how much the view that was taken of it."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.precision import matrix_products
from rarefy.measure.representation.knn import unit_rows
from rarefy.measure.representation.labelled import check_features

FOLDS = 5
RIDGE = 1e-2
"""Added to the variance of standardised features: little, but enough for copies of one feature."""

ROUNDING = 1e-20
"""Squared spread, beside the squares themselves, of numbers that are all the same."""


def instance_retrieval(first: Tensor, second: Tensor) -> float:
    """Share of the 2n views of n images whose nearest other view, by cosine, shows the same image.

    Arguments:
        first, second: (n, d), features of two views of the same images.

    Returns:
        From 0 to 1; features that know nothing of the image give 1 / (2n - 1). A tie does not
        count as found.
    """
    first, second = check_features(first, "first"), check_features(second, "second")
    if first.shape != second.shape:
        raise bad_value("second", tuple(second.shape), f"must have the shape {tuple(first.shape)}")
    points = unit_rows(torch.cat([first, second])).float()
    count = len(first)
    with matrix_products("float32", points.device):
        near = points @ points.T
    mine = torch.arange(2 * count, device=points.device)
    other = (mine + count) % (2 * count)
    own = near[mine, other].clone()
    near[mine, mine] = near[mine, other] = -torch.inf
    return float((own > near.amax(dim=1)).double().mean())


def readable(features: Tensor, targets: Tensor, groups: Tensor, folds: int = FOLDS) -> Tensor:
    """R^2 of a ridge regression from features to each target, of samples that it was not fitted to.

    Arguments:
        features: (n, d); targets: (n, t); groups: (n,), whole numbers: samples of one group (views
            of one image) are never fitted to and asked for at once.
        folds: parts, by group, each asked for when the others were fitted to.

    Returns:
        (t,), float64 on the CPU: 1 where a target can be read exactly, about 0 or below where it
        cannot be; NaN for a target that does not vary.
    """
    rows = check_features(features, least=2).double()
    wanted = check_features(targets, "targets").double().to(rows.device)
    if len(wanted) != len(rows) or groups.shape != (len(rows),):
        raise bad_value("targets and groups", len(wanted), f"must be one per row, {len(rows)}")
    if not 2 <= folds <= len(groups.unique()):
        raise bad_value(
            "folds", folds, f"must be 2 to the number of groups, {len(groups.unique())}"
        )
    part = (groups.unique(return_inverse=True)[1] % folds).to(rows.device)
    missed = torch.zeros_like(wanted)
    for fold in range(folds):
        out = part == fold
        missed[out] = wanted[out] - _ridge(rows[~out], wanted[~out], rows[out])
    spread = (wanted - wanted.mean(dim=0)).square().sum(dim=0)
    found = 1 - missed.square().sum(dim=0) / spread
    varies = spread > ROUNDING * wanted.square().sum(dim=0)
    return torch.where(varies, found, torch.nan).cpu()


def _ridge(rows: Tensor, targets: Tensor, asked: Tensor) -> Tensor:
    """Answers for ``asked`` of a regression on ``rows``, each feature with variance 1 and, where it
    is asked, within what was fitted to: one that was silent there may shout here."""
    centre, scale = rows.mean(dim=0), rows.std(dim=0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    made, middle = (rows - centre) / scale, targets.mean(dim=0)
    asked = ((asked - centre) / scale).clamp(made.amin(dim=0), made.amax(dim=0))
    square = made.T @ made / len(made)
    square.diagonal().add_(RIDGE)
    weights = torch.linalg.solve(square, made.T @ (targets - middle) / len(made))
    return asked @ weights + middle
