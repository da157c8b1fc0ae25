"""Long training on a finite set of samples: one branch or two, with and without masks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import (
    AtLeast,
    Count,
    NotNegative,
    OneOf,
    Positive,
    PositiveShare,
    Share,
    Whole,
)
from rarefy.data.finite_set import AGAIN, FRESH, FiniteSets
from rarefy.measure.alignment import outside, squared_cosines
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies.contrastive import setting as lab
from rarefy.studies.contrastive.downstream import Encoders
from rarefy.studies.contrastive.separability.experiment import READINGS, SeparabilityExperiment
from rarefy.sweep.batches import split_by_axis
from rarefy.train.losses import info_nce
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.two_branches import TwoBranches

TRAININGS = ("plain", "pruned", "branches", "masked")
SEEN = ("trained", "fresh")


@dataclass(frozen=True, kw_only=True)
class SamplesExperiment(SeparabilityExperiment):
    """All methods of a seed begin with the same weights and see the same samples."""

    version: ClassVar[int] = 1
    axes: ClassVar[tuple[str, ...]] = ("training", "again", "samples", "bias_scale", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 3,
            "samples": (32, FRESH),
            "eps_min": (0.5,),
            "d1": 40,
            "batch": 16,
            "steps": 16,
            "reads": (4, 16),
            "figure_read": 4,
            "probe_pairs": 60,
            "test_pairs": 60,
            "loss_pairs": 32,
        },
        "quick": {
            "seeds": 5,
            "samples": (64, FRESH),
            "again": ("sample",),
            "steps": 1200,
            "reads": (100, 300, 1200),
            "figure_read": 300,
            "probe_pairs": 150,
            "test_pairs": 250,
        },
        "paper": {},
        # networks without a bias are linear, learn in a quarter of the time, and train with few
        # weights kept, as on images
        "linear": {
            "seeds": 24,
            "bias_scale": (0.0,),
            "keep": 0.1,
            "steps": 3000,
            "reads": (40, 100, 300, 750, 1500, 3000),
            "figure_read": 750,
        },
    }

    seeds: Count = 8
    """repeats of each grid point"""
    training: tuple[Annotated[str, OneOf(TRAININGS)], ...] = TRAININGS
    """plain: loss (1); pruned: Algorithm 1; branches: two, both through all weights; masked: two,
    one of them through the largest weights alone"""
    again: tuple[Annotated[str, OneOf(AGAIN)], ...] = AGAIN
    """what comes back when a sample is seen again: the sample, under fresh noise as an image under
    augmentations, or the pair with all its noise"""
    samples: tuple[Whole, ...] = (64, 256, FRESH)
    """size of the training set; 0: fresh samples at every step"""
    eps_min: tuple[lab.Frequency, ...] = (0.2,)
    """frequency of the minority features"""
    bias_scale: tuple[NotNegative, ...] = (1.0,)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    d1: Count = 100
    """dimension of a token"""
    sigma: NotNegative = 0.112
    """noise std; sigma^2 d1 is 1.25, the largest noise-to-signal ratio of 000 Fig. 2-3"""
    instance: Share = 0.5
    """share of the noise's variance that is a sample's own, where samples come back"""
    batch: Annotated[int, AtLeast(2)] = 32
    """pairs per batch"""
    alpha: lab.LeftOut = 0.3
    """share of the neurons, the smallest, that Algorithm 1 leaves out"""
    keep: PositiveShare = 0.5
    """share of the weights, the largest, that the masked branch has"""
    lr: Positive = 1.0
    """learning rate, eta"""
    steps: Count = 12_000
    """training steps"""
    reads: tuple[int, ...] = (40, 100, 400, 1000, 3000, 6000, 12_000)
    """steps after which the network is tested"""
    figure_read: int = 3000
    """earlier step with which the last is compared: on images four times as long was too long"""
    probe_pairs: Annotated[int, AtLeast(2)] = 250
    """pairs on which probes are trained; both members of a pair are samples"""
    test_pairs: Count = 500
    """pairs on which probes are tested, likewise"""
    loss_pairs: Count = 256
    """pairs of the training set, and fresh ones, on which the loss is measured"""

    def check(self) -> None:
        super().check()
        if set(self.training) != set(TRAININGS):
            raise bad_value("training", self.training, f"compares all: {', '.join(TRAININGS)}")
        lab.check_alphas((0.0, self.alpha), self.neurons)
        if not any(self.samples):
            raise bad_value("samples", self.samples, "needs a finite set, not fresh samples alone")
        for size in self.samples:
            if size != FRESH and size < self.batch:
                least = f"must be at least batch={self.batch}, or 0 for fresh samples"
                raise bad_value("samples", size, least)
        if self.figure_read == self.reads[-1]:
            raise bad_value("figure_read", self.figure_read, "must come before the last of reads")

    @property
    def drawn_pairs(self) -> tuple[int, ...]:
        return (*super().drawn_pairs, self.loss_pairs, self.loss_pairs)

    @property
    def _probe_sets(self) -> int:
        return len(READINGS) * len(self.reads)

    def bytes_per_cell(self) -> int:
        held = 8 * 2 * max(self.samples) * self.tokens * (self.d1 + self.d)
        return super().bytes_per_cell() + held

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        probed = "balanced accuracy of a feature's probe, mean over features"
        return (
            Output("best", by_group, "largest cosine of any neuron, mean over features (Fig. 3)"),
            Output("accuracy", (*by_group, "reading"), probed),
            Output("loss", ("read", "seen"), "loss (1) of all neurons"),
            Output("outside", ("read",), "share of the weights' squared norm outside the features"),
            Output("bias_on", (), "step T1, from which neurons have a bias; -1: never"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        names = {"group": lab.GROUPS, "reading": READINGS, "seen": SEEN}
        return {"read": np.array(self.reads)} | {k: np.array(v) for k, v in names.items()}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def runs(training: str, part: Cells) -> dict[str, np.ndarray]:
            return self.tested(self.trial(training, part, context), context)

        return split_by_axis(cells, "training", runs)

    def trial(self, training: str, cells: Cells, context: Context) -> lab.Trial:
        """Runs of one training, ready to train."""
        pruning = self._pruning(cells, context) if training == "pruned" else None
        trial = self.setup(cells, context, pruning=pruning)
        pairs = torch.tensor(np.asarray(cells.values["again"]) == "pair", device=context.device)
        own = torch.where(pairs, 0.0, self.instance).to(trial.data.sigma)
        trial = replace(trial, data=replace(trial.data, instance=own))
        size = cells.column("samples", context).to(torch.int64)
        trial = replace(trial, samples=FiniteSets(trial.data, trial.draws, size, pairs))
        if training in ("branches", "masked"):
            keep = self.keep if training == "masked" else 1.0
            trial = replace(trial, problem=TwoBranches(**vars(trial.problem), keep=keep))
        return trial

    def _pruning(self, cells: Cells, context: Context) -> NeuronPruning:
        alpha = torch.full((len(cells),), self.alpha, dtype=context.dtype, device=context.device)
        from_the_start = torch.zeros(len(cells), dtype=torch.int64, device=context.device)
        codes = rule_codes(["dense"] * len(cells), context.device)
        return NeuronPruning(alpha, from_the_start, codes, self.neurons)

    def tested(self, trial: lab.Trial, context: Context) -> dict[str, np.ndarray]:
        """Train, and test what the network was at every read."""
        encoders = self.trained(trial, context)
        train, test = (
            self._drawn(encoders, purpose, count)
            for purpose, count in (("probe", self.probe_pairs), ("test", self.test_pairs))
        )
        found: dict[str, list[Tensor]] = {"best": [], "accuracy": [], "outside": []}
        for read in range(len(self.reads)):
            weights, atoms = encoders.weights[:, read], trial.data.dictionary
            best = squared_cosines(weights, atoms).amax(dim=1).sqrt()
            found["best"].append(lab.group_means(best, self.majority))
            both = train.f[:, read], test.f[:, read]
            accuracy = self._probed(encoders, both, train.z, test.z).transpose(1, 2)
            found["accuracy"].append(lab.group_means(accuracy, self.majority).transpose(1, 2))
            squares = (part.square().sum(dim=(1, 2)) for part in (outside(weights, atoms), weights))
            found["outside"].append(next(squares) / next(squares))
        outputs = {name: encoders.kept(torch.stack(v, dim=1)) for name, v in found.items()}
        outputs["loss"] = encoders.kept(self._losses(encoders))
        outputs["bias_on"] = trial.bias.t1.cpu().numpy()
        outputs["nonfinite_step"] = encoders.nonfinite_step.cpu().numpy()
        return outputs

    def _losses(self, encoders: Encoders) -> Tensor:
        """Loss (1) on pairs of the training set and on fresh ones: (run, read, seen)."""
        trial, context, found = encoders.trial, encoders.context, []
        batches = -(-self.loss_pairs // self.batch)
        fresh = trial.draws.spawn("fresh loss")
        chosen = replace(trial, draws=trial.draws.spawn("trained loss"))
        for draw in (chosen.batch, lambda step: trial.data.sample(fresh, self.batch, step)):
            total: Tensor | float = 0.0
            for index in range(batches):
                context.check_time()
                f, _ = encoders.embed(draw(index))
                losses = [
                    info_nce(f[:, 0, read], f[:, 1, read], trial.problem.tau, trial.problem.factor)
                    for read in range(len(self.reads))
                ]
                total = total + torch.stack(losses, dim=1) / batches
                context.advance(len(f))
            found.append(torch.as_tensor(total))
        return torch.stack(found, dim=2)
