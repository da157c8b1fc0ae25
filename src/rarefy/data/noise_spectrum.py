"""Eigenvalues of all A_k and how often each occurs: noise of a billion directions in few numbers.

The columns are kinds of direction. The first ``classes`` are the features, along which there is no
noise, the next ``classes`` the special directions, one per class (``rarefy.data.noise_structure``
has the same order, direction by direction). Each of these is a single direction; any other kind may
have any number of them, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.noise_structure import check_eigenvalues, check_rank

TABLE_LIMIT = 10**8
"""Numbers in a table that is still written out, direction by direction."""


def _none() -> Tensor:
    return torch.zeros(1, dtype=torch.float64)


@dataclass(frozen=True)
class Spectrum:
    """eigenvalues: (group, classes, kind); count: directions of each kind, (group or 1, kind);
    silent: further directions, along which no class has noise, (group or 1,). Counts are whole
    numbers in float64."""

    eigenvalues: Tensor
    count: Tensor
    silent: Tensor = field(default_factory=_none)

    def __post_init__(self) -> None:
        check_eigenvalues(self.eigenvalues)
        groups, classes, kinds = self.eigenvalues.shape
        if kinds < 2 * classes:
            allowed = f"needs {2 * classes} kinds at least: a feature and a special one per class"
            raise bad_value("eigenvalues", tuple(self.eigenvalues.shape), allowed)
        rows = {len(self.count), len(self.silent)} - {1, groups}
        if self.count.dim() != 2 or self.count.shape[1] != kinds or rows:
            raise bad_value("count", tuple(self.count.shape), f"must be ({groups} or 1, {kinds})")
        least = min(self.count.min().item(), self.silent.min().item())
        if not least >= 0:
            raise bad_value("count", least, "must be at least 0")
        single = self.count[:, : 2 * classes]
        if not bool((single == 1).all()):
            wrong = single[single != 1][0].item()
            allowed = f"must be 1 for the first {2 * classes} kinds: features, special directions"
            raise bad_value("count", wrong, allowed)

    @classmethod
    def joined(cls, parts: Sequence[Spectrum]) -> Spectrum:
        """Several of the same kinds, one after the other along ``group``."""
        count = torch.cat([part.count.expand(len(part), -1) for part in parts])
        silent = torch.cat([part.silent.expand(len(part)) for part in parts])
        same = bool((count == count[:1]).all()) and bool((silent == silent[:1]).all())
        rows = slice(0, 1) if same else slice(None)
        return cls(torch.cat([part.eigenvalues for part in parts]), count[rows], silent[rows])

    def with_special(self, factor: float) -> Spectrum:
        """The same with every class's special eigenvalue multiplied by ``factor``."""
        values = self.eigenvalues.clone()
        torch.diagonal(values[..., self.classes : 2 * self.classes], dim1=1, dim2=2).mul_(factor)
        return Spectrum(values, self.count, self.silent)

    def __len__(self) -> int:
        """Groups."""
        return len(self.eigenvalues)

    @property
    def classes(self) -> int:
        return self.eigenvalues.shape[1]

    @property
    def d(self) -> Tensor:
        """Directions in all: (group or 1,)."""
        return self.count.sum(dim=1) + self.silent

    def gram(self) -> Tensor:
        """|A_k^T A_j|_F^2: (group, classes, classes)."""
        variance = self.eigenvalues.square()
        return (variance * self.count[:, None].to(variance)) @ variance.transpose(1, 2)

    def trace(self) -> Tensor:
        """Tr(A_k^T A_k), the mean squared length of a class's noise: (group, classes)."""
        return (self.eigenvalues.square() * self.count[:, None].to(self.eigenvalues)).sum(dim=2)

    def rank(self) -> Tensor:
        """Directions in which a class has noise: (group, classes), float64."""
        return ((self.eigenvalues > 0) * self.count[:, None]).sum(dim=2)

    def table(self) -> Tensor:
        """Direction by direction: (group, classes, d)."""
        if not bool((self.d == self.d[:1]).all()):
            raise bad_value("count", self.d.unique().tolist(), "all runs need the same d")
        d = int(self.d[0].item())
        if len(self) * self.classes * d > TABLE_LIMIT:
            raise bad_value("d", d, "too many directions to write out; use the dual form")
        values = torch.nn.functional.pad(self.eigenvalues, (0, 1))
        groups = max(len(self.count), len(self.silent))
        parts = [self.count.expand(groups, -1), self.silent.expand(groups)[:, None]]
        count = torch.cat(parts, dim=1).to(values.device, torch.int64)
        if bool((count == count[:1]).all()):
            return values.repeat_interleave(count[0], dim=2)
        rows = [row.repeat_interleave(own, dim=1) for row, own in zip(values, count, strict=True)]
        return torch.stack(rows)

    def to(self, like: Tensor | torch.device) -> Spectrum:
        values = self.eigenvalues.to(like)
        return Spectrum(values, self.count.to(values.device), self.silent.to(values.device))


def special_spectrum(
    special: Tensor | float, d: int, classes: int, base: float = 0.5, rank: int | None = None
) -> Spectrum:
    """Eigenvalues ``base`` but one per class, ``special``, a number or (group, classes), along its
    special direction (003 Sec. 5.1). With ``special`` equal to ``base`` all noise is of one kind.

    rank: non-zero eigenvalues per class, the special one included (default: as many as fit). Along
    the special direction of another class the eigenvalue is ``base``, so that all classes have
    noise along the same ``rank`` directions.
    """
    rank = check_rank(d, classes, rank)
    if not 0 < base < float("inf"):
        raise bad_value("base", base, "must be finite and more than 0")
    values = torch.as_tensor(special, dtype=torch.float64)
    values = values.expand(1, classes) if values.dim() == 0 else values
    if not bool((values > 0).all()):
        raise bad_value("special", values.min().item(), "a special eigenvalue must be more than 0")
    groups, like = len(values), values
    features = like.new_zeros(groups, classes, classes)
    axes = like.new_full((groups, classes, classes), base)
    axes = torch.diagonal_scatter(axes, values, dim1=1, dim2=2)
    bulk = like.new_full((groups, classes, 1), base)
    count = like.new_tensor([[1.0] * (2 * classes) + [float(rank - classes)]])
    silent = like.new_tensor([float(d - classes - rank)])
    return Spectrum(torch.cat([features, axes, bulk], dim=2), count, silent)


def spectrum_for(
    gamma: Tensor | float, d: int, classes: int, base: float = 0.5, rank: int | None = None
) -> Spectrum:
    """Noise with all ratios Gamma_kj = ``gamma``, a number or (run,), between classes of one size
    (003 Theorem 1, the family of Sec. 5.1). Its cost does not depend on d.

    With x = (special / base)^2 and r the rank, Gamma = (r - 1 + x^2)/(r - 2 + 2 x), which is
    (Gamma - 1)(Gamma + r - 1) = (x - Gamma)^2: no classes of one size have Gamma below 1.
    """
    rank = check_rank(d, classes, rank)
    wanted = torch.as_tensor(gamma, dtype=torch.float64).reshape(-1)
    squared = wanted + ((wanted - 1) * (wanted + rank - 1)).sqrt()
    good = (wanted >= 1) & torch.isfinite(squared)
    if not bool(good.all()):
        raise bad_value("gamma", wanted[~good][0].item(), "the reachable range is [1, 1e150)")
    special = (base * squared.sqrt())[:, None].expand(-1, classes)
    return special_spectrum(special, d, classes, base, rank)
