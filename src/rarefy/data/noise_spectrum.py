"""Eigenvalues of all A_k and how often each occurs: noise of a billion directions in few numbers.

The columns are kinds of direction. The first ``classes`` are the features, along which there is no
noise, and the next ``classes`` the special directions, one a class (``rarefy.data.noise_structure``
has the same order, direction by direction).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.noise_structure import check_eigenvalues, check_rank

TABLE_LIMIT = 10**8
"""Numbers in a table that is still written out, direction by direction."""


@dataclass(frozen=True)
class Spectrum:
    """eigenvalues: (group, classes, kind); count: directions of each kind, whole numbers in
    float64, (group or 1, kind)."""

    eigenvalues: Tensor
    count: Tensor

    def __post_init__(self) -> None:
        check_eigenvalues(self.eigenvalues)
        kinds = self.eigenvalues.shape[2]
        if self.count.dim() != 2 or self.count.shape[1] != kinds:
            raise bad_value("count", tuple(self.count.shape), f"must be (group or 1, {kinds})")
        if not bool((self.count >= 0).all()):
            raise bad_value("count", self.count.min().item(), "must be at least 0")

    @property
    def classes(self) -> int:
        return self.eigenvalues.shape[1]

    @property
    def d(self) -> Tensor:
        """Directions in all: (group or 1,)."""
        return self.count.sum(dim=1)

    def gram(self) -> Tensor:
        """|A_k^T A_j|_F^2: (group, classes, classes)."""
        variance = self.eigenvalues.square()
        return (variance * self.count[:, None].to(variance)) @ variance.transpose(1, 2)

    def trace(self) -> Tensor:
        """Tr(A_k^T A_k), the mean squared length of a class's noise: (group, classes)."""
        return (self.eigenvalues.square() * self.count[:, None].to(self.eigenvalues)).sum(dim=2)

    def table(self) -> Tensor:
        """Direction by direction: (group, classes, d)."""
        count = self.count[0].to(torch.int64)
        if not bool((self.count == self.count[:1]).all()):
            raise bad_value("count", self.d.unique().tolist(), "all runs need the same d")
        size = self.eigenvalues.shape[0] * self.classes * int(count.sum())
        if size > TABLE_LIMIT:
            raise bad_value(
                "d", int(count.sum()), "too many directions to write out; use the dual form"
            )
        return self.eigenvalues.repeat_interleave(count.to(self.eigenvalues.device), dim=2)

    def to(self, like: Tensor | torch.device) -> Spectrum:
        return Spectrum(self.eigenvalues.to(like), self.count.to(self.eigenvalues.to(like).device))


def special_spectrum(
    special: Tensor | float,
    d: int,
    classes: int,
    base: float = 0.5,
    rank: int | None = None,
    own: bool | None = None,
) -> Spectrum:
    """Eigenvalues ``base`` but one a class, ``special``, a number or (group, classes), along its
    special direction (003 Sec. 5.1).

    rank: non-zero eigenvalues a class, the special one included (default: as many as fit). Along
    the special direction of another class the eigenvalue is ``base``, so that all classes have
    noise along the same ``rank`` directions; with ``own`` it is 0, and classes share rank - 1
    directions. ``own`` is the default where rank < classes, which leaves no room for the former.
    """
    rank, own = check_rank(d, classes, rank, own)
    if not 0 < base < float("inf"):
        raise bad_value("base", base, "must be finite and more than 0")
    values = torch.as_tensor(special, dtype=torch.float64)
    values = values.expand(1, classes) if values.dim() == 0 else values
    if not bool((values > 0).all()):
        raise bad_value("special", values.min().item(), "a special eigenvalue must be more than 0")
    groups, like = len(values), values
    common = rank - 1 if own else rank - classes
    features = like.new_zeros(groups, classes, classes)
    axes = like.new_full((groups, classes, classes), 0.0 if own else base)
    axes = torch.diagonal_scatter(axes, values, dim1=1, dim2=2)
    bulk = like.new_full((groups, classes, 1), base)
    silent = like.new_zeros(groups, classes, 1)
    count = [1.0] * (2 * classes) + [float(common), float(d - 2 * classes - common)]
    return Spectrum(torch.cat([features, axes, bulk, silent], dim=2), like.new_tensor([count]))


def special_direction(
    special: Tensor | float,
    d: int,
    classes: int,
    base: float = 0.5,
    rank: int | None = None,
    own: bool | None = None,
) -> Tensor:
    """``special_spectrum``, direction by direction: (group, classes, d)."""
    return special_spectrum(special, d, classes, base, rank, own).table()
