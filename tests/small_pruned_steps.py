"""A small contrastive problem, trained for a while, and single pruned steps from there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from small_contrastive import Small, small
from torch import Tensor

from rarefy.data.sparse_coding import Pairs
from rarefy.pruning.masks import neuron_norms
from rarefy.pruning.update_rules import rule_codes
from rarefy.train.contrastive import Contrastive
from rarefy.train.descent import descend
from rarefy.train.neuron_pruning import NeuronPruning
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
