"""What 003 assumes: Condition 1, line by line, from the norms of the noise matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rarefy.core.errors import bad_value
from rarefy.theory.benign import Array
from rarefy.theory.conditions import Condition


@dataclass(frozen=True)
class NoiseGeometry:
    """What Condition 1 asks of the noise matrices A_1 .. A_K.

    gram: |A_i^T A_j|_F^2 and operator: |A_i^T A_j|_op, (class, class); trace: tr(A_i^T A_i), rank:
    rank(A_i) and spread: largest over smallest singular value that is not 0, (class,).
    """

    gram: Array
    operator: Array
    trace: Array
    rank: Array
    spread: Array

    @classmethod
    def of(cls, matrices: ArrayLike) -> NoiseGeometry:
        """From the matrices themselves, (class, d, d)."""
        a = np.asarray(matrices, dtype=np.float64)
        if a.ndim != 3 or len(a) < 2:
            raise bad_value(
                "matrices", a.shape, "must have shape (classes, d, d), 2 classes at least"
            )
        classes = len(a)
        gram, operator = np.zeros((2, classes, classes))
        for i in range(classes):
            for j in range(i + 1):
                product = a[i].T @ a[j]
                gram[i, j] = gram[j, i] = np.square(product).sum()
                operator[i, j] = operator[j, i] = np.linalg.norm(product, 2)
        values = np.linalg.svd(a, compute_uv=False)
        there = values > values[:, :1] * a.shape[-1] * np.finfo(np.float64).eps
        smallest = np.where(there, values, np.inf).min(axis=1)
        return cls(
            gram,
            operator,
            np.square(values).sum(axis=1),
            there.sum(axis=1),
            values[:, 0] / smallest,
        )


def condition_1(
    *,
    geometry: NoiseGeometry,
    norms: ArrayLike,
    samples: int,
    filters: int,
    d: int,
    sigma_0: float,
    lr: float,
    output_scale: float,
    horizon: float,
    positive: float = 0.5,
    delta: float = 0.1,
    constant: float = 1.0,
    omega: float = 1.0,
) -> list[Condition]:
    """Condition 1 of 003, each line at the classes for which it is hardest.

    The paper leaves open C ("sufficiently large", ``constant``), delta, and the constant of the
    Omega in the third line of (b) (``omega``). ``horizon`` is T; ``positive`` is P(zeta > 0), all
    that P(zeta > c') >= 0.4 for some c' > 0 asks of a symmetric law.

    The third line of (a) limits what the theorem can be used for: with j != i and k = i it says
    |A_i^T A_i|_F <= C |A_i^T A_j|_F, so Gamma_{i,j} <= C^2 |S_i|/|S_j|.
    """
    if not 0 < delta < 1:
        raise bad_value("delta", delta, "must lie between 0 and 1")
    if not horizon > 1:
        raise bad_value("horizon", horizon, "must be more than 1 step")
    if not constant > 0:
        raise bad_value("constant", constant, "must be more than 0")
    c, n, m, classes = constant, samples, filters, len(geometry.trace)
    root, trace = np.sqrt(geometry.gram), geometry.trace
    strength = np.asarray(norms, dtype=np.float64)
    log_n, log_km = math.log(n / delta), math.log(classes * m / delta)
    square = strength**2
    phi = min(float(root.min()), float(square.min()))
    steepest = float((strength + np.sqrt(1.5 * trace)).max()) ** 2
    features, noise = math.sqrt(log_km) * strength, log_km * np.sqrt(trace)
    shapes = np.divide(root, geometry.operator, out=np.zeros_like(root), where=root > 0)
    hardest = np.argmin(trace[:, None] / np.maximum(root, 1e-300)) // classes
    largest = np.array([_largest_other(row) for row in root])  # over k != j, (i, j)
    inside = np.divide(root, largest, out=np.ones_like(root), where=largest > 0)
    return [
        Condition(
            "(a) tr(A_i^T A_i)",
            float(trace[hardest]),
            ">=",
            c * n * float(root[hardest].max()) * math.log(n**2 / delta),
            "tr(A_i^T A_i) >= C n |A_i^T A_j|_F log(n^2/delta)",
        ),
        Condition(
            "(a) |A_i^T A_j|_F/|A_i^T A_j|_op",
            float(shapes.min()),
            ">=",
            c * math.sqrt(math.log(classes / delta)),
            "|A_i^T A_j|_F/|A_i^T A_j|_op >= C sqrt(log(K/delta))",
        ),
        Condition(
            "(a) |A_i^T A_j|_F/max_k |A_i^T A_k|_F",
            float(inside.min()),
            ">=",
            1 / c,
            "|A_i^T A_j|_F >= max over k != j of |A_i^T A_k|_F/C",
        ),
        Condition("(a) P(zeta > 0)", positive, ">=", 0.4, "P(zeta > c') >= 0.4 for some c' > 0"),
        Condition(
            "(b) m",
            m,
            ">=",
            c * log_n * float(geometry.spread.max()) ** 2,
            "m >= C log(n/delta) max_i (lambda_max+(A_i)/lambda_min+(A_i))^2",
        ),
        Condition("(b) n", n, ">=", c * math.log(m / delta), "n >= C log(m/delta)"),
        Condition(
            "(b) m",
            m,
            ">=",
            omega * log_n * math.log(horizon) ** 2 / (n * sigma_0**2),
            "m >= Omega(log(n/delta) log(T)^2/(n sigma_0^2))",
        ),
        Condition(
            "(b) min{m, d, rank A_j} - 0.9 m",
            min(m, d, int(geometry.rank.min())) - 0.9 * m,
            ">=",
            c * n,
            "min{m, d, rank A_j} - 0.9 m >= C n",
        ),
        Condition("(b) d", d, ">=", c * math.log(m * n / delta), "d >= C log(m n/delta)"),
        Condition(
            "(c) lr",
            lr,
            "<=",
            1 / (c * steepest),
            "eta <= 1/(C max_k (|u_k| + sqrt(1.5 tr(A_k^T A_k)))^2)",
        ),
        Condition(
            "(c) lr",
            lr,
            "<=",
            n * math.log(horizon) / (output_scale * float(trace.max())),
            "eta <= m n log(T)/tr(A_j^T A_j)",
        ),
        Condition(
            "(c) sigma_0",
            sigma_0,
            "<=",
            _over(phi, c * n * float((features * noise).max())),
            "sigma_0 <= phi/(C n max_k sqrt(log(K m/delta)) |u_k| log(K m/delta) |A_k|_F), "
            "phi = min(|A_i^T A_j|_F, |u_i|^2); as printed, a product",
        ),
        Condition(
            "(c) sigma_0",
            sigma_0,
            "<=",
            _over(phi, c * n * float(np.maximum(features, noise).max())),
            "the same with a comma in the maximum, as (54) and (55) suggest",
        ),
    ]


def _over(phi: float, size: float) -> float:
    """phi/size; without any feature both are 0, and so is the limit."""
    return phi / size if size > 0 else 0.0


def _largest_other(row: Array) -> Array:
    """For each entry the largest of the others."""
    order = np.argsort(row)
    found = np.full_like(row, row[order[-1]])
    found[order[-1]] = row[order[-2]]
    return found
