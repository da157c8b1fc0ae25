"""Do pure neurons make features linearly separable? (000 Theorem 3.1, Remark 3)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import AtLeast, Count, NotNegative, Positive
from rarefy.measure.alignment import squared_cosines
from rarefy.measure.neurons import dominant
from rarefy.measure.probes import balanced_accuracy, fit_probe
from rarefy.studies.contrastive.downstream import DownstreamExperiment, Encoders
from rarefy.studies.contrastive.setting import GROUPS, LARGE, TINY_FIGURE, Frequency

READINGS = ("sign", "presence")
"""What is decoded: 'present with positive sign' from f, or 'present' from |f|."""
PROBE_STEPS = 5
"""Work of one set of probes in run-steps, for the progress bar."""


@dataclass(frozen=True)
class Samples:
    """f: (run, read, sample, m), pure: (run, sample, d), of the pure encoder; z: (run, sample, d),
    summed latents."""

    f: Tensor
    pure: Tensor
    z: Tensor


@dataclass(frozen=True, kw_only=True)
class SeparabilityExperiment(DownstreamExperiment):
    """Linear probes for single features against the number of neurons pure in them."""

    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY_FIGURE, "eps_min": (0.3, 1.0), "probe_pairs": 100, "test_pairs": 100},
        "quick": {
            "seeds": 6,
            "eps_min": (0.1, 0.4, 0.7, 1.0),
            "steps": 158,
            "reads": (0, 100, 158),
            "probe_pairs": 500,
            "test_pairs": 500,
        },
        "paper": {},
        "large": {
            **LARGE,
            "seeds": 5,
            "eps_min": (0.7, 0.9, 1.0),
            "sigma": 0.02,
            "neurons": 512,
            "reads": (0, 100, 400),
            "probe_pairs": 4000,
            "test_pairs": 4000,
        },
    }

    eps_min: tuple[Frequency, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """frequency of the minority features in training"""
    sigma: NotNegative = 0.03
    """noise std"""
    probe_pairs: Annotated[int, AtLeast(2)] = 1000
    """pairs on which probes are trained; both members of a pair are samples"""
    test_pairs: Count = 1000
    """pairs on which probes are tested, likewise"""
    probe_strength: Positive = 1.0
    """inverse regularisation of the probes (C of scikit-learn) on standardised embeddings"""

    @property
    def drawn_pairs(self) -> tuple[int, ...]:
        return (self.probe_pairs, self.test_pairs)

    def cost(self) -> Cost:
        base = super().cost()
        return Cost(base.bytes_per_cell, base.steps_per_cell + PROBE_STEPS * self._probe_sets)

    @property
    def _probe_sets(self) -> int:
        return len(READINGS) * (len(self.reads) + 1)

    def bytes_per_cell(self) -> int:
        samples = 2 * (self.probe_pairs + self.test_pairs)
        embeddings = samples * (len(self.reads) * self.neurons + 3 * self.d)
        newton = samples * (4 * self.neurons + 10 * self.d) + 4 * self.neurons**2
        return super().bytes_per_cell() + 8 * (embeddings + newton)

    def outputs(self) -> tuple[Output, ...]:
        each = ("read", "feature")
        return (
            Output("pure", each, "neurons pure in the feature (operational set)"),
            Output("accuracy", (*each, "reading"), "balanced accuracy of the feature's probe"),
            Output(
                "ceiling",
                ("reading",),
                "balanced accuracy with one neuron a feature, no bias, mean",
            ),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        features, readings = np.arange(self.d), np.array(READINGS)
        return {"read": np.array(self.reads), "feature": features, "reading": readings}

    def groups(self) -> np.ndarray:
        """The group of each feature: (d,)."""
        return np.repeat(GROUPS, [self.majority, self.minority])

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        encoders = self.trained(self.setup(cells, context), context)
        train = self._drawn(encoders, "probe", self.probe_pairs)
        test = self._drawn(encoders, "test", self.test_pairs)
        found: dict[str, list[Tensor]] = {"pure": [], "accuracy": []}
        for read in range(len(self.reads)):
            cosines = squared_cosines(encoders.weights[:, read], encoders.data.dictionary)
            found["pure"].append(dominant(cosines).sum(dim=1))
            both = train.f[:, read], test.f[:, read]
            found["accuracy"].append(self._probed(encoders, both, train.z, test.z))
        ceiling = self._probed(encoders, (train.pure, test.pure), train.z, test.z)
        outputs = {name: encoders.kept(torch.stack(v, dim=1)) for name, v in found.items()}
        outputs["ceiling"] = encoders.array(ceiling.nanmean(dim=1))
        outputs["nonfinite_step"] = encoders.nonfinite_step.cpu().numpy()
        return outputs

    def _drawn(self, encoders: Encoders, purpose: str, count: int) -> Samples:
        parts = [encoders.samples(pairs) for pairs in encoders.pairs(purpose, count, "balanced")]
        f, pure, z = zip(*parts, strict=True)
        return Samples(torch.cat(f, dim=2), torch.cat(pure, dim=1), torch.cat(z, dim=1))

    def _probed(
        self, encoders: Encoders, both: tuple[Tensor, Tensor], z_train: Tensor, z_test: Tensor
    ) -> Tensor:
        """Balanced accuracy, (run, d, reading), of embeddings for training and test."""
        size = both[0].abs(), both[1].abs()
        sign = self._probe(encoders, both, (z_train > 0, z_test > 0))
        presence = self._probe(encoders, size, (z_train != 0, z_test != 0))
        return torch.stack([sign, presence], dim=2)

    def _probe(
        self, encoders: Encoders, both: tuple[Tensor, Tensor], labels: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Train on the first of each pair, test on the second: (run, d)."""
        encoders.context.check_time()
        scores = fit_probe(both[0], labels[0], self.probe_strength).scores(both[1])
        encoders.context.advance(PROBE_STEPS * len(scores))
        return balanced_accuracy(scores, labels[1])
