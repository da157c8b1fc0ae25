"""The update rules in the contrastive problem: what each does to the neurons left out of a step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_pruned_steps import (
    BIASES,
    DECAY,
    ETA,
    EXACT,
    FRESH,
    NEURONS,
    SAMPLES,
    one_step,
    trained,
    with_pruning,
)
from torch import Tensor

from rarefy.pruning.masks import keep_largest, neuron_norms
from rarefy.pruning.update_rules import UPDATE_RULES
from rarefy.train.contrastive import Contrastive
from rarefy.train.descent import descend
from rarefy.train.optimisers import Sgd


@pytest.mark.parametrize("bias", BIASES)
def test_what_is_left_out_moves_under_dense_stays_under_masked_and_is_zero_under_project(
    bias: str,
) -> None:
    case = trained(bias)
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    after: dict[str, Tensor] = {}
    for rule in UPDATE_RULES:
        problem = with_pruning(case, 0.5, rule)
        after[rule] = one_step(case, problem, batch)
        kept = problem.pruning.kept  # type: ignore[union-attr]
    assert (~kept).sum(dim=1).tolist() == [3, 3]
    decayed = (1 - ETA * DECAY) * case.weights
    assert ((after["dense"] - decayed)[~kept].abs().amax(dim=1) > 1e-4).all()
    assert torch.equal(after["masked"][~kept], case.weights[~kept])
    assert not after["project"][~kept].any()
    # one step moves the kept neurons alike under all three
    for rule in ("masked", "project"):
        torch.testing.assert_close(after[rule][kept], after["dense"][kept], rtol=EXACT, atol=EXACT)


def test_a_project_step_is_the_unpruned_step_of_the_zeroed_weights() -> None:
    case = trained("of norm")
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    found = one_step(case, with_pruning(case, 0.5, "project"), batch)
    kept = keep_largest(neuron_norms(case.weights), NEURONS // 2)
    zeroed = replace(case, weights=case.weights * kept[:, :, None])
    expected = one_step(zeroed, case.problem, batch)
    torch.testing.assert_close(found, expected, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("automatic", [False, True], ids=["by hand", "autograd"])
@pytest.mark.parametrize("bias", BIASES)
def test_a_neuron_once_zero_stays_zero_for_ever(bias: str, automatic: bool) -> None:
    """h_i and its gradient vanish at w_i = 0, so ``project`` prunes for good in this model."""
    case = trained(bias)
    pruned = with_pruning(case, 0.5, "project")
    pruning, masks = pruned.pruning, list[Tensor]()
    assert pruning is not None

    def ten_steps(problem: Contrastive, weights: Tensor, first: int) -> Tensor:
        return descend(
            problem,
            {"weights": weights},
            lambda step: case.data.sample(case.draws, SAMPLES, first + step),
            Sgd(ETA, weight_decay=DECAY),
            10,
            pruning=problem.pruning,
            after_update=lambda state: masks.append(pruning.kept),
            automatic=automatic,
        ).parameters["weights"]

    weights = ten_steps(pruned, case.weights, FRESH)
    zero = ~weights.any(dim=2)
    assert zero.sum(dim=1).tolist() == [3, 3]
    assert all(torch.equal(mask, ~zero) for mask in masks)
    batch = case.data.sample(case.draws, SAMPLES, 50)
    for problem in (pruned, case.problem):
        gradient = problem.gradients({"weights": weights}, batch)[1]["weights"]
        assert not gradient[zero].any() and gradient[~zero].any(dim=1).all()
    # even when nothing is pruned any more
    later = ten_steps(case.problem, weights, 100)
    assert torch.equal(~later.any(dim=2), zero)
