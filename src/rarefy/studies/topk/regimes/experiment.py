"""Signal learnt or noise memorised, without pruning: where the two regimes of 002 are, and how the
coefficients behave in them (002 Theorems 4.2 and 4.3, Prop. 5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, OneOf, Positive
from rarefy.data.signal_noise import LABELS
from rarefy.nets.patch_cnn import COMBINATIONS, output_scale
from rarefy.studies.topk.unpruned import Sizes, Unpruned, UnprunedExperiment, check_dimension
from rarefy.studies.topk.watch import ALONG, AT_END, Watch
from rarefy.theory.conditions import Condition
from rarefy.theory.topk import logit_gain
from rarefy.train.forms import FORMS


@dataclass(frozen=True, kw_only=True)
class RegimesExperiment(UnprunedExperiment):
    """A map of the two regimes over SNR, samples, classes and dimension."""

    axes: ClassVar[tuple[str, ...]] = ("samples", "classes", "d", "snr")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"seeds": 2, "samples": (10, 20), "classes": (2, 3), "d": (500, 10**13)}
        | {"snr": (0.02, 0.2, 4.0)}
        | {"filters": 8, "steps": 60, "reads": (1, 10, 60), "test_samples": 100, "epsilon": 0.1},
        "quick": {"seeds": 3, "samples": (20, 40, 80), "classes": (2, 4), "d": (2000, 10**13)}
        | {"snr": (0.004, 0.012, 0.035, 0.1, 0.3, 0.9, 2.5)}
        | {"filters": 16, "steps": 2000, "reads": (1, 10, 100, 2000), "test_samples": 500},
        "paper": {},
    }

    samples: tuple[Count, ...] = (20, 40, 80, 160)
    """training samples (n)"""
    classes: tuple[Annotated[int, AtLeast(2)], ...] = (2, 4, 10)
    """number of classes (T)"""
    d: tuple[Count, ...] = (2000, 10**13)
    """coordinates of a patch; the largest is what Condition 4.1 asks for"""
    snr: tuple[Positive, ...] = tuple(float(f"{0.003 * 2700 ** (i / 11):.3g}") for i in range(12))
    """signal-to-noise ratio mu/(sigma_p sqrt(d)), which sets sigma_p"""
    lr: Positive = 2.0
    """learning rate in units of m/(mu^2/T + sigma_p^2 d/n), the rate at which logits move, so that
    all cells take equally many steps; Condition 4.1 wants at most O(m T/mu^2)"""
    reads: tuple[Count, ...] = (1, 10, 100, 1000, 3000)
    """numbers of updates after which all is measured; the last is the end"""
    epsilon: Positive = 0.01
    """training loss that counts as small"""
    combine: Annotated[str, OneOf(COMBINATIONS)] = "mean"
    """how filters are put together: mean, as in the paper's formulas, or sum"""
    labels: Annotated[str, OneOf(LABELS)] = "balanced"
    """training labels balanced (what 002 Lemma C.1 needs many more samples for), or drawn"""
    test_samples: Count = 2000
    """fresh samples the test loss is measured on"""
    form: Annotated[str, OneOf(FORMS)] = "auto"
    """primal: vectors of d coordinates; dual, also auto: inner products alone, at any d"""
    seeds: Count = 20

    def check(self) -> None:
        for samples in self.samples:
            if samples < max(self.classes):
                least = f"must be at least the largest number of classes, {max(self.classes)}"
                raise bad_value("samples", samples, least)
        for d in self.d:
            check_dimension(d, max(self.classes), self.filters, max(self.samples), self.form)
        rising = all(a < b for a, b in zip(self.reads, self.reads[1:], strict=False))
        if not self.reads or not rising or self.reads[-1] != self.steps:
            raise bad_value("reads", self.reads, f"must rise from 1 or more to steps={self.steps}")

    def sizes(self, samples: int, classes: int, d: int, snr: float) -> Sizes:
        sigma = self.mu / (snr * math.sqrt(d))
        speed = self.mu**2 / classes + sigma**2 * d / samples
        scale = output_scale(self.combine, self.filters)
        lr = self.lr / (logit_gain(self.filters, scale) * speed)
        return Sizes(self.filters, classes, samples, float(d), self.mu, sigma, lr, scale)

    def conditions(self, d: int) -> list[Condition]:
        """Each line of Condition 4.1 where the grid misses it most at dimension d."""
        return self.worst_conditions(list(product(self.samples, self.classes, [d], self.snr)))

    @property
    def setting(self) -> str:
        return f"m={self.filters} {self.combine}, {self.labels} labels"

    def outputs(self) -> tuple[Output, ...]:
        return (*ALONG, *AT_END)

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads)}

    def cost(self) -> Cost:
        samples, classes = max(self.samples), max(self.classes)
        rows, patches = classes * self.filters, samples + classes
        training = rows * patches * 10 + patches * patches
        axes = max(self.d) if self.form == "primal" else rows + patches
        testing = (3 * rows + 2 * samples) * axes + 250 * (2 * axes + 4 * rows)
        return Cost(bytes_per_cell=4 * (training + testing), steps_per_cell=self.steps)

    def shape(self, sizes: Sizes) -> str:
        # in the dual form cells of every dimension have one shape
        return super().shape(sizes) + (f" {sizes.d}" if self.form == "primal" else "")

    def prepare(self, cells: Cells, context: Context) -> Unpruned:
        sizes, draws = self.sizes_of(cells), cells.draws(context)
        return Unpruned.drawn(sizes, draws, self.sigma_0, self.labels, self.form)

    def measure(self, trial: Unpruned, context: Context) -> dict[str, np.ndarray]:
        watch = Watch(trial, self.test_samples, context)
        seen = trial.train(context, self.steps, {"along": watch.along}, self.reads)
        along = seen.records["along"].cpu().numpy()
        found = {output.name: along[:, :, i] for i, output in enumerate(ALONG)}
        last = watch.at_end(seen.parameters).cpu().numpy()
        found |= {output.name: last[:, i] for i, output in enumerate(AT_END)}
        found["nonfinite_step"] = seen.nonfinite_step.cpu().numpy()
        return found
