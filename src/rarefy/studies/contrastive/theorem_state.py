"""The state from which 000 Theorem 3.2 reasons, made by hand: an idealisation of what Theorem 3.1
says of step T4.

There a neuron's weight on its features is proportional to their frequency (12)-(13), and Theorem
3.2 speaks of neurons that carry one feature. Training from Gaussian weights need not come near it
(studies of C6 and C8), so a study of pruning that asks for the theorem's own premise begins here.

Neuron i carries feature i mod d and nothing else. The overall scale is the network's own: the one
at which a network of equal neurons neither grows nor shrinks on balanced data; then the neurons of
feature j are multiplied by eps_j/eps_max. Neurons of one feature are copies of each other, and stay
so up to rounding, since a neuron's update depends on its own weights and the shared logits.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.studies.contrastive.setting import Trial
from rarefy.train.bias_schedule import BiasSchedule

ROUNDS = 20
"""Bisections of the scale: ten binary orders down to a thousandth of a percent."""


def own_feature(neurons: int, d: int, device: torch.device | str = "cpu") -> Tensor:
    """The feature each neuron carries in this state: (m,)."""
    return torch.arange(neurons, device=device) % d


def theorem_state(trial: Trial, context: Context, relax: int) -> dict[str, Tensor]:
    """Parameters in the theorem's state; the experiment's bias moves along, in place.

    ``relax``: gradients spent on finding the scale, each of
    which counts as a run-step of progress. The experiment must not have been trained before. Use
    as ``replace(experiment, parameters=theorem_state(...)).train(...)``. The bias is then the
    rule's value for the new norms, T1 and T2 are marked as reached at step 0, and by default
    (``bias_until`` T2) the bias goes on in proportion to the norm.
    """
    experiment, atoms, bias = trial.experiment, trial.data.dictionary, trial.bias
    d = atoms.shape[2]
    if experiment.neurons < d:
        raise bad_value("neurons", experiment.neurons, f"a neuron a feature: at least {d}")
    feature = own_feature(experiment.neurons, d, atoms.device)
    own = atoms.transpose(1, 2)[:, feature]  # (run, m, d1), the direction each neuron carries
    # a norm at which a shared feature is worth tau in the logits: copies (tokens norm)^2 = tau
    start = (experiment.tau * d / experiment.neurons) ** 0.5 / experiment.tokens
    follow = _ProportionalBias(bias, start * own)
    scale = _resting_scale(trial, context, own, start, follow, relax)
    ratio = trial.data.eps / trial.data.eps.amax(dim=1, keepdim=True)
    weights = (ratio[:, feature] * scale[:, None])[:, :, None] * own
    follow.to(weights)
    return {**trial.parameters, "weights": weights}


def _resting_scale(
    trial: Trial, context: Context, own: Tensor, start: float, follow: _ProportionalBias, relax: int
) -> Tensor:
    """The norm at which equal neurons keep theirs on balanced data, (run,), by bisection.

    Training until it rests would take a time that grows with d, and without a bias the neurons
    would mix meanwhile. All trials see the same batches, so the answer is sharp.
    """
    problem, experiment = replace(trial.problem, pruning=None), trial.experiment
    data = replace(trial.data, eps=torch.ones_like(trial.data.eps))
    draws = trial.draws.spawn("relax")  # training itself draws as it would without this
    each = max(1, relax // ROUNDS)
    low = torch.full_like(trial.data.sigma, start / 16)
    high = 64 * torch.full_like(low, start)
    for _ in range(min(ROUNDS, relax)):
        middle = (low * high).sqrt()
        weights = middle[:, None, None] * own
        follow.to(weights)
        growth = torch.zeros_like(middle)
        for index in range(each):
            context.check_time()
            batch = data.sample(draws, experiment.batch, index)
            gradient = problem.gradients({"weights": weights}, batch)[1]["weights"]
            growth -= (gradient * own).sum(dim=2).mean(dim=1) / each
            context.advance(len(middle))
        grows = growth > experiment.weight_decay * middle
        low, high = torch.where(grows, middle, low), torch.where(grows, high, middle)
    context.advance(len(low) * (relax - each * min(ROUNDS, relax)))
    return (low * high).sqrt()


class _ProportionalBias:
    """Takes a fresh schedule past T1 and T2 and keeps its bias in proportion to the norm."""

    def __init__(self, bias: BiasSchedule, weights: Tensor) -> None:
        if bool((bias.t1 >= 0).any()):
            raise ValueError("the experiment has been trained: its bias has left step 0")
        bias.after_update(weights, 0)  # weights inside the feature space: T1 is now
        bias.t2 = torch.zeros_like(bias.t1)
        self.bias = bias
        self.proportion = bias.value / torch.linalg.vector_norm(weights, dim=2)

    def to(self, weights: Tensor) -> None:
        self.bias.after_update(weights, 0)  # the schedule remembers the norm it last saw
        self.bias.value = self.proportion * torch.linalg.vector_norm(weights, dim=2)
