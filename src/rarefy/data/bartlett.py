"""Gaussian vectors of any number of coordinates, in as few as their inner products need.

Standard Gaussian vectors may be turned so that the first lies along the first axis, the second in
the plane of the first two, and so on. They are then a lower triangle of independent numbers,
standard normal below the diagonal and chi variables on it (Bartlett's decomposition of a Wishart
matrix): the triangle times its transpose has exactly the law of their Gram matrix. Its size is the
number of vectors, whatever the number of coordinates. Vectors beyond the number of coordinates find
no new axis: their rows are normal throughout, and the Gram matrix is singular as it should be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import gammainccinv, gammaincinv, ndtr
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws


def chi(normal: Tensor, freedom: Tensor) -> Tensor:
    """Chi variables with ``freedom`` degrees of freedom from standard normal ones, by the quantile
    function, in float64: exact for any freedom above 0, and 0 where it is 0 or less."""
    free = freedom.to("cpu", torch.float64).numpy()
    value = normal.to("cpu", torch.float64).numpy()
    value, free = np.broadcast_arrays(value, free)
    half = np.maximum(free, 1.0) / 2
    tail = ndtr(-np.abs(value))  # from the nearer end: a chance next to 1 has lost its digits
    square = 2 * np.where(value < 0, gammaincinv(half, tail), gammainccinv(half, tail))
    return torch.from_numpy(np.sqrt(np.where(free > 0, square, 0.0))).to(normal.device)


def bartlett_factor(draws: Draws, stream: str, rows: int, freedom: Tensor) -> Tensor:
    """``rows`` standard Gaussian vectors of ``freedom`` coordinates, (run,) in float64, turned:
    (run, rows, rows). Axes that a run does not have are 0 (and there: how many there are must not
    depend on the other runs of a batch, or what is drawn would)."""
    check_freedom(freedom)
    axes = torch.arange(rows, device=freedom.device)
    below = gaussian_in_span(draws, stream, (rows,), rows, freedom).tril(diagonal=-1)
    lengths = chi(draws.normal(f"{stream} lengths", (rows,)), freedom[:, None] - axes)
    below = below.expand(len(lengths), -1, -1).clone()
    torch.diagonal(below, dim1=1, dim2=2).copy_(lengths)
    return below


def gaussian_in_span(
    draws: Draws, stream: str, shape: Sequence[int], width: int, freedom: Tensor
) -> Tensor:
    """Standard Gaussian vectors seen along ``width`` given axes, of which only ``freedom``, (run,),
    exist: (run, *shape, width). A Gaussian vector's part in a subspace is Gaussian again, so this
    is what further vectors show to those that span it."""
    values = draws.normal(stream, (*shape, width))
    exists = torch.arange(width, device=freedom.device) < freedom[:, None]
    if bool(exists.all()):
        return values
    return values * exists.reshape(len(freedom), *(1,) * len(shape), width).to(values)


def check_freedom(freedom: Tensor) -> None:
    least = freedom.min().item()
    if not least >= 1:
        raise bad_value("freedom", least, "every run needs at least 1 coordinate for its noise")
