"""Experiments with next to no feature: classes are told apart by their noise, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rarefy.core.contracts import Cells, Context
from rarefy.core.parameters import NotNegative
from rarefy.data.noise_spectrum import Spectrum
from rarefy.studies.benign.setting import TRAININGS, ClassNoiseExperiment, Schedule
from rarefy.studies.benign.trial import Trial


@dataclass(frozen=True, kw_only=True)
class FeaturelessExperiment(ClassNoiseExperiment):
    """All trainings on noise alone."""

    schedule: tuple[Schedule, ...] = TRAININGS
    """how it is trained: printed, trained, carried on"""
    strength: NotNegative = 1e-6
    """norm of the features |u|: next to nothing, so that the noise must be learnt"""

    def without_features(
        self,
        cells: Cells,
        context: Context,
        spectrum: Spectrum,
        sizes: Sequence[int],
        schedule: str,
        room: int | None = None,
    ) -> Trial:
        """``setup`` with classes of these ``sizes``, for one training."""
        strength = torch.full((len(cells),), self.strength, dtype=context.dtype)
        return self.setup(
            cells,
            context,
            spectrum=spectrum,
            strength=strength.to(context.device),
            sizes=torch.tensor([list(sizes)], device=context.device),
            schedule=schedule,
            zeta_axes="rotated",
            room=room,
        )
