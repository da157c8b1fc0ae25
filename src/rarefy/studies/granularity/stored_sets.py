"""What the studies of stored sets share: noise in the patches as an axis, fine-tuning after
training, and small sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from rarefy.core.contracts import Output
from rarefy.core.errors import bad_value
from rarefy.studies.granularity.common import MAIN_MEASURES, MEASURES, check_reads
from rarefy.studies.granularity.experiment import GranularityExperiment
from rarefy.studies.granularity.tuning import TUNED
from rarefy.studies.granularity.variations import AS_CHOSEN, varied

TINY: dict[str, Any] = {
    "seeds": 2,
    "variation": (AS_CHOSEN, "neurons x2"),
    "main_noise": 0.3,
    "subclasses": 2,
    "d": 16,
    "patches": 12,
    "neurons": 8,
    "threshold": 0.6,
    "batch": 16,
    "steps": 30,
    "reads": (10, 30),
    "tune_steps": 10,
    "test_each": 8,
}
QUICK: dict[str, Any] = {
    "variation": (AS_CHOSEN, "hard: no distraction"),
    "main_noise": 0.3,
    "subclasses": 4,
    "d": 48,
    "patches": 16,
    "neurons": 24,
    "threshold": 0.8,
}


@dataclass(frozen=True, kw_only=True)
class StoredSetExperiment(GranularityExperiment):
    """Training samples are drawn once. What tells single samples apart is above all the noise in
    their patches, so its size is an axis. After training, networks are fine-tuned on the coarse
    question."""

    variation: tuple[str, ...] = (
        AS_CHOSEN,
        "patches x2",
        "neurons x1/2",
        "c_b 1.3",
        "patch counts drawn",
        "hard: no distraction",
    )
    """what is changed of the setting; only "as chosen" is run on the whole grid, the others at
    ``main_noise`` and what the study compares there"""
    patch_noise: tuple[float, ...] = (0.02, 0.15, 0.2)
    """std of the noise in every patch, in the place of sigma"""
    main_noise: float = 0.2
    """the noise at which the setting is varied"""
    subclasses: int = 8
    """subclasses of each side (k)"""
    reads: tuple[int, ...] = (40, 120)
    """numbers of updates after which the networks are tested"""
    tune_steps: int = 60
    """updates of fine-tuning on the coarse question after that, with fresh easy samples"""
    d: int = 128
    neurons: int = 128
    seeds: int = 20

    def check(self) -> None:
        super().check()
        check_reads(self.reads, self.steps)
        if self.tune_steps < 1:
            raise bad_value("tune_steps", self.tune_steps, "must be at least 1")
        if self.main_noise not in self.patch_noise:
            allowed = f"must be one of patch_noise={self.patch_noise}"
            raise bad_value("main_noise", self.main_noise, allowed)
        for noise in self.patch_noise:
            for variation in self.variation:
                self.at_noise(noise, variation).check_model(self.subclasses)

    def at_noise(self, noise: float, variation: str = AS_CHOSEN) -> Self:
        return varied(replace(self, sigma=float(noise)), variation)

    def measured(self, *dims: str) -> tuple[Output, ...]:
        """``MAIN_MEASURES`` at every read, and ``TUNED``, all with these dimensions."""
        return (
            *(Output(name, (*dims, "read"), MEASURES[name]) for name in MAIN_MEASURES),
            *(Output(name, dims, words) for name, words in TUNED.items()),
        )
