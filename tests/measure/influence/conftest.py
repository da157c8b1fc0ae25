"""The score by its definition, which leaves every sample out in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError
from rarefy.measure.influence.plan import make_plan

BruteForce = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]


def _covariance_norm(rows: NDArray[np.float64], ddof: int) -> float:
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / (len(rows) - ddof)
    return float((covariance**2).sum())


def _scores(
    features: NDArray[Any], labels: NDArray[np.int64], classes: int, ddof: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scores, norms = np.full(len(labels), np.nan), np.full(classes, np.nan)
    for label in range(classes):
        mine = np.flatnonzero(labels == label)
        if len(mine) - ddof <= 0:
            continue
        # less a row of the class: neither norm changes, and offsets cost this reference nothing
        rows = features[mine].astype(np.float64)
        rows = rows - rows[0]
        norms[label] = _covariance_norm(rows, ddof)
        if len(mine) - 1 - ddof > 0:
            without = [_covariance_norm(np.delete(rows, i, axis=0), ddof) for i in range(len(mine))]
            scores[mine] = norms[label] - np.array(without)
    return scores, norms


@pytest.fixture(scope="session")
def brute_force() -> BruteForce:
    """``brute_force(features, labels, classes, ddof)``: scores, and |Cov|_F^2 of each class."""
    return _scores


@pytest.fixture(scope="session")
def least_memory() -> Callable[..., int]:
    """``least_memory(counts, width, itemsize, chunk, cores)``: bytes with which it just works."""

    def least(*arguments: Any) -> int:
        counts, width, itemsize, chunk, cores = arguments
        for memory in range(1000, 10**6, 50):
            try:
                make_plan(np.asarray(counts), width, itemsize, memory, chunk, cores)
                return memory
            except UsageError:
                continue
        raise AssertionError("a megabyte is not enough")

    return least


@pytest.fixture(params=[1, 2], ids=["one core", "two cores"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """As many cores are worked on."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)
