"""The bias rule (284)-(285) on hand-made weights, and its stage times against the recorded ones."""

from __future__ import annotations

import math

import pytest
import torch
from small_contrastive import small
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.stages import t1_of_000, t2_of_000
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.descent import State, descend
from rarefy.train.optimisers import Sgd

D1, D = 4, 3
AT_T1 = math.sqrt(2 * math.log(D) / D)
GROWTH = 0.3
"""eta/d of the schedules below"""
EXACT = 1e-12


def weights(*neurons: tuple[float, float]) -> Tensor:
    """One run whose neurons have given (inside, outside) lengths; features are unit vectors."""
    rows = [[inside, 0.0, 0.0, outside] for inside, outside in neurons]
    return torch.tensor([rows], dtype=torch.float64)


def schedule(start: Tensor, scale: float = 1.0, until: str = "T2") -> BiasSchedule:
    runs = len(start)
    atoms = torch.eye(D1, dtype=torch.float64)[:, :D].expand(runs, -1, -1)
    one = torch.ones(runs, dtype=torch.float64)
    return BiasSchedule(atoms, start, GROWTH * D * one, scale * one, until)


START = weights((0.1, 1.0), (0.1, 1.0))
BALANCED = weights((1.1, 1.0), (2.0, 1.0))
"""a little over half of the first neuron's squared norm lies inside: T1 is reached"""


def test_the_bias_is_0_until_every_neuron_has_half_of_its_squared_norm_inside() -> None:
    rule = schedule(START)
    rule.after_update(weights((0.9, 1.0), (9.0, 1.0)), step=1)
    assert rule.t1.tolist() == [-1] and not rule.value.any()
    rule.after_update(BALANCED, step=2)
    assert rule.t1.tolist() == [2] and rule.value.all()


def test_at_t1_the_bias_is_sqrt_2_log_d_over_d_times_the_norm() -> None:
    rule = schedule(START)
    rule.after_update(BALANCED, step=1)
    expected = [[AT_T1 * math.sqrt(2.21), AT_T1 * math.sqrt(5)]]
    torch.testing.assert_close(
        rule.value, torch.tensor(expected, dtype=torch.float64), rtol=EXACT, atol=0
    )


def test_t1_is_set_once_even_if_the_weights_leave_the_feature_space_again() -> None:
    rule = schedule(START)
    rule.after_update(BALANCED, step=1)
    rule.after_update(START, step=2)
    rule.after_update(BALANCED, step=3)
    assert rule.t1.tolist() == [1]


def test_after_t1_the_bias_grows_by_the_larger_of_rate_and_norm() -> None:
    rule = schedule(START)
    rule.after_update(BALANCED, step=1)
    before = rule.value.clone()
    # the first neuron grows by 1.5, more than 1 + eta/d; the second shrinks
    moved = BALANCED * torch.tensor([1.5, 0.5], dtype=torch.float64)[None, :, None]
    rule.after_update(moved, step=2)
    ratio = (rule.value / before)[0].tolist()
    assert ratio == pytest.approx([1.5, 1 + GROWTH], rel=EXACT)


def reach_t2(until: str) -> BiasSchedule:
    rule = schedule(START, until=until)
    rule.after_update(BALANCED, step=1)
    rule.after_update(1.7 * BALANCED, step=2)
    assert rule.t2.tolist() == [-1]  # 1.7^2 < d = 3
    rule.after_update(1.8 * BALANCED, step=3)
    assert rule.t2.tolist() == [3]
    return rule


def test_t2_is_the_first_step_at_which_some_squared_norm_is_d_times_that_at_t1() -> None:
    rule = reach_t2("T2")
    rule.after_update(5 * BALANCED, step=4)
    assert rule.t2.tolist() == [3]


def test_one_neuron_is_enough_for_t2() -> None:
    rule = schedule(START)
    rule.after_update(BALANCED, step=1)
    rule.after_update(BALANCED * torch.tensor([1.0, 1.8])[None, :, None], step=2)
    assert rule.t2.tolist() == [2]


