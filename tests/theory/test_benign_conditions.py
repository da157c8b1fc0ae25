"""Condition 1 of 003: the norms of real matrices, and every line able to hold and to fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rarefy.core.errors import UsageError
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import Condition


def flat(classes: int = 3, size: float = 1e6, gram: float = 1.0) -> NoiseGeometry:
    """Norms no finite matrix has: a huge trace, and little overlap anywhere."""
    return NoiseGeometry(
        gram=np.full((classes, classes), gram),
        operator=np.full((classes, classes), 1e-3),
        trace=np.full(classes, size),
        rank=np.full(classes, 10**6),
        spread=np.ones(classes),
    )


GOOD: dict[str, Any] = {
    "geometry": flat(),
    "norms": [1.0, 1.0, 1.0],
    "samples": 20,
    "filters": 200_000,
    "d": 10**6,
    "sigma_0": 1e-8,
    "lr": 1e-7,
    "output_scale": 1.0,
    "horizon": 100,
    "omega": 1e-16,
}
PAPER: dict[str, Any] = {
    "samples": 500,
    "filters": 100,
    "d": 1000,
    "sigma_0": 1 / math.sqrt(3 * 1000),
    "lr": 0.05,
    "output_scale": 1 / 100,
    "horizon": 20,
}


def failing(conditions: list[Condition]) -> list[int]:
    return [i for i, each in enumerate(conditions) if not each.holds]


def test_norms_of_given_matrices() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 7, 7))
    a[1] = np.diag([3.0, 2.0, 0.5, 0, 0, 0, 0])
    found = NoiseGeometry.of(a)
    for i in range(3):
        for j in range(3):
            product = a[i].T @ a[j]
            assert found.gram[i, j] == pytest.approx(np.linalg.norm(product) ** 2)
            assert found.operator[i, j] == pytest.approx(np.linalg.svd(product)[1][0])
            # the squared norm is the overlap of the covariances
            overlap = np.trace(a[i] @ a[i].T @ a[j] @ a[j].T)
            assert found.gram[i, j] == pytest.approx(overlap)
        assert found.trace[i] == pytest.approx(np.trace(a[i].T @ a[i]))
    assert found.rank.tolist() == [7, 3, 7] and found.spread[1] == pytest.approx(6)
    with pytest.raises(UsageError, match=r"matrices=\(7, 7\): must have shape"):
        NoiseGeometry.of(a[0])


def test_all_lines_can_hold() -> None:
    found = condition_1(**GOOD)
    assert failing(found) == [] and len(found) == 13


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ({"geometry": flat(size=10.0)}, [0]),
        ({"positive": 0.3}, [3]),
        ({"filters": 100}, [7]),
        ({"samples": 1}, [5]),
        ({"omega": 1.0}, [6]),
        ({"d": 10}, [7, 8]),
        ({"lr": 1e-6}, [9]),
        ({"lr": 1.0}, [9, 10]),
        ({"sigma_0": 1e-2}, [11, 12]),
        ({"norms": [1.0, 0.0, 1.0]}, [11, 12]),
        ({"norms": [0.0, 0.0, 0.0]}, [11, 12]),
    ],
)
def test_each_line_can_fail(change: dict[str, Any], lines: list[int]) -> None:
    assert failing(condition_1(**GOOD | change)) == lines


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("operator", np.full((3, 3), 1.0), 1),
        ("gram", np.where(np.eye(3, dtype=bool), 1.0, 0.01), 2),
        ("spread", np.array([1.0, 1e3, 1.0]), 4),
        ("rank", np.array([10**6, 5, 10**6]), 7),
    ],
)
def test_one_class_is_enough_to_fail(name: str, value: np.ndarray, line: int) -> None:
    geometry = flat()
    parts = {each: getattr(geometry, each) for each in geometry.__dataclass_fields__}
    found = condition_1(**GOOD | {"geometry": NoiseGeometry(**parts | {name: value})})
    assert failing(found) == [line]


def test_the_constants_are_where_they_belong() -> None:
    one, three = condition_1(**GOOD), condition_1(**GOOD | {"constant": 3.0})
    factor = [b.limit / a.limit for a, b in zip(one, three, strict=True)]
    expected = [3, 3, 1 / 3, 1, 3, 3, 1, 3, 3, 1 / 3, 1, 1 / 3, 1 / 3]
    np.testing.assert_allclose(factor, expected)
    mean = condition_1(**GOOD | {"output_scale": 0.1})
    assert mean[10].limit == pytest.approx(10 * one[10].limit)  # eta <= m n log(T)/tr


def test_a_large_noise_correlation_ratio_needs_a_large_constant() -> None:
    """Gamma is at most C^2 for equal classes, so that C >= 37 at the figure's Gamma = 1400."""
    gamma = 1400.0
    gram = np.where(np.eye(5, dtype=bool), gamma, 1.0)
    geometry = NoiseGeometry(gram, gram**0.5, np.full(5, 500.0), np.full(5, 995), np.full(5, 34.0))
    for constant, holds in ((37.0, False), (38.0, True)):
        found = condition_1(geometry=geometry, norms=[1.0] * 5, constant=constant, **PAPER)
        assert found[2].holds == holds


def test_the_published_setting_is_outside() -> None:
    """Homogeneous noise of eigenvalue 0.5: d = 1000 against n = 500 and m = 100."""
    square = np.full((5, 5), 0.5**4 * 995)
    geometry = NoiseGeometry(
        square, np.full((5, 5), 0.25), np.full(5, 0.25 * 995), np.full(5, 995), np.ones(5)
    )
    found = condition_1(geometry=geometry, norms=[1.0] * 5, **PAPER)
    missed = failing(found)
    assert {0, 7, 9, 11, 12} <= set(missed)
    assert found[7].value == pytest.approx(10) and found[7].limit == 500


def test_bad_values_are_named() -> None:
    for name, value, message in (
        ("delta", 1.0, "must lie between 0 and 1"),
        ("horizon", 1, "must be more than 1 step"),
        ("constant", 0.0, "must be more than 0"),
    ):
        with pytest.raises(UsageError, match=f"{name}={value}: {message}"):
            condition_1(**GOOD | {name: value})
