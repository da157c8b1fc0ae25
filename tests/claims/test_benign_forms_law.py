"""The studies of 003 say the same with and without vectors, in law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from same_law import assert_same_laws

from rarefy.core.contracts import Cells, Context
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

RUNS = 120
FEW = 8
"""Values that an output must take at least."""
SETTINGS: dict[str, dict[str, Any]] = {
    "benign-correlation": {"law": ("gaussian",), "strength": (1.0,), "gamma": (10.0,)},
    "benign-features": {"gamma": (1.2,), "strength": (0.5, 1.0, 2.0), "size": (6,)},
    "benign-homogeneous": {"strength": (0.5, 1.5, 3.0), "dimension": (60,), "size": (10,)},
    "benign-majority": {"majority": (12,), "control": ("as stated", "ratio held")},
    "benign-mixing": {"share": (0.2,)},
    "benign-sizes": {"gamma": (1.0, 10.0)},
    "benign-tail": {"gamma": (2.0,)},
    "benign-training": {"case": ("wide",), "gamma": (10.0,), "strength": (2.0,)},
}


def simulated(name: str, form: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Which setting each cell has, and what it gives. All cells are one batch, as cells of one seed
    are, but every one has a key of its own, and so its own draws."""
    more = {"d": 60, "initialisation": "gaussian", "sigma_0": 0.04, "seeds": 1, "form": form}
    if name == "benign-training":
        more["wide_d"] = 60
    elif name != "benign-correlation":
        more["schedule"] = ("trained",)
    study = get_study(name).at("tiny", **{**more, **SETTINGS[name]})
    grid = grid_of(study)
    cells = grid.cells(np.repeat(np.arange(len(grid)), RUNS))
    rows = zip(*(cells.values[axis] for axis in study.axes), strict=True)
    place = np.array(["|".join(str(value) for value in row) for row in rows])
    keys = np.arange(len(cells), dtype=np.int64) + (10**6 if form == "dual" else 0)
    return place, study.simulate(Cells(cells.values, keys), Context())


@pytest.mark.quick("benign-training", "benign-tail", "benign-homogeneous")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_study_says_the_same_with_and_without_vectors(name: str) -> None:
    """All outputs of all cells, but those that take few values (an error that is nearly always 0,
    a constant) or are missing in some runs: they have no law that could be compared."""
    (place, primal), (_, dual) = (simulated(name, form) for form in ("primal", "dual"))
    pairs = {}
    for output, values in primal.items():
        both = [np.asarray(v, dtype=float).reshape(len(place), -1) for v in (values, dual[output])]
        for where in np.unique(place):
            for column in range(both[0].shape[1]):
                x, y = (v[place == where, column] for v in both)
                finite = np.isfinite(x).all() and np.isfinite(y).all()
                if finite and min(len(np.unique(x)), len(np.unique(y))) >= FEW:
                    pairs[f"{output} at {where}, {column}"] = (x, y)
    assert len(pairs) >= 4
    assert_same_laws(pairs)
