"""How the noise of the classes is correlated (003 Sec. 2 and 5.1): A_k by its eigenvalues.

All classes share a basis, the columns of a rotation. Its first ``classes`` columns are those of the
features, along which there is no noise (u_k^T A_y = 0); the next ``classes`` are the special
directions, one per class. A table of eigenvalues is (group, classes, d).
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value


def gram(eigenvalues: Tensor) -> Tensor:
    """|A_k^T A_j|_F^2 = sum over axes of lambda_k^2 lambda_j^2: (group, classes, classes)."""
    check_eigenvalues(eigenvalues)
    variance = eigenvalues.square()
    return variance @ variance.transpose(1, 2)


# ----------------------------------------------------------------------------- tables to start from


def special_axes(classes: int) -> Tensor:
    """Axis of each class's special direction: (classes,)."""
    return classes + torch.arange(classes)


# ------------------------------------------------------------------------------------------- checks


def check_rank(d: int, classes: int, rank: int | None) -> int:
    """The rank, by default as large as there is room for."""
    _check_room(d, classes)
    most = d - classes
    rank = most if rank is None else rank
    if not classes <= rank <= most:
        room = f"must be in {classes}..{most}" if classes <= most else "there is no room for any"
        raise bad_value("rank", rank, f"{room} with {classes} classes and d={d}")
    return rank


def check_eigenvalues(eigenvalues: Tensor) -> None:
    """Refuse a table with wrong shape, values below 0 or noise along a feature."""
    if eigenvalues.dim() != 3:
        raise bad_value("eigenvalues", tuple(eigenvalues.shape), "must be (group, classes, d)")
    classes, d = eigenvalues.shape[1:]
    _check_room(d, classes)
    good = (eigenvalues >= 0) & torch.isfinite(eigenvalues)
    if not bool(good.all()):
        worst = eigenvalues[~good][0].item()
        raise bad_value("eigenvalues", worst, "must be finite and at least 0")
    along = eigenvalues[:, :, :classes].max().item()
    if along > 0:
        raise bad_value(
            "eigenvalues", along, f"must be 0 on the first {classes} axes: those are the features"
        )


def _check_room(d: int, classes: int) -> None:
    if classes < 2:
        raise bad_value("classes", classes, "must be at least 2")
    if classes >= d:
        raise bad_value(
            "classes", classes, f"must be below d={d}: noise needs directions off the features"
        )
