"""The score of samples that are not in the data: what they would have if they joined their class.

The tail of a test set is found so, with the classes of the training set."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.measure.influence.class_statistics import ClassStatistics
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.leave_one_out import Terms, add_one, check_ddof, row_squares
from rarefy.measure.influence.products import square_norm, times_upper
from rarefy.measure.influence.rows import MEMORY, Rows

_AT_ONCE = 1024


def score_held_out(
    features: NDArray[Any],
    labels: NDArray[Any],
    rows: NDArray[Any],
    row_labels: NDArray[Any],
    classes: int,
    *,
    scale: float = 1.0,
    ddof: int = 1,
    device: torch.device | str = "cpu",
    memory: int = MEMORY,
) -> Terms:
    """|Cov(S_y + x)|_F^2 - |Cov(S_y)|_F^2 for each row x, and its terms (``add_one``): (row,). This
    is the score (003 Eq. (10)) of x in its class with x in it; NaN where the class has no
    covariance without it. features, labels: the data; rows, row_labels: what is scored."""
    check_ddof(ddof)
    data, asked = Rows(features, labels, classes), Rows(rows, row_labels, classes)
    if asked.width != data.width:
        raise bad_value("rows", asked.features.shape, f"must have {data.width} columns")
    need = 8 * data.width * (data.width + 4 * _AT_ONCE)
    if need > memory:
        raise bad_value("memory", memory, f"must be at least {need} for a width of {data.width}")
    terms = _empty(len(asked))

    def score(label: int) -> None:
        statistics = ClassStatistics(1, data.width, device)
        indices = data.of_class(label)
        for first in range(0, len(indices), _AT_ONCE):
            statistics.add_class(0, data.take(indices[first : first + _AT_ONCE], device))
        if not bool(torch.isfinite(statistics.offsets).all()):
            data.complain_of_nonfinite()
        _score_class(statistics, 0, asked, asked.of_class(label), terms, ddof)

    with CorePool(torch.device(device), memory // need) as pool:
        pool.map(score, np.flatnonzero(asked.counts).tolist())
    return _scaled(terms, scale)


def _score_class(
    statistics: ClassStatistics,
    place: int,
    rows: Rows,
    indices: NDArray[np.int64],
    terms: Terms,
    ddof: int,
) -> None:
    scatter = statistics.scatters[place]
    norm, diagonal = square_norm(scatter), scatter.diagonal()
    for first in range(0, len(indices), _AT_ONCE):
        part = indices[first : first + _AT_ONCE]
        centred = statistics.centred(place, rows.take(part, statistics.device))
        r = row_squares(centred)
        # the upper triangle twice, less the diagonal that is then counted twice
        q = times_upper(centred.clone(), scatter).mul_(centred).sum(dim=1).mul_(2)
        q -= centred.square_() @ diagonal
        if not bool(torch.isfinite(q).all()):
            rows.complain_of_nonfinite()
        count = int(statistics.counts[place])
        found = add_one(count, q.cpu().numpy(), r.cpu().numpy(), norm, ddof)
        for name, values in vars(terms).items():
            values[part] = getattr(found, name)


def _empty(count: int) -> Terms:
    return Terms(*(np.full(count, np.nan) for _ in range(4)))


def _scaled(terms: Terms, scale: float) -> Terms:
    return Terms(**{name: values * scale**4 for name, values in vars(terms).items()})
