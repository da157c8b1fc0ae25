"""The fall of a logit to first order, the scores that tell rare features, and small functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from small_contrastive import Small, small
from small_pruned import KEPT, RUNS, case_of, close, effect_of
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import Pairs
from rarefy.measure.pruning_effect import (
    PruningEffect,
    mean_where,
    random_mask,
    share_within,
    strongest_feature,
)

# ------------------------------------------------------------------- neurons that carry one feature


@dataclass(frozen=True)
class Given:
    """The same batch always."""

    dictionary: Tensor
    batch: Pairs

    def sample(self, draws: Draws, samples: int, index: int) -> Pairs:
        return self.batch


def specialised(pruned_weight: float, runs: int = 1, **options: Any) -> Small:
    """One neuron a feature and no noise; the last, of the last feature, is small."""
    case = small(
        **{"name": "pure", "runs": runs, "neurons": 3, "sigma": 0.0, "spread": "all"} | options
    )
    size = torch.tensor([0.6, 0.5, pruned_weight], dtype=torch.float64)
    return replace(case, weights=size[:, None] * case.data.dictionary.transpose(1, 2))


ALL_BUT_LAST = torch.tensor([[True, True, False]])


HALVED = (0.08, 0.04, 0.02, 0.01)


def fall_and_prediction(pruned_weight: float) -> tuple[float, float]:
    """On a batch whose first sample alone has the pruned neuron's feature: then no negative
    similarity changes and the negative part of (211) is 0 exactly."""
    case = specialised(pruned_weight)
    latent = torch.tensor(
        [[1, -1, 1], [1, 0, 0], [0, 1, 0], [-1, 1, 0], [0, 0, 0]], dtype=torch.float64
    )
    latents = latent[None, None, :, None, :].expand(1, 2, -1, 2, -1)
    batch = Pairs(latents @ case.data.dictionary[0].T, latents)
    effect = effect_of(
        replace(case, data=Given(case.data.dictionary, batch)),  # type: ignore[arg-type]
        ALL_BUT_LAST,
        (2,),
        5,
        1,
    )
    with_rare, without = effect.positive_logits()[0].tolist()
    # a sample without the feature notices nothing
    assert with_rare[0] > with_rare[1]
    assert without[0] == pytest.approx(without[1], abs=1e-14)
    fall = effect.first_order_fall()[0].tolist()
    assert fall[1] == pytest.approx(0, abs=1e-14)
    assert effect.fall_without_negatives()[0].tolist() == pytest.approx(fall, abs=1e-14)
    return with_rare[0] - with_rare[1], fall[0]


def test_the_first_order_fall_is_right_to_first_order() -> None:
    """Half the weight carries a quarter: a relative error of first order shrinks by four, the
    error itself by sixteen."""
    errors, relative = [], []
    for weight in HALVED:
        fall, predicted = fall_and_prediction(weight)
        assert fall == pytest.approx(predicted, rel=0.05)
        errors.append(abs(fall - predicted))
        relative.append(abs(fall - predicted) / predicted)
    assert np.divide(relative[:-1], relative[1:]) == pytest.approx([4, 4, 4], rel=0.05)
    assert np.divide(errors[:-1], errors[1:]) == pytest.approx([16, 16, 16], rel=0.05)


def shrinking(error: Callable[[PruningEffect, Tensor], Tensor]) -> np.ndarray:
    """By what factor an error of each run falls when the pruned neurons' weights are halved. The
    batches are general: noise, and negatives that share features."""
    found = []
    for size in (0.2, 0.1, 0.05):
        case = case_of("other attention")  # tau = 1.7
        weights = torch.where(KEPT[:, :, None], case.weights, size * case.weights)
        effect = effect_of(replace(case, weights=weights))
        logits = effect.positive_logits()
        found.append(error(effect, logits[:, :, 0] - logits[:, :, 1]).abs().numpy())
    return np.divide(found[:-1], found[1:])


def test_with_its_negatives_the_error_of_211_shrinks_as_the_square_of_what_is_carried() -> None:
    """What is carried goes with the square of the weight: halved weights leave a sixteenth of an
    error of second order, and a quarter of one of first order, which leaving out negatives is."""
    whole = shrinking(lambda effect, fall: fall - effect.first_order_fall())
    assert whole[-1] == pytest.approx(np.full((RUNS, 2), 16.0), rel=0.2)
    simple = shrinking(lambda effect, fall: fall - effect.fall_without_negatives())
    assert simple[-1] == pytest.approx(np.full((RUNS, 2), 4.0), rel=0.2)


def test_each_run_has_its_own_tau() -> None:
    case = case_of("plain")
    tau = torch.tensor([0.5, 2.0], dtype=torch.float64)
    mixed = effect_of(replace(case, problem=replace(case.problem, tau=tau)))
    for run in range(RUNS):
        alone = effect_of(case_of("plain", tau=float(tau[run])))
        close(mixed.first_order_fall()[run], alone.first_order_fall()[run])
        close(mixed.fall_without_negatives()[run], alone.fall_without_negatives()[run])


def test_over_many_batches_the_negative_part_vanishes() -> None:
    """(179): signs are independent, so what the negatives lose is 0 on average; five standard
    errors over runs. With its negatives (211) is right in each run, to a percent."""
    runs = 24
    case = specialised(0.05, runs, activation=0.5, eps=(1.0, 1.0, 0.6))
    effect = effect_of(case, ALL_BUT_LAST.expand(runs, -1), (2,), samples=16, batches=40)
    logits = effect.positive_logits()[:, 0]
    fall, predicted = logits[:, 0] - logits[:, 1], effect.fall_without_negatives()[:, 0]
    over = fall / predicted - 1
    error = float(over.std()) / math.sqrt(runs)
    assert error < 0.02
    assert abs(float(over.mean())) < 5 * error + 0.01  # the second order of this weight
    exactly = fall / effect.first_order_fall()[:, 0] - 1
    assert (exactly.abs() < 0.01).all()
    assert exactly.std() < 0.2 * over.std()


def test_the_scores_tell_what_they_say_and_the_controls_know_no_mask() -> None:
    case = specialised(0.3, runs=3, activation=0.5)
    kept = ALL_BUT_LAST.expand(3, -1)
    effect = effect_of(case, kept, (2,), samples=20)
    share_lost, fall, by_chance, size = effect.auroc_scores().T
    assert (share_lost == 1).all()  # only samples with the feature lose anything
    assert (fall > 0.9).all()
    # two controls, the same whoever is left out: as many neurons at random, and the whole size
    expected = []
    for run in range(3):
        square = [
            case.problem.embed(case.parameters, case.data.sample(case.draws, 20, index).x)[run]
            .square()
            .sum(dim=1)
            for index in range(3)
        ]
        expected.append(roc_auc_score(effect.contains[run].numpy(), torch.cat(square).numpy()))
    close(size, expected)
    assert ((size > 0.5) & (size < 1)).all()
    other = effect_of(case, kept.roll(1, dims=1), (2,), samples=20).auroc_scores()
    assert torch.equal(other[:, 3], size) and torch.equal(other[:, 2], by_chance)
    assert (other[:, 0] != 1).all()


def test_the_random_mask_is_the_one_the_control_network_has() -> None:
    """Pruning by that mask outright gives the control's logits."""
    case = case_of("plain")
    effect = effect_of(case)
    chosen = random_mask(KEPT, case.draws)
    direct = effect_of(case, chosen).positive_logits()
    close(effect.positive_logits()[:, :, 2], direct[:, :, 1])
    assert (chosen != KEPT).any(dim=1).all()


