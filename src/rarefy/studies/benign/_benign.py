"""What the studies of 003 share: the setting, two ways to train it, and how a batch is tested.

003 prints the mean over filters, PyTorch's initialisation, eta = 0.05 and 20 full-batch epochs.
That training hardly begins: its loss stays near log K. Theorem 1 speaks of a training loss below
epsilon, so each statement is looked at twice, ``printed`` and ``trained`` (the same network at a
larger rate until its loss is small, each run stopping by itself).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Study
from rarefy.core.errors import bad_value
from rarefy.core.precision import check_precision, matrix_products
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise, rotation
from rarefy.data.noise_laws import law_of
from rarefy.data.noise_spectrum import special_direction
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.measure.generalisation import CHUNK, Generalisation, generalisation
from rarefy.nets.patch_cnn import (
    COMBINATIONS,
    INITIALISATIONS,
    initial_filters,
    output_scale,
)
from rarefy.theory.class_noise_bayes import special_ratio
from rarefy.train.descent import State, Tracker, Trajectory, descend
from rarefy.train.gram_classifier import GramClassifier, Unfolded, is_cheaper, start_of
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

TRAININGS = ("printed", "trained")


@dataclass(frozen=True)
class Training:
    """Rate, most steps, and the training loss at which a run stops (0: never)."""

    lr: float
    steps: int
    stop_loss: float = 0.0


@dataclass
class StopAtLoss:
    """Sets a run's rate to zero once its loss was at or below ``level``: the run stands still.

    ``stopped_at``: (run,), updates made by then, -1 while a run is moving.
    """

    lr: Tensor
    level: float
    stopped_at: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.stopped_at = torch.full_like(self.lr, -1, dtype=torch.int64)

    def __call__(self, state: State) -> None:
        done = state.loss <= self.level
        self.stopped_at = torch.where(done & (self.stopped_at < 0), state.step, self.stopped_at)
        self.lr.masked_fill_(done, 0.0)


@dataclass(frozen=True)
class Experiment:
    """A batch of runs ready to train."""

    data: ClassNoise
    samples: PatchSamples
    initial: Tensor
    draws: Draws
    scale: float
    precision: str = "float32"

    def train(
        self,
        context: Context,
        training: Training,
        trackers: Mapping[str, Tracker],
        record: Sequence[int] | None = None,
        coefficients: bool = False,
    ) -> tuple[Trajectory, Tensor]:
        """The trajectory, and after how many updates each run reached its stopping loss (-1: it
        did not). Trained in whichever form is cheaper: by weights, or by responses to the patches;
        trackers see ``filters`` (and ``coefficients`` where wanted) in both."""
        by_gram = is_cheaper(self.samples)
        lr = self.initial.new_full((len(self.initial),), training.lr)
        stopping = StopAtLoss(lr, training.stop_loss)
        problem: GramClassifier | PatchClassifier
        if by_gram:
            problem = GramClassifier.of(self.samples, self.scale, context.compiled)
            parameters = start_of(self.initial, self.samples)
            trackers = {name: self._with_filters(tracker) for name, tracker in trackers.items()}
        else:
            problem = PatchClassifier.of(self.samples, self.scale, context.compiled)
            parameters = {"filters": self.initial}
            if coefficients:
                patches = len(self.samples) + self.samples.classes
                zeros = self.initial.new_zeros(*self.initial.shape[:3], patches)
                parameters["coefficients"] = zeros
        with matrix_products(self.precision, context.device):
            trajectory = descend(
                problem,
                parameters,
                lambda step: None,
                Sgd(lr),
                training.steps,
                trackers=trackers,
                record=record,
                after_update=stopping if training.stop_loss > 0 else None,
                context=context,
                guard="loss",
            )
        if by_gram:
            trajectory.parameters = Unfolded(trajectory.parameters, self.initial, self.samples)
        return trajectory, stopping.stopped_at

    def _with_filters(self, tracker: Tracker) -> Tracker:
        def look(state: State) -> Tensor:
            whole = Unfolded(state.parameters, self.initial, self.samples)
            return tracker(State(state.step, whole, state.loss))

        return look

    def test(
        self,
        filters: Tensor,
        context: Context,
        samples: int,
        draw: Callable[[int, int], PatchSamples] | None = None,
    ) -> Generalisation:
        """Measures on fresh samples, equally many of every class unless ``draw`` says otherwise."""
        return generalisation(filters, draw or self.fresh, samples, self.scale, context.compiled)

    def fresh(self, count: int, chunk: int) -> PatchSamples:
        """``count`` test samples, class after class."""
        return self.data.sample(self.draws, self.test_labels(count), "test", chunk)

    def test_labels(self, count: int) -> Tensor:
        labels = torch.arange(count, device=self.initial.device) % self.data.classes
        return labels[None]


@dataclass(frozen=True, kw_only=True)
class ClassNoiseStudy(Study):
    """The setting of 003 Sec. 5.1: all non-zero eigenvalues of A_k are ``base`` but one, in a
    direction of the class's own, which sets the noise correlation ratio Gamma."""

    lab: ClassVar[str] = "benign"

    classes: int = 5
    """number of classes (K of 003)"""
    d: int = 1000
    """coordinates of a patch"""
    filters: int = 100
    """filters a class (m)"""
    base: float = 0.5
    """eigenvalue of A_k in all directions but the features' and the class's own"""
    initialisation: str = "default"
    """default: PyTorch's, uniform on +-1/sqrt(d); gaussian: N(0, sigma_0^2)"""
    sigma_0: float = 0.01
    """std of Gaussian initial filters"""
    combine: str = "mean"
    """how filters are put together: mean as in (1), or sum"""
    lr: float = 0.05
    """learning rate of ``printed`` training"""
    steps: int = 20
    """full-batch steps of ``printed`` training"""
    trained_lr: float = 50.0
    """learning rate of ``trained``: large to save steps, the end hardly depends on it"""
    trained_steps: int = 1000
    """most steps of ``trained``"""
    stop_loss: float = 0.01
    """training loss at which a ``trained`` run stops (epsilon of Theorem 1)"""
    test_samples: int = 10_000
    precision: str = "tf32"
    """matrix products on a GPU: float32, or tf32 (tried once in 48 cells: test errors differed by
    0.0005 at most, errors of strata by 0.0014; no benchmark repeats this yet)"""

    @property
    def setting(self) -> str:
        return f"K={self.classes} d={self.d} m={self.filters} {self.combine}"

    def check(self) -> None:
        super().check()
        for name in ("filters", "steps", "trained_steps", "test_samples"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        for name in ("base", "sigma_0", "lr", "trained_lr"):
            if not 0 < getattr(self, name) < float("inf"):
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        if not 0 <= self.stop_loss < float("inf"):
            raise bad_value("stop_loss", self.stop_loss, "must be finite and at least 0")
        if not 2 <= self.classes <= self.d // 2:
            least = (
                f"must be at least 2 and at most d/2={self.d // 2}: a feature and a direction each"
            )
            raise bad_value("classes", self.classes, least)
        check_precision(self.precision)
        for name, known in (("combine", COMBINATIONS), ("initialisation", INITIALISATIONS)):
            if getattr(self, name) not in known:
                raise bad_value(name, getattr(self, name), f"must be one of {', '.join(known)}")

    @property
    def scale(self) -> float:
        """The factor in front of the sum over filters."""
        return output_scale(self.combine, self.filters)

    def training(self, name: str) -> Training:
        """What ``printed`` and ``trained`` mean."""
        if name == "printed":
            return Training(self.lr, self.steps)
        if name == "trained":
            return Training(self.trained_lr, self.trained_steps, self.stop_loss)
        raise bad_value("training", name, f"must be one of {', '.join(TRAININGS)}")

    def words(self, schedule: str) -> str:
        """A training in words, for titles."""
        training = self.training(schedule)
        if training.stop_loss > 0:
            return f"trained to a loss of {training.stop_loss:g}"
        name = "as printed" if schedule == "printed" else schedule
        return f"{name}, {training.steps} steps of rate {training.lr:g}"

    def cost_of(self, samples: int, steps: int) -> Cost:
        """What a cell with so many training samples takes."""
        rows, patches = self.classes * self.filters, samples + self.classes
        numbers = rows * (4 * self.d + 3 * patches + 2 * CHUNK)
        numbers += (3 * patches + 3 * CHUNK) * self.d
        return Cost(bytes_per_cell=8 * numbers, steps_per_cell=steps)

    def setup(
        self,
        cells: Cells,
        context: Context,
        *,
        eigenvalues: Tensor,
        strength: Tensor,
        sizes: Tensor,
        law: str = "gaussian",
        zeta_axes: str = "original",
    ) -> Experiment:
        """Draw samples and initial filters. eigenvalues: (run or 1, classes, d); strength: feature
        norms, (run,) or (run, classes); sizes: |S_k|, (run or 1, classes), int64.

        Cells with one key share zeta, rotation and initial filters.
        """
        shared = bool((cells.keys == cells.keys[0]).all())
        draws = (cells.take(np.array([0])) if shared else cells).draws(context)
        if strength.dim() == 1:
            strength = strength[:, None].expand(-1, self.classes)
        basis = None
        if self.initialisation != "gaussian" or law_of(law).name != "gaussian":
            basis = rotation(draws, self.d)  # else nothing would notice it
        data = ClassNoise(
            eigenvalues.to(strength), strength, law, basis, zeta_axes, coordinates="rotated"
        )
        start = initial_filters(draws, self.classes, self.filters, self.d, self.initialisation)
        if self.initialisation == "gaussian":
            start = start * self.sigma_0
        elif basis is not None:  # into the coordinates in which the samples are written
            start = torch.einsum("gkmd,gde->gkme", start, basis)
        return Experiment(
            data=data,
            samples=data.sample(draws, labels_by_size(sizes)),
            initial=start.expand(len(cells), -1, -1, -1),
            draws=draws,
            scale=self.scale,
            precision=self.precision,
        )


def equal_classes(
    gamma: Tensor | float, d: int, classes: int, base: float, rank: int | None = None
) -> Tensor:
    """Eigenvalues with the ratios ``gamma``, a number or (run,), between classes of one size: (run,
    classes, d), float64; ``rank`` as in ``special_direction``, at least ``classes``. What
    ``eigenvalues_for`` gives, without its search: for equal sizes there is a formula."""
    wanted = torch.as_tensor(gamma, dtype=torch.float64).reshape(-1)
    directions = d - classes if rank is None else rank
    if directions < classes:
        raise bad_value("rank", directions, f"must be at least classes={classes}")
    ratio = torch.as_tensor(special_ratio(wanted.cpu().numpy(), directions))
    special = base * ratio[:, None].expand(-1, classes)
    return special_direction(special, d, classes, base, rank).to(wanted.device)
