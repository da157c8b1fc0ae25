"""How training goes and what the filters hold at its end (003 Lemmas 1-7, App. B and C.1)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, OneOf, Positive
from rarefy.core.precision import PRECISIONS, matrix_products
from rarefy.nets.patch_cnn import COMBINATIONS
from rarefy.studies.benign.constants import small_loss
from rarefy.studies.benign.setting import ClassNoiseExperiment, Ratio
from rarefy.studies.benign.training import measures, neurons
from rarefy.studies.benign.training.cases import CASES, ENDS, Case
from rarefy.studies.benign.training.run import watched
from rarefy.studies.benign.trial import Trial, eager
from rarefy.sweep.batches import missing, split_by_axes
from rarefy.theory.benign import first_loss_drop


@dataclass(frozen=True, kw_only=True)
class TrainingExperiment(ClassNoiseExperiment):
    """Two stages of training, then active filters, memory and balance."""

    axes: ClassVar[tuple[str, ...]] = ("case", "gamma", "strength")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"seeds": 2, "gamma": (1.0, 10.0), "strength": (1.0, 6.0)}
        | {"classes": 3, "d": 40, "filters": 8, "size": 6, "slow_steps": 60, "long_steps": 120}
        | {"trained_steps": 60, "wide_d": 60, "wide_filters": 40}
        | {"wide_size": 2, "test_samples": 60},
        "quick": {"seeds": 5, "strength": (0.01, 4.0, 8.0)}
        | {"d": 240, "filters": 24, "size": 20, "slow_steps": 200, "long_steps": 400}
        | {"trained_steps": 300, "wide_d": 1000, "wide_filters": 80}
        | {"wide_size": 3, "test_samples": 1000},
        "paper": {},
    }

    combine: Annotated[str, OneOf(COMBINATIONS)] = "mean"
    """how filters are put together; the lemmas' constants carry the 1/m of (1)"""
    case: tuple[Annotated[str, OneOf(CASES)], ...] = tuple(CASES)
    """how it is trained: one of the named settings"""
    gamma: tuple[Ratio, ...] = (1.0, 10.0)
    """noise correlation ratio Gamma of all pairs of classes"""
    strength: tuple[Positive, ...] = (0.01, 2.0, 4.0, 8.0)
    """feature norm |u|; W* of Lemma 2 needs features"""
    size: Count = 100
    """training samples per class (|S|)"""
    slow_steps: Count = 200
    """steps of the settings that look at stage 1"""
    long_steps: Count = 600
    """steps of the setting that looks at stage 2"""
    small_sigma_0: Positive = 0.001
    """std of the initial weights in the setting with a small start (PyTorch's: 1/sqrt(3 d))"""
    wide_classes: Annotated[int, AtLeast(2)] = 2
    """classes of the setting with more filters than samples"""
    wide_d: Count = 5000
    """its coordinates of a patch"""
    wide_filters: Count = 200
    """its filters per class"""
    wide_size: Count = 5
    """its training samples per class"""
    precision: Annotated[str, OneOf(PRECISIONS)] = "float32"
    """matrix products on a GPU; single losses are compared step by step, which tf32 would blur"""
    test_samples: Count = 2000
    seeds: Count = 20

    def check(self) -> None:
        if self.wide_classes > self.wide_d // 2:
            allowed = f"must be at most wide_d/2={self.wide_d // 2}"
            raise bad_value("wide_classes", self.wide_classes, allowed)
        super().check()  # last: it looks at the cases

    def outputs(self) -> tuple[Output, ...]:
        return measures.OUTPUTS

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "class": np.arange(self.classes),
            "spread": np.array(measures.SPREAD),
            "time": np.arange(measures.TIMES),
            "quantile": np.array(neurons.QUANTILES),
        }

    def parts(self) -> tuple[TrainingExperiment, ...]:
        return tuple(self.at_case(name) for name in self.case)

    def at_case(self, name: str) -> TrainingExperiment:
        """This study with the sizes of one case."""
        case = CASES[name]
        study = self
        if case.training == "carried on":
            study = dataclasses.replace(self, combine="sum")
        if case.wide:
            study = dataclasses.replace(
                self,
                classes=self.wide_classes,
                d=self.wide_d,
                filters=self.wide_filters,
                size=self.wide_size,
                initialisation="gaussian",
            )
        if case.start == "small":
            return dataclasses.replace(study, initialisation="gaussian", sigma_0=self.small_sigma_0)
        if case.start == "large":
            return dataclasses.replace(study, initialisation="gaussian", sigma_0=_large_std(study))
        return study

    def steps_of(self, name: str) -> int:
        own, kind = {"slow": self.slow_steps, "long": self.long_steps}, CASES[name].training
        return own[kind] if kind in own else self.training(kind).steps

    def sizes_of(self, name: str) -> list[int]:
        """|S_k| in a case; uneven ones double from class to class, with the same total where 1
        each allows it."""
        study = self.at_case(name)
        if not CASES[name].uneven:
            return [study.size] * study.classes
        total = study.classes * study.size
        sizes = [max(1, round(total * 2**k / (2**study.classes - 1))) for k in range(study.classes)]
        return [*sizes[:-1], total - sum(sizes[:-1])]

    def cost(self) -> Cost:
        sizes = []
        for name, study in zip(self.case, self.parts(), strict=True):
            n = study.classes * study.size
            # odds of every step are kept, and looked at several at a time
            odds = 8 * 8 * n * (self.steps_of(name) + 1)
            sizes.append(study.cost_of(n, 1).bytes_per_cell + odds)
        return Cost(max(sizes), max(self.steps_of(name) for name in self.case))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, case: str, part: Cells) -> dict[str, np.ndarray]:
            return self._run(case, part, eager(context))

        with matrix_products(self.precision, context.device):
            # cells of one seed share their draws, and so one rotation
            return split_by_axes(cells, ("seed", "case"), run)

    def _run(self, name: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        case = CASES[name]
        study = self.at_case(name)
        sizes = torch.tensor([self.sizes_of(name)])
        experiment = study.setup(
            cells,
            context,
            spectrum=study.spectrum(cells.column("gamma", context)),
            strength=cells.column("strength", context),
            sizes=sizes.to(context.device),
        )
        lr = study.rates(case, experiment)
        steps = self.steps_of(name)
        seen = watched(
            experiment,
            context,
            lr,
            steps,
            stop_loss=self.stop_loss if case.stops else 0.0,
            epsilon=small_loss(self),
            work=self.cost().steps_per_cell / steps,
        )
        found: dict[str, Tensor] = {}
        if case.is_stage_1:
            found |= measures.stage_1_measures(study, experiment, seen, lr)
        if case.training == "long":
            found |= measures.stage_2_measures(seen, lr, small_loss(self))
        if name in ENDS:
            found |= neurons.end_measures(study, experiment, seen)
        complete = missing(self, len(cells))  # a case does not measure all
        finite = (seen.nonfinite_step < 0).cpu().numpy()
        for output in set(found) & set(complete):
            complete[output][finite] = found[output].cpu().numpy()[finite]
        complete["lr"][...] = lr.cpu().numpy()
        return complete | {"nonfinite_step": seen.nonfinite_step.cpu().numpy()}

    def rates(self, case: Case, experiment: Trial) -> Tensor:
        """Learning rates, (run,)."""
        samples = experiment.samples
        like = samples.strength[:, 0]
        if case.drop == 0:
            return torch.full_like(like, self.training(case.training).lr)
        trace = experiment.spectrum.trace().mean(dim=1)
        drop = first_loss_drop(
            len(samples) / self.classes,
            like.double().cpu().numpy(),
            trace.double().cpu().numpy(),
            len(samples),
            self.classes,
            1.0,
            self.filters,
            self.scale,
        )
        rate = case.drop * math.log(self.classes) / drop
        return torch.as_tensor(rate).to(like).expand(len(like)).contiguous()


def _large_std(study: TrainingExperiment) -> float:
    """The smallest sigma_0 that (118) allows, its Omega read as 1 and delta as 0.1."""
    n = study.classes * study.size
    return math.log(study.trained_steps) * math.sqrt(math.log(n / 0.1) / (n * study.filters))
