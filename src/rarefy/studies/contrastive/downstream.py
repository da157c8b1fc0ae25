"""What the studies of downstream quality share: networks read along training, and fresh pairs.

A network is kept at every read and they are all tested on the same pairs after training, so that
the costly noise is drawn once. Beside them stands a *pure encoder*, one neuron per feature
(w_j = M_j) without bias: the best this architecture could do without thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rarefy.core.compilation import compiled
from rarefy.core.contracts import Context, Cost
from rarefy.core.parameters import Count
from rarefy.data.sparse_coding import Pairs, SparseCoding
from rarefy.nets.brelu_transformer import encode
from rarefy.studies.contrastive.setting import TINY_FIGURE, FigureExperiment, Frequency, Trial

TEST_FREQUENCIES = ("as trained", "balanced")
"""Test pairs with eps_min as in training, or with eps = 1 for all. With the former eps_min changes
the test set itself: samples without any feature, and the variance of a target."""


FIGURE_TINY = {**TINY_FIGURE, "eps_min": (0.1, 0.5), "test_pairs": 200}
FIGURE_QUICK: dict[str, Any] = {
    "seeds": 6,
    "eps_min": (0.05, 0.2, 0.35, 0.5),
    "steps": 158,
    "reads": (0, 25, 100, 158),
    "test_pairs": 1000,
}
"""Scales of Fig. 4 and Fig. 5, but for the noise, which differs."""


@dataclass(frozen=True, kw_only=True)
class DownstreamExperiment(FigureExperiment):
    """Networks trained as in ``contrast-alignment``, then tested on fresh pairs."""

    eps_min: tuple[Frequency, ...] = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    """frequency of the minority features in training"""
    reads: tuple[int, ...] = (0, 25, 100, 400)
    """training steps after which the network is tested; 0, the untrained one, is the control"""
    test_pairs: Count = 5000
    """positive pairs of the test set"""

    @property
    def drawn_pairs(self) -> tuple[int, ...]:
        """Sizes of all sets of pairs drawn after training."""
        return (self.test_pairs,) * len(TEST_FREQUENCIES)

    def cost(self) -> Cost:
        """A chunk of test pairs counts as a step."""
        chunks = sum(-(-pairs // self.batch) for pairs in self.drawn_pairs)
        return Cost(self.bytes_per_cell(), self.steps + chunks)

    def bytes_per_cell(self) -> int:
        neurons = len(self.reads) * self.neurons + self.d
        kept = neurons * self.d1 + 8 * self.batch * self.tokens * neurons
        moments = 4 * len(self.reads) * self.neurons**2
        return super().bytes_per_cell() + 8 * (kept + moments)

    def coordinates(self) -> dict[str, np.ndarray]:
        return {**super().coordinates(), "test_frequencies": np.array(TEST_FREQUENCIES)}

    def trained(self, trial: Trial, context: Context) -> Encoders:
        """Train, and keep the network at every read."""
        trajectory = trial.train(
            context,
            {"weights": lambda s: s.parameters["weights"], "bias": lambda s: trial.bias.value},
            self.reads,
        )
        weights, bias = trajectory.records["weights"], trajectory.records["bias"]
        lost = torch.isnan(bias).any(dim=2)
        # what comes of a lost run is thrown away, see ``kept``
        finite = torch.nan_to_num(weights), torch.nan_to_num(bias)
        return Encoders(trial, context, *finite, lost, trajectory.nonfinite_step)

    def collected(
        self, encoders: Encoders, found: Sequence[Mapping[str, Tensor]]
    ) -> dict[str, np.ndarray]:
        """Outputs from what was found on each test set, (run, read, ...) or (run,)."""
        outputs = {"nonfinite_step": encoders.nonfinite_step.cpu().numpy()}
        for output in self.outputs():
            place = 1 + output.dims.index("test_frequencies")
            values = torch.stack([part[output.name] for part in found], dim=place)
            keep = encoders.kept if "read" in output.dims else encoders.array
            outputs[output.name] = keep(values)
        return outputs


@dataclass(frozen=True)
class Encoders:
    """The networks of a batch of runs at all reads.

    weights: (run, read, m, d1); bias: (run, read, m); lost: (run, read), true where a run was no
    longer finite.
    """

    trial: Trial
    context: Context
    weights: Tensor
    bias: Tensor
    lost: Tensor
    nonfinite_step: Tensor

    @property
    def data(self) -> SparseCoding:
        return self.trial.data

    def pairs(self, purpose: str, count: int, frequencies: str) -> Iterator[Pairs]:
        """``count`` fresh pairs in chunks of the training batch's size (the compiled kernels know
        that shape). Both test sets come from the same draws: they differ in what frequencies do.
        """
        data = self.data
        if frequencies == "balanced":
            data = replace(data, eps=torch.ones_like(data.eps))
        draws = self.trial.draws.spawn(purpose)
        batch = self.trial.experiment.batch
        for index, start in enumerate(range(0, count, batch)):
            self.context.check_time()
            pairs = data.sample(draws, batch, index)
            wanted = min(batch, count - start)
            yield Pairs(pairs.tokens[:, :, :wanted], pairs.latents[:, :, :wanted])
            self.context.advance(len(draws))

    def embed(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """f of every network, (run, view, read, sample, m), and of the pure encoder,
        (run, view, sample, d)."""
        runs, views, samples, tokens, d1 = pairs.tokens.shape
        _, reads, neurons, _ = self.weights.shape
        atoms = self.data.dictionary.transpose(1, 2)
        weights = torch.cat([self.weights.flatten(1, 2), atoms], dim=1)
        bias = torch.cat([self.bias.flatten(1, 2), torch.zeros_like(atoms[:, :, 0])], dim=1)
        together = pairs.tokens.reshape(runs, views * samples, tokens, d1)
        # the last chunk may be shorter and would be compiled again
        whole = self.context.compiled and samples == self.trial.experiment.batch
        function = compiled(encode) if whole else encode
        f = function(weights, bias, together, self.trial.problem.attention)
        f = f.reshape(runs, views, samples, -1)
        trained = f[..., : reads * neurons].reshape(runs, views, samples, reads, neurons)
        return trained.transpose(2, 3), f[..., reads * neurons :]

    def samples(self, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """Both members of every pair as samples: f (run, read, sample, m), the pure encoder's
        (run, sample, d), and the latents summed over tokens (run, sample, d)."""
        f, pure = self.embed(pairs)
        latents = pairs.latents.sum(dim=3)
        return f.transpose(1, 2).flatten(2, 3), pure.flatten(1, 2), latents.flatten(1, 2)

    def kept(self, values: Tensor) -> np.ndarray:
        """Values (run, read, ...) as an array, NaN for a run that was lost by then."""
        lost = self.lost.reshape(*self.lost.shape, *(1,) * (values.dim() - 2))
        return self.array(torch.where(lost, torch.nan, values))

    def array(self, values: Tensor) -> np.ndarray:
        return values.to(self.context.dtype).cpu().numpy()
