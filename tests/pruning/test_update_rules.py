"""What becomes of the weights that a mask leaves out, rule by rule and rules mixed in one batch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.pruning.update_rules import (
    UPDATE_RULES,
    after_step,
    before_step,
    check_rule,
    rule_codes,
)

RUNS, NEURONS, WIDTH = 3, 4, 5
generator = torch.Generator().manual_seed(0)
BEFORE = torch.randn(RUNS, NEURONS, WIDTH, generator=generator, dtype=torch.float64)
MOVED = torch.randn(RUNS, NEURONS, WIDTH, generator=generator, dtype=torch.float64)
KEPT = torch.tensor(
    [[True, False, True, False], [False, False, True, True], [True, True, True, False]]
)


def all_follow(rule: str) -> Tensor:
    return rule_codes([rule] * RUNS)


# ---------------------------------------------------------------------------------------- the names


def test_a_code_is_the_position_of_the_rule() -> None:
    assert UPDATE_RULES == ("dense", "masked", "project")
    assert rule_codes(["project", "dense", "masked", "dense"]).tolist() == [2, 0, 1, 0]
    for rule in UPDATE_RULES:
        check_rule(rule)


@pytest.mark.parametrize("rule", ["Dense", "", "frozen"])
def test_an_unknown_rule_is_named_with_those_that_are_known(rule: str) -> None:
    message = f"^update='{rule}': must be one of dense, masked, project$"
    with pytest.raises(UsageError, match=message):
        check_rule(rule)
    with pytest.raises(UsageError, match=message):
        rule_codes(["dense", rule])


# ------------------------------------------------------------------------------------- rule by rule


def test_dense_changes_nothing_before_or_after() -> None:
    assert torch.equal(before_step(BEFORE, KEPT, all_follow("dense")), BEFORE)
    assert torch.equal(after_step(BEFORE, MOVED, KEPT, all_follow("dense")), MOVED)


def test_masked_begins_with_all_weights_and_takes_back_the_move_of_what_is_left_out() -> None:
    assert torch.equal(before_step(BEFORE, KEPT, all_follow("masked")), BEFORE)
    found = after_step(BEFORE, MOVED, KEPT, all_follow("masked"))
    assert torch.equal(found[KEPT], MOVED[KEPT])
    assert torch.equal(found[~KEPT], BEFORE[~KEPT])


def test_what_masked_leaves_out_is_not_even_decayed() -> None:
    decayed = 0.9 * BEFORE  # what weight decay alone would do
    found = after_step(BEFORE, decayed, KEPT, all_follow("masked"))
    assert torch.equal(found[~KEPT], BEFORE[~KEPT]) and torch.equal(found[KEPT], decayed[KEPT])


def test_project_begins_with_zeros_and_lets_every_weight_move() -> None:
    found = before_step(BEFORE, KEPT, all_follow("project"))
    assert torch.equal(found[KEPT], BEFORE[KEPT]) and not found[~KEPT].any()
    assert torch.equal(after_step(found, MOVED, KEPT, all_follow("project")), MOVED)


def test_project_also_clears_what_is_not_finite() -> None:
    """A product with the mask would leave NaN; the rule writes zeros."""
    broken = BEFORE.clone()
    broken[~KEPT] = float("nan")
    found = before_step(broken, KEPT, all_follow("project"))
    assert torch.equal(found[KEPT], BEFORE[KEPT]) and not found[~KEPT].any()


# ---------------------------------------------------------------------------------------- any batch


@given(
    rules=st.lists(st.sampled_from(UPDATE_RULES), min_size=1, max_size=6),
    width=st.sampled_from([(), (3,), (2, 3)]),
    seed=st.integers(0, 1000),
)
def test_mixed_rules_in_one_batch_are_each_runs_own_rule(
    rules: list[str], width: tuple[int, ...], seed: int
) -> None:
    """Masks may cover single weights, neurons, or anything that leads the weights' dimensions."""
    runs, source = len(rules), torch.Generator().manual_seed(seed)
    before, moved = torch.randn(2, runs, NEURONS, *width, generator=source)
    kept = torch.rand(runs, NEURONS, generator=source) < 0.5
    start = before_step(before, kept, rule_codes(rules))
    end = after_step(start, moved, kept, rule_codes(rules))
    assert start.shape == end.shape == before.shape and start.dtype == before.dtype
    for run, rule in enumerate(rules):
        for neuron in range(NEURONS):
            here = bool(kept[run, neuron])
            starts = torch.zeros_like(before[run, neuron])
            if here or rule != "project":
                starts = before[run, neuron]
            ends = starts if rule == "masked" and not here else moved[run, neuron]
            assert torch.equal(start[run, neuron], starts)
            assert torch.equal(end[run, neuron], ends)


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_where_all_is_kept_no_rule_does_anything(rule: str) -> None:
    everything = torch.ones_like(KEPT)
    assert torch.equal(before_step(BEFORE, everything, all_follow(rule)), BEFORE)
    assert torch.equal(after_step(BEFORE, MOVED, everything, all_follow(rule)), MOVED)


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_the_given_weights_are_left_as_they_were(rule: str) -> None:
    before, moved = BEFORE.clone(), MOVED.clone()
    after_step(before_step(before, KEPT, all_follow(rule)), moved, KEPT, all_follow(rule))
    assert torch.equal(before, BEFORE) and torch.equal(moved, MOVED)
