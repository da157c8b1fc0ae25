"""Loss and coefficients of the patch network by C++ are those by torch in float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from drawn_cells import CELLS
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.core.settings import compiler_present
from rarefy.data.signal_noise import SignalNoise
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.descent import own_rows
from rarefy.train.gram_classifier import GramClassifier, start_of
from rarefy.train.patch_coefficients import gram_step, patch_coefficients

pytestmark = pytest.mark.skipif(not compiler_present(), reason="needs a C++ compiler")
RUNS, CLASSES = 3, 4
LR = torch.tensor([0.1, 0.5, 2.0])


def drawn(filters: int, samples: int, shared: bool, empty: int = 0) -> tuple[Tensor, ...]:
    """Responses, some of them 0, units and labels; so many empty patches."""
    draws = Draws(CELLS[:RUNS])
    seen = draws.normal("seen", (CLASSES, filters, samples + CLASSES + empty))
    seen[torch.rand(seen.shape, generator=torch.Generator().manual_seed(0)) < 0.2] = 0.0
    scales = 0.1 + draws.uniform("scales", (samples + CLASSES + empty,))
    seen[..., samples + CLASSES :], scales[:, samples + CLASSES :] = 0.0, 0.0
    labels = (CLASSES * draws.uniform("labels", (samples,))).long()[: 1 if shared else RUNS]
    return seen, scales, torch.nn.functional.one_hot(labels, CLASSES).float()


def in_float64(seen: Tensor, scales: Tensor, one_hot: Tensor) -> tuple[Tensor, ...]:
    return seen.double(), scales.double(), one_hot.double()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("open_at_zero", [True, False])
@pytest.mark.parametrize(("filters", "samples", "empty"), [(1, 1, 0), (5, 37, 7)])
def test_coefficients(
    filters: int, samples: int, empty: int, open_at_zero: bool, shared: bool
) -> None:
    given = drawn(filters, samples, shared, empty)
    loss, parts = patch_coefficients(*in_float64(*given), LR.double(), 0.7, open_at_zero)
    wide = torch.ones(RUNS, CLASSES, filters, samples + CLASSES + 3)
    for sums in (None, wide[..., :-3].clone(), own_rows(wide[..., :-3]), wide.mT.clone().mT):
        if sums is not None:
            sums = sums[..., : samples + CLASSES]
        found, some = patch_coefficients(*given, LR, 0.7, open_at_zero, True, sums)
        torch.testing.assert_close(found.double(), loss, rtol=2e-6, atol=1e-7)
        torch.testing.assert_close(some.double(), parts, rtol=1e-5, atol=1e-7)
        if sums is not None:
            torch.testing.assert_close(sums, 1 - some[..., : samples + CLASSES], rtol=0, atol=1e-6)


def test_extreme_scores() -> None:
    """Whose exponential is 0, or would be infinite; what is not a number stays in its run."""
    seen, scales, one_hot = drawn(2, 9, False)
    loss, parts = patch_coefficients(*in_float64(200 * seen, scales, one_hot), 1.0, 1.0)
    found, some = patch_coefficients(200 * seen, scales, one_hot, 1.0, 1.0, compile_kernels=True)
    torch.testing.assert_close(found.double(), loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(some.double(), parts, rtol=1e-4, atol=1e-6)
    for bad in (torch.nan, torch.inf):
        broken = seen.clone()
        broken[1, 0, 0, 3] = bad
        found, some = patch_coefficients(broken, scales, one_hot, 1.0, 1.0, compile_kernels=True)
        alone = patch_coefficients(seen, scales, one_hot, 1.0, 1.0, compile_kernels=True)
        assert found.isnan().tolist() == [False, True, False]
        for run in (0, 2):
            assert found[run] == alone[0][run] and torch.equal(some[run], alone[1][run])


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(("filters", "samples"), [(1, 3), (5, 37), (3, 150)])
def test_a_step_by_responses(filters: int, samples: int, apart: bool, shared: bool) -> None:
    draws = Draws(CELLS[: 1 if shared else RUNS])
    one = torch.ones(RUNS)
    drawn = SignalNoise(CLASSES, 20, one, 0.3 * one * torch.arange(1, RUNS + 1)).sample(
        draws, samples
    )
    start = initial_filters(draws, CLASSES, filters, 20).expand(RUNS, -1, -1, -1)
    parameters = {name: own_rows(value) for name, value in start_of(start, drawn).items()}
    by_torch = replace(GramClassifier.of(drawn, 0.5), noise_apart=apart)
    expected = {name: value.double() for name, value in parameters.items()}
    double = replace(
        by_torch,
        **{name: getattr(by_torch, name).double() for name in ("gram", "scales", "one_hot")},
    )
    each = [{name: own_rows(value[run : run + 1]) for name, value in parameters.items()}
            for run in range(RUNS)]  # fmt: skip
    for _ in range(3):
        loss = double.step(expected, LR.double())
        found = replace(by_torch, compile_kernels=True).step(parameters, LR)
        torch.testing.assert_close(found.double(), loss, rtol=1e-5, atol=1e-6)
    for name, value in parameters.items():
        torch.testing.assert_close(value.double(), expected[name], rtol=1e-4, atol=1e-5)
    if shared:
        return
    for run, mine in enumerate(each):  # alone, a run takes the same steps to the bit
        alone = replace(
            by_torch,
            gram=by_torch.gram[run : run + 1],
            scales=by_torch.scales[run : run + 1],
            one_hot=by_torch.one_hot[run : run + 1],
            compile_kernels=True,
        )
        for _ in range(3):
            alone.step(mine, LR[run : run + 1])
        for name, value in mine.items():
            assert torch.equal(value[0], parameters[name][run])


def test_a_step_by_torch_where_rows_lie_otherwise() -> None:
    seen, scales, one_hot = drawn(2, 9, False)
    gram = torch.eye(13).expand(RUNS, -1, -1)
    given = gram, 9, scales, one_hot, 0.1, 1.0
    assert gram_step(seen.mT.contiguous().mT, torch.zeros_like(seen), *given) is None
    assert gram_step(seen.double(), torch.zeros_like(seen).double(), *given) is None
    assert gram_step(seen, torch.zeros_like(seen), *given) is not None
