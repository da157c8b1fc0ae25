"""How far a finite setting is from Condition 1 of 003, for noise matrices with one basis."""

from __future__ import annotations

import math

import numpy as np

from rarefy.data.noise_spectrum import Spectrum
from rarefy.studies.benign.setting import ClassNoiseExperiment
from rarefy.studies.benign.trial import Training
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import Condition


def diagonal_geometry(spectrum: Spectrum) -> NoiseGeometry:
    """``NoiseGeometry.of`` for A_k that are diagonal in one basis, those of the first group: the
    matrices need not be formed."""
    values = spectrum.eigenvalues[0].double().cpu().numpy()
    values = values * (spectrum.count[0].cpu().numpy() > 0)  # kinds without directions: none
    smallest = np.where(values > 0, values, np.inf).min(axis=1)
    return NoiseGeometry(
        gram=spectrum.gram()[0].double().cpu().numpy(),
        operator=(values[:, None, :] * values[None, :, :]).max(axis=2),
        trace=spectrum.trace()[0].double().cpu().numpy(),
        rank=spectrum.rank()[0].cpu().numpy(),
        spread=values.max(axis=1) / smallest,
    )


def initial_std(study: ClassNoiseExperiment) -> float:
    """sigma_0 of the initial filters; PyTorch's are uniform on +-1/sqrt(d)."""
    return study.sigma_0 if study.initialisation == "gaussian" else 1 / math.sqrt(3 * study.d)


def conditions(
    study: ClassNoiseExperiment,
    spectrum: Spectrum,
    strength: float,
    samples: int,
    training: Training,
) -> list[Condition]:
    """Condition 1 with C = 1 for one setting of a study; samples: n."""
    return condition_1(
        geometry=diagonal_geometry(spectrum),
        norms=np.full(study.classes, strength),
        samples=samples,
        filters=study.filters,
        d=study.d,
        sigma_0=initial_std(study),
        lr=float(training.rates(samples, study.filters, study.scale, spectrum)[0]),
        output_scale=study.scale,
        horizon=float(max(training.steps, 2)),
    )
