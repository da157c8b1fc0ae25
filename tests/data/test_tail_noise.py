"""Samples with a chosen tail: conditional laws are exact, and weights undo the choice.

Statistical bounds are five standard errors or a p-value of 1e-3; the draws are fixed, so a bound is
met always or never.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small_noise import special_direction
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.class_noise import ClassNoise, rotation
from rarefy.data.noise_laws import law_of
from rarefy.data.patches import PatchSamples
from rarefy.data.tail_noise import TailSamples, long_tailed, stratified, tilted

SIGMAS, LEAST_P = 5.0, 1e-3


def draws_of(groups: int = 1, name: str = "tail", dtype: torch.dtype = torch.float64) -> Draws:
    return Draws([key("tail noise", name, group) for group in range(groups)], dtype=dtype)


def model(law: str = "gaussian", d: int = 7, classes: int = 2) -> ClassNoise:
    special = torch.tensor([[1.5, 2.5]], dtype=torch.float64)
    return ClassNoise(special_direction(special, d, classes), torch.ones(1, classes), law)


def labels_of(n: int, groups: int = 1, classes: int = 2) -> Tensor:
    return (torch.arange(n) % classes).expand(groups, -1)


def agrees(weight: Tensor, seen: Tensor, plain: Tensor) -> bool:
    """Is the weighted mean of ``seen`` that of ``plain``, within five standard errors of both?"""
    values = weight * seen
    error = math.sqrt((values.var() / values.numel() + plain.var() / plain.numel()).item())
    return abs((values.mean() - plain.mean()).item()) < SIGMAS * error


def special_of(samples: PatchSamples, noise: ClassNoise) -> Tensor:
    """zeta along each sample's special direction, read off the noise: (group, n)."""
    axis = noise.special_axes()[samples.labels]
    values = samples.noise.gather(2, axis[:, :, None])[:, :, 0]
    return values / noise.eigenvalues[0][samples.labels, axis]


# -------------------------------------------------------------------------------------- long-tailed


