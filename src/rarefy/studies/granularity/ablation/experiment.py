"""What the result needs (004 App. B.2, remark 3), and what coarse fine-tuning leaves (App. G.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.ablation.arms import LINEAR, PAPER, Arm, arms
from rarefy.studies.granularity.ablation.watch import DETECTORS, Detectors
from rarefy.studies.granularity.experiment import AS_CHOSEN, CHANGES, GranularityExperiment
from rarefy.studies.granularity.trial import LABELS, MAIN_MEASURES, Trial, both_labels, by_measure
from rarefy.sweep.batches import missing

WORLDS = ("quiet", "noisy")
TUNED = ("tuned_easy_error", "tuned_hard_error")


@dataclass(frozen=True, kw_only=True)
class AblationExperiment(GranularityExperiment):
    """The standard learner beside one without ReLU and one with a hard-coded bias schedule, where
    noise is weak (quiet) and where it adds up over many patches (noisy); and fine-tuning of the
    standard learner on the coarse question."""

    axes: ClassVar[tuple[str, ...]] = ("variation", "world", "arm")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "variation": (AS_CHOSEN, "neurons x2"),
            "arm": arms((PAPER, "0.1")),
            "subclasses": 2,
            "noisy_patches": 40,
            "noisy_sigma": 0.3,
            "d": 16,
            "patches": 12,
            "neurons": 10,
            "threshold": 0.6,
            "batch": 8,
            "steps": 8,
            "reads": (3, 8),
            "tune_steps": 4,
            "tune_reads": (0, 4),
            "test_each": 8,
        },
        "quick": {
            "seeds": 5,
            "variation": (AS_CHOSEN, "hard: no distraction"),
            "arm": arms((PAPER, "0.1", "0.3")),
            "subclasses": 4,
            "noisy_patches": 80,
            "d": 40,
            "patches": 16,
            "neurons": 24,
            "threshold": 0.8,
            "batch": 16,
            "lr": 1.4,
            # 19,800 run-steps: from 20,000 on, half a minute would go into compiling
            "steps": 40,
            "reads": (5, 15, 40),
            "tune_steps": 15,
            "tune_reads": (0, 5, 15),
            "test_each": 16,
        },
        "paper": {},
    }

    variation: tuple[str, ...] = tuple(CHANGES)
    """what is changed of the setting; only "as chosen" is run with every arm in both worlds, the
    others in the noisy world with the arms at ``main_rate`` and the linear one"""
    world: tuple[Annotated[str, OneOf(WORLDS)], ...] = WORLDS
    """quiet: the setting's own patches and sigma; noisy: ``noisy_patches`` and ``noisy_sigma``"""
    arm: tuple[str, ...] = arms((PAPER, "0.01", "0.03", "0.1", "0.3"))
    """following-RATE and scheduled-RATE (RATE: of the bias, paper for 1/log^5(d)), linear-RATE (of
    learning, over the chosen one), tuned"""
    main_rate: str = "0.1"
    """the rate in comparisons with the linear network and in the table of sensitivity"""
    subclasses: Count = 8
    """subclasses of each side (k)"""
    noisy_patches: Count = 100
    """patches of a sample in the noisy world (P); the learning rate goes with them"""
    noisy_sigma: NotNegative = 0.2
    """std of the noise in every patch there"""
    reads: tuple[int, ...] = (10, 20, 50, 100, 200)
    """numbers of updates after which the networks are tested"""
    tune_steps: Count = 200
    """updates of fine-tuning"""
    tune_reads: tuple[int, ...] = (0, 5, 10, 20, 50, 100, 200)
    """numbers of those after which the networks are tested"""
    d: int = 128
    neurons: Count = 128
    steps: Count = 200
    seeds: Count = 20

    def check(self) -> None:
        self.check_reads(self.reads)
        if 0 not in self.tune_reads or max(self.tune_reads) != self.tune_steps:
            allowed = f"must begin at 0 and end at tune_steps={self.tune_steps}"
            raise bad_value("tune_reads", self.tune_reads, allowed)
        for word in self.arm:
            Arm.parse(word, self.d)
        for needed in (LINEAR, "tuned", f"following-{PAPER}", f"following-{self.main_rate}"):
            if needed not in self.arm:
                raise bad_value("arm", self.arm, f"must have {needed}")
        for world in self.world:
            for variation in self.variation:
                self.in_world(world, variation).check_model(self.subclasses)
        self.check_variation(self.variation)

    @property
    def setting(self) -> str:
        return f"d={self.d} m={self.neurons} c_b={self.threshold:.3g} k={self.subclasses}"

    def in_world(self, world: str, variation: str = AS_CHOSEN) -> AblationExperiment:
        if world == "quiet":
            return self.varied(variation)
        lr = self.lr * self.noisy_patches / self.patches  # (16) divides by P
        noisy = replace(self, patches=self.noisy_patches, sigma=self.noisy_sigma, lr=lr)
        return noisy.varied(variation)

    @property
    def main_arms(self) -> tuple[str, str, str]:
        """Those of which the setting is varied."""
        return (f"following-{self.main_rate}", f"scheduled-{self.main_rate}", LINEAR)

    def outputs(self) -> tuple[Output, ...]:
        errors = ("error on fresh easy samples", "error on fresh hard samples")
        main = dict(zip(MAIN_MEASURES, ("training loss", *errors), strict=True))
        tuned = {
            name: f"{said} during fine-tuning" for name, said in zip(TUNED, errors, strict=True)
        }
        return (
            *(Output(name, ("labels", "read"), said) for name, said in main.items()),
            *(Output(name, ("labels", "tuned"), said) for name, said in tuned.items()),
            *(Output(name, ("labels", "tuned"), said) for name, said in DETECTORS.items()),
            Output("kept", ("labels",), "detectors no weaker after fine-tuning than before, share"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "labels": np.array(LABELS),
            "read": np.array(sorted(set(self.reads))),
            "tuned": np.array(sorted(set(self.tune_reads))),
        }

    def cost(self) -> Cost:
        # without ReLU, or in strong noise, every neuron sees every patch
        noisy = replace(self, patches=max(self.patches, self.noisy_patches))
        steps = 2 * (self.steps + self.tune_steps)
        return noisy.cost_of_grid(2 * self.subclasses, self.subclasses, True, steps)

    def _wanted(self, variation: str, world: str, arm: str) -> bool:
        if variation == AS_CHOSEN:
            return arm != "tuned" or world == "quiet"
        return world == "noisy" and arm in self.main_arms

    def _run(
        self, variation: str, world: str, word: str, cells: Cells, context: Context
    ) -> dict[str, Any]:
        setting, arm = self.in_world(world, variation), Arm.parse(word, self.d)
        parts = []
        for per_side in (1, self.subclasses):
            labels = Labels(setting.model(self.subclasses), per_side)
            trial = arm.of(setting, setting.setup(cells, context, labels))
            found = trial.learn(context, self.steps, self.test_each, self.reads)
            part = found.outputs(MAIN_MEASURES)
            if arm.kind == "tuned":
                part |= self._tune(trial, found.trajectory.parameters, context)
            parts.append(part)
        return {**missing(self, len(cells)), **both_labels(*parts)}

    def _tune(
        self, trial: Trial, before: dict[str, torch.Tensor], context: Context
    ) -> dict[str, torch.Tensor]:
        """Both networks train on with coarse labels and samples they have not seen."""
        watch = Detectors.of(trial)
        trajectory = trial.fine_tune(
            before,
            self.tune_steps,
            self.batch,
            context=context,
            trackers={"tests": trial.tests(self.test_each), "detectors": watch.look},
            record=self.tune_reads,
        )
        seen = by_measure(trajectory.records["tests"])
        detectors = trajectory.records["detectors"].unbind(dim=2)
        return {
            **{name: seen[name.removeprefix("tuned_")] for name in TUNED},
            **dict(zip(DETECTORS, detectors, strict=True)),
            "kept": watch.kept(before, trajectory.parameters),
        }
