"""How the noise of the classes is correlated (003 Sec. 2 and 5.1): A_k by its eigenvalues.

All classes share a basis, the columns of a rotation. Its first ``classes`` columns are those of the
features, along which there is no noise (u_k^T A_y = 0); the next ``classes`` are the special
directions, one per class. A table of eigenvalues is (group, classes, d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rarefy.core.errors import bad_value


def gram(eigenvalues: Tensor) -> Tensor:
    """|A_k^T A_j|_F^2 = sum over axes of lambda_k^2 lambda_j^2: (group, classes, classes)."""
    check_eigenvalues(eigenvalues)
    variance = eigenvalues.square()
    return variance @ variance.transpose(1, 2)


def gram_of_matrices(matrices: Tensor) -> Tensor:
    """The same for any A, (group, classes, d, d): tr(A_k A_k^T A_j A_j^T)."""
    covariance = (matrices @ matrices.transpose(2, 3)).flatten(2)
    return covariance @ covariance.transpose(1, 2)


def noise_correlation_ratio(gram: Tensor, sizes: Tensor) -> Tensor:
    """Gamma_kj = |S_k| |A_k^T A_k|_F^2 / (|S_j| |A_k^T A_j|_F^2) (003 Theorem 1): (group, classes,
    classes), 1 on the diagonal, infinite where two classes have no direction in common.

    sizes: |S_k|, (group or 1, classes).
    """
    check_sizes(sizes, gram.shape[-1])
    weighted = gram * sizes[:, None, :]
    own = torch.diagonal(weighted, dim1=1, dim2=2)
    return own[:, :, None] / weighted


def measured_gram(
    noise: Tensor, labels: Tensor, classes: int, known_mean: bool = True
) -> tuple[Tensor, Tensor]:
    """Unbiased estimates of tr(Sigma_k Sigma_j) = |A_k^T A_j|_F^2 from noise vectors, (group, n, d)
    with labels (group, n), and the class sizes: (group, classes, classes) and (group, classes).

    ``known_mean``: the noise has mean 0, as the model says, and an entry is the mean of <x, y>^2
    over pairs of different samples. Otherwise samples are centred by their class's mean; what that
    takes from the diagonal is put back as by Himeno and Yamada (2014), for any law.
    """
    there = labels[:, :, None] == torch.arange(classes, device=labels.device)
    one_hot = there.to(torch.float64)
    sizes = one_hot.sum(dim=1)
    least = 2 if known_mean else 4
    if bool((sizes < least).any()):
        raise bad_value(
            "labels", int(sizes.min()), f"every class needs at least {least} samples to measure"
        )
    vectors = noise.double()
    if not known_mean:
        means = (one_hot.transpose(1, 2) @ vectors) / sizes[:, :, None]
        vectors = vectors - one_hot @ means
    squares = (vectors @ vectors.transpose(1, 2)).square()
    total = one_hot.transpose(1, 2) @ squares @ one_hot
    length = vectors.square().sum(dim=2)  # |x|^2, (group, n)
    fourth = (length.square()[:, None] @ one_hot)[:, 0]
    together = torch.diagonal(total, dim1=1, dim2=2)
    if known_mean:
        degrees = sizes
        own = (together - fourth) / (sizes * (sizes - 1))
    else:
        degrees = sizes - 1
        trace = (length[:, None] @ one_hot)[:, 0] / degrees
        own = (sizes - 1) * (sizes - 2) * together / degrees**2 + trace**2
        own = own - sizes / degrees * fourth
        own = own * (sizes - 1) / (sizes * (sizes - 2) * (sizes - 3))
    estimate = total / (degrees[:, :, None] * degrees[:, None, :])
    return torch.diagonal_scatter(estimate, own, dim1=1, dim2=2), sizes


def measured_ratio(noise: Tensor, labels: Tensor, classes: int, known_mean: bool = True) -> Tensor:
    """Gamma of given noise vectors, the class sizes being those of ``labels``: (group, classes,
    classes). A quotient of unbiased estimates, itself biased by the order of its variance."""
    found, sizes = measured_gram(noise, labels, classes, known_mean)
    return noise_correlation_ratio(found, sizes)


# ----------------------------------------------------------------------------- tables to start from


def homogeneous(d: int, classes: int, scale: float = 1.0) -> Tensor:
    """Every A_k A_k^T the projection off the features (003 Remark 5): (1, classes, d)."""
    _check_room(d, classes)
    table = torch.full((1, classes, d), scale, dtype=torch.float64)
    table[:, :, :classes] = 0
    check_eigenvalues(table)
    return table


def low_rank(d: int, classes: int, rank: int, shared: int, scale: float = 1.0) -> Tensor:
    """``rank`` equal eigenvalues per class, ``shared`` of them along directions of all classes, the
    others along its own: for equal sizes Gamma = rank / shared. (1, classes, d)."""
    _check_room(d, classes)
    if not 1 <= rank <= d - classes:
        raise bad_value("rank", rank, f"must be in 1..{d - classes} (d - classes)")
    if not 0 <= shared <= rank or shared + classes * (rank - shared) > d - classes:
        least = max(0, math.ceil((classes * rank - (d - classes)) / (classes - 1)))
        raise bad_value("shared", shared, f"must be in {least}..{rank} for rank={rank} and d={d}")
    table = torch.zeros(1, classes, d, dtype=torch.float64)
    table[:, :, classes : classes + shared] = scale
    for k in range(classes):
        start = classes + shared + k * (rank - shared)
        table[:, k, start : start + rank - shared] = scale
    check_eigenvalues(table)
    return table


def special_axes(classes: int) -> Tensor:
    """Axis of each class's special direction: (classes,)."""
    return classes + torch.arange(classes)


# ------------------------------------------------------------------------------------------- checks


def check_rank(d: int, classes: int, rank: int | None, own: bool | None) -> tuple[int, bool]:
    """Rank and kind of special direction with the defaults filled in."""
    _check_room(d, classes)
    own = (rank is not None and rank < classes) if own is None else own
    most = d - 2 * classes + 1 if own else d - classes
    rank = most if rank is None else rank
    least = 1 if own else classes
    if not least <= rank <= most:
        kind = "own special directions" if own else "special directions that all classes share"
        room = f"must be in {least}..{most}" if least <= most else "there is no room for any"
        raise bad_value("rank", rank, f"{room} with {classes} classes, d={d} and {kind}")
    return rank, own


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


def check_sizes(sizes: Tensor | Sequence[Sequence[int]], classes: int) -> None:
    """Refuse class sizes that are not one number of samples, 1 or more, for each class."""
    sizes = torch.as_tensor(sizes)
    if sizes.dim() != 2 or sizes.shape[1] != classes:
        raise bad_value("class_sizes", tuple(sizes.shape), f"must be (group, {classes})")
    if bool((sizes < 1).any()):
        raise bad_value("class_sizes", sizes.min().item(), "every class needs at least 1 sample")


def _check_room(d: int, classes: int) -> None:
    if classes < 2:
        raise bad_value("classes", classes, "must be at least 2")
    if classes >= d:
        raise bad_value(
            "classes", classes, f"must be below d={d}: noise needs directions off the features"
        )
