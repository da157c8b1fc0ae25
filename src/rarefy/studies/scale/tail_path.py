"""The path of ``regimes-at-scale`` along Gamma: training is one for all lengths and for both sides,
what is tested differs from row to row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells
from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.tail_noise import long_tailed
from rarefy.measure.generalisation import Generalisation, generalisation
from rarefy.studies.scale.paths import NoisePath
from rarefy.studies.scale.questions import Question, question_of


@dataclass(frozen=True)
class Asked:
    """The rows of a batch that ask one question, with their draws."""

    question: Question
    rows: Tensor
    draws: Draws


class TailPath(NoisePath):
    """Learning by the tail of the noise."""

    def prepare(self, cells: Cells) -> None:
        super().prepare(cells)
        words = np.asarray(cells.values["question"])
        self.asked = []
        for word in dict.fromkeys(words.tolist()):
            rows = np.flatnonzero(words == word)
            place = torch.from_numpy(rows).to(self.context.device)
            self.asked.append(Asked(question_of(word), place, cells.take(rows).draws(self.context)))

    def scales(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Gamma = (rank - 1 + x^2)/(rank - 2 + 2 x), x the special eigenvalue squared; a feature of
        x = ``faint`` as on the other path."""
        gamma, rank = 10**place, self.d - self.classes
        square = gamma + torch.sqrt((gamma - 1) * (gamma + rank - 1))
        fourth = self.training.faint * rank / self.size
        return fourth**0.25, torch.sqrt(square)

    def test(self, filters: Tensor, place: Tensor) -> Generalisation:
        axes = self.data.special_axes().to(filters.device)
        along = filters.sum(dim=2)[:, torch.arange(self.classes), axes]  # (row, class)
        side = torch.where(along < 0, -1.0, 1.0).to(filters.dtype)
        parts = [self._tested(asked, filters, side) for asked in self.asked]
        order = torch.cat([asked.rows for asked in self.asked]).argsort()
        loss, error, class_loss, class_error = (
            torch.cat([getattr(part, name) for part in parts])[order]
            for name in ("loss", "error", "class_loss", "class_error")
        )
        return Generalisation(loss, error, class_loss, class_error, parts[0].samples)

    def _tested(self, asked: Asked, filters: Tensor, side: Tensor) -> Generalisation:
        rows, length, every = asked.rows, asked.question.number, self.data
        data = replace(every, eigenvalues=every.eigenvalues[rows], strength=every.strength[rows])

        def draw(count: int, chunk: int) -> PatchSamples:
            labels = self._test_labels(count)
            if length == 0:
                drawn = data.sample(asked.draws, labels, "test", chunk)
            else:
                drawn = long_tailed(data, asked.draws, labels, 1.0, length, "test", chunk).samples
            if asked.question.path == "tail":
                return drawn
            noise = drawn.noise.clone()
            axes = data.special_axes().to(noise.device)[labels[0]]
            sample = torch.arange(count, device=noise.device)
            noise[:, sample, axes] = noise[:, sample, axes].abs() * side[rows][:, labels[0]]
            return replace(drawn, noise=noise)

        return generalisation(filters[rows], draw, self.training.test_samples, self.scale)
