"""What pruning does at one moment: against plain loops and against steps actually taken."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from sklearn.metrics import roc_auc_score
from small_contrastive import (
    Small,
    naive_brelu,
    naive_formula_5,
    naive_mixed_tokens,
    population_gradient,
    small,
)
from small_pruned import (
    BATCHES,
    KEPT,
    NEURONS,
    RARE,
    RUNS,
    SAMPLES,
    SETTINGS,
    case_of,
    close,
    effect_of,
)
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.measure.alignment import projections
from rarefy.measure.pruning_effect import NETWORKS, random_mask
from rarefy.pruning.update_rules import rule_codes
from rarefy.theory.contrastive_pruning import logit_change
from rarefy.train.contrastive import FixedMask
from rarefy.train.descent import descend
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd

PAIRED = 1e-10
LR = 0.4
every_setting = pytest.mark.parametrize("setting", SETTINGS)


@dataclass
class Sample:
    """One sample of one run, in plain numbers; ``carried`` by the pruned neurons, in the positive
    similarity and on average over all with the softmax's weights."""

    contains: bool
    positive: dict[str, float]
    negative: dict[str, list[float]]
    carried: float
    on_average: float
    lost: float
    size: float


def plain_samples(case: Small, run: int, kept: Tensor, rare: Sequence[int]) -> list[Sample]:
    found = []
    tau, bias = float(case.problem.tau[run]), case.problem.bias.value[run]
    control = random_mask(kept, case.draws)
    mask = {
        "dense": [True] * NEURONS,
        "masked": kept[run].tolist(),
        "random": control[run].tolist(),
    }

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
            out = [i for i in range(NEURONS) if not mask["masked"][i]]
            carried = [sum(f_x[k][i] * y[i] for i in out) for y in f_y]
            positive, negative = {}, {}
            for name, takes_part in mask.items():
                exponentials = [
                    math.exp(
                        sum(a * b for a, b, t in zip(f_x[k], y, takes_part, strict=True) if t) / tau
                    )
                    for y in f_y
                ]
                softmax = [value / sum(exponentials) for value in exponentials]
                if name == "dense":
                    average = sum(a * b for a, b in zip(softmax, carried, strict=True))
                positive[name] = softmax.pop(k)
                negative[name] = softmax
            squares = [value * value for value in f_x[k]]
            latents = batch.latents[run, 0, k]
            found.append(
                Sample(
                    any(float(latents[t, j]) != 0 for t in range(len(latents)) for j in rare),
                    positive,
                    negative,
                    carried[k],
                    average,
                    sum(squares[i] for i in out) / sum(squares),
                    sum(squares),
                )
            )
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


# -------------------------------------------------------------------------------------- plain loops


@every_setting
def test_logits_their_split_and_the_scores_are_those_of_plain_loops(setting: str) -> None:
    case = case_of(setting)
    effect = effect_of(case)
    tau = float(case.problem.tau[0])
    for run in range(RUNS):
        samples = plain_samples(case, run, KEPT, RARE)
        kinds = [[s for s in samples if s.contains], [s for s in samples if not s.contains]]
        assert all(kinds)
        assert effect.contains[run].tolist() == [s.contains for s in samples]
        close(
            effect.positive_logits()[run],
            [[mean([s.positive[n] for s in kind]) for n in NETWORKS] for kind in kinds],
        )
        close(
            effect.negative_logits()[run],
            [[mean([mean(s.negative[n]) for s in kind]) for n in NETWORKS] for kind in kinds],
        )
        # (211): l'_p times what it loses more than all on average
        fall = [
            mean([s.positive["dense"] * (s.carried - s.on_average) / tau for s in kind])
            for kind in kinds
        ]
        close(effect.first_order_fall()[run], fall)
        # (213): without its negative part
        simple = [
            mean([-logit_change(s.positive["dense"], s.carried, tau) for s in kind])
            for kind in kinds
        ]
        close(effect.fall_without_negatives()[run], simple)
        labels = [s.contains for s in samples]
        scores = (
            [s.lost for s in samples],
            [s.positive["dense"] - s.positive["masked"] for s in samples],
            [s.positive["dense"] - s.positive["random"] for s in samples],
            [s.size for s in samples],
        )
        close(effect.auroc_scores()[run], [roc_auc_score(labels, score) for score in scores], 1e-9)


@every_setting
def test_negative_logits_are_what_the_positive_one_leaves(setting: str) -> None:
    effect = effect_of(case_of(setting))
    close((SAMPLES - 1) * effect.negative_logits(), 1 - effect.positive_logits())


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
    for logits in (effect.positive_logits(), effect.negative_logits()):
        for network in (1, 2):
            assert torch.equal(logits[:, :, 0], logits[:, :, network])
    growth = effect.extra_growth(LR, torch.ones(RUNS, NEURONS, 3, dtype=torch.bool))
    assert (growth == 0).all()
    assert (effect.first_order_fall() == 0).all()
    assert (effect.fall_without_negatives() == 0).all()
    assert (effect.auroc_scores()[:, :3] == 0.5).all()


def test_without_a_sample_of_one_kind_its_means_do_not_exist() -> None:
    case = case_of("plain", eps=(1.0, 0.5, 1e-6))
    effect = effect_of(case, rare=(2,))
    assert not effect.contains.any()
    for values in (effect.positive_logits(), effect.negative_logits()):
        assert values[:, 0].isnan().all() and values[:, 1].isfinite().all()
    for fall in (effect.first_order_fall(), effect.fall_without_negatives()):
        assert fall.isnan().tolist() == [[True, False]] * RUNS
    assert effect.auroc_scores().isnan().all()
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
        close(alone.auroc_scores()[0], together.auroc_scores()[run])
        close(alone.first_order_fall()[0], together.first_order_fall()[run])
        member = torch.ones(RUNS, NEURONS, 3, dtype=torch.bool)
        close(alone.extra_growth(LR, member[:1])[0], together.extra_growth(LR, member)[run])


def test_each_batch_counts_as_a_run_step_and_time_can_run_out() -> None:
    done: list[float] = []
    effect_of(case_of("plain"), context=Context(advance=done.append))
    assert done == [RUNS] * BATCHES
    with pytest.raises(OutOfTime):
        effect_of(case_of("plain"), context=Context(deadline=time.monotonic() - 1))
