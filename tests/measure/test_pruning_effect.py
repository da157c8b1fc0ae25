"""What pruning does at one moment: against plain loops and against steps actually taken."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from small_contrastive import (
    Small,
    naive_brelu,
    naive_formula_5,
    naive_mixed_tokens,
    population_gradient,
    random_attention,
    small,
)
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.measure.alignment import projections
from rarefy.measure.pruning_effect import (
    NETWORKS,
    PruningEffect,
    mean_where,
    share_within,
    strongest_feature,
)
from rarefy.pruning.update_rules import rule_codes
from rarefy.train.contrastive import FixedMask
from rarefy.train.descent import descend
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd

EXACT = 1e-12
RUNS, NEURONS, SAMPLES, BATCHES = 2, 4, 7, 3
KEPT = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 0]], dtype=torch.bool)
RARE = (1, 2)
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias, times tau": {"bias": 0.2, "tau": 0.6, "factor": 0.6},
    "other attention": {"attention": random_attention(6), "tau": 1.7, "spread": "subset"},
}


def case_of(setting: str, **options: Any) -> Small:
    return small(
        **{"name": "effect", "runs": RUNS, "neurons": NEURONS}, **SETTINGS[setting], **options
    )


def effect_of(
    case: Small,
    kept: Tensor = KEPT,
    rare: Sequence[int] = RARE,
    samples: int = SAMPLES,
    batches: int = BATCHES,
    context: Context | None = None,
) -> PruningEffect:
    return PruningEffect(
        case.problem,
        case.parameters,
        kept,
        case.data,
        case.draws,
        torch.tensor(rare),
        samples,
        batches,
        context,
    )


def close(found: Tensor, expected: Any, tolerance: float = EXACT) -> None:
    expected = torch.as_tensor(expected, dtype=torch.float64)
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


PAIRED = 1e-10
LR = 0.4
every_setting = pytest.mark.parametrize("setting", SETTINGS)


@dataclass
class Sample:
    """One sample of one run, in plain numbers."""

    contains: bool
    positive: dict[str, float]


def plain_samples(case: Small, run: int, kept: Tensor, rare: Sequence[int]) -> list[Sample]:
    found = []
    tau, bias = float(case.problem.tau[run]), case.problem.bias.value[run]
    mask = {"dense": [True] * NEURONS, "masked": kept[run].tolist()}

    def embedded(tokens: Tensor) -> list[float]:
        mixed = naive_mixed_tokens(tokens, case.problem.attention, run)
        return [
            sum(naive_brelu(float(w @ z), float(b)) for z in mixed)
            for w, b in zip(case.weights[run], bias, strict=True)
        ]

    for index in range(BATCHES):
        batch = case.data.sample(case.draws, SAMPLES, index)
        f_x, f_y = ([embedded(tokens) for tokens in view[run]] for view in (batch.x, batch.y))
        for k in range(SAMPLES):
            positive = {}
            for name, takes_part in mask.items():
                exponentials = [
                    math.exp(
                        sum(a * b for a, b, t in zip(f_x[k], y, takes_part, strict=True) if t) / tau
                    )
                    for y in f_y
                ]
                positive[name] = exponentials[k] / sum(exponentials)
            latents = batch.latents[run, 0, k]
            contains = any(float(latents[t, j]) != 0 for t in range(len(latents)) for j in rare)
            found.append(Sample(contains, positive))
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


# -------------------------------------------------------------------------------------- plain loops


@every_setting
def test_logits_and_their_split_are_those_of_plain_loops(setting: str) -> None:
    case = case_of(setting)
    effect = effect_of(case)
    for run in range(RUNS):
        samples = plain_samples(case, run, KEPT, RARE)
        kinds = [[s for s in samples if s.contains], [s for s in samples if not s.contains]]
        assert all(kinds)
        assert effect.contains[run].tolist() == [s.contains for s in samples]
        close(
            effect.positive_logits()[run],
            [[mean([s.positive[n] for s in kind]) for n in NETWORKS] for kind in kinds],
        )


@every_setting
def test_extra_growth_is_that_of_formula_5_in_loops(setting: str) -> None:
    case = case_of(setting)
    found = effect_of(case).extra_growth(LR, torch.ones(RUNS, NEURONS, 3, dtype=torch.bool))
    for run in range(RUNS):
        tau, factor = float(case.problem.tau[run]), float(case.problem.factor[run])
        atoms = case.data.dictionary[run]
        extra = torch.zeros_like(case.weights[run])
        for index in range(BATCHES):
            batch = case.data.sample(case.draws, SAMPLES, index)
            pruned, whole = (
                naive_formula_5(
                    case.weights[run],
                    case.problem.bias.value[run],
                    batch.x[run],
                    batch.y[run],
                    tau,
                    kept,
                    case.problem.attention,
                    run,
                )
                for kept in (KEPT[run].tolist(), [True] * NEURONS)
            )
            extra -= LR * factor / tau * (pruned - whole) / BATCHES
        along, added = case.weights[run] @ atoms, extra @ atoms
        close(found[run], (along * added).sum(0) / (along * along).sum(0), PAIRED)


# ------------------------------------------------------------------------------- steps really taken


def stepped(case: Small, kept: Tensor | None, index: int) -> Tensor:
    """The weights after one update, with weight decay, on batch number ``index``."""
    return descend(
        replace(case.problem, pruning=None if kept is None else FixedMask(kept)),
        case.parameters,
        lambda step: case.data.sample(case.draws, SAMPLES, index),
        Sgd(LR, weight_decay=0.05),
        1,
    ).parameters["weights"]


@every_setting
def test_extra_growth_is_what_a_pruned_step_does_beyond_an_unpruned_one(setting: str) -> None:
    case = case_of(setting)
    atoms = case.data.dictionary
    apart = sum(
        (stepped(case, KEPT, index) - stepped(case, None, index) for index in range(BATCHES)),
        start=torch.zeros_like(case.weights),
    )
    added, along = projections(apart / BATCHES, atoms), projections(case.weights, atoms)
    effect = effect_of(case)
    # one neuron at a time: the ratio itself
    for neuron in range(NEURONS):
        member = torch.zeros(RUNS, NEURONS, 3, dtype=torch.bool)
        member[:, neuron] = True
        found = effect.extra_growth(LR, member)
        close(found * along[:, neuron], added[:, neuron], PAIRED)
    # a set of neurons that differs from feature to feature: least squares over it
    member = torch.tensor([[1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]]).bool().expand(RUNS, -1, -1)
    expected = (along * added * member).sum(1) / (along * along * member).sum(1)
    close(effect.extra_growth(LR, member), expected, PAIRED)


@every_setting
def test_extra_growth_is_the_difference_of_two_population_gradients(setting: str) -> None:
    case = case_of(setting)
    atoms = case.data.dictionary
    pruned, whole = (
        population_gradient(
            replace(case.problem, pruning=kept),
            case.parameters,
            case.data,
            case.draws,
            SAMPLES,
            BATCHES,
        )[0]
        for kept in (FixedMask(KEPT), None)
    )
    w_pruned, w_dense = case.weights - LR * pruned, case.weights - LR * whole
    along, added = projections(case.weights, atoms), projections(w_pruned - w_dense, atoms)
    everyone = torch.ones(RUNS, NEURONS, 3, dtype=torch.bool)
    expected = (along * added).sum(1) / along.square().sum(1)
    assert (expected.abs() > 1e-4).any()
    close(effect_of(case).extra_growth(LR, everyone), expected, PAIRED)


def test_an_empty_set_has_no_growth() -> None:
    member = torch.ones(RUNS, NEURONS, 3, dtype=torch.bool)
    member[0, :, 1] = False
    found = effect_of(case_of("plain")).extra_growth(LR, member)
    assert found.isnan().tolist() == [[False, True, False], [False, False, False]]


# ---------------------------------------------------------------------------------- when nothing is


@every_setting
def test_with_every_neuron_kept_masked_is_dense(setting: str) -> None:
    everyone = torch.ones_like(KEPT)
    effect = effect_of(case_of(setting), kept=everyone)
    logits = effect.positive_logits()
    assert torch.equal(logits[:, :, 0], logits[:, :, 1])
    growth = effect.extra_growth(LR, torch.ones(RUNS, NEURONS, 3, dtype=torch.bool))
    assert (growth == 0).all()


def test_without_a_sample_of_one_kind_its_means_do_not_exist() -> None:
    case = case_of("plain", eps=(1.0, 0.5, 1e-6))
    effect = effect_of(case, rare=(2,))
    assert not effect.contains.any()
    values = effect.positive_logits()
    assert values[:, 0].isnan().all() and values[:, 1].isfinite().all()
    # eps = 1 and activation 1: a feature that every sample contains
    always = effect_of(small(runs=RUNS, activation=1.0), rare=(0,))
    assert always.positive_logits()[:, 1].isnan().all()


def test_nothing_is_changed_and_the_pruning_in_force_does_not_matter() -> None:
    case = case_of("plain")
    before = case.weights.clone()
    plain = effect_of(case)
    share = torch.full((RUNS,), 0.5)
    pruning = NeuronPruning(
        share, torch.zeros(RUNS, dtype=torch.int64), rule_codes(["project"] * RUNS), NEURONS
    )
    pruning.before(0, case.parameters)
    kept = pruning.kept.clone()
    again = effect_of(replace(case, problem=replace(case.problem, pruning=pruning)))
    assert torch.equal(case.weights, before) and torch.equal(pruning.kept, kept)
    assert torch.equal(again.positive_logits(), plain.positive_logits())
    member = torch.ones(RUNS, NEURONS, 3, dtype=torch.bool)
    assert torch.equal(again.extra_growth(LR, member), plain.extra_growth(LR, member))


def test_a_run_gives_the_same_alone() -> None:
    together = effect_of(case_of("plain"))
    for run in range(RUNS):
        alone = effect_of(
            small(name="effect", runs=1, first=run, neurons=NEURONS), KEPT[run : run + 1]
        )
        close(alone.positive_logits()[0], together.positive_logits()[run])
        member = torch.ones(RUNS, NEURONS, 3, dtype=torch.bool)
        close(alone.extra_growth(LR, member[:1])[0], together.extra_growth(LR, member)[run])


def test_each_batch_counts_as_a_run_step_and_time_can_run_out() -> None:
    done: list[float] = []
    effect_of(case_of("plain"), context=Context(advance=done.append))
    assert done == [RUNS] * BATCHES
    with pytest.raises(OutOfTime):
        effect_of(case_of("plain"), context=Context(deadline=time.monotonic() - 1))


# ---------------------------------------------------------------------------------- small functions


def test_share_within() -> None:
    chosen = torch.tensor([[1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    member = torch.tensor([[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1]]).bool()
    found = share_within(chosen, member)
    assert found[[0, 2]].tolist() == pytest.approx([1 / 3, 3 / 4], rel=1e-6)
    assert found[1].isnan()


def test_strongest_feature_by_size_whatever_the_sign() -> None:
    atoms = torch.eye(4, dtype=torch.float64)[:, :3].expand(2, -1, -1)
    weights = torch.tensor(
        [
            [[0.1, -0.9, 0.5, 9.0], [0.0, 0.2, 0.3, 0.0]],
            [[-2.0, 1.0, 1.0, 0.0], [0.0, 0.0, -1.0, 5.0]],
        ],
        dtype=torch.float64,
    )
    assert strongest_feature(weights, atoms).tolist() == [[1, 2], [0, 2]]


def test_mean_where_leaves_out_what_is_not_chosen_even_if_it_is_nan() -> None:
    values = torch.tensor([[1.0, torch.nan, 5.0], [torch.inf, 2.0, 3.0]], dtype=torch.float64)
    chosen = torch.tensor([[True, False, True], [False, False, False]])
    found = mean_where(values, chosen)
    assert found[0] == 3 and found[1].isnan()
    assert found.dtype == torch.float64
