"""What 003 predicts for class-dependent noise: formulas only.

Everything about the noise comes from ``gram``[k, j] = |A_k^T A_j|_F^2 = tr(Sigma_k Sigma_j), with
``sizes``[k] = |S_k| and ``norms``[k] = |u_k|. Leading axes broadcast: gram (..., class, class),
sizes and norms (..., class). ``classes`` is the paper's K, ``filters`` its m.

Free constants are arguments. Where the paper has O(.), Omega(.) or Theta(.), the function gives
the expression inside and its name ends in ``_order``.

``output_scale`` is the factor in front of the sum over filters (1/m in (1)). A weight moves in
proportion to it, a logit to filters * output_scale^2. The proofs keep the 1/m of the gradient (60)
in some places and drop it in others (122)-(131); here it is kept, which differs from the print of
Lemma 6 by a factor m.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarefy.core.errors import bad_value

Array = NDArray[np.float64]
STAGE_1_CONSTANT = 2 / 5
"""What (66)-(69) spell out of the Theta in Lemma 1: at least 0.4 m filters are active."""


# ---------------------------------------------------------------------------------- the two ratios


def noise_correlation_ratio(gram: ArrayLike, sizes: ArrayLike) -> Array:
    """Gamma_{k,j} = |S_k| |A_k^T A_k|_F^2/(|S_j| |A_k^T A_j|_F^2) (Theorem 1, 2(b)), (..., k, j).

    1 on the diagonal, infinite for classes with orthogonal noise; Gamma_{k,j} Gamma_{j,k} >= 1.
    """
    noise, size = _checked(gram, sizes)
    own = size * np.diagonal(noise, axis1=-2, axis2=-1)
    return _over(own[..., None], size[..., None, :] * noise)


def signal_ratio(gram: ArrayLike, sizes: ArrayLike, norms: ArrayLike) -> Array:
    """|S_k|^2 |u_k|^4/(|S_j| |A_k^T A_j|_F^2) (Theorem 1, 2(a)), (..., k, j)."""
    noise, size = _checked(gram, sizes)
    strength = np.asarray(norms, dtype=np.float64)
    if not (strength >= 0).all():
        raise bad_value("norms", norms, "must be at least 0")
    return _over((size * strength**2)[..., None] ** 2, size[..., None, :] * noise)


def binding(ratio: Array) -> Array:
    """The smallest entry over j != k, (..., k): the one a regime of Theorem 1 depends on."""
    return np.where(_diagonal(ratio), np.inf, ratio).min(axis=-1)


def regime(
    gram: ArrayLike,
    sizes: ArrayLike,
    norms: ArrayLike,
    features: float = 1.0,
    tail: float = 1.0,
    harmful: float = 1.0,
) -> NDArray[np.str_]:
    """What Theorem 1 says about each class; ``features``, ``tail``, ``harmful``: C_1, C_2, C_3.

    "features": 2(a) applies (all data; 2(b) may as well), else "tail": 2(b), else "harmful": 3,
    else "open". As Gamma_{k,j} Gamma_{j,k} >= 1, two classes can harm each other only at C_3 >= 1.
    """
    if not 0 < harmful <= min(features, tail):
        raise bad_value("harmful", harmful, "C_3 must be more than 0 and not above C_1 and C_2")
    signal = binding(signal_ratio(gram, sizes, norms))
    noise = binding(noise_correlation_ratio(gram, sizes))
    found = np.where((signal <= harmful) & (noise <= harmful), "harmful", "open")
    return np.where(signal >= features, "features", np.where(noise >= tail, "tail", found))


# ------------------------------------------------------------------------------------ training loss


def stage_1_rate_order(
    size: ArrayLike, norm: ArrayLike, samples: int, lr: float, filters: int, output_scale: float
) -> Array:
    """Lemma 1 (5): a sample's loss falls at least by this share of itself per step,
    eta m output_scale^2 |S_y| |u_y|^2/n, times ``STAGE_1_CONSTANT`` by (69) (and the balance of
    Lemma 7). With 1/m it is the paper's eta |S_y| |u_y|^2/(m n)."""
    gain = lr * filters * output_scale**2 / samples
    return gain * np.asarray(size) * np.asarray(norm, dtype=np.float64) ** 2


def first_loss_drop(
    size: ArrayLike,
    norm: ArrayLike,
    trace: ArrayLike,
    samples: int,
    classes: int,
    lr: float,
    filters: int,
    output_scale: float,
) -> Array:
    """Expected fall of a sample's loss log K in the first step, no constant left open:

    eta m output_scale^2 (1 - 1/K) (|S_y| |u_y|^2 + |xi|^2)/(2 n), |xi|^2 about ``trace``: half of
    the filters are active on a patch, and (1 - 1/K)^2 + (K - 1)/K^2 = 1 - 1/K. For small weights
    and a small step; the noise of other samples is left out, so n gram must be small against
    trace^2 as Condition 1 (a) asks.
    """
    energy = np.asarray(size) * np.asarray(norm, dtype=np.float64) ** 2 + np.asarray(trace)
    return lr * filters * output_scale**2 * (1 - 1 / classes) * energy / (2 * samples)


