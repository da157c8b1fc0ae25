"""The bias of the BReLU neurons: moved by a rule, not by gradients (000 eq. 284-285).

0 up to T1; at T1, the first step at which half of every neuron's squared norm lies in the feature
space (34), set to sqrt(2 log d / d) |w_i|; then b <- max(b (1 + eta/d), b |w_i(t+1)| / |w_i(t)|).
The paper states the rule inside its second stage. ``until`` says what follows T2, the first step
at which some squared norm is d times its value at T1 (61): "T2" keeps only the second term, so
the bias goes on in proportion to the norm; "end" keeps both.

``scale`` multiplies the value at T1, one number per run. 1 is the statement's constant; its proof
(46)-(47) arrives at sqrt(log d / d), which is scale 1/sqrt(2); 0 means no bias at all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.theory.contrastive import bias_at_t1
from rarefy.train.descent import State

UNTIL = ("T2", "end")


class BiasSchedule:
    """The bias of the neurons, moved by the rule of Liao et al. while others train by gradients.

    Arguments:
        dictionary, weights: (run, d1, d) and (run, m, d1), before training.
        learning_rate: (run,), of the weights.
        scale: (run,), of the bias at its start; 0: no bias.
        until: "T2" or "end": how long the bias grows by itself.

    Attributes:
        value: (run, m), the bias.
        t1, t2: (run,), the steps at which it begins and ends to grow; -1 until reached.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> atoms = rarefy.lab.dictionary(draws, d1=100, d=9)
        >>> weights = rarefy.lab.initial_weights(draws, 24, 100, draws.per_run(1e-3))
        >>> bias = rarefy.lab.BiasSchedule(atoms, weights, draws.per_run(0.5), draws.per_run(1.0))
        >>> bias.value.shape, bias.t1.tolist()
        (torch.Size([3, 24]), [-1, -1, -1])
    """

    def __init__(
        self,
        dictionary: Tensor,
        weights: Tensor,
        learning_rate: Tensor,
        scale: Tensor,
        until: str = "T2",
    ) -> None:
        if until not in UNTIL:
            raise bad_value("bias_until", until, f"must be one of {', '.join(UNTIL)}")
        runs, neurons, _ = weights.shape
        self.dictionary, self.until = dictionary, until
        self.d = dictionary.shape[2]
        self.value = torch.zeros(runs, neurons, dtype=weights.dtype, device=weights.device)
        self.t1 = torch.full((runs,), -1, dtype=torch.int64, device=weights.device)
        self.t2 = self.t1.clone()
        self._norm = torch.linalg.vector_norm(weights, dim=2)
        self._norm_at_t1 = torch.zeros_like(self._norm)
        self._at_t1 = bias_at_t1(scale, self.d)[:, None]
        self._growth = (1 + learning_rate / self.d)[:, None]

    def __call__(self, state: State) -> None:
        """For ``descend(..., after_update=bias)``."""
        self.after_update(state.parameters["weights"], state.step)

    def after_update(self, weights: Tensor, step: int, trained: Tensor | None = None) -> None:
        """Move on to ``weights``, the weights after ``step`` updates. T1 waits for the neurons of
        ``trained``, (run, m), only: one that is never updated stays outside the feature space."""
        norm = torch.linalg.vector_norm(weights, dim=2)
        inside = torch.bmm(weights, self.dictionary).square().sum(dim=2)
        started = self.t1 >= 0
        half = inside >= 0.5 * norm.square()
        if trained is not None:
            half = half | ~trained
        start = ~started & half.all(dim=1)
        self.t1 = torch.where(start, step, self.t1)
        self._norm_at_t1 = torch.where(start[:, None], norm, self._norm_at_t1)
        grown = norm.square() >= self.d * self._norm_at_t1.square()
        tall = (grown & (self._norm_at_t1 > 0)).any(dim=1)  # a neuron set to zero has not grown
        end = started & (self.t2 < 0) & tall
        ratio = norm / self._norm.clamp(min=torch.finfo(norm.dtype).tiny)
        factor = torch.maximum(self._growth, ratio)
        if self.until == "T2":
            factor = torch.where((self.t2 >= 0)[:, None], ratio, factor)
        moved = torch.where(started[:, None], self.value * factor, self.value)
        self.value = torch.where(start[:, None], self._at_t1 * norm, moved)
        self.t2 = torch.where(end, step, self.t2)
        self._norm = norm
