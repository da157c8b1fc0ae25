"""Which neurons are left out at which step, and that every run of a batch keeps its own way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from small_contrastive import Small, small
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.pruning.masks import keep_largest, neuron_norms
from rarefy.pruning.update_rules import UPDATE_RULES, rule_codes
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.descent import State, Trajectory, descend
from rarefy.train.neuron_pruning import NEVER, NeuronPruning, check_alpha
from rarefy.train.optimisers import Sgd

NEURONS, STEPS = 6, 9
ALONE = 1e-10
"""a run alone against the same run in a batch, float64, relative to its largest weight"""


def pruned(
    case: Small, alpha: list[float], start: list[int], rules: list[str]
) -> tuple[Small, NeuronPruning]:
    neurons = case.weights.shape[1]
    share = torch.tensor(alpha, dtype=case.weights.dtype)
    pruning = NeuronPruning(share, torch.tensor(start), rule_codes(rules), neurons)
    return replace(case, problem=replace(case.problem, pruning=pruning)), pruning


@dataclass
class Seen:
    """What one descent did: the mask of every step, and all weights from the first to the last."""

    masks: Tensor  # (run, step, m)
    weights: Tensor  # (run, step + 1, m, d1)
    trajectory: Trajectory


def train(case: Small, steps: int = STEPS, moving_bias: bool = True) -> Seen:
    pruning, masks = case.problem.pruning, []

    def after_update(state: State) -> None:
        if pruning is not None:
            masks.append(pruning.kept.clone())
        if moving_bias:
            case.problem.bias(state)

    trajectory = descend(
        case.problem,
        case.parameters,
        lambda step: case.data.sample(case.draws, 8, step),
        Sgd(0.3, weight_decay=0.01),
        steps,
        trackers={"weights": lambda state: state.parameters["weights"]},
        record=range(steps + 1),
        after_update=after_update,
        pruning=pruning,
    )
    seen = torch.stack(masks, dim=1) if masks else torch.empty(0)
    return Seen(seen, trajectory.records["weights"], trajectory)


# ------------------------------------------------------------------------------------- when it acts


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_before_its_start_a_run_is_not_pruned_and_from_then_on_it_is(rule: str) -> None:
    start = [0, 1, 4, STEPS, NEVER]
    case, _ = pruned(small(runs=5, neurons=NEURONS), [0.5] * 5, start, [rule] * 5)
    found, plain = train(case), train(small(runs=5, neurons=NEURONS))
    for run, first in enumerate(start):
        first = STEPS if first == NEVER else first
        assert found.masks[run, :first].all()
        assert found.masks[run, first:].sum(dim=1).tolist() == [3] * (STEPS - first)
        # up to the state in which the first pruned step begins, a run is the one never pruned
        assert torch.equal(found.weights[run, : first + 1], plain.weights[run, : first + 1])
        for later in range(first + 1, STEPS + 1):
            assert not torch.equal(found.weights[run, later], plain.weights[run, later])


def test_a_start_may_be_written_as_a_float() -> None:
    """Grid axes are columns of floats."""
    case, pruning = pruned(small(runs=2), [0.5, 0.5], [2, NEVER], ["dense"] * 2)
    pruning.start = pruning.start.to(torch.float64)
    masks = train(case, 4).masks
    assert masks.sum(dim=2).tolist() == [[4, 4, 2, 2], [4, 4, 4, 4]]


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_a_share_that_leaves_no_neuron_out_gives_exactly_the_unpruned_run(rule: str) -> None:
    """alpha = 0, and with four neurons also 0.12, which rounds to none."""
    plain = train(small(runs=2))
    for alpha in (0.0, 0.12):
        case, _ = pruned(small(runs=2), [alpha] * 2, [0, 0], [rule] * 2)
        found = train(case)
        assert found.masks.all() and torch.equal(found.weights, plain.weights)
    # beside a run that is pruned, too
    case, _ = pruned(small(runs=2), [0.0, 0.5], [0, 0], [rule] * 2)
    found = train(case)
    assert found.masks[0].all() and torch.equal(found.weights[0], plain.weights[0])
    assert not torch.equal(found.weights[1], plain.weights[1])


# ---------------------------------------------------------------------------------------- the masks


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_every_step_keeps_the_largest_neurons_of_the_weights_it_begins_with(rule: str) -> None:
    alpha = [0.17, 0.5, 0.83]
    case, _ = pruned(small(runs=3, neurons=NEURONS), alpha, [0] * 3, [rule] * 3)
    found = train(case)
    for step in range(STEPS):
        expected = keep_largest(neuron_norms(found.weights[:, step]), torch.tensor([5, 3, 1]))
        assert torch.equal(found.masks[:, step], expected)


@dataclass(frozen=True)
class Pulled:
    """Every neuron is moved by one unit along its own constant direction, whoever is kept."""

    direction: Tensor

    def loss(self, parameters: dict[str, Tensor], batch: Any) -> Tensor:
        return torch.zeros(len(parameters["weights"]), dtype=torch.float64)

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.loss(parameters, batch), {"weights": -self.direction}


def test_a_neuron_that_is_left_out_comes_back_when_it_has_grown() -> None:
    """Norms 5 and 2 at first; each step adds 1 to the second neuron, which wins at step 4."""
    weights = torch.tensor([[[5.0, 0.0], [0.0, 2.0]]] * 3, dtype=torch.float64)
    direction = torch.tensor([[[0.0, 0.0], [0.0, 1.0]]] * 3, dtype=torch.float64)
    pruning = NeuronPruning(
        torch.full((3,), 0.5), torch.zeros(3, dtype=torch.int64), rule_codes(UPDATE_RULES), 2
    )
    masks: list[Tensor] = []
    found = descend(
        Pulled(direction),
        {"weights": weights},
        lambda step: None,
        Sgd(1.0),
        6,
        after_update=lambda state: masks.append(pruning.kept),
        pruning=pruning,
    ).parameters["weights"]
    kept_first = torch.stack(masks, dim=1)[:, :, 0].tolist()
    # dense: 2, 3, 4, 5 (equal: the first stays), 6, 7; masked: 2 always; project: 0, then 1 always
    assert kept_first == [[True] * 4 + [False] * 2, [True] * 6, [True] * 6]
    assert found[:, 1, 1].tolist() == [8.0, 2.0, 1.0]
    assert found[:, 0, 0].tolist() == [5.0, 5.0, 5.0]


def test_the_mask_asked_for_is_that_of_the_given_weights_whatever_the_start() -> None:
    pruning = NeuronPruning(
        torch.tensor([0.5, 0.25]), torch.tensor([NEVER, 7]), rule_codes(["dense"] * 2), 4
    )
    weights = torch.tensor([4.0, 1.0, 3.0, 2.0])[None, :, None].expand(2, -1, 3)
    expected = [[True, False, True, False], [True, False, True, True]]
    assert pruning.mask(weights).tolist() == expected
    assert pruning.kept.all()  # asking changes nothing


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_other_parameters_are_left_alone(rule: str) -> None:
    pruning = NeuronPruning(torch.tensor([0.5]), torch.tensor([0]), rule_codes([rule]), 2)
    weights, other = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[3.0, 4.0]])
    given = {"weights": weights, "query": other}
    here = pruning.before(0, given)
    assert torch.equal(here["query"], other) and given["weights"] is weights
    moved = {"weights": 10 * here["weights"], "query": -other}
    after = pruning.after(here, moved)
    assert torch.equal(after["query"], -other)
    expected = {"dense": [10.0, 20.0], "masked": [1.0, 20.0], "project": [0.0, 20.0]}[rule]
    assert after["weights"].flatten().tolist() == expected


# ---------------------------------------------------------------------------------- runs in company


@pytest.mark.parametrize("automatic", [False, True])
def test_mixed_shares_starts_and_rules_are_each_run_alone(automatic: bool) -> None:
    alpha = [0.0, 0.2, 0.5, 0.5, 0.7, 0.9, 0.5]
    start = [0, 2, 0, 3, NEVER, 1, 4]
    rules = ["dense", "masked", "project", "dense", "masked", "dense", "project"]
    options: dict[str, Any] = {"neurons": NEURONS, "tau": 0.8, "sigma_0": 0.3}
    batch, _ = pruned(small(runs=7, **options), alpha, start, rules)
    together = _descend(batch, automatic)
    for run in range(7):
        one = slice(run, run + 1)
        case, _ = pruned(small(runs=1, first=run, **options), alpha[one], start[one], rules[one])
        alone = _descend(case, automatic)
        bound = ALONE * float(alone.abs().max())
        torch.testing.assert_close(together[one], alone, rtol=0, atol=bound)


def _descend(case: Small, automatic: bool) -> Tensor:
    return descend(
        case.problem,
        case.parameters,
        lambda step: case.data.sample(case.draws, 8, step),
        Sgd(0.3, weight_decay=0.01),
        STEPS,
        trackers={"weights": lambda state: state.parameters["weights"]},
        record=range(STEPS + 1),
        after_update=case.problem.bias,
        pruning=case.problem.pruning,
        automatic=automatic,
    ).records["weights"]


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("alpha", [-0.25, 1.0, 1.5, math.nan, math.inf])
def test_a_share_outside_0_to_1_is_refused_wherever_it_stands(alpha: float) -> None:
    message = rf"^alpha={alpha}: the share of neurons left out must be in \[0, 1\)$"
    with pytest.raises(UsageError, match=message):
        check_alpha(alpha)
    with pytest.raises(UsageError, match=message):
        NeuronPruning(torch.tensor([0.5, alpha]), torch.zeros(2), rule_codes(["dense", "dense"]), 4)


def test_the_ends_of_the_range_are_as_said() -> None:
    check_alpha(0.0)
    check_alpha(0.999)
    check_alpha(0.0, 4)  # no pruning asked for


@pytest.mark.parametrize(("alpha", "neurons"), [(0.01, 36), (0.012, 36), (1e-9, 4), (0.1, 4)])
def test_a_share_that_leaves_out_none_of_the_neurons_is_refused(alpha: float, neurons: int) -> None:
    count = NeuronPruning(torch.tensor([alpha]), torch.zeros(1), rule_codes(["dense"]), neurons)
    assert int(count.count) == neurons
    message = f"^alpha={alpha:g}: leaves out none of the {neurons} neurons; must be more$"
    with pytest.raises(UsageError, match=message):
        check_alpha(alpha, neurons)
    check_alpha(alpha)  # of how many is not said


def test_a_share_that_leaves_one_out_is_accepted() -> None:
    for neurons in (4, 24, 36, 49, 98, 1024):
        for pruned in (0.5, 0.6, 1.0):  # a half is rounded up, as when it is pruned
            alpha = torch.tensor([pruned / neurons], dtype=torch.float64)
            rule = NeuronPruning(alpha, torch.zeros(1), rule_codes(["dense"]), neurons)
            assert int(rule.count) == neurons - 1
            check_alpha(float(alpha), neurons)


# ------------------------------------------------------------------------------- with the bias rule


def test_a_neuron_that_project_has_zeroed_does_not_end_the_second_stage() -> None:
    """(61) asks for a neuron that has grown; one that is zero has not."""
    case, _ = pruned(small(runs=1, neurons=NEURONS, sigma_0=0.05), [0.5], [0], ["project"])
    found = train(case, 60)
    t1, t2 = int(case.problem.bias.t1), int(case.problem.bias.t2)
    assert t1 >= 0
    norms = neuron_norms(found.weights[0])
    alive = norms[t1] > 0
    grown = (norms[:, alive].square() >= 3 * norms[t1, alive].square()).any(dim=1)
    grown[: t1 + 1] = False
    assert t2 == (int(torch.nonzero(grown)[0]) if grown.any() else -1)


def test_the_bias_does_not_wait_for_neurons_that_are_never_updated() -> None:
    """Under ``masked`` the smallest neurons keep their random weights, outside the feature space:
    T1 (34) is then that of the others."""
    case, rule = pruned(small(neurons=4), [0.5] * 2, [0] * 2, ["masked"] * 2)
    outside = torch.linalg.qr(case.data.dictionary, mode="complete").Q[:, :, -1]
    weights = case.data.dictionary.transpose(1, 2)[:, [0, 1, 2, 2]].clone()
    weights[:, 2:] = 0.1 * outside[:, None]
    rule.before(0, {"weights": weights})
    one = torch.ones(2, dtype=weights.dtype)
    bias = BiasSchedule(case.data.dictionary, weights, one, one)
    bias.after_update(weights, 1)
    assert (bias.t1 == -1).all()
    bias.after_update(weights, 2, rule.trained)
    assert (bias.t1 == 2).all()
    rule.rule = rule_codes(["dense"] * 2)
    assert rule.trained.all()
