"""The state from which 000 Theorem 3.2 reasons, made by hand: what Theorem 3.1 says of step T4.

There every neuron carries one feature, with a weight proportional to the feature's frequency
(12)-(13). Training from Gaussian weights need not come near it (studies of C6 and C8), so a study
of pruning that asks for the theorem's own premise begins here.

Neuron i carries feature i mod d and nothing else. The overall scale is the network's own: starting
from equal norms it is trained, unpruned, on balanced data until it rests; only then are the neurons
of feature j multiplied by eps_j/eps_max. Neurons of one feature are copies of each other up to
rounding, and stay so, since a neuron's update depends on its own weights and the shared logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.data.sparse_coding import Pairs
from rarefy.studies._contrastive import Experiment
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.descent import State, descend
from rarefy.train.optimisers import Sgd


def own_feature(neurons: int, d: int, device: torch.device | str = "cpu") -> Tensor:
    """The feature each neuron carries in this state: (m,)."""
    return torch.arange(neurons, device=device) % d


def theorem_state(
    experiment: Experiment, context: Context, eps: Tensor, relax: int
) -> dict[str, Tensor]:
    """Parameters in the theorem's state; the experiment's bias moves along, in place.

    ``eps``: (run, d), any frequencies; ``relax``: dense steps on balanced data, each of which
    counts as a run-step of progress. The experiment must not have been trained before. Use as
    ``replace(experiment, parameters=theorem_state(...)).train(...)``. The bias is then the rule's
    value for the new norms, T1 and T2 are marked as reached at step 0, and by default
    (``bias_until`` T2) the bias goes on in proportion to the norm.
    """
    study, atoms, bias = experiment.study, experiment.data.dictionary, experiment.bias
    d = atoms.shape[2]
    if study.neurons < d:
        raise bad_value("neurons", study.neurons, f"a neuron a feature: at least {d}")
    feature = own_feature(study.neurons, d, atoms.device)
    own = atoms.transpose(1, 2)[:, feature]  # (run, m, d1), the direction each neuron carries
    start = _first_guess(study.tau, study.neurons / d, study.tokens)
    follow = _ProportionalBias(bias, start * own)
    rested = descend(
        replace(experiment.problem, pruning=None),
        {"weights": start * own},
        _balanced_batches(experiment),
        Sgd(study.lr, weight_decay=study.weight_decay),
        relax,
        after_update=follow,
        record=(),
        context=context,
    )
    # a batch is a sample: what it added on other features and outside them is taken away
    coefficient = (rested.parameters["weights"] * own).sum(dim=2)
    ratio = eps / eps.amax(dim=1, keepdim=True)
    weights = (ratio[:, feature] * coefficient)[:, :, None] * own
    follow.to(weights)
    return {**experiment.parameters, "weights": weights}


def _first_guess(tau: float, copies: float, tokens: int) -> float:
    """A norm at which a shared feature is worth tau in the logits: copies (tokens norm)^2 = tau."""
    return float((tau / copies) ** 0.5 / tokens)


def _balanced_batches(experiment: Experiment) -> Callable[[int], Pairs]:
    data = replace(experiment.data, eps=torch.ones_like(experiment.data.eps))
    draws = experiment.draws.spawn("relax")  # training itself draws as it would without this
    return lambda step: data.sample(draws, experiment.study.batch, step)


class _ProportionalBias:
    """Takes a fresh schedule past T1 and T2 and keeps its bias in proportion to the norm."""

    def __init__(self, bias: BiasSchedule, weights: Tensor) -> None:
        if bool((bias.t1 >= 0).any()):
            raise ValueError("the experiment has been trained: its bias has left step 0")
        bias.after_update(weights, 0)  # weights inside the feature space: T1 is now
        bias.t2 = torch.zeros_like(bias.t1)
        self.bias = bias
        self.proportion = bias.value / torch.linalg.vector_norm(weights, dim=2)

    def __call__(self, state: State) -> None:
        self.to(state.parameters["weights"])

    def to(self, weights: Tensor) -> None:
        self.bias.after_update(weights, 0)  # the schedule remembers the norm it last saw
        self.bias.value = self.proportion * torch.linalg.vector_norm(weights, dim=2)
