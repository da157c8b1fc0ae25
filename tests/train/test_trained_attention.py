"""Attention as a parameter: its gradient by finite differences, its start, pruning beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_contrastive import Small, naive_formula_5, random_attention, small
from torch import Tensor

from rarefy.core.contracts import Cells, Context
from rarefy.core.rng import key
from rarefy.data.sparse_coding import Companions, Pairs
from rarefy.nets.brelu_transformer import Attention
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies import get_study
from rarefy.train.contrastive import TRAINED_ATTENTION, Contrastive, identity_attention
from rarefy.train.descent import descend
from rarefy.train.losses import info_nce, info_nce_gradient
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd

ContrastAlignment = get_study("contrast-alignment")
EXACT = 1e-12
DIFFERENCE = 1e-6
"""step of central differences; their own error is then near 1e-9 of a gradient"""
RELATIVE = 1e-7
D1, RUNS, SAMPLES, NEURONS = 6, 2, 8, 4


def near_identity(seed: int = 5) -> dict[str, Tensor]:
    """W_Q and W_K of each run, different and not symmetric."""
    noise = random_attention(D1, RUNS, seed)
    start = identity_attention(RUNS, D1, torch.empty(0, dtype=torch.float64))
    assert noise.query is not None and noise.key is not None
    return {"query": start["query"] + noise.query, "key": start["key"] + noise.key}


def a_case(**options: Any) -> tuple[Small, Pairs]:
    case = small(runs=RUNS, neurons=NEURONS, bias=0.2, tau=0.7, factor=1.3, **options)
    return case, case.data.sample(case.draws, SAMPLES, step=0)


def pruned(problem: Contrastive, weights: Tensor) -> tuple[Contrastive, Tensor]:
    pruning = NeuronPruning(
        torch.full((RUNS,), 0.5), torch.zeros(RUNS), rule_codes(["dense"] * RUNS), NEURONS
    )
    pruning.before(0, {"weights": weights})
    assert pruning.kept.sum(dim=1).tolist() == [2] * RUNS
    return replace(problem, pruning=pruning), pruning.kept


def by_differences(function: Callable[[Tensor], Tensor], matrices: Tensor) -> Tensor:
    """Gradient in (run, a, b) of a function (run,) of which each run sees its own matrix only."""
    gradient = torch.zeros_like(matrices)
    for row in range(matrices.shape[1]):
        for column in range(matrices.shape[2]):
            nudge = torch.zeros_like(matrices)
            nudge[:, row, column] = DIFFERENCE
            rise = function(matrices + nudge) - function(matrices - nudge)
            gradient[:, row, column] = rise / (2 * DIFFERENCE)
    return gradient


def assert_close(found: Tensor, expected: Tensor, relative: float) -> None:
    largest = expected.abs().amax(dim=(1, 2), keepdim=True)
    assert largest.min() > 1e-4
    assert ((found - expected).abs() <= relative * largest).all()


# ------------------------------------------------------------------------------------- the gradient


@pytest.mark.parametrize("tokens", [2, 5])
@pytest.mark.parametrize("name", ["query", "key", "weights"])
def test_gradients_are_those_of_finite_differences(name: str, tokens: int) -> None:
    case, batch = a_case(tokens=tokens, attention=Attention(scale=0.8))
    parameters = {**case.parameters, **near_identity()}
    loss, found = case.problem.gradients(parameters, batch)
    assert set(found) == set(parameters)
    f_y = case.problem.embed(parameters, batch.y)  # stays: the gradient is stopped through it

    def value(matrices: Tensor) -> Tensor:
        f_x = case.problem.embed({**parameters, name: matrices}, batch.x)
        return info_nce(f_x, f_y, case.problem.tau, case.problem.factor)

    torch.testing.assert_close(loss, value(parameters[name]), rtol=EXACT, atol=0)
    assert_close(found[name], by_differences(value, parameters[name]), RELATIVE)


def test_one_token_has_nothing_to_attend_to() -> None:
    case, batch = a_case(tokens=1)
    found = case.problem.gradients({**case.parameters, **near_identity()}, batch)[1]
    assert not found["query"].any() and not found["key"].any() and found["weights"].any()


def test_a_run_has_the_same_gradients_alone_and_in_company() -> None:
    case, batch = a_case()
    own = near_identity()
    together = case.problem.gradients({**case.parameters, **own}, batch)[1]
    alone = small(runs=1, first=1, neurons=NEURONS, bias=0.2, tau=0.7, factor=1.3)
    single = {**alone.parameters, **{name: value[1:] for name, value in own.items()}}
    found = alone.problem.gradients(single, alone.data.sample(alone.draws, SAMPLES, step=0))[1]
    for name in single:
        torch.testing.assert_close(found[name], together[name][1:], rtol=1e-10, atol=EXACT)


# ---------------------------------------------------------------------------------------- the start


def test_attention_starts_at_the_identity_in_every_run() -> None:
    like = torch.empty(0, dtype=torch.float64)
    start = identity_attention(3, D1, like)
    assert set(start) == set(TRAINED_ATTENTION) == {"query", "key"}
    for matrix in start.values():
        assert matrix.dtype == like.dtype
        assert torch.equal(matrix, torch.eye(D1, dtype=torch.float64).expand(3, D1, D1))
    start["query"][0, 0, 0] = 7.0  # each run and each matrix has memory of its own
    assert float(start["query"][1, 0, 0]) == float(start["key"][0, 0, 0]) == 1.0


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_at_the_start_loss_and_gradient_are_those_of_fixed_attention(scale: float) -> None:
    """W_V and the scale are not trained and stay as they are given."""
    value = random_attention(D1, RUNS, seed=3).value
    case, batch = a_case(attention=Attention(value=value, scale=scale))
    start = {**case.parameters, **identity_attention(RUNS, D1, case.weights)}
    loss, found = case.problem.gradients(start, batch)
    fixed_loss, fixed = case.problem.gradients(case.parameters, batch)
    torch.testing.assert_close(loss, fixed_loss, rtol=EXACT, atol=0)
    assert_close(found["weights"], fixed["weights"], EXACT)
    torch.testing.assert_close(
        case.problem.loss(start, batch),
        case.problem.loss(case.parameters, batch),
        rtol=EXACT,
        atol=0,
    )


def test_the_attention_in_force_is_the_trained_one() -> None:
    case, _ = a_case()
    own = near_identity()
    assert case.problem.attention_of(case.parameters) is case.problem.attention
    found = case.problem.attention_of({**case.parameters, **own})
    assert found.query is own["query"] and found.key is own["key"]
    assert found.value is case.problem.attention.value
    assert found.scale == case.problem.attention.scale


# -------------------------------------------------------------------------------------- the descent


@pytest.mark.parametrize("automatic", [False, True])
def test_training_moves_query_and_key_in_every_run(automatic: bool) -> None:
    def train(parameters: dict[str, Tensor], steps: int, decay: float) -> dict[str, Tensor]:
        case, _ = a_case()
        return descend(
            case.problem,
            parameters,
            lambda step: case.data.sample(case.draws, SAMPLES, step),
            Sgd(0.3, weight_decay=decay),
            steps,
            automatic=automatic,
        ).parameters

    case, batch = a_case()
    start = {**case.parameters, **identity_attention(RUNS, D1, case.weights)}
    found = train(start, 10, 0.0)
    for name in TRAINED_ATTENTION:
        assert (found[name] - start[name]).abs().amax(dim=(1, 2)).min() > 1e-3
    assert not torch.allclose(found["query"], found["key"], rtol=0, atol=1e-3)
    # the first step of the weights does not know that attention is trained, the second does
    fixed = case.parameters
    one, one_fixed = train(start, 1, 0.0)["weights"], train(fixed, 1, 0.0)["weights"]
    torch.testing.assert_close(one, one_fixed, rtol=EXACT, atol=EXACT)
    two, two_fixed = train(start, 2, 0.0)["weights"], train(fixed, 2, 0.0)["weights"]
    assert (two - two_fixed).abs().amax(dim=(1, 2)).min() > 1e-6
    # weight decay acts on all parameters (3)
    decayed = train(start, 1, 0.1)
    plain = train(start, 1, 0.0)
    for name in start:
        expected = -0.03 * start[name]
        torch.testing.assert_close(decayed[name] - plain[name], expected, rtol=0, atol=1e-14)


def test_a_study_hands_on_trained_attention_pruning_and_companions() -> None:
    study = ContrastAlignment.at(
        "tiny", d1=20, majority=2, minority=1, steps=3, reads=(0, 3), figure_read=3
    )
    assert isinstance(study, ContrastAlignment) and study.d == 3
    values = {"eps_min": 0.5, "sigma": 0.1, "bias_scale": 1.0}
    columns = {name: np.full(RUNS, value) for name, value in values.items()}
    cells = Cells(columns, np.array([key("handed on", run) for run in range(RUNS)]))
    context = Context(dtype=torch.float64)
    one = torch.ones(RUNS, dtype=torch.float64)
    pruning = NeuronPruning(
        0.5 * one, torch.zeros(RUNS), rule_codes(["dense"] * RUNS), study.neurons
    )
    options: dict[str, Any] = {
        "pruning": pruning,
        "companions": Companions((0, 1, 0), one),
    }
    for train_attention in (False, True):
        experiment = study.setup(cells, context, **options, train_attention=train_attention)
        assert experiment.data.companions is options["companions"]
        masks: list[Tensor] = []
        found = experiment.train(
            context, {}, [], watch=lambda state, seen=masks: seen.append(pruning.kept)
        ).parameters
        assert [mask.sum(dim=1).tolist() for mask in masks] == [[study.neurons // 2] * RUNS] * 3
        assert set(found) == ({"weights", "query", "key"} if train_attention else {"weights"})
        assert experiment.weights is experiment.parameters["weights"]
    for name in TRAINED_ATTENTION:
        only_decayed = (1 - study.lr * study.weight_decay) ** 3 * torch.eye(20, dtype=torch.float64)
        assert (found[name] - only_decayed).abs().amax(dim=(1, 2)).min() > 1e-9


# ------------------------------------------------------------------------------------- with pruning


def test_with_pruning_the_weights_gradient_is_the_hand_written_one() -> None:
    case, batch = a_case()
    own = near_identity()
    problem, kept = pruned(case.problem, case.weights)
    found = problem.gradients({**case.parameters, **own}, batch)[1]["weights"]
    fixed = Attention(query=own["query"], key=own["key"])
    by_hand = replace(problem, attention=fixed).gradients(case.parameters, batch)[1]["weights"]
    assert_close(found, by_hand, EXACT)
    for run in range(RUNS):  # and both are (5), in loops
        in_loops = naive_formula_5(
            case.weights[run],
            problem.bias.value[run],
            batch.x[run],
            batch.y[run],
            tau=0.7,
            kept=kept[run].tolist(),
            attention=fixed,
            run=run,
        )
        assert_close(found[run : run + 1], 1.3 / 0.7 * in_loops[None], EXACT)


@pytest.mark.parametrize("name", TRAINED_ATTENTION)
def test_with_pruning_query_and_key_follow_formula_5_too(name: str) -> None:
    """(5) with theta = W_Q or W_K: the factors of grad h_i(X_k) stand still, h_i(X_k) moves, and
    the neurons left out are among the i, which no gradient of a loss would have."""
    case, batch = a_case()
    parameters = {**case.parameters, **near_identity()}
    problem, kept = pruned(case.problem, case.weights)
    f_x, f_y = (problem.embed(parameters, side) for side in (batch.x, batch.y))
    _, factors = info_nce_gradient(f_x, f_y, problem.tau, problem.factor, kept)

    def value(matrices: Tensor) -> Tensor:
        moved = problem.embed({**parameters, name: matrices}, batch.x)
        return (moved * factors).sum(dim=(1, 2))

    def masked_loss(matrices: Tensor) -> Tensor:
        moved = problem.embed({**parameters, name: matrices}, batch.x)
        return info_nce(moved * kept[:, None], f_y, problem.tau, problem.factor)

    found = problem.gradients(parameters, batch)[1][name]
    assert_close(found, by_differences(value, parameters[name]), RELATIVE)
    apart = (found - by_differences(masked_loss, parameters[name])).abs().amax(dim=(1, 2))
    assert (apart > 1e-3 * found.abs().amax(dim=(1, 2))).all()