def target_length(
    classes: int, epsilon: float, norm: ArrayLike, filters: int, output_scale: float
) -> Array:
    """|w*_{j,r}| of (70), 2.5 log(4 (K - 1)/eps)/|u_j|: with 0.4 m active filters the logit is
    log(4 (K - 1)/eps). Divided by m output_scale, so that this is so without the 1/m as well."""
    height = 2.5 * math.log(4 * (classes - 1) / epsilon)
    return height / (filters * output_scale * np.asarray(norm, dtype=np.float64))


def balance_order(traces: ArrayLike, norms: ArrayLike) -> float:
    """Lemma 7's kappa, by (94): the largest ratio between classes of tr(A^T A) or of |u|^2."""
    trace, square = np.asarray(traces, dtype=np.float64), np.asarray(norms, dtype=np.float64) ** 2
    return float(max(trace.max() / trace.min(), square.max() / square.min()))


# ------------------------------------------------------------------------------ neurons and memory


def rank_floor(filters: int) -> float:
    """Lemma 3: rank(W_j A_j) >= 0.9 m."""
    return 0.9 * filters


def rank_in_proof(filters: int, d: int, rank: int, samples: int) -> int:
    """(115): what the proof gives, min{m, d, rank A_j} - n, before Condition 1 (b) is used."""
    return min(filters, d, rank) - samples


def smallest_singular_floor(filters: int, sigma_0: float) -> float:
    """Lemma 3: singular value number min{m, d, rank A_j} - n is at least 0.1 sqrt(m) sigma_0.

    It cannot hold for all A: lambda(W A) scales with A, the bound does not."""
    return 0.1 * math.sqrt(filters) * sigma_0


def active_floor(filters: int) -> float:
    """Lemma 4: at least 0.1 m filters are active on fresh noise of their class."""
    return 0.1 * filters


def tail_response_order(
    gram: ArrayLike,
    stored: ArrayLike,
    length: ArrayLike,
    samples: int,
    lr: float,
    filters: int,
    output_scale: float,
) -> Array:
    """Lemma 6: sum over filters of ReLU(<w_{j,r}, xi>) for fresh xi of class k, (..., k, j):
    (eta m output_scale/n) |A_k^T A_j|_F b(S_j) times ``length``.

    Theta with length L on the diagonal (long-tailed data), O with length |zeta_1| off it. stored:
    b(S_j) of (8), the root of the sum over samples of squared residuals 1 - logit_y. The paper
    prints eta m/n, without the output scale.
    """
    root = np.sqrt(np.asarray(gram, dtype=np.float64))
    scale = lr * filters * output_scale / samples
    return scale * np.asarray(length) * root * np.asarray(stored, dtype=np.float64)[..., None, :]


# -------------------------------------------------------------------------------- homogeneous noise


def classical_ratio(
    classes: int, samples: ArrayLike, d: ArrayLike, norm: ArrayLike, sigma: ArrayLike = 1.0
) -> Array:
    """n |u|^4/(K sigma^4 (d - K)): ``signal_ratio`` of equal classes with homogeneous noise, where
    Gamma is 1. n |u|^4/(sigma^4 d) up to K: the classical transition (Kou et al. 2023)."""
    strength = np.asarray(norm, dtype=np.float64) / np.asarray(sigma)
    return np.asarray(samples) * strength**4 / (classes * (np.asarray(d) - classes))


def classical_norm(
    classes: int, samples: ArrayLike, d: ArrayLike, ratio: ArrayLike = 1.0, sigma: ArrayLike = 1.0
) -> Array:
    """The |u| at which ``classical_ratio`` is ``ratio``."""
    fourth = np.asarray(ratio, dtype=np.float64) * classes * (np.asarray(d) - classes)
    return np.asarray(sigma) * (fourth / np.asarray(samples)) ** 0.25


# ------------------------------------------------------------------------------------------ helpers


def _checked(gram: ArrayLike, sizes: ArrayLike) -> tuple[Array, Array]:
    noise, size = np.asarray(gram, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if noise.ndim < 2 or noise.shape[-1] != noise.shape[-2] or noise.shape[-1] < 2:
        raise bad_value("gram", noise.shape, "must have shape (..., classes, classes), 2 at least")
    if not (noise >= 0).all() or not np.allclose(noise, noise.swapaxes(-1, -2), rtol=1e-6, atol=0):
        raise bad_value("gram", gram, "squared norms must be at least 0 and symmetric")
    if size.shape[-1:] != noise.shape[-1:] or not (size > 0).all():
        raise bad_value("sizes", sizes, "must be more than 0, one per class")
    return noise, size


def _diagonal(ratio: Array) -> NDArray[np.bool_]:
    return np.eye(ratio.shape[-1], dtype=bool)


def _over(top: Array, bottom: Array) -> Array:
    """top/bottom; a class whose noise never meets another's has an infinite ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom > 0, top / bottom, np.inf)
