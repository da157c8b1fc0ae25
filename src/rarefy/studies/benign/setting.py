"""What the studies of 003 share: the setting, three ways to train it, and how a batch is drawn.

Sec. 5.1 prints PyTorch's initialisation, eta = 0.05 and 20 full-batch epochs; (1) prints a mean
over the m filters. With that mean the printed recipe hardly begins (its loss stays near log K);
with their sum it trains. So filters are summed here. A mean is no other network: it is the sum with
initial weights m times smaller, at a rate m^2 times larger. Hence three trainings:

    printed     the printed recipe: what the figures show
    trained     from m times smaller weights, which is (1) with PyTorch's initialisation, until the
                loss is small: what Theorem 1 speaks of (Condition 1 (c): small initial weights)
    carried on  the printed recipe carried on until its loss is small
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.compilation import WORTH_BUILDING
from rarefy.core.contracts import Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, NotNegative, OneOf, Positive, Rule
from rarefy.core.precision import PRECISIONS
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise, rotation
from rarefy.data.gram_samples import check_gaussian, gram_class_noise
from rarefy.data.noise_laws import law_of
from rarefy.data.noise_spectrum import Spectrum, spectrum_for
from rarefy.data.patches import labels_by_size
from rarefy.measure.generalisation import CHUNK
from rarefy.nets.patch_cnn import COMBINATIONS, INITIALISATIONS, initial_filters, output_scale
from rarefy.studies.benign.trial import Training, Trial
from rarefy.train.forms import FORMS

TINY: dict[str, Any] = {"seeds": 2, "classes": 3, "d": 40, "filters": 6}
TINY |= {"trained_steps": 100, "test_samples": 300}
"""What the scale ``tiny`` of most studies is made of."""
TRAININGS = ("printed", "trained", "carried on")
Schedule = Annotated[str, OneOf(TRAININGS)]
Ratio = Annotated[float, Rule("must be finite and at least 1", lambda value: 1 <= value < math.inf)]
"""A noise correlation ratio Gamma; 1: the noise of all classes is alike."""
LARGE = 10**5
"""From this d on the form "auto" does without vectors, where it can."""
NUMBERS = 2 * 10**8
"""Coordinates of one run's filters, or of a rotation, that are stored at most."""
D_OF_RATES = 1000
"""Coordinates for which ``lr`` is meant, those of 003."""


