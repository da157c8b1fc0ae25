"""Pruned steps of the contrastive problem: Algorithm 1 of 000 and its eq. (5), written in loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_contrastive import Small, naive_formula_5, random_attention, small
from torch import Tensor

from rarefy.data.sparse_coding import Pairs
from rarefy.pruning.masks import keep_largest, neuron_norms
from rarefy.pruning.update_rules import UPDATE_RULES, rule_codes
from rarefy.train.contrastive import Contrastive
from rarefy.train.descent import automatic_gradients, descend
from rarefy.train.losses import softmax_weights
from rarefy.train.neuron_pruning import NEVER, NeuronPruning
from rarefy.train.optimisers import Sgd

EXACT = 1e-12
ETA, DECAY = 0.4, 0.01
RUNS, NEURONS, SAMPLES, WARM = 2, 6, 10, 15
FRESH = WARM + 1
"""the step whose batch the trained state has not seen"""
BIASES = ("none", "equal", "of norm")


def trained(bias: str, **options: Any) -> Small:
    """A state after ``WARM`` unpruned steps: with no bias, with much the same bias for all neurons
    from the beginning, or with one in proportion to the norm, as the rule (284) sets it at T1."""
    case = small(
        name="pruned",
        runs=RUNS,
        neurons=NEURONS,
        eps=(1.0, 0.7, 0.5),
        bias=0.1 if bias == "equal" else 0.0,
        **options,
    )
    weights = descend(
        case.problem,
        case.parameters,
        lambda step: case.data.sample(case.draws, SAMPLES, step),
        Sgd(ETA, weight_decay=DECAY),
        WARM,
    ).parameters["weights"]
    if bias == "of norm":
        case.problem.bias.value = 0.3 * neuron_norms(weights)
    return replace(case, weights=weights)


def with_pruning(case: Small, alpha: float | list[float], rule: str = "dense") -> Contrastive:
    share = torch.tensor(alpha, dtype=torch.float64).expand(RUNS)
    start = torch.zeros(RUNS, dtype=torch.int64)
    return replace(
        case.problem, pruning=NeuronPruning(share, start, rule_codes([rule] * RUNS), NEURONS)
    )


def one_step(
    case: Small, problem: Contrastive, batch: Pairs, decay: float = DECAY, automatic: bool = False
) -> Tensor:
    """The weights after one step of Algorithm 1 from the case's weights."""
    return descend(
        problem,
        case.parameters,
        lambda step: batch,
        Sgd(ETA, weight_decay=decay),
        1,
        pruning=problem.pruning,
        automatic=automatic,
    ).parameters["weights"]


PAIRED = 1e-10
"""Relative to the largest entry of each neuron's own difference."""


def smallest(weights: Tensor, number: int) -> list[bool]:
    """Kept neurons of one run, by a plain sort of the norms: all but the ``number`` smallest."""
    norms = [float(torch.sqrt((w * w).sum())) for w in weights]
    out = sorted(range(len(norms)), key=lambda i: norms[i])[:number]
    return [i not in out for i in range(len(norms))]


def formula(case: Small, batch: Pairs, run: int, kept: list[bool]) -> Tensor:
    """(5) times factor/tau: both are of tau times the loss (1), see (159)."""
    tau, factor = float(case.problem.tau[run]), float(case.problem.factor[run])
    gradient = naive_formula_5(
        case.weights[run],
        case.problem.bias.value[run],
        batch.x[run],
        batch.y[run],
        tau,
        kept,
        case.problem.attention,
        run,
    )
    return factor / tau * gradient


def assert_neurons_close(found: Tensor, expected: Tensor, relative: float) -> None:
    """Neuron by neuron, (m, d1), so that a small one cannot hide behind a large one."""
    apart = (found - expected).abs().amax(dim=1)
    assert (apart <= relative * expected.abs().amax(dim=1)).all()


# ---------------------------------------------------------------------------------- the paired test
# From one state and with one batch, a pruned and an unpruned step are taken; what they differ by is
# what (5) differs by from (21), for the neurons left out and for those kept.

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "times tau": {"tau": 0.6, "factor": 0.6},
    "small tau": {"tau": 0.4},
    "other attention": {"attention": random_attention(6)},
    "all tokens show it": {"spread": "all", "tokens": 3},
}


@pytest.mark.parametrize("automatic", [False, True], ids=["by hand", "autograd"])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("bias", BIASES)
def test_a_pruned_and_an_unpruned_step_differ_as_formula_5_and_21(
    bias: str, setting: str, automatic: bool
) -> None:
    case = trained(bias, **SETTINGS[setting])
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    dense = one_step(case, case.problem, batch, automatic=automatic)
    pruned = one_step(case, with_pruning(case, [0.5, 0.17]), batch, automatic=automatic)
    for run, out in ((0, 3), (1, 1)):
        kept = smallest(case.weights[run], out)
        g_5 = formula(case, batch, run, kept)
        g_21 = formula(case, batch, run, [True] * NEURONS)
        expected = -ETA * (g_5 - g_21)
        difference = pruned[run] - dense[run]
        # every neuron is told apart; 1e-10 of this is still above the rounding of its weights
        assert (expected.abs().amax(dim=1) > 2e-6).all()
        assert_neurons_close(difference, expected, PAIRED)
        # and each step is the one of Algorithm 1, line 7
        decayed = (1 - ETA * DECAY) * case.weights[run]
        assert_neurons_close(pruned[run], decayed - ETA * g_5, EXACT)
        assert_neurons_close(dense[run], decayed - ETA * g_21, EXACT)


