"""Two branches: the gradient by hand, what the mask keeps, one run alone and in company."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_contrastive import Small, random_attention, small
from torch import Tensor

from rarefy.nets.brelu_transformer import encode
from rarefy.train.descent import automatic_gradients, descend
from rarefy.train.losses import info_nce, symmetric_info_nce
from rarefy.train.optimisers import Sgd
from rarefy.train.two_branches import TwoBranches

RELATIVE = 1e-12
SETTINGS: dict[str, dict[str, Any]] = {
    "no bias": {},
    "bias": {"bias": 0.3, "tau": 0.7, "factor": 1.3},
    "other attention": {"bias": 0.2, "attention": random_attention(6)},
    "all tokens": {"bias": 0.2, "spread": "all", "tokens": 3},
}


def branches(keep: float, **options: Any) -> tuple[Small, TwoBranches]:
    case = small(**options)
    return case, TwoBranches(**vars(case.problem), keep=keep)


def assert_close(found: Tensor, expected: Tensor) -> None:
    assert (found - expected).abs().max() <= RELATIVE * expected.abs().max()


@pytest.mark.parametrize("keep", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_gradient_by_hand_is_autograds(setting: str, keep: float) -> None:
    case, problem = branches(keep, **SETTINGS[setting])
    batch = case.data.sample(case.draws, 8, step=0)
    loss, found = problem.gradients(case.parameters, batch)
    expected_loss, expected = automatic_gradients(problem, case.parameters, batch)
    assert expected["weights"].abs().amax(dim=(1, 2)).min() > 1e-4
    assert_close(loss, expected_loss)
    assert_close(found["weights"], expected["weights"])


def test_the_mask_keeps_the_largest_weights_of_each_run() -> None:
    case, problem = branches(0.25, runs=3)
    mask = problem.mask(case.weights)
    assert mask.sum(dim=(1, 2)).tolist() == [6.0] * 3  # of 4 x 6
    for run in range(3):
        sizes = case.weights[run].abs().flatten()
        kept = mask[run].flatten() == 1
        assert sizes[kept].min() > sizes[~kept].max()


def test_a_weight_that_the_masked_branch_lacks_is_moved_by_the_dense_one_alone() -> None:
    """By finite differences, f(Y) held."""
    case, problem = branches(0.25, bias=0.2)
    batch = case.data.sample(case.draws, 8, step=0)
    mask = problem.mask(case.weights)
    bias = problem.masked_bias(case.weights, mask)
    f_y = encode(case.weights * mask, bias, batch.y, problem.attention)
    assert (f_y - problem.embed(case.parameters, batch.y)).abs().max() > 1e-2
    place = tuple(torch.nonzero(mask[0] == 0)[0].tolist())
    step = torch.zeros_like(case.weights)
    step[0][place] = 1e-6

    def loss(weights: Tensor) -> float:
        f_x = problem.embed({"weights": weights}, batch.x)
        return float(symmetric_info_nce(f_x, f_y, problem.tau, problem.factor)[0])

    slope = (loss(case.weights + step) - loss(case.weights - step)) / 2e-6
    found = problem.gradients(case.parameters, batch)[1]["weights"][0][place]
    assert abs(slope) > 1e-4 and float(found) == pytest.approx(slope, rel=1e-5)


def test_the_bias_of_the_masked_branch_goes_with_its_norm() -> None:
    case, problem = branches(0.3, bias=0.4)
    mask = problem.mask(case.weights)
    norms = [(case.weights * part).norm(dim=2) for part in (mask, torch.ones_like(mask))]
    expected = problem.bias.value * norms[0] / norms[1]
    torch.testing.assert_close(problem.masked_bias(case.weights, mask), expected)


def test_near_zero_a_step_without_masks_is_as_long_as_one_of_the_plain_loss() -> None:
    """Averaged over many samples; X and Y are exchangeable in law, not in a sample."""
    case, problem = branches(1.0, sigma_0=1e-4, sigma=0.01)
    batch = case.data.sample(case.draws, 2048, step=0)
    both = problem.gradients(case.parameters, batch)[1]["weights"]
    plain = case.problem.gradients(case.parameters, batch)[1]["weights"]
    assert (both - plain).abs().max() < 0.05 * plain.abs().max()


def test_the_symmetric_loss_is_half_the_mean_of_both_directions() -> None:
    generator = torch.Generator().manual_seed(0)
    f_x, f_y = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64)
    tau, factor = torch.tensor([0.5, 1.0, 2.0]).double(), torch.tensor([1.0, 3.0, 0.5]).double()
    both = (info_nce(f_x, f_y, tau, factor) + info_nce(f_y, f_x, tau, factor)) / 4
    torch.testing.assert_close(symmetric_info_nce(f_x, f_y, tau, factor), both)


@pytest.mark.parametrize("keep", [1.0, 0.4])
def test_a_run_is_the_same_alone_in_company_and_after_a_stop(keep: float) -> None:
    def trained(case: Small, problem: TwoBranches, first: int, last: int, start: Tensor) -> Tensor:
        def batches(step: int) -> Any:
            return case.data.sample(case.draws, 6, first + step)

        return descend(
            problem, {"weights": start}, batches, Sgd(0.3, weight_decay=1e-3), last - first
        ).parameters["weights"]

    case, problem = branches(keep, runs=4, bias=0.2)
    whole = trained(case, problem, 0, 12, case.weights)
    half = trained(case, problem, 0, 5, case.weights)
    torch.testing.assert_close(trained(case, problem, 5, 12, half), whole, rtol=0, atol=0)
    alone, own = branches(keep, runs=1, first=2, bias=0.2)
    assert_close(trained(alone, own, 0, 12, alone.weights)[0], whole[2])
