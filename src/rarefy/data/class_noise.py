"""Features and class-dependent noise of 003 (Sec. 2): u_y in one patch, xi = A_y zeta in the other.

The features are the first ``classes`` columns of a rotation U, times their strengths; the noise has
the eigenvalues Lambda_k along its columns. A_k, (d, d), is never formed: noise is multiplied by the
eigenvalues, coordinate by coordinate, and by U where that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.noise_laws import Law, Quantile, law_of
from rarefy.data.noise_structure import check_eigenvalues, gram, special_axes
from rarefy.data.patches import PatchSamples

AXES = ("rotated", "original")
ORTHOGONAL = 1e-4
"""Largest cosine between two columns of a rotation that counts as rounding."""


def rotation(draws: Draws, d: int) -> Tensor:
    """A random orthogonal matrix, (group, d, d), uniform over all of them (Haar)."""
    if d < 1:
        raise bad_value("d", d, "must be at least 1")
    # float64 on the CPU whatever the run's dtype: orthonormal to the last place
    gauss = draws.normal("rotation", (d, d)).to("cpu", torch.float64)
    basis, triangle = torch.linalg.qr(gauss)
    # uniform only if the triangle's diagonal is positive (Mezzadri 2007)
    signs = torch.diagonal(triangle, dim1=1, dim2=2).sign()
    return (basis * signs[:, None, :]).to(draws.keys.device, draws.dtype)


@dataclass(frozen=True)
class ClassNoise:
    """The data model of a batch of runs.

    eigenvalues: (run or 1, classes, d), as ``rarefy.data.noise_structure`` makes them; strength:
    feature norms, (run, classes); law: of zeta's coordinates; rotation: an orthogonal matrix, (run
    or 1, d, d), or None: the identity.

    zeta_axes: the axes along which zeta's coordinates are independent, those of the noise
    ("rotated", A_k = U Lambda_k) or those of the space ("original", A_k = U Lambda_k U^T). Only for
    Gaussian zeta the two are the same. coordinates: the axes in which samples are written, those of
    the noise ("rotated", cheap; inner products are the same) or those of the space ("original").
    special: axis of each class's special direction (default: as in ``noise_structure``).
    """

    eigenvalues: Tensor
    strength: Tensor
    law: str | Law | Quantile = "gaussian"
    rotation: Tensor | None = None
    zeta_axes: str = "rotated"
    coordinates: str = "rotated"
    special: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_eigenvalues(self.eigenvalues)
        law_of(self.law)
        for name, value in (("zeta_axes", self.zeta_axes), ("coordinates", self.coordinates)):
            if value not in AXES:
                raise bad_value(name, value, f"must be one of {', '.join(AXES)}")
        if self.strength.dim() != 2 or self.strength.shape[1] != self.classes:
            raise bad_value(
                "strength", tuple(self.strength.shape), f"must be (run, {self.classes})"
            )
        if not bool(((self.strength >= 0) & torch.isfinite(self.strength)).all()):
            raise bad_value("strength", self.strength.min().item(), "must be finite, at least 0")
        if self.special is not None and not (
            len(self.special) == self.classes
            and all(self.classes <= axis < self.d for axis in self.special)
        ):
            room = f"needs an axis {self.classes}..{self.d - 1} for each of {self.classes} classes"
            raise bad_value("special", self.special, room)
        if self.rotation is not None:
            _check_rotation(self.rotation, self.d)

    @property
    def classes(self) -> int:
        return self.eigenvalues.shape[1]

    @property
    def d(self) -> int:
        return self.eigenvalues.shape[2]

    def gram(self) -> Tensor:
        """|A_k^T A_j|_F^2: (run or 1, classes, classes)."""
        return gram(self.eigenvalues)

    def special_axes(self) -> Tensor:
        """Axis of each class's special direction: (classes,)."""
        if self.special is not None:
            return torch.tensor(self.special)
        if 2 * self.classes > self.d:
            allowed = f"must be at least {2 * self.classes}: one special direction per class"
            raise bad_value("d", self.d, allowed)
        return special_axes(self.classes)

    def sample(
        self, draws: Draws, labels: Tensor, stream: str = "train", step: int = 0
    ) -> PatchSamples:
        """Samples with ``labels``, (run or 1, n). ``draws``: one key per run, or one for all: then
        all runs share zeta, and the noise too unless their eigenvalues differ."""
        self.check_labels(labels)
        return self.assemble(labels, self.zeta(draws, labels.shape[-1], stream, step))

    def zeta(self, draws: Draws, samples: int, stream: str = "train", step: int = 0) -> Tensor:
        """zeta along the axes of the noise, U^T zeta for "original": (group, samples, d)."""
        values = law_of(self.law).draw(draws, f"{stream} zeta", (samples, self.d), step)
        if self.zeta_axes == "rotated" or self.rotation is None:
            return values
        return _times(values, self.rotation.to(values))

    def assemble(self, labels: Tensor, zeta: Tensor) -> PatchSamples:
        """The samples with given ``labels``, (run or 1, n), and zeta along the axes of the noise,
        (run or 1, n, d)."""
        self._check_runs(labels, zeta)
        labels = labels.to(zeta.device)
        table = self.eigenvalues.to(zeta)
        rows = max(len(table), len(labels))
        row = torch.arange(rows, device=zeta.device)[:, None]
        own = table.expand(rows, -1, -1)[row, labels.expand(rows, -1)]  # (row, n, d)
        noise = own.mul_(zeta) if len(own) >= len(zeta) else own * zeta
        features = torch.eye(self.classes, self.d, dtype=zeta.dtype, device=zeta.device)[None]
        if self.coordinates == "original" and self.rotation is not None:
            basis = self.rotation.to(zeta)
            noise = _times(noise, basis.transpose(1, 2))
            features = basis[:, :, : self.classes].transpose(1, 2)
        groups = max(len(noise), len(features))
        runs = max(groups, len(self.strength))
        strength = self.strength.to(zeta).expand(runs, -1)
        return PatchSamples(
            labels=labels.expand(groups, -1),
            noise=noise.expand(groups, -1, -1),
            features=features.expand(groups, -1, -1),
            noise_scale=torch.ones(runs, dtype=zeta.dtype, device=zeta.device),
            strength=strength,
        )

    def check_labels(self, labels: Tensor) -> None:
        """Refuse labels that are not (run, n) classes of this model."""
        if labels.dim() != 2 or labels.numel() == 0:
            raise bad_value("labels", tuple(labels.shape), "must be (run, n) with n at least 1")
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= self.classes:
            wrong = low if low < 0 else high
            raise bad_value("labels", wrong, f"must be in 0..{self.classes - 1}")

    def _check_runs(self, *parts: Tensor) -> None:
        rotations = () if self.rotation is None else (self.rotation,)
        lengths = {len(part) for part in (*parts, *rotations, self.eigenvalues, self.strength)}
        if len(lengths - {1}) > 1:
            allowed = "labels, draws, eigenvalues, strength and rotation must agree on the runs"
            raise bad_value("runs", sorted(lengths), allowed)


def _times(rows: Tensor, matrix: Tensor) -> Tensor:
    """(group, n, d) times (group or 1, d, d): one product where all groups share the matrix."""
    return rows @ (matrix[0] if len(matrix) == 1 else matrix)


def _check_rotation(matrix: Tensor, d: int) -> None:
    if matrix.dim() != 3 or matrix.shape[1:] != (d, d):
        raise bad_value("rotation", tuple(matrix.shape), f"must be (run or 1, {d}, {d})")
    error = matrix.transpose(1, 2) @ matrix - torch.eye(d, dtype=matrix.dtype, device=matrix.device)
    largest = error.abs().max().item()
    if not largest <= ORTHOGONAL:
        rule = f"its columns must be orthonormal: at most {ORTHOGONAL:g} is rounding"
        raise bad_value("rotation", f"largest cosine {largest:.3g}", rule)