@pytest.mark.parametrize(("until", "shrinking"), [("T2", 0.5), ("end", 1 + GROWTH)])
def test_after_t2_only_the_norm_counts_unless_the_rule_runs_to_the_end(
    until: str, shrinking: float
) -> None:
    rule = reach_t2(until)
    before = rule.value.clone()
    rule.after_update(0.9 * BALANCED, step=4)
    assert (rule.value / before)[0].tolist() == pytest.approx([shrinking] * 2, rel=EXACT)
    before = rule.value.clone()
    rule.after_update(1.8 * BALANCED, step=5)  # growing by 2 is the larger term in both
    assert (rule.value / before)[0].tolist() == pytest.approx([2.0] * 2, rel=EXACT)


def test_scale_multiplies_the_bias_at_all_times_and_0_means_none() -> None:
    path = [BALANCED, 1.2 * BALANCED, 2 * BALANCED, 1.5 * BALANCED]
    values = {}
    for scale in (0.0, 1 / math.sqrt(2), 1.0):
        rule = schedule(START, scale)
        seen = []
        for step, moved in enumerate(path, start=1):
            rule.after_update(moved, step)
            seen.append(rule.value)
        values[scale] = torch.stack(seen)
        assert rule.t1.tolist() == [1] and rule.t2.tolist() == [3]
    assert not values[0.0].any()
    torch.testing.assert_close(values[1.0], math.sqrt(2) * values[1 / math.sqrt(2)])


def test_runs_keep_their_own_time() -> None:
    rule = schedule(torch.cat([START, START]))
    rule.after_update(torch.cat([START, BALANCED]), step=1)
    rule.after_update(torch.cat([BALANCED, 2 * BALANCED]), step=2)
    assert rule.t1.tolist() == [2, 1] and rule.t2.tolist() == [-1, 2]
    torch.testing.assert_close(rule.value[0], AT_T1 * BALANCED[0].norm(dim=1))


def test_an_unknown_end_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^bias_until='T3': must be one of T2, end$"):
        schedule(START, until="T3")


@pytest.mark.parametrize("until", ["T2", "end"])
def test_the_rules_times_are_those_read_off_the_recorded_norms(until: str) -> None:
    """A real training: T1 and T2 of the schedule equal ``measure.stages`` on the trajectory."""
    case = small(runs=6, d1=12, neurons=5, eps=(1.0, 1.0, 0.5), sigma=0.05, sigma_0=1e-3)
    atoms = case.data.dictionary
    one, scale = torch.ones(6, dtype=torch.float64), 0.3  # at d = 3 the whole bias silences all
    rule = BiasSchedule(atoms, case.weights, 0.5 * one, scale * one, until)
    problem = type(case.problem)(case.problem.tau, case.problem.factor, rule)

    def after(state: State) -> None:
        rule.after_update(state.parameters["weights"], state.step)

    steps = 60
    trajectory = descend(
        problem,
        case.parameters,
        lambda step: case.data.sample(case.draws, 32, step),
        Sgd(0.5),
        steps,
        trackers={
            "total": lambda s: s.parameters["weights"].square().sum(dim=2),
            "inside": lambda s: (s.parameters["weights"] @ atoms).square().sum(dim=2),
            "bias": lambda s: rule.value,
        },
        record=range(steps + 1),
        after_update=after,
    )
    total, inside = trajectory.records["total"], trajectory.records["inside"]
    t1 = t1_of_000(inside, total)
    assert t1.min() > 1 and torch.equal(t1, rule.t1)
    t2 = t2_of_000(total, t1, 3)
    assert t2.min() > 0 and torch.equal(t2, rule.t2)
    # no bias before T1, and from then on never below its share of the norm
    share = trajectory.records["bias"] / total.sqrt()
    time = torch.arange(steps + 1)[None, :]
    assert not share[time < t1[:, None]].any()
    assert (share[time >= t1[:, None]] > scale * AT_T1 * (1 - EXACT)).all()
