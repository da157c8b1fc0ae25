"""A run that stopped being finite costs itself only: no judge takes it for one that failed or held.

Asked of committed results of which some runs are lost, in all they measured.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from compare import RESULTS, differences, plain

from rarefy.core.contracts import Study
from rarefy.studies.api import finite_runs, judge, read_results
from rarefy.sweep.results import read_description

SEVERAL = 8
"""Seeds of which some can be lost."""


def _seeds(path: Path) -> int:
    return int(read_description(path.with_suffix(".json"))["spec"]["parameters"]["seeds"])


NAMES = [path.stem for path in sorted(RESULTS.glob("*.parquet")) if _seeds(path) >= SEVERAL]
BY_PLACE = {"contrast-pruning-map-paper": "halves of the seeds are told apart by their place"}
"""Results of which a judge needs seeds to be dropped, not only to be missing."""
SLOW = ("alignment", "init", "regression", "separability", "similarity")
every_result = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name.split("-")[1] in SLOW)) for name in NAMES],
)


@cache
def results_of(name: str) -> tuple[Study, str, xr.Dataset]:
    return read_results(RESULTS / f"{name}.parquet")


def with_lost(dataset: xr.Dataset, lost: xr.DataArray) -> xr.Dataset:
    """The same of which some runs stopped being finite at the first step."""
    steps = dataset["nonfinite_step"].where(~lost, 0)
    return dataset.where(~lost).assign(nonfinite_step=steps)


def missing(content: Any, where: str = "") -> list[str]:
    """Places at which a golden content has no number."""
    if isinstance(content, str):
        return [where] if re.search(r"\bnan\b", content) else []
    if not isinstance(content, dict | list):
        return []
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    return [place for name, one in inner for place in missing(one, f"{where}.{name}")]


@every_result
def test_a_lost_seed_is_counted_nowhere(name: str) -> None:
    study, scale, dataset = results_of(name)
    lost = xr.DataArray(np.arange(dataset.sizes["seed"]) % 10 == 3, dims="seed")
    some, without = with_lost(dataset, lost), dataset.isel(seed=~lost.values)
    expected = plain(judge(study, without, scale))
    assert list(differences(expected, plain(judge(study, some, scale)))) == []
    # the same where every judge meets the lost runs itself, as it does at single points of a grid
    by_itself = zip(expected, plain(study.verdicts(some, scale)), strict=True)
    for before, after in () if name in BY_PLACE else by_itself:
        for field in ("outcome", "n", "value"):
            assert list(differences(before[field], after[field])) == [], before["setting"]
        assert ("nan" in after["note"]) == ("nan" in before["note"]), after["note"]


def test_a_lost_run_says_nothing_and_other_runs_of_its_seed_all_they_said() -> None:
    _, _, dataset = results_of("contrast-dynamics-paper")
    lost = dataset["nonfinite_step"].copy(data=np.zeros((4, 100), dtype=bool))
    lost[1, 7] = lost[:, 9] = True
    steps = dataset["nonfinite_step"].where(~lost, 12)
    found = finite_runs(dataset.assign(nonfinite_step=steps, t1=dataset["t1"].where(~lost, -1)))
    assert 9 not in found["seed"] and found.sizes["seed"] == 99 and found.attrs == dataset.attrs
    for name, values in found.drop_vars("nonfinite_step").items():
        assert values.isel(eps_min=1).sel(seed=7).isnull().all(), name
    others = {"eps_min": [0, 2, 3], "seed": slice(0, 9)}
    xr.testing.assert_identical(found.isel(others), dataset.isel(others))
    assert finite_runs(dataset.assign(nonfinite_step=steps * 0)).sizes["seed"] == 100


@every_result
def test_where_all_runs_are_lost_nothing_is_decided(name: str) -> None:
    study, scale, dataset = results_of(name)
    nothing = with_lost(dataset, dataset["nonfinite_step"] < np.inf)
    for verdict in judge(study, nothing, scale):
        assert verdict.outcome not in ("holds", "fails") and verdict.n == 0, verdict.identity
    study.picture(nothing)
    study.tables(nothing)


@every_result
def test_single_lost_runs_turn_no_verdict_round_and_stop_nothing(name: str) -> None:
    study, scale, dataset = results_of(name)
    steps = dataset["nonfinite_step"]
    drawn = np.random.default_rng(0).random(steps.shape) < 0.05
    some = with_lost(dataset, xr.DataArray(drawn, dims=steps.dims))
    for shown in (study.picture, study.tables):
        assert set(missing(plain(shown(some)))) <= set(missing(plain(shown(dataset))))
    for before, after in zip(judge(study, dataset, scale), judge(study, some, scale), strict=True):
        assert {before.outcome, after.outcome} != {"holds", "fails"}, before.identity
        assert not re.search(r"\bnan\b", after.note) or "nan" in before.note, after.note