# ------------------------------------------------------------------------------------ random masks


def drawn(runs: int, first: int = 0) -> Draws:
    return Draws([key("mask", run) for run in range(first, first + runs)], dtype=torch.float64)


def test_a_random_mask_keeps_as_many_and_a_run_has_the_same_alone() -> None:
    count = torch.tensor([0, 1, 3, 5])
    kept = torch.arange(5) < count[:, None]
    found = random_mask(kept, drawn(4))
    assert found.dtype == torch.bool and found.sum(dim=1).tolist() == count.tolist()
    for run in range(4):
        assert torch.equal(random_mask(kept[run : run + 1], drawn(1, run))[0], found[run])
    # the count alone matters, and fewer neurons are a part of more
    assert torch.equal(random_mask(kept.flip(1), drawn(4)), found)
    fewer = random_mask(torch.arange(5) < (count - 1).clamp(min=0)[:, None], drawn(4))
    assert (fewer <= found).all()


def test_a_random_mask_has_no_favourites() -> None:
    """5000 runs keep 3 of 8: each neuron 3/8 of the time and each pair as often as 3 of 8 allow,
    within four and a half standard errors."""
    runs = 5000
    kept = (torch.arange(8) < 3).expand(runs, -1)
    found = random_mask(kept, drawn(runs)).to(torch.float64)
    together = found.T @ found / runs
    single, pair = 3 / 8, 3 * 2 / (8 * 7)
    expected = torch.full((8, 8), pair).double().fill_diagonal_(single)
    error = (expected * (1 - expected) / runs).sqrt()
    assert ((together - expected).abs() < 4.5 * error).all()


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
