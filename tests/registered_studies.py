"""Every registered study, and its results at its smallest scale, for tests of the contract."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Study, Verdict
from rarefy.core.threads import exactly
from rarefy.studies import load_studies
from rarefy.sweep.process_state import prepared_cpu
from rarefy.sweep.runner import execute

STUDIES = load_studies()
TOGETHER = {name: kind for name, kind in STUDIES.items() if not kind.one_at_a_time}
TRAININGS = {name: kind for name, kind in STUDIES.items() if kind.one_at_a_time}
every_study = pytest.mark.parametrize("kind", STUDIES.values(), ids=list(STUDIES))

Returned = Mapping[str, np.ndarray]


class Batch(NamedTuple):
    """What a study was asked for, what it returned, and the steps that it told of on the way."""

    cells: Cells
    context: Context
    found: Returned
    advanced: float

    def with_another(self, other: Batch) -> Batch:
        """The cells of both in one batch, and what each of them gave by itself."""
        values, found = (
            {name: np.concatenate([one[name], two[name]]) for name in one}
            for one, two in ((self.cells.values, other.cells.values), (self.found, other.found))
        )
        keys = np.concatenate([self.cells.keys, other.cells.keys])
        return Batch(Cells(values, keys), self.context, found, self.advanced + other.advanced)

    def again(self, study: Study) -> Returned:
        """The same batch, computed once more as a run does."""
        with prepared_cpu(), exactly(1):
            return study.simulate(self.cells, replace(self.context, scratch=None))


def fresh(kind: type[Study]) -> xr.Dataset:
    """One batch, but for trainings: three take twice as long."""
    with tempfile.TemporaryDirectory() as folder:
        return execute(
            kind.at("tiny"), "tiny", device="cpu", out=Path(folder, "store"), batch=1024
        ).dataset


@cache
def tiny_batches(kind: type[Study]) -> tuple[xr.Dataset, list[Batch]]:
    """The results of one run, and its batches."""
    simulate, returned = kind.simulate, []

    def heard(study: Study, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        done: list[float] = []
        found = simulate(study, cells, replace(context, advance=done.append))
        returned.append(Batch(cells, context, found, sum(done)))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "simulate", heard)
        return fresh(kind), returned


def tiny(kind: type[Study]) -> tuple[Study, xr.Dataset]:
    return kind.at("tiny"), tiny_batches(kind)[0]


@cache
def tiny_verdicts(kind: type[Study]) -> list[Verdict]:
    study, results = tiny(kind)
    return study.verdicts(results, "tiny")


def assert_declared(study: Study, cells: int, found: Returned) -> None:
    """What a study returned for so many cells is what it declares."""
    declared = {output.name: output.dims for output in (*study.outputs(), NONFINITE_STEP)}
    assert set(found) | {NONFINITE_STEP.name} == set(declared)
    length = {name: len(values) for name, values in study.coordinates().items()}
    for name, values in found.items():
        assert values.shape == (cells, *(length[dim] for dim in declared[name])), name
        assert values.dtype.kind in "biuf", name
