"""Laws of the noise: what 003 Sec. 2 and Condition 1(a) ask of them, and refusals of others.

Statistical bounds are five standard errors or a p-value of 1e-3; the draws are fixed, so a bound is
met always or never.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.noise_laws import (
    LAWS,
    PROXY_LIMIT,
    SMALLEST,
    TRUNCATED_AT,
    Law,
    Quantile,
    check_quantile,
    law_of,
    variance_proxy,
)

SIGMAS, LEAST_P = 5.0, 1e-3
TRUNCATED = stats.truncnorm(-TRUNCATED_AT, TRUNCATED_AT)
EXACT: dict[str, Any] = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)),
    "truncated": stats.truncnorm(-TRUNCATED_AT, TRUNCATED_AT, scale=1 / TRUNCATED.std()),
}


def draws_of(dtype: torch.dtype = torch.float64) -> Draws:
    return Draws([key("laws", run) for run in range(2)], dtype=dtype)


def arcsine(level: Tensor) -> Tensor:
    """Mass at the ends: sqrt(2) sin of a uniform angle."""
    return math.sqrt(2) * torch.sin(math.pi * (level - 0.5))


def three_points(chance: float) -> Quantile:
    """0 with probability 1 - chance, else the two sizes that make the variance 1."""
    size = 1 / math.sqrt(chance)

    def quantile(level: Tensor) -> Tensor:
        out = torch.where(level > 1 - chance / 2, size, 0.0)
        return torch.where(level < chance / 2, -size, out).to(level.dtype)

    return quantile


@pytest.mark.parametrize("name", LAWS)
def test_draws_have_mean_0_variance_1_and_the_laws_distribution(name: str) -> None:
    law, n = law_of(name), 40_000
    values = law.draw(draws_of(), "zeta", (n // 2,)).flatten()
    assert abs(values.mean().item()) < SIGMAS / math.sqrt(n)
    kurtosis = values.pow(4).mean().item()
    assert abs(values.square().mean().item() - 1) < SIGMAS * math.sqrt(kurtosis / n)
    if name == "rademacher":
        assert torch.equal(values.abs(), torch.ones(n, dtype=torch.float64))
    else:
        assert stats.kstest(values.numpy(), EXACT[name].cdf).pvalue > LEAST_P


@pytest.mark.parametrize("name", EXACT)
def test_quantiles_and_exceedances_are_those_of_the_law(name: str) -> None:
    law, exact = law_of(name), EXACT[name]
    level = torch.tensor([1e-12, 1e-6, 0.1, 0.3, 0.5, 0.77, 1 - 1e-6], dtype=torch.float64)
    np.testing.assert_allclose(law.quantile(level), exact.ppf(level), rtol=1e-9, atol=1e-9)
    for size in (0.0, 0.3, 1.0, 1.7, 2.2, 4.0):
        assert law.exceedance(size) == pytest.approx(2 * exact.sf(size), rel=1e-9, abs=SMALLEST)


def test_exceedance_counts_atoms_and_vanishes_beyond_the_support() -> None:
    sign, points = law_of("rademacher"), Law("points", three_points(0.3))
    assert sign.exceedance(1.0) == 1.0 and sign.exceedance(1.001) == 0.0
    assert law_of("uniform").exceedance(1.7321) == 0.0
    assert points.exceedance(0.5) == pytest.approx(0.3, abs=1e-12)
    assert law_of("gaussian").exceedance(9.0) == 0.0  # 2e-19, below SMALLEST


@given(st.sampled_from(sorted(EXACT)), st.floats(1e-9, 0.999))
def test_size_inverts_exceedance(name: str, probability: float) -> None:
    law = law_of(name)
    size = law.size(torch.tensor([probability], dtype=torch.float64)).item()
    assert law.exceedance(size) == pytest.approx(probability, rel=1e-7)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_runs_draw_in_their_dtype_and_streams_differ(name: str, dtype: torch.dtype) -> None:
    law, draws = law_of(name), draws_of(dtype)
    first = law.draw(draws, "a", (5, 7), 0)
    assert first.shape == (2, 5, 7) and first.dtype == dtype
    assert torch.equal(first, law.draw(draws_of(dtype), "a", (5, 7), 0))
    assert not torch.equal(first, law.draw(draws, "b", (5, 7), 0))
    assert not torch.equal(first, law.draw(draws, "a", (5, 7), 1))


# ----------------------------------------------------------------------------------- Condition 1(a)


def test_the_largest_threshold_of_condition_1a() -> None:
    for name, exact in EXACT.items():
        assert law_of(name).threshold() == pytest.approx(exact.isf(0.4), abs=1e-9)
    assert law_of("rademacher").threshold() == 1.0
    # 0.4 of the mass is positive only if 0.8 of it is not at 0
    assert Law("few", three_points(0.79)).threshold() == 0.0
    assert Law("many", three_points(0.81)).threshold() > 1.0


# ------------------------------------------------------------------------------------ given by hand


@pytest.mark.parametrize("name", LAWS)
def test_every_law_passes_the_checks_of_a_law_given_by_hand(name: str) -> None:
    check_quantile(LAWS[name].quantile, name)
    assert 0 < variance_proxy(LAWS[name]) <= 1.0001 * PROXY_LIMIT / 2


def test_the_normal_law_has_variance_proxy_at_most_1() -> None:
    # P[zeta >= t] <= exp(-t^2/2), and the bound is nearly met far out
    assert 0.85 < variance_proxy(LAWS["gaussian"]) <= 1.0


def test_a_quantile_function_becomes_a_law_and_is_drawn_from() -> None:
    law = law_of(arcsine)
    assert law.name == "arcsine" and law_of(law) is law and law_of(arcsine) is law
    values = law.draw(draws_of(), "zeta", (20_000,)).flatten()
    exact = stats.arcsine(-math.sqrt(2), 2 * math.sqrt(2))
    assert stats.kstest(values.numpy(), exact.cdf).pvalue > LEAST_P


@settings(deadline=None, max_examples=15)
@given(st.floats(0.2, 1.0))
def test_laws_with_atoms_are_accepted(chance: float) -> None:
    check_quantile(three_points(chance))


def test_a_common_way_to_write_the_normal_law_is_accepted() -> None:
    law_of(lambda level: math.sqrt(2) * torch.erfinv(2 * level - 1))


@settings(deadline=None, max_examples=15)
@given(st.floats(0.3, 3.0).filter(lambda scale: abs(scale**2 - 1) > 0.002))
def test_another_variance_is_refused(scale: float) -> None:
    with pytest.raises(UsageError, match="must have variance 1 within 0.001, has "):
        check_quantile(lambda level: scale * torch.special.ndtri(level))


def laplace(level: Tensor) -> Tensor:
    return -(level - 0.5).sign() * torch.log(2 * torch.minimum(level, 1 - level)) / math.sqrt(2)


def logistic(level: Tensor) -> Tensor:
    return math.sqrt(3) / math.pi * (torch.log(level) - torch.log1p(-level))


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ("laplace", r"unknown law 'laplace' \(known: gaussian, rademacher, truncated, uniform\)"),
        ("gausian", r"unknown law 'gausian'; did you mean 'gaussian'\? \(known: .*\)"),
        (lambda p: -torch.log(1 - p) - 1, r"law='<lambda>': must be symmetric: quantile.* 1e-06"),
        (lambda p: torch.special.ndtri(p) + 0.01, "law='<lambda>': must be symmetric: .*"),
        (
            lambda p: -torch.special.ndtri(p),
            "law='<lambda>': its quantile function must not decr.*",
        ),
        (laplace, "law='laplace': must be sub-Gaussian: its variance proxy is 8.*, at most 4"),
        (logistic, "law='logistic': must be sub-Gaussian: its variance proxy is 5.*, at most 4"),
        (three_points(0.01), "law='quantile': must be sub-Gaussian: .*"),
        (lambda p: p.sum(), "law='<lambda>': its quantile function must map a tensor elementwise"),
        (lambda p: 1.0, "law='<lambda>': its quantile function must map a tensor elementwise"),
        (lambda p: p.log() / (p - p), "law='<lambda>': its quantiles must be finite for prob.*"),
    ],
)
def test_laws_outside_the_model_are_refused(law: str | Quantile, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$") as error:
        law_of(law)
    assert "\n" not in str(error.value)
