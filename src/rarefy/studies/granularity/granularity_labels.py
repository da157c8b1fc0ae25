"""Fine labels that are noisy, misaligned or starved of samples (004 Sec. 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Verdict
from rarefy.core.errors import bad_value, unknown
from rarefy.core.picture import Picture, Table
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity._common import LABELS, check_reads, cost_of_grid, learn, only
from rarefy.studies.granularity._granularity import GranularityStudy
from rarefy.studies.granularity._labels_pictures import labels_pictures, labels_tables
from rarefy.studies.granularity._labels_verdicts import labels_verdicts
from rarefy.studies.granularity._variations import AS_CHOSEN, CHANGES, varied

KNOBS = ("noisy", "misaligned", "starved")
MEASURED = ("loss", "easy_error", "hard_error")


@dataclass(frozen=True, kw_only=True)
class GranularityLabels(GranularityStudy):
    """Fine labels from clean to spoilt in three ways, each beside coarse labels that are clean, on
    the same stored samples. ``turn`` 0 is clean, the last is spoilt altogether."""

    name: ClassVar[str] = "granularity-labels"
    title: ClassVar[str] = "When fine labels do not help: noisy, misaligned, starved"
    paper_says: ClassVar[str] = (
        "On iNaturalist fine labels beat coarse ones only if few of them are wrong, if they cut "
        "along the classes that are asked for in the end, and if no subclass is left with too few "
        "samples; random ids, clusters of the whole set and tiny subclasses bring little or "
        "nothing (004 Sec. 6.2). The theorems assume clean labels and fresh samples. Here each "
        "fault is a knob of the multi-view model: a share of labels drawn at random; a share of "
        "subclasses whose label is tossed between the two sides; fewer stored samples of every "
        "subclass. The baseline has clean coarse labels of the same samples."
    )
    claims: ClassVar[tuple[str, ...]] = ("G12",)
    axes: ClassVar[tuple[str, ...]] = ("variation", "patch_noise", "knob", "turn")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "variation": (AS_CHOSEN, "neurons x2"),
            "patch_noise": (0.3,),
            "turn": (0, 1),
            "wrong": (0.0, 1.0),
            "crossed": (0.0, 1.0),
            "samples": (4, 1),
            "main_noise": 0.3,
            "subclasses": 2,
            "d": 16,
            "patches": 12,
            "neurons": 8,
            "threshold": 0.6,
            "batch": 16,
            "steps": 30,
            "reads": (10, 30),
            "test_each": 8,
        },
        "quick": {
            "seeds": 6,
            "variation": (AS_CHOSEN, "neurons x1/2", "c_b 1.3", "hard: no distraction"),
            "patch_noise": (0.02, 0.3),
            "turn": (0, 1, 2, 3, 4),
            "wrong": (0.0, 0.25, 0.5, 0.75, 1.0),
            "crossed": (0.0, 0.25, 0.5, 0.75, 1.0),
            "samples": (8, 4, 3, 2, 1),
            "main_noise": 0.3,
            "subclasses": 4,
            "d": 48,
            "patches": 16,
            "neurons": 24,
            "threshold": 0.8,
            "batch": 64,
            "steps": 80,
            "reads": (20, 80),
            "test_each": 16,
        },
        "paper": {},
    }

    variation: tuple[str, ...] = tuple(word for word in CHANGES if word != "noise x2")
    """what is changed of the setting; only "as chosen" is run at every noise and turn, the others
    at ``main_noise`` with the knobs' ends"""
    patch_noise: tuple[float, ...] = (0.02, 0.15, 0.2)
    """std of the noise in every patch, in the place of sigma"""
    knob: tuple[str, ...] = KNOBS
    """what is wrong with the fine labels: noisy, misaligned, starved"""
    turn: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    """how far a knob is turned: places in the three lists below"""
    wrong: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
    """noisy: share of samples whose label is drawn from all"""
    crossed: tuple[float, ...] = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
    """misaligned: share of subclasses whose label is tossed between the two sides"""
    samples: tuple[int, ...] = (16, 8, 4, 3, 2, 1)
    """starved: stored samples of every subclass; the first is that of the other knobs too"""
    main_noise: float = 0.2
    """the noise at which the setting is varied"""
    subclasses: int = 8
    """subclasses of each side (k)"""
    reads: tuple[int, ...] = (40, 120)
    """numbers of updates after which the networks are tested"""
    d: int = 128
    neurons: int = 128
    batch: int = 256
    steps: int = 120
    seeds: int = 20

    def check(self) -> None:
        super().check()
        check_reads(self.reads, self.steps)
        for knob in self.knob:
            if knob not in KNOBS:
                raise unknown("knob", knob, KNOBS)
        for name in ("wrong", "crossed", "samples"):
            count, turns = len(getattr(self, name)), len(self.turn)
            if self.turn != tuple(range(turns)) or count != turns:
                rule = "turn must be 0, 1, 2, ... and name a place in wrong, crossed and samples"
                raise bad_value(name, getattr(self, name), f"{rule}; turn={self.turn}")
        if min(self.samples) < 1:
            raise bad_value("samples", min(self.samples), "must be at least 1")
        if self.main_noise not in self.patch_noise:
            allowed = f"must be one of patch_noise={self.patch_noise}"
            raise bad_value("main_noise", self.main_noise, allowed)
        for noise in self.patch_noise:
            for variation in self.variation:
                changed = self.at_noise(noise, variation)
                changed.check_model(self.subclasses)
                for turn in self.turn:
                    for knob in self.knob:
                        changed.labels(knob, turn)

    @property
    def setting(self) -> str:
        return f"{super().setting} k={self.subclasses}"

    def at_noise(self, noise: float, variation: str = AS_CHOSEN) -> GranularityLabels:
        return varied(replace(self, sigma=float(noise)), variation)

    def labels(self, knob: str, turn: int) -> Labels:
        """The fine labels with a knob at a turn."""
        noise = self.wrong[turn] if knob == "noisy" else 0.0
        misaligned = self.crossed[turn] if knob == "misaligned" else 0.0
        return Labels(self.model(self.subclasses), self.subclasses, noise, misaligned)

    def samples_at(self, knob: str, turn: int) -> int:
        return self.samples[turn] if knob == "starved" else self.samples[0]

    def outputs(self) -> tuple[Output, ...]:
        said = (
            "training loss before the last update",
            "share of fresh easy samples on the wrong side",
            "share of fresh hard samples on the wrong side",
        )
        return tuple(
            Output(name, ("labels", "read"), words)
            for name, words in zip(MEASURED, said, strict=True)
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"labels": np.array(LABELS), "read": np.array(sorted(set(self.reads)))}

    def cost(self) -> Cost:
        return cost_of_grid(self, 2 * self.subclasses, self.subclasses, True, 2 * self.steps)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        # random numbers are drawn once for all updates: compiling them would take longer
        eager = replace(context, compiled=False)
        return only(self, cells, eager, self._wanted, self._run)

    def _wanted(self, variation: str, noise: float, knob: str, turn: int) -> bool:
        ends = (self.turn[0], self.turn[-1])
        return variation == AS_CHOSEN or (noise == self.main_noise and turn in ends)

    def _run(
        self, variation: str, noise: float, knob: str, turn: int, cells: Cells, context: Context
    ) -> dict[str, np.ndarray]:
        study = self.at_noise(noise, variation)
        spoilt, samples = study.labels(knob, turn), study.samples_at(knob, turn)
        clean = Labels(spoilt.data, 1)
        coarse, fine = (
            learn(study, cells, context, labels, samples, self.reads) for labels in (clean, spoilt)
        )
        found = {
            name: torch.stack([coarse.reads[name], fine.reads[name]], dim=1) for name in MEASURED
        }
        lost = [each.trajectory.nonfinite_step for each in (coarse, fine)]
        found["nonfinite_step"] = torch.where(lost[0] >= 0, lost[0], lost[1])
        return {name: value.cpu().numpy() for name, value in found.items()}

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return labels_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return labels_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return labels_tables(self, results)
