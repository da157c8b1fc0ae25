"""The closed form of 003 Eq. (10): its terms, its limits, and both routes to q."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.held_out import score_held_out
from rarefy.measure.influence.leave_one_out import (
    add_one,
    covariance_norm,
    gram_route,
    leave_one_out,
)

CPU = torch.device("cpu")


def parts(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    x = rows - rows.mean(axis=0)
    scatter = x.T @ x
    return np.einsum("ia,ab,ib->i", x, scatter, x), (x**2).sum(axis=1), float((scatter**2).sum())


@given(st.integers(0, 10**6), st.integers(3, 12), st.integers(1, 6), st.integers(0, 1))
def test_the_score_is_the_sum_of_its_terms_and_equals_brute_force(
    brute_force, seed, count, width, ddof
):
    rows = np.random.default_rng(seed).standard_normal((count, width))
    terms = leave_one_out(count, *parts(rows), ddof)
    assert np.array_equal(terms.influence, terms.own + terms.shared + terms.shrinking)
    expected, norms = brute_force(rows, np.zeros(count, dtype=np.int64), 1, ddof)
    assert np.abs(terms.influence - expected).max() <= 1e-12 * norms[0] * count
    assert covariance_norm(count, parts(rows)[2], ddof) == pytest.approx(norms[0], rel=1e-12)


def test_each_term_is_what_it_says():
    rows = np.random.default_rng(1).standard_normal((7, 3))
    x = rows - rows.mean(axis=0)
    q, r, norm = parts(rows)
    terms = leave_one_out(7, q, r, norm, ddof=1)
    c, divisor = 7 / 6, 5.0
    inner = (x @ x.T) ** 2
    others = inner.sum(axis=1) - np.diagonal(inner)
    assert np.allclose(terms.shared, 2 * c * others / divisor**2, rtol=1e-12)
    assert np.allclose(terms.own, (2 * c - c * c) * r**2 / divisor**2, rtol=1e-12)
    assert np.allclose(terms.shrinking, norm * (1 / 36 - 1 / 25), rtol=1e-12)


def test_a_sample_at_the_mean_scores_below_zero():
    rows = np.array([[1.0], [-1.0], [0.0], [2.0], [-2.0]])
    assert leave_one_out(5, *parts(rows), 1).influence[2] < 0


@pytest.mark.parametrize("ddof", [0, 1])
def test_exact_arithmetic_agrees(ddof):
    """Fractions, so that the reference has no rounding at all."""
    data = [[3, -1], [0, 4], [5, 5], [-2, 1], [3, -1]]

    def norm(rows: list[list[int]]) -> Fraction:
        count = len(rows)
        mean = [Fraction(sum(row[a] for row in rows), count) for a in range(2)]
        total = Fraction(0)
        for a in range(2):
            for b in range(2):
                entry = sum((row[a] - mean[a]) * (row[b] - mean[b]) for row in rows)
                total += (entry / (count - ddof)) ** 2
        return total

    exact = [float(norm(data) - norm(data[:i] + data[i + 1 :])) for i in range(5)]
    found = leave_one_out(5, *parts(np.array(data, dtype=np.float64)), ddof)
    assert np.allclose(found.influence, exact, rtol=1e-13)


@pytest.mark.parametrize(("count", "ddof"), [(1, 0), (1, 1), (2, 1)])
def test_too_few_samples_give_nan(count, ddof):
    terms = leave_one_out(count, np.ones(count), np.ones(count), 1.0, ddof)
    for name in ("influence", "own", "shared", "shrinking"):
        assert np.isnan(getattr(terms, name)).all()


def test_two_samples_are_scored_with_ddof_0():
    # without either one the covariance is zero: the score is all of |Cov|_F^2
    q, r, norm = parts(np.array([[0.0, 0.0], [2.0, 4.0]]))
    terms = leave_one_out(2, q, r, norm, 0)
    assert np.array_equal(terms.own, [0, 0])
    assert terms.influence == pytest.approx([covariance_norm(2, norm, 0)] * 2, rel=1e-15)


def test_a_covariance_that_is_undefined_has_no_norm():
    assert np.isnan(covariance_norm(1, 0.0, 1))
    assert covariance_norm(1, 0.0, 0) == 0
    assert np.isnan(covariance_norm(0, 0.0, 0))


@given(st.integers(0, 10**6), st.integers(3, 9), st.integers(1, 5), st.integers(0, 1))
def test_joining_is_the_reverse_of_leaving(seed, count, width, ddof):
    rows = np.random.default_rng(seed).standard_normal((count, width))
    left = leave_one_out(count, *parts(rows), ddof)
    rest, last = rows[:-1], rows[-1]
    x = last - rest.mean(axis=0)
    centred = rest - rest.mean(axis=0)
    scatter = centred.T @ centred
    joined = add_one(count - 1, [x @ scatter @ x], [x @ x], float((scatter**2).sum()), ddof)
    assert joined.influence[0] == pytest.approx(left.influence[-1], rel=1e-9, abs=1e-12)
    assert joined.influence[0] == (joined.own + joined.shared + joined.shrinking)[0]


def test_joining_an_undefined_class_gives_nan():
    assert np.isnan(add_one(1, [1.0], [1.0], 0.0, 1).influence).all()
    assert np.isfinite(add_one(1, [0.0], [1.0], 0.0, 0).influence).all()


@pytest.mark.parametrize("tile", [1, 2, 5, 7, 100])
def test_gram_route_from_any_strip_on(tile, threads):
    rows = torch.randn(17, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = ((rows @ rows.T) ** 2).sum(dim=1)

    def load(a, b):
        return rows[a:b]

    with CorePool(CPU) as pool:
        q = torch.zeros(17, dtype=torch.float64)
        reached = list(gram_route(load, load, q, tile, pool))
        assert reached[-1] == 17 and torch.allclose(q, expected, rtol=1e-13)
        for stop in range(len(reached)):
            again = torch.zeros(17, dtype=torch.float64)
            strips = gram_route(load, load, again, tile, pool)
            for _ in range(stop + 1):
                first = next(strips)
            list(gram_route(load, load, again, tile, pool, first))
            assert torch.equal(again, q)


def test_ddof_is_checked():
    with pytest.raises(UsageError, match=r"ddof=2: must be 0 or 1"):
        leave_one_out(5, np.ones(5), np.ones(5), 1.0, 2)


# --------------------------------------------------------------------------------- held-out samples


@given(st.integers(0, 10**6), st.integers(0, 1), st.sampled_from([0.0, 1e6]))
def test_equal_to_the_score_after_joining(brute_force, seed, ddof, offset):
    random = np.random.default_rng(seed)
    features = random.standard_normal((20, 3)) + offset
    labels = random.integers(0, 3, 20)
    rows, theirs = random.standard_normal((4, 3)) * 2 + offset, random.integers(0, 4, 4)
    found = score_held_out(features, labels, rows, theirs, 4, ddof=ddof)
    for i in range(4):
        together = np.concatenate([features, rows[i : i + 1]])
        expected, norms = brute_force(together, np.append(labels, theirs[i]), 4, ddof)
        allowed = 1e-9 * norms[theirs[i]]
        if np.isnan(expected[-1]):
            assert np.isnan(found.influence[i])
        else:
            assert abs(found.influence[i] - expected[-1]) <= allowed
            total = found.own[i] + found.shared[i] + found.shrinking[i]
            assert total == pytest.approx(found.influence[i], rel=1e-12, abs=allowed)


def test_scale_enters_with_its_fourth_power():
    random = np.random.default_rng(0)
    features, labels = random.integers(0, 256, (30, 4), dtype=np.uint8), np.arange(30) % 2
    plain = score_held_out(features[:20], labels[:20], features[20:], labels[20:], 2)
    halved = score_held_out(features[:20], labels[:20], features[20:], labels[20:], 2, scale=0.5)
    assert np.allclose(halved.influence, plain.influence / 16, rtol=1e-14)


def test_complaints():
    features, labels = np.random.default_rng(0).standard_normal((9, 4)), np.arange(9) % 3
    for rows, theirs, options, message in (
        (features[:, :2], labels, {}, r"rows=\(9, 2\): must have 4 columns"),
        (features, labels + 1, {}, r"labels=3: must be in 0..2"),
        (features, labels, {"ddof": 3}, r"ddof=3: must be 0 or 1"),
        (features, labels, {"memory": 5}, r"memory=5: must be at least \d+ for a width of 4"),
    ):
        with pytest.raises(UsageError, match=message):
            score_held_out(features, labels, rows, theirs, 3, **options)
    broken = features.copy()
    broken[2] = np.nan
    for data, rows in ((features, broken), (broken, features)):
        with pytest.raises(UsageError, match=r"1 of 9 rows hold NaN or infinite values \(rows 2\)"):
            score_held_out(data, labels, rows, labels, 3)
