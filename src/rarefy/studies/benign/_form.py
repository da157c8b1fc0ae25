"""Whether a study of 003 draws vectors of d coordinates, or inner products alone.

Noise and initial filters that are both Gaussian look the same from all sides, and can do without
vectors at any d (``rarefy.data.gram_samples``). Whatever the form, what is simulated has the same
law; the draws are others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rarefy.core.errors import bad_value
from rarefy.data.gram_samples import check_gaussian
from rarefy.train.forms import check_form

if TYPE_CHECKING:
    from rarefy.studies.benign._benign import ClassNoiseStudy

LARGE = 10**5
"""From this d on "auto" does without vectors, where it can."""
NUMBERS = 2 * 10**8
"""Coordinates of one run's filters, or of a rotation, that are stored at most."""


def without_vectors(form: str, d: int, law: str, initialisation: str) -> bool:
    """Whether no vectors of d coordinates are drawn."""
    gaussian = law == initialisation == "gaussian"
    return form == "dual" or (form == "auto" and gaussian and d > LARGE)


def check_vectors(study: ClassNoiseStudy) -> None:
    """Refuse a form that a law or an initialisation does not have, and a d too large for it."""
    check_form(study.form)
    for law in study.laws:
        if study.form == "dual":
            check_gaussian(law, study.initialisation)
        if without_vectors(study.form, study.d, law, study.initialisation):
            continue
        most = NUMBERS // (study.classes * study.filters)
        if law != "gaussian" or study.initialisation != "gaussian":
            most = min(most, math.isqrt(NUMBERS))  # a rotation of the space is stored as well
        if study.d > most:
            allowed = f"at most {most} where vectors are stored; --form dual stores none, and "
            raise bad_value("d", study.d, f"{allowed}needs gaussian law and initialisation")