def test_formula_5_is_neither_the_masked_networks_gradient_nor_one_with_masked_partners() -> None:
    """The pairing above would be worth little if other readings of (5) gave the same numbers."""
    case = trained("equal")
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    problem = with_pruning(case, 0.5)
    one_step(case, problem, batch)
    kept = problem.pruning.kept  # type: ignore[union-attr]
    found = problem.gradients(case.parameters, batch)[1]["weights"]
    masked = {"weights": case.weights * kept[:, :, None]}
    network = case.problem.gradients(masked, batch)[1]["weights"]
    # neurons that are kept: (5) is the gradient of the network without the others
    torch.testing.assert_close(found[kept], network[kept], rtol=EXACT, atol=EXACT)
    # neurons left out: that network does not know them, (5) moves them
    assert not network[~kept].any()
    assert found[~kept].abs().amax(dim=1).min() > 1e-4


# ------------------------------------------------------------------------------------- weight decay


@pytest.mark.parametrize("bias", BIASES)
def test_weight_decay_acts_on_all_neurons_of_a_pruned_step(bias: str) -> None:
    case = trained(bias)
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    problem = with_pruning(case, 0.5)
    difference = one_step(case, problem, batch) - one_step(case, problem, batch, decay=0.0)
    for run in range(RUNS):
        assert_neurons_close(difference[run], -ETA * DECAY * case.weights[run], PAIRED)


def test_neurons_that_are_silent_everywhere_are_only_decayed() -> None:
    case = trained("none")
    case.problem.bias.value[:] = 1e6
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    moved = one_step(case, with_pruning(case, 0.5), batch)
    torch.testing.assert_close(moved, (1 - ETA * DECAY) * case.weights, rtol=EXACT, atol=0)


# ------------------------------------------------------------------------------------ special cases


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_with_no_neuron_left_out_the_step_is_exactly_the_unpruned_one(rule: str) -> None:
    case = trained("of norm")
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    plain = one_step(case, case.problem, batch)
    assert torch.equal(one_step(case, with_pruning(case, 0.0, rule), batch), plain)
    # also when the other run of the batch is pruned
    mixed = one_step(case, with_pruning(case, [0.0, 0.5], rule), batch)
    assert torch.equal(mixed[0], plain[0]) and not torch.equal(mixed[1], plain[1])


def test_pruning_that_never_starts_is_no_pruning() -> None:
    case = trained("of norm")
    problem = with_pruning(case, 0.5)
    problem.pruning.start[:] = NEVER  # type: ignore[union-attr]
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    assert torch.equal(one_step(case, problem, batch), one_step(case, case.problem, batch))


def test_a_neuron_left_out_does_not_change_the_logits_of_samples_on_which_it_is_silent() -> None:
    case = trained("of norm")
    batch = case.data.sample(case.draws, 40, FRESH)
    f_x = case.problem.embed(case.parameters, batch.x)
    f_y = case.problem.embed(case.parameters, batch.y)
    kept = keep_largest(neuron_norms(case.weights), NEURONS - 1)
    whole, _ = softmax_weights(f_x, f_y, case.problem.tau)
    without, _ = softmax_weights(f_x, f_y, case.problem.tau, kept)
    for run in range(RUNS):
        out = int(torch.nonzero(~kept[run]))
        silent = f_x[run, :, out] == 0
        assert 3 <= int(silent.sum()) <= 37  # both kinds of sample are there
        torch.testing.assert_close(whole[run, silent], without[run, silent], rtol=EXACT, atol=0)
        changed = (whole[run] - without[run]).abs().amax(dim=1)
        assert changed[~silent].min() > 1e-6


def test_the_loss_of_a_pruned_step_is_that_of_the_masked_network() -> None:
    case = trained("of norm", tau=0.7, factor=1.3)
    batch = case.data.sample(case.draws, SAMPLES, FRESH)
    problem = with_pruning(case, 0.5)
    one_step(case, problem, batch)
    kept = problem.pruning.kept  # type: ignore[union-attr]
    expected = case.problem.loss({"weights": case.weights * kept[:, :, None]}, batch)
    for loss in (
        problem.loss(case.parameters, batch),
        problem.gradients(case.parameters, batch)[0],
    ):
        torch.testing.assert_close(loss, expected, rtol=EXACT, atol=0)
    assert (case.problem.loss(case.parameters, batch) - expected).abs().min() > 1e-4


@pytest.mark.parametrize("tokens", [1, 2, 5])
@pytest.mark.parametrize("spread", ["one", "subset", "all"])
def test_the_pruned_gradient_by_hand_is_autograds(tokens: int, spread: str) -> None:
    case = small(
        neurons=NEURONS,
        tokens=tokens,
        spread=spread,
        bias=0.3,
        tau=0.7,
        attention=random_attention(6),
    )
    batch = case.data.sample(case.draws, SAMPLES, step=0)
    problem = with_pruning(case, [0.5, 0.8])
    problem.pruning.before(0, case.parameters)  # type: ignore[union-attr]
    loss, found = problem.gradients(case.parameters, batch)
    auto_loss, expected = automatic_gradients(problem, case.parameters, batch)
    torch.testing.assert_close(loss, auto_loss, rtol=EXACT, atol=0)
    for run in range(RUNS):
        assert_neurons_close(found["weights"][run], expected["weights"][run], 1e-11)


# -------------------------------------------------------------------------------------------- rules


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
