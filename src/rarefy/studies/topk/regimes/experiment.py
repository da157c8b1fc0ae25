"""Signal learnt or noise memorised, without pruning: where the two regimes of 002 are, and how the
coefficients behave in them (002 Theorems 4.2 and 4.3, Prop. 5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.data.signal_noise import LABELS
from rarefy.nets.patch_cnn import COMBINATIONS, output_scale
from rarefy.studies.topk.regime_watch import ALONG, AT_END, Watch
from rarefy.studies.topk.unpruned import Unpruned, check_dimension, unpruned
from rarefy.sweep.batches import split_by_axis
from rarefy.theory.topk import logit_gain


@dataclass(frozen=True, kw_only=True)
class RegimesExperiment(Experiment):
    """A map of the two regimes over SNR, samples, classes and dimension."""

    axes: ClassVar[tuple[str, ...]] = ("samples", "classes", "d", "snr")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "samples": (10, 20),
            "classes": (2, 3),
            "d": (500, 10**13),
            "snr": (0.02, 0.2, 4.0),
            "filters": 8,
            "steps": 60,
            "reads": (1, 10, 60),
            "test_samples": 100,
            "epsilon": 0.1,
        },
        "quick": {
            "seeds": 3,
            "samples": (20, 40, 80),
            "classes": (2, 4),
            "d": (2000, 10**13),
            "snr": (0.004, 0.012, 0.035, 0.1, 0.3, 0.9, 2.5),
            "filters": 16,
            "steps": 2000,
            "reads": (1, 10, 100, 2000),
            "test_samples": 500,
        },
        "paper": {},
    }

    samples: tuple[int, ...] = (20, 40, 80, 160)
    """training samples (n)"""
    classes: tuple[int, ...] = (2, 4, 10)
    """number of classes (T)"""
    d: tuple[int, ...] = (2000, 10**6, 10**9, 10**13)
    """coordinates of a patch; the largest is what Condition 4.1 asks for"""
    snr: tuple[float, ...] = tuple(float(f"{0.003 * 2700 ** (i / 15):.3g}") for i in range(16))
    """signal-to-noise ratio mu/(sigma_p sqrt(d)), which sets sigma_p"""
    filters: int = 20
    """filters a class (m)"""
    mu: float = 10.0
    """strength of the signal; large enough that sigma_p^2 d >= 1 on the whole grid"""
    sigma_0: float = 1e-11
    """std of the initial filters; as small as Condition 4.1 asks for at the largest n and T"""
    lr: float = 2.0
    """learning rate in units of m/(mu^2/T + sigma_p^2 d/n), the rate at which logits move, so that
    all cells take equally many steps; Condition 4.1 wants at most O(m T/mu^2)"""
    steps: int = 3000
    """updates"""
    reads: tuple[int, ...] = (1, 10, 100, 1000, 3000)
    """numbers of updates after which all is measured; the last is the end"""
    epsilon: float = 0.01
    """training loss that counts as small"""
    combine: str = "mean"
    """how filters are put together: mean, as in the paper's formulas, or sum"""
    labels: str = "balanced"
    """training labels balanced (what 002 Lemma C.1 needs many more samples for), or drawn"""
    test_samples: int = 2000
    """fresh samples the test loss is measured on"""
    form: str = "auto"
    """primal: vectors of d coordinates; dual, also auto: inner products alone, at any d"""
    seeds: int = 10

    def check(self) -> None:
        super().check()
        for name in ("filters", "steps", "test_samples"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        for name in ("mu", "sigma_0", "lr", "epsilon"):
            if not 0 < getattr(self, name) < math.inf:
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        for snr in self.snr:
            if not 0 < snr < math.inf:
                raise bad_value("snr", snr, "must be positive and finite")
        for classes in self.classes:
            if classes < 2:
                raise bad_value("classes", classes, "must be at least 2")
        for samples in self.samples:
            if samples < max(self.classes):
                least = f"must be at least the largest number of classes, {max(self.classes)}"
                raise bad_value("samples", samples, least)
        for d in self.d:
            check_dimension(d, max(self.classes), self.filters, max(self.samples), self.form)
        for name, known in (("combine", COMBINATIONS), ("labels", LABELS)):
            if getattr(self, name) not in known:
                raise bad_value(name, getattr(self, name), f"must be one of {', '.join(known)}")
        rising = all(a < b for a, b in zip(self.reads, self.reads[1:], strict=False))
        if not self.reads or not rising or self.reads[0] < 1 or self.reads[-1] != self.steps:
            raise bad_value("reads", self.reads, f"must rise from 1 or more to steps={self.steps}")

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

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def of_size(samples: int, those: Cells) -> dict[str, np.ndarray]:
            return split_by_axis(
                those,
                "classes",
                lambda classes, part: self._of_shape(samples, classes, part, context),
            )

        return split_by_axis(cells, "samples", of_size)

    def _of_shape(
        self, samples: int, classes: int, cells: Cells, context: Context
    ) -> dict[str, np.ndarray]:
        if self.form != "primal":  # cells of every dimension have one shape
            return self._run(samples, classes, cells, context)
        return split_by_axis(cells, "d", lambda _, part: self._run(samples, classes, part, context))

    def prepare(self, samples: int, classes: int, cells: Cells, context: Context) -> Unpruned:
        """Cells of one number of samples and classes, ready to train."""
        wide = Context(device=context.device, dtype=torch.float64)
        d, snr = cells.column("d", wide), cells.column("snr", wide)
        mu = torch.full_like(d, self.mu)
        sigma = mu / (snr * torch.sqrt(d))
        speed = mu**2 / classes + sigma**2 * d / samples
        gain = logit_gain(self.filters, output_scale(self.combine, self.filters))
        return unpruned(
            cells.draws(context),
            classes=classes,
            filters=self.filters,
            samples=samples,
            d=d,
            mu=mu.to(context.dtype),
            sigma=sigma.to(context.dtype),
            sigma_0=self.sigma_0,
            lr=(self.lr / (gain * speed)).to(context.dtype),
            combine=self.combine,
            labels=self.labels,
            form=self.form,
        )

    def _run(
        self, samples: int, classes: int, cells: Cells, context: Context
    ) -> dict[str, np.ndarray]:
        experiment = self.prepare(samples, classes, cells, context)
        watch = Watch(experiment, self.test_samples, context)
        seen = experiment.train(context, self.steps, {"along": watch.along}, self.reads)
        along = seen.records["along"].cpu().numpy()
        found = {output.name: along[:, :, i] for i, output in enumerate(ALONG)}
        last = watch.at_end(seen.parameters)
        found |= {output.name: last[:, i].cpu().numpy() for i, output in enumerate(AT_END)}
        found["nonfinite_step"] = seen.nonfinite_step.cpu().numpy()
        return found