@settings(deadline=None, max_examples=30)
@given(
    share=st.floats(0, 1),
    law=st.sampled_from(["gaussian", "uniform", "truncated"]),
    tail=st.floats(0.2, 1.6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_tail_and_middle_are_where_they_say(
    share: float, law: str, tail: float, dtype: torch.dtype
) -> None:
    noise, n = model(law), 2000
    drawn = long_tailed(noise, draws_of(dtype=dtype), labels_of(n), share, tail)
    size = drawn.special.abs().double()
    slack = 1e-6 if dtype == torch.float32 else 1e-12
    out = drawn.stratum == 1
    assert bool((size[out] >= tail * (1 - slack)).all())
    assert bool((size[~out] <= tail * (1 + slack)).all())
    assert drawn.special.dtype == dtype == drawn.samples.noise.dtype
    torch.testing.assert_close(special_of(drawn.samples, noise).to(dtype), drawn.special)
    # two samples more or less: at a tiny share a single hit is many standard deviations
    error = SIGMAS * math.sqrt(share * (1 - share) / n) + 2 / n
    assert abs(out.double().mean().item() - share) <= error


@pytest.mark.parametrize("law", ["gaussian", "uniform", "truncated"])
def test_the_laws_own_share_gives_the_original_distribution(law: str) -> None:
    noise, n, tail = model(law), 40_000, 1.5
    own = law_of(law).exceedance(tail)
    drawn = long_tailed(noise, draws_of(), labels_of(n), own, tail)
    plain = special_of(noise.sample(draws_of(), labels_of(n), "other"), noise)
    assert stats.ks_2samp(drawn.special[0], plain[0]).pvalue > LEAST_P
    assert drawn.log_weight.abs().max() < 1e-9
    for k in range(2):  # and the rest of the noise is untouched
        mine = drawn.samples.noise[0, drawn.samples.labels[0] == k]
        assert abs(mine.mean(dim=0)).max() < SIGMAS * 2.5 / math.sqrt(len(mine))


def test_inside_tail_and_middle_zeta_has_the_conditional_law() -> None:
    noise, n = model(), 40_000
    drawn = long_tailed(noise, draws_of(), labels_of(n), 0.5, 2.0)
    for out, lower, upper in ((1, 2.0, math.inf), (0, 0.0, 2.0)):
        found = drawn.special[drawn.stratum == out]
        exact = stats.truncnorm(lower, upper)
        assert stats.kstest(found.abs(), exact.cdf).pvalue > LEAST_P
        assert abs(found.sign().mean().item()) < SIGMAS / math.sqrt(len(found))


def test_other_coordinates_are_those_of_plain_samples_and_shares_are_nested() -> None:
    noise, share = model(), torch.tensor([0.0, 0.1, 0.4, 1.0])
    drawn = long_tailed(noise, draws_of(), labels_of(400), share)
    assert drawn.samples.noise.shape == (4, 400, 7) and drawn.stratum.shape == (4, 400)
    assert bool((drawn.stratum.diff(dim=0) >= 0).all())
    assert drawn.stratum.double().mean(dim=1)[[0, 3]].tolist() == [0.0, 1.0]
    plain = noise.sample(draws_of(), labels_of(400))
    others = torch.ones(400, 7, dtype=torch.bool)
    others.scatter_(1, noise.special_axes()[labels_of(400)[0]][:, None], value=False)
    for run in range(4):
        assert torch.equal(drawn.samples.noise[run][others], plain.noise[0][others])


def test_weights_of_long_tailed_samples_give_the_models_own_means() -> None:
    noise, n = model("truncated"), 20_000
    drawn = long_tailed(noise, draws_of(), labels_of(n), 0.6, 1.0)
    plain = special_of(noise.sample(draws_of(), labels_of(n), "other"), noise)
    weight = drawn.log_weight.exp()
    for seen in (torch.ones_like, torch.square, lambda v: (v > 1.8).double(), torch.abs):
        assert agrees(weight, seen(drawn.special), seen(plain))


# --------------------------------------------------------------------------------------- stratified


def by_class(drawn: TailSamples, seen: Tensor, k: int) -> Tensor:
    """The stratified estimate of class k, one a group: (group,)."""
    mine = (drawn.samples.labels == k).double()
    return (drawn.log_weight.exp() * seen * mine).sum(dim=1) / mine.sum(dim=1)


@settings(deadline=None, max_examples=30)
@given(
    twentieths=st.lists(st.integers(1, 34), min_size=1, max_size=4, unique=True),
    law=st.sampled_from(["gaussian", "uniform", "truncated"]),
    n=st.integers(10, 41),
)
def test_strata_are_equally_filled_and_weights_add_up(
    twentieths: list[int], law: str, n: int
) -> None:
    edges = [place / 20 for place in sorted(twentieths)]
    drawn = stratified(model(law), draws_of(), labels_of(n), edges)
    ends = torch.tensor([0.0, *edges, math.inf], dtype=torch.float64)
    low, high = ends[:-1], ends[1:]
    size = drawn.special.abs()
    assert bool((size >= low[drawn.stratum] * (1 - 1e-12)).all())
    assert bool((size <= high[drawn.stratum] * (1 + 1e-12)).all())
    for k in range(2):
        counts = torch.bincount(drawn.stratum[drawn.samples.labels == k], minlength=len(edges) + 1)
        assert int(counts.max() - counts.min()) <= 1
        torch.testing.assert_close(by_class(drawn, torch.ones_like(size), k).item(), 1.0)


@pytest.mark.parametrize("law", ["gaussian", "uniform", "truncated"])
def test_stratified_means_are_unbiased(law: str) -> None:
    noise, groups, n = model(law), 300, 41
    drawn = stratified(noise, draws_of(groups), labels_of(n), [0.7, 1.2, 1.6])
    plain = special_of(noise.sample(draws_of(1), labels_of(40_000), "plain"), noise)[0]
    for seen in (torch.square, torch.abs, lambda v: (v > 1.4).double(), lambda v: v**3):
        for k in range(2):
            found = by_class(drawn, seen(drawn.special), k)
            assert agrees(torch.ones(1), found, seen(plain[k::2]))


def test_small_probabilities_of_the_tail_are_measured() -> None:
    # P[zeta > 5] = 2.9e-7: plain sampling would need ten million samples for three of them
    drawn = stratified(model(), draws_of(500), labels_of(120), [2.0, 3.5, 4.7])
    found = by_class(drawn, (drawn.special > 5).double(), 0)
    exact, error = stats.norm.sf(5), found.std().item() / math.sqrt(500)
    assert abs(found.mean().item() - exact) < SIGMAS * error < 0.5 * exact


def test_a_class_that_is_not_there_needs_no_samples() -> None:
    labels = torch.zeros(1, 30).long()
    drawn = stratified(model(), draws_of(), labels, [1.0, 2.0])
    assert drawn.log_weight.exp().mean().item() == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------- tilted


@pytest.mark.parametrize(
    ("shift", "spread", "two_sided"),
    [(0.0, 2.0, True), (0.0, 1.3, False), (3.0, 1.0, True), (2.5, 1.2, False), (0.0, 1.0, True)],
)
def test_tilted_weights_are_exact(shift: float, spread: float, two_sided: bool) -> None:
    noise, n = model(), 20_000
    drawn = tilted(noise, draws_of(), labels_of(n), shift, spread, two_sided=two_sided)
    value = drawn.special
    torch.testing.assert_close(special_of(drawn.samples, noise), value)
    means = (shift, -shift) if two_sided else (shift,)
    density = sum(stats.norm(mean, spread).pdf(value) for mean in means) / len(means)
    expected = torch.from_numpy(stats.norm.logpdf(value)) - torch.as_tensor(density).log()
    torch.testing.assert_close(drawn.log_weight, expected, rtol=1e-9, atol=1e-9)
    if shift == 0 and spread == 1:
        assert drawn.log_weight.abs().max() < 1e-15
        assert torch.equal(
            drawn.samples.noise, noise.sample(draws_of(), labels_of(n), "test").noise
        )


def test_tilting_measures_rare_events_along_any_direction() -> None:
    noise, n = model(), 40_000
    direction = draws_of(name="direction").normal("direction", (2, 7))
    unit = direction / direction.norm(dim=2, keepdim=True)
    drawn = tilted(noise, draws_of(), labels_of(n), 5.0, directions=direction, two_sided=False)
    weight = drawn.log_weight.exp()
    values = (weight * (drawn.special > 5))[0]
    exact, error = stats.norm.sf(5), values.std().item() / math.sqrt(n)
    assert abs(values.mean().item() - exact) < SIGMAS * error < 0.1 * exact
    # the noise along the direction is what was tilted, everything across it is untouched
    table = noise.eigenvalues[0][labels_of(n)[0]]
    plain = noise.zeta(draws_of(), n, "test")[0]
    along = unit[0][labels_of(n)[0]]
    before = (plain * along).sum(dim=1, keepdim=True)
    expected = table * (plain + (drawn.special[0][:, None] - before) * along)
    torch.testing.assert_close(drawn.samples.noise[0], expected)


def test_a_rotated_model_is_tilted_and_stratified_along_its_own_direction() -> None:
    basis = rotation(draws_of(name="rotation"), 7)
    noise = replace(model(), rotation=basis, coordinates="original", zeta_axes="original")
    for drawn in (
        stratified(noise, draws_of(), labels_of(12), [1.0, 2.0]),
        long_tailed(noise, draws_of(), labels_of(12), 0.5),
        tilted(noise, draws_of(), labels_of(12), 2.0),
    ):
        back = replace(drawn.samples, noise=drawn.samples.noise @ basis)
        torch.testing.assert_close(special_of(back, noise), drawn.special)


# ----------------------------------------------------------------------------------------- refusals

N = labels_of(6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: long_tailed(model(), draws_of(), N, 1.2), r"share=1.2: must be in \[0, 1\]: .*"),
        (lambda: long_tailed(model(), draws_of(), N, -0.1), r"share=-0.1: must be in \[0, 1\]: .*"),
        (
            lambda: long_tailed(model(), draws_of(), N, torch.tensor([0.5, math.nan])),
            r"share=nan: must be in \[0, 1\]: .*",
        ),
        (
            lambda: long_tailed(model("uniform"), draws_of(), N, 0.5),
            r"tail=2.0: \|zeta\| >= tail has probability 0 for uniform",
        ),
        (
            lambda: long_tailed(model("rademacher"), draws_of(), N, 0.5, 0.5),
            r"tail=0.5: \|zeta\| >= tail has probability 1 for rademacher",
        ),
        (
            lambda: long_tailed(model(), draws_of(), N, 0.5, 0.0),
            r"tail=0.0: \|zeta\| >= tail has probability 1 for gaussian",
        ),
        (lambda: stratified(model(), draws_of(), N, []), r"edges=\[\]: must be finite, more .*"),
        (lambda: stratified(model(), draws_of(), N, [2, 1]), r"edges=\[2, 1\]: must be finite.*"),
        (lambda: stratified(model(), draws_of(), N, [0.0]), r"edges=\[0.0\]: must be finite.*"),
        (
            lambda: stratified(model("uniform"), draws_of(), N, [1.0, 3.0]),
            r"edges=\[1.0, 3.0\]: stratum 2 is empty under the law uniform",
        ),
        (
            lambda: stratified(model(), draws_of(), labels_of(5), [1.0, 2.0]),
            "labels=2: every class that is there needs 3 samples, one per stratum",
        ),
        (
            lambda: tilted(model("uniform"), draws_of(), N, 1.0),
            "law='uniform': tilting needs gaussian: use stratified",
        ),
        (lambda: tilted(model(), draws_of(), N, spread=0.0), "spread=0.0: spread must be more .*"),
        (
            lambda: tilted(model(), draws_of(), N, directions=torch.zeros(1, 2, 7)),
            r"directions=\(1, 2, 7\): must be \(run or 1, 2, 7\), none of them 0",
        ),
        (
            lambda: long_tailed(turned("uniform"), draws_of(), N, 0.5, 1.0),
            "zeta_axes='original': must be rotated: .*",
        ),
        (
            lambda: stratified(turned("truncated"), draws_of(), N, [1.0]),
            "zeta_axes='original': must be rotated: .*",
        ),
        (
            lambda: stratified(model(), draws_of(), N[0], [1.0]),
            r"labels=\(6,\): must be \(run, n\).*",
        ),
    ],
)
def test_what_is_outside_the_model_is_refused(
    call: Callable[[], TailSamples], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{message}$") as error:
        call()
    assert "\n" not in str(error.value)


def turned(law: str) -> ClassNoise:
    basis = rotation(draws_of(name="rotation"), 7)
    return replace(model(law), rotation=basis, zeta_axes="original")