@dataclass(frozen=True, kw_only=True)
class ClassNoiseExperiment(Experiment):
    """The setting of 003 Sec. 5.1: all non-zero eigenvalues of A_k are ``base`` but one, in a
    direction of the class's own, which sets the noise correlation ratio Gamma."""

    lab: ClassVar[str] = "benign"
    compile_from: ClassVar[int] = WORTH_BUILDING
    kinds: ClassVar[int] = 1
    """kinds of noise besides the special directions; each needs axes of its own without vectors"""

    classes: Annotated[int, AtLeast(2)] = 5
    """number of classes (K of 003)"""
    d: Count = 1000
    """coordinates of a patch"""
    filters: Count = 100
    """filters per class (m)"""
    base: Positive = 0.5
    """eigenvalue of A_k in all directions but the features' and the class's own"""
    initialisation: Annotated[str, OneOf(INITIALISATIONS)] = "default"
    """default: PyTorch's, uniform on +-1/sqrt(d); gaussian: N(0, sigma_0^2)"""
    sigma_0: Positive = 0.01
    """std of Gaussian initial filters"""
    combine: Annotated[str, OneOf(COMBINATIONS)] = "sum"
    """how filters are put together: sum, or mean as in (1)"""
    lr: Positive = 0.05
    """learning rate as printed; above d = 1000 it is multiplied by 1000/d, as much as noise is
    longer (squared), so that a step means the same"""
    steps: Count = 20
    """full-batch steps of ``printed`` training"""
    trained_lr: Positive = 2.5
    """learning rate of ``trained`` in units of n/(m output_scale^2 tr(A^T A)), so that a step moves
    a sample's own score alike whatever n, m, d and the noise are; 2.5 is 0.05 in 003 Fig. 3"""
    trained_steps: Count = 400
    """most steps of ``trained`` and ``carried on``; runs that have stopped cost nothing"""
    stop_loss: NotNegative = 0.01
    """training loss at which these stop (epsilon of Theorem 1)"""
    test_samples: Count = 10_000
    """fresh samples, equally many of every class"""
    precision: Annotated[str, OneOf(PRECISIONS)] = "tf32"
    """matrix products on a GPU: float32, or tf32 (tried once in 48 cells: test errors differed by
    0.0005 at most, errors of strata by 0.0014; no benchmark repeats this yet)"""
    form: Annotated[str, OneOf(FORMS)] = "auto"
    """primal: vectors of d coordinates; dual: inner products alone, at any d, for gaussian noise
    and initialisation only; auto: dual where that is possible and d is above 100,000, else vectors,
    trained by weights or by inner products, whichever takes less work"""

    @property
    def setting(self) -> str:
        return f"K={self.classes} d={self.d} m={self.filters} {self.combine}"

    def check(self) -> None:
        if self.classes > self.d // 2:
            most = f"must be at most d/2={self.d // 2}: a feature and a direction each"
            raise bad_value("classes", self.classes, most)
        for part in self.parts():
            part.check_form()

    def check_form(self) -> None:
        """Refuse a form that a law or an initialisation does not have, and a d too large for it."""
        for law in self.laws:
            if self.form == "dual":
                check_gaussian(law, self.initialisation)
            if self.without_vectors(law):
                continue
            most = NUMBERS // (self.classes * self.filters)
            if law != "gaussian" or self.initialisation != "gaussian":
                most = min(most, math.isqrt(NUMBERS))  # a rotation of the space is stored as well
            if self.d > most:
                allowed = f"at most {most} where vectors are stored; --form dual stores none, and "
                raise bad_value("d", self.d, f"{allowed}needs gaussian law and initialisation")

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def parts(self) -> tuple[ClassNoiseExperiment, ...]:
        """The settings that this study is made of, one d and one initialisation each."""
        return (self,)

    @property
    def laws(self) -> tuple[str, ...]:
        """Laws of the noise that are run."""
        return ("gaussian",)

    def spectrum(self, gamma: Tensor | float) -> Spectrum:
        """That of all A_k at one ratio, or at several, (run,): for classes of one size."""
        ratio = gamma.cpu() if isinstance(gamma, Tensor) else gamma
        return spectrum_for(ratio, self.d, self.classes, self.base)

    def without_vectors(self, law: str = "gaussian") -> bool:
        """Whether cells of this law draw inner products alone, and no vectors of d coordinates:
        noise and filters that are both Gaussian look the same from all sides, and can do without
        (``rarefy.data.gram_samples``). Their law is the same either way, the draws are others."""
        gaussian = law == self.initialisation == "gaussian"
        return self.form == "dual" or (self.form == "auto" and gaussian and self.d > LARGE)

    @property
    def scale(self) -> float:
        """The factor in front of the sum over filters."""
        return output_scale(self.combine, self.filters)

    def training(self, name: str) -> Training:
        """What ``printed``, ``trained`` and ``carried on`` mean."""
        if name not in TRAININGS:
            raise bad_value("training", name, f"must be one of {', '.join(TRAININGS)}")
        if name == "trained":
            return Training(self.trained_lr, self.trained_steps, self.stop_loss, relative=True)
        lr = self.lr * min(1.0, D_OF_RATES / self.d)
        if name == "printed":
            return Training(lr, self.steps)
        return Training(lr, self.trained_steps, self.stop_loss)

    def start(self, name: str) -> float:
        """Factor on the initial weights: see the three trainings above."""
        return 1 / self.filters if name == "trained" and self.combine == "sum" else 1.0

    def words(self, schedule: str) -> str:
        """A training in words, for titles."""
        training = self.training(schedule)
        if training.stop_loss > 0:
            return f"{schedule} to a loss of {training.stop_loss:g}"
        name = schedule
        if schedule == "printed":  # with the mean over filters, as (1) has it, that does not train
            name = "filters summed" if self.combine == "sum" else "as printed"
        return f"{name}, {training.steps} steps of rate {training.lr:g}"

    def cost_of(self, samples: int, steps: int) -> Cost:
        """What a cell with so many training samples takes."""
        rows, patches = self.classes * self.filters, samples + self.classes
        axes = self.stored_axes(samples)
        numbers = rows * (4 * axes + 3 * patches + 2 * CHUNK)
        numbers += (3 * patches + 3 * CHUNK) * axes
        return Cost(bytes_per_cell=8 * numbers, steps_per_cell=steps)

    def stored_axes(self, samples: int) -> int:
        """Coordinates of the vectors that are stored, with so many training samples."""
        if not all(self.without_vectors(law) for law in self.laws):
            return self.d
        return 2 * self.classes + self.kinds * (samples + self.classes * self.filters)

    def setup(
        self,
        cells: Cells,
        context: Context,
        *,
        spectrum: Spectrum,
        strength: Tensor,
        sizes: Tensor,
        schedule: str = "printed",
        law: str = "gaussian",
        zeta_axes: str = "original",
        room: int | None = None,
    ) -> Trial:
        """Draw samples and initial filters. spectrum: of the noise, for every run or for all;
        strength: feature norms, (run,) or (run, classes); sizes: |S_k|, (run or 1, classes), int64;
        schedule: the training; room: draw so many training samples and take the first, so that
        sets of different sizes have the same ones.

        Cells with one key share zeta, rotation and initial filters.
        """
        shared = bool((cells.keys == cells.keys[0]).all())
        draws = (cells.take(np.array([0])) if shared else cells).draws(context)
        if strength.dim() == 1:
            strength = strength[:, None].expand(-1, self.classes)
        labels, form = labels_by_size(sizes), self.form
        if self.without_vectors(law):
            form = "dual"
            world = gram_class_noise(draws, labels, self.filters, spectrum, strength, room)
            data, samples, start = world.data, world.samples, world.filters * self.sigma_0
        else:
            data, start = self._in_vectors(draws, spectrum, strength, law, zeta_axes)
            drawn = data.zeta(draws, room or labels.shape[1])
            samples = data.assemble(labels, drawn[:, : labels.shape[1]])
        return Trial(
            data=data,
            samples=samples,
            spectrum=spectrum,
            initial=(start * self.start(schedule)).expand(len(cells), -1, -1, -1),
            draws=draws,
            scale=self.scale,
            form=form,
            precision=self.precision,
        )

    def _in_vectors(
        self, draws: Draws, spectrum: Spectrum, strength: Tensor, law: str, zeta_axes: str
    ) -> tuple[ClassNoise, Tensor]:
        """The data model in d coordinates, and initial filters."""
        basis = None
        if self.initialisation != "gaussian" or law_of(law).name != "gaussian":
            basis = rotation(draws, self.d)  # else nothing would notice it
        table = spectrum.table().to(strength)
        data = ClassNoise(table, strength, law, basis, zeta_axes, coordinates="rotated")
        start = initial_filters(draws, self.classes, self.filters, self.d, self.initialisation)
        if self.initialisation == "gaussian":
            start = start * self.sigma_0
        elif basis is not None:  # into the coordinates in which the samples are written
            start = torch.einsum("gkmd,gde->gkme", start, basis)
        return data, start
