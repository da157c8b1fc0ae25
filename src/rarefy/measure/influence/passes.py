"""Scores of a whole data set, read a few rows at a time: memory bounded, interruptible, resumable.

Classes with n >= 2 d go by their scatter matrices, as many classes together as memory allows
(``by_covariance.py``); the others one by one by their inner products (``by_gram.py``). All is
computed in the units of the features as given; ``scale`` enters at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.measure.influence.by_covariance import score_group
from rarefy.measure.influence.by_gram import score_class
from rarefy.measure.influence.core_pool import CorePool, cores
from rarefy.measure.influence.leave_one_out import (
    Floats,
    check_ddof,
    covariance_norm,
    leave_one_out,
)
from rarefy.measure.influence.mahalanobis import leading_directions
from rarefy.measure.influence.plan import CovarianceStep, GramStep, make_plan
from rarefy.measure.influence.rows import MEMORY, Rows, is_mapped
from rarefy.measure.influence.state import Arrays, State
from rarefy.measure.influence.work import Work

SCORES = ("influence", "own", "shared", "shrinking", "distance", "mahalanobis", "norm")
VERSION = 3
"""Raise it when a state folder of before must not be gone on with."""


@dataclass(frozen=True)
class ClassScores:
    """For each sample, in the order of the data: the score (003 Eq. (10)), its three terms
    (``leave_one_out.py``), the distance to the class mean, the same in units of the class's shrunk
    covariance (``mahalanobis.py``), and the norm. NaN where a class is too small to say: all but
    the norm for a class of one; score and terms also for one of two with ddof = 1."""

    influence: Floats
    own: Floats
    shared: Floats
    shrinking: Floats
    distance: Floats
    mahalanobis: Floats
    norm: Floats
    counts: NDArray[np.int64]
    means: Floats
    """(class, d); NaN for an empty class."""
    covariance_norms: Floats
    """|Cov|_F^2 of each class; NaN where it is undefined."""
    shrinkage: Floats
    """Weight of the identity in the covariance behind the Mahalanobis distance."""
    routes: tuple[str, ...]
    """Of each class: "covariance", "gram", or "" for an empty one."""
    directions: int
    """In so many principal directions the Mahalanobis distance knows a class's spread."""
    ddof: int
    memory: int
    """Bytes of its arrays at the peak, as planned."""


def score_classes(
    features: NDArray[Any],
    labels: NDArray[Any],
    classes: int,
    *,
    scale: float = 1.0,
    ddof: int = 1,
    memory: int = MEMORY,
    chunk: int | None = None,
    device: torch.device | str = "cpu",
    state: Path | None = None,
    content: str = "",
    progress: Callable[[float], None] | None = None,
    deadline: Callable[[], bool] | None = None,
) -> ClassScores:
    """Scores of all samples. features: (n, d), any real type, in memory or memory-mapped; labels:
    (n,), 0 .. classes - 1.

    memory: bytes that arrays may take, beside the features; torch and BLAS take some 100 MB more
    for themselves. chunk: rows of a class at a time (chosen, if None). progress: is told the share
    of the work just done; the shares add up to 1. deadline: asked after each piece of work; once it
    says True, what is done is written to the folder ``state`` and ``OutOfTime`` is raised. The same
    call then goes on from there and gives the same numbers as one that was never stopped; for other
    data or settings the folder is refused (``content``: a text that stands for all rows in their
    order, if the caller has one; else a few thousand rows are compared).
    """
    check_ddof(ddof)
    if not (math.isfinite(scale) and scale != 0):
        raise bad_value("scale", scale, "must be finite and not 0")
    rows = Rows(features, labels, classes)
    where = torch.device(device)
    itemsize = rows.features.dtype.itemsize
    mapped = is_mapped(rows.features)
    plan = make_plan(rows.counts, rows.width, itemsize, memory, chunk, cores(where), mapped)
    about = {
        "version": VERSION,
        "samples": len(rows),
        "width": rows.width,
        "ddof": ddof,
        "memory": memory,
        "chunk": chunk,
        "cores": cores(where),  # these three decide what is computed together
        "data": content or rows.fingerprint(),
    }
    work = Work(rows, plan, where, State(state, about, deadline), progress)
    work.resume()
    if plan.directions and work.step < len(plan.steps):
        work.directions = leading_directions(rows, plan.directions, plan.sample, device=where)
    all_cores = cores(where)  # in a pool torch has fewer

    def at_once(step: GramStep | CovarianceStep) -> int:
        return all_cores if isinstance(step, GramStep) else min(all_cores, len(step.labels))

    # as few pools as can be: the allocator keeps what threads of earlier ones had
    for most, steps in groupby(plan.steps[work.step :], at_once):
        with CorePool(where, most) as pool:
            for step in steps:
                if isinstance(step, GramStep):
                    score_class(work, step, pool)
                else:
                    score_group(work, step, pool)
                work.step_done()
    return _scores(work, scale, ddof)


def _scores(work: Work, scale: float, ddof: int) -> ClassScores:
    rows, plan, known = work.rows, work.plan, work.of_classes
    norms = np.full(rows.classes, np.nan)
    for count in np.unique(rows.counts).tolist():
        alike = rows.counts == count
        norms[alike] = covariance_norm(count, known["square_norms"][alike], ddof) * scale**4
    return ClassScores(
        **scores_of(work.of_samples, rows.labels, rows.counts, known, scale, ddof),
        counts=rows.counts,
        means=work.means * scale,
        covariance_norms=norms,
        shrinkage=known["weights"],
        routes=plan.routes(rows.classes),
        directions=plan.directions or rows.width,
        ddof=ddof,
        memory=plan.memory,
    )


def scores_of(
    measured: Arrays,
    labels: NDArray[np.int64],
    counts: NDArray[np.int64],
    of_classes: Arrays,
    scale: float,
    ddof: int,
) -> dict[str, Floats]:
    """``SCORES`` of some samples: from their q, r, norm and mahalanobis (which becomes the
    result), and the ``square_norms`` and ``weights`` of all classes."""
    r, mahalanobis = measured["r"], measured["mahalanobis"]
    distance = np.sqrt(r) * abs(scale)
    terms = {name: np.full(len(labels), np.nan) for name in SCORES[:4]}
    size = counts[labels]
    by_size = np.argsort(size, kind="stable")
    # classes of one size together: of many classes most have one of a few sizes
    for mine in np.split(by_size, np.flatnonzero(np.diff(size[by_size])) + 1):
        count = int(size[mine[0]]) if len(mine) else 0
        norms = of_classes["square_norms"][labels[mine]]
        found = leave_one_out(count, measured["q"][mine], r[mine], norms, ddof)
        for name, values in terms.items():
            values[mine] = getattr(found, name) * scale**4
    distance[size == 1] = np.nan  # its own mean: 0 would read as typical
    no_spread = np.isnan(of_classes["weights"])[labels]
    mahalanobis[no_spread & (size > 1)] = 0.0
    norm = measured["norm"] * abs(scale)
    return {**terms, "distance": distance, "mahalanobis": mahalanobis, "norm": norm}
