"""What the experiments of 004 share: the setting, what is varied of it, how a batch is set up,
and grids of which not every cell is run: not every variation is worth all of a product of axes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from torch import Tensor

from rarefy.core.compilation import WORTH_BUILDING
from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value, unknown
from rarefy.core.parameters import Count, NotNegative, OneOf, Positive, Whole
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import COUNTS, MultiView
from rarefy.data.multi_view_sets import Batch, FreshSamples, StoredSamples
from rarefy.measure.granularity import CHUNK
from rarefy.studies.granularity.trial import Trial
from rarefy.sweep.batches import Arrays, missing, split_by_axes
from rarefy.train.multi_view_classifier import BIASES, MultiViewClassifier, initial_neurons

Run = Callable[..., Mapping[str, Tensor | np.ndarray]]
AS_CHOSEN = "as chosen"
CHANGES: dict[str, Callable[[GranularityExperiment], dict[str, Any]]] = {
    AS_CHOSEN: lambda chosen: {},
    "patches x2": lambda chosen: {"patches": 2 * chosen.patches, "lr": 2 * chosen.lr},
    "neurons x2": lambda chosen: {"neurons": 2 * chosen.neurons},
    "neurons x1/2": lambda chosen: {"neurons": max(1, chosen.neurons // 2)},
    "c_b 0.7": lambda chosen: {"threshold": 0.7},
    "c_b 1.3": lambda chosen: {"threshold": 1.3},
    "patch counts drawn": lambda chosen: {"counts": "drawn"},
    "hard: weaker distraction": lambda chosen: {"distraction": chosen.distraction / 2},
    "hard: no strong noise": lambda chosen: {"strong": chosen.sigma},
    "hard: no distraction": lambda chosen: {"distractors": 0},
}
"""One change of the setting at a time: the axis ``variation``, "as chosen" first. The rate goes
with the patches, since (16) divides by their number."""


@dataclass(frozen=True, kw_only=True)
class GranularityExperiment(Experiment):
    """The finite setting. The paper's own (c_b = 2 and d^2 neurons per output for coarse labels)
    has one detector of a given feature among 144,000 neurons at d = 100: c_b is free here."""

    compile_from: ClassVar[int] = WORTH_BUILDING

    # the meanings are those of the table of the setting (``charts.setting_table``)
    d: int = 100
    """coordinates of a patch"""
    patches: int = 24
    """P, patches of a sample"""
    feature_patches: int = 3
    """s*, patches with the common feature, and as many with the subclass's"""
    spread: float = 0.1  # strengths lie in [sqrt(1 - spread), sqrt(1 + spread)]
    """iota, of feature strengths"""
    sigma: NotNegative = 0.02
    """noise of every patch"""
    distractors: Whole = 2
    """patches of a hard sample with the other side's common feature"""
    distraction: float = 0.3
    """their strength"""
    strong: NotNegative = 0.3
    """noise of the one strong patch of a hard sample"""
    counts: Annotated[str, OneOf(COUNTS)] = "fixed"  # or drawn, as in App. B.1
    """how many patches have features"""
    neurons: Count = 100
    """m, neurons an output"""
    sigma_0: Positive = 0.01
    """std of initial weights"""
    threshold: Positive = 1.0  # the bias begins at -sigma_0 c_b sqrt(log d)
    """c_b, of the initial bias"""
    bias: Annotated[str, OneOf(BIASES)] = "following"
    """how biases move: following their neuron (18), scheduled alike for all, or still"""
    lr: Positive = 1.0
    """learning rate"""
    batch: Count = 64
    """samples of an update"""
    steps: Count = 400
    """updates"""
    test_each: Count = 32
    """test samples of each kind and subclass"""

    @property
    def setting(self) -> str:
        return f"d={self.d} P={self.patches} m={self.neurons} c_b={self.threshold:.3g}"

    def some(self, *names: str) -> dict[str, Any]:
        """Some of the parameters, to be handed on."""
        return {name: getattr(self, name) for name in names}

    def varied(self, variation: str) -> Self:
        """The same with one thing changed."""
        if variation not in CHANGES:
            raise unknown("variation", variation, CHANGES)
        return replace(self, **CHANGES[variation](self))

    def wide(self, neurons: int) -> Self:
        """The same with so many neurons per output, and a c_b at which a feature has about as many
        detectors: m exp(-c_b^2 log(d)/2) stays. (The paper has d times the neurons and c_b^2 larger
        by 2 with coarse labels than with fine ones, App. B.3, 6.)"""
        more = 2 * math.log(neurons / self.neurons) / math.log(self.d)
        return replace(self, neurons=neurons, threshold=math.sqrt(self.threshold**2 + more))

    def check_reads(self, reads: Sequence[int]) -> None:
        if not reads or min(reads) < 0 or max(reads) != self.steps:
            allowed = f"must lie in 0..steps={self.steps} and have steps too"
            raise bad_value("reads", tuple(reads), allowed)

    def check_variation(self, variation: Sequence[str]) -> None:
        if AS_CHOSEN not in variation:
            raise bad_value("variation", tuple(variation), f"must have {AS_CHOSEN!r}")

    def check_model(self, subclasses: int) -> None:
        """Refuse a number of subclasses that the setting has no room for."""
        self.model(subclasses).balanced(self.batch)

    def model(self, subclasses: int) -> MultiView:
        """The data model with so many subclasses per side; refuses what has no room."""
        names = ("d", "patches", "feature_patches", "spread", "sigma", "distractors")
        return MultiView(
            plus=subclasses,
            minus=subclasses,
            distraction=(self.distraction, self.distraction),
            **self.some(*names, "strong", "counts"),
        )

    def setup(self, cells: Cells, context: Context, labels: Labels, samples: int = 0) -> Trial:
        """Cells of one shape, ready to train; samples: stored ones per subclass, 0: fresh ones."""
        draws, data = cells.draws(context), labels.data
        batches: Callable[[int], Batch]
        if samples:
            batches = StoredSamples(data, labels, draws, samples, self.batch)
        else:
            batches = FreshSamples(data, labels, draws, self.batch)
        initial = initial_neurons(
            draws, labels.outputs, self.neurons, self.d, self.sigma_0, self.threshold
        )
        # a common feature's detectors move at the last rate in phase 1 (004 Theorem D.1)
        rates = (1 / math.log(self.d) ** 5, self.feature_patches / (4 * self.patches))
        problem = MultiViewClassifier(
            self.patches, self.bias, *rates, compile_kernels=context.compiled
        )
        return Trial(data, labels, draws, problem, initial, batches, self.lr)

    @abstractmethod
    def _wanted(self, *place: Any, **named: Any) -> bool:
        """Whether the cells at a place, one value per axis, are run."""

    @abstractmethod
    def _run(self, *at: Any, **named: Any) -> Mapping[str, Tensor | np.ndarray]:
        """Outputs of the cells at a place: of (value, ..., cells, context)."""

    def simulate(self, cells: Cells, context: Context, run: Run | None = None) -> Arrays:
        """All outputs of cells that are not wanted are NaN. Progress adds up to the declared cost
        all the same."""
        found = missing(self, len(cells)) | {NONFINITE_STEP.name: np.full(len(cells), -1)}
        done = 0.0

        def advance(amount: float) -> None:
            nonlocal done
            done += amount
            context.advance(amount)

        run = run or self._run
        counted = replace(context, advance=advance)
        places = zip(*(cells.values[axis].tolist() for axis in self.axes), strict=True)
        rows = np.flatnonzero([self._wanted(*place) for place in places])
        if len(rows):
            parts = split_by_axes(cells.take(rows), self.axes, lambda *at: run(*at, counted))
            for name, values in parts.items():
                found[name][rows] = values
        left = len(cells) * self.cost().steps_per_cell - done
        if left:
            context.advance(left)
        return found

    def cost_of_grid(self, outputs: int, most: int, noisy: bool, steps: int) -> Cost:
        """Memory and work of a cell with so many outputs and subclasses per side, the largest there
        is; ``noisy``: noise wakes all neurons, so that each sees all patches.

        Cells of a batch that differ in shape are trained one after the other, and a batch has as
        many of one shape as it has times the points of the grid: a cell's share of the memory is
        what one run needs over that number. (Variations may double the neurons or the patches.)
        """
        samples = max(self.batch, 2 * most * min(self.test_each, CHUNK))
        seen = samples * (self.patches if noisy else 2 * self.feature_patches + 2)
        neurons = outputs * self.neurons * (6 * self.d + 4 * seen)
        numbers = neurons + 3 * samples * self.patches * self.d
        points = math.prod(len(getattr(self, axis)) for axis in self.axes)
        return Cost(math.ceil(2 * 4 * numbers / points), steps)
