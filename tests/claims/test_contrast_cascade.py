"""P7: the verdicts on cascades drawn by hand, and the study at a small size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Context, Verdict
from rarefy.studies import get_study
from rarefy.studies.contrastive.cascade.claims import RAREST, conditions
from rarefy.sweep.grid import grid_of

ContrastCascade = get_study("contrast-cascade")
pytestmark = pytest.mark.usefixtures("eager")
SEEDS = 100
EARLIER = "rarest level meets the next: steps earlier than without pruning"
STUDY = ContrastCascade(
    begin=("theorem",), bias_scale=(1.0,), alpha=(0.0, 0.2), reads=tuple(range(0, 801, 10))
)


def drawn(pruned: bool, order: str) -> dict[str, Any]:
    """Trajectories as the remark has them ('claimed'), or with the middle level rising first."""
    read = np.array(STUDY.reads, dtype=float)
    speed = 0.01 if pruned else 0.002
    rare = np.minimum(speed * read, np.log(2))
    meeting = int(np.ceil(np.log(0.95 * 2) / speed))
    after = np.maximum(read - np.log(2) / speed, 0) * speed
    middle, second = after, meeting + int(np.ceil(np.log(0.95 * 2) / speed))
    if order == "reversed":
        middle, second = np.minimum(0.05 * read, np.log(2)), 14
    both = np.minimum(rare, np.log(2)) + (after if order == "claimed" else 0)
    log_strength = np.stack([0 * read, middle - np.log(2), both - np.log(4)], axis=1)
    phase = (read < meeting).astype(float)[:, None]
    share = phase * np.array([0, 0, 1.0]) + (1 - phase) * np.array([0, 0.5, 0.5])
    if order == "reversed":
        share = np.broadcast_to(np.array([1.0, 0, 0]), share.shape)
    met = np.array([meeting, second])
    return {
        "strength": np.exp(log_strength),
        "pruned": share if pruned else share * np.nan,
        "met": np.where(met > STUDY.horizon, -1, met),
        "purity": np.ones(len(read)),
    }


def results(order: str) -> xr.Dataset:
    noise = np.random.default_rng(0)
    cells = [drawn(False, order), drawn(True, order)]
    data = {}
    for output in STUDY.outputs():
        values = np.stack([cell[output.name] for cell in cells])  # (alpha, ...)
        values = np.repeat(values[:, None], SEEDS, axis=1).astype(float)
        if output.name == "strength":
            values = values * np.exp(1e-3 * noise.normal(size=values.shape))
        data[output.name] = (("alpha", "seed", *output.dims), values)
    return fabricated(STUDY, SEEDS, data)


def outcomes(order: str) -> dict[str, Verdict]:
    return judged(results(order))


def by_claim(said: dict[str, Verdict]) -> dict[str, Verdict]:
    return {verdict.claim: verdict for verdict in said.values()}


def judged(found: xr.Dataset) -> dict[str, Verdict]:
    return {v.setting.split(",")[0]: v for v in STUDY.verdicts(found, "paper")}


def test_a_cascade_as_claimed_holds_in_every_sentence() -> None:
    found = outcomes("claimed")
    assert [v.claim for v in found.values()] == ["P7.1", "P7.2", "P7.3", "P7"]
    assert {name: v.outcome for name, v in found.items() if v.outcome != "holds"} == {}
    assert found[EARLIER].n == SEEDS


def test_a_cascade_in_the_wrong_order_fails() -> None:
    found = results("reversed")
    found["pruned"][..., RAREST] = 1.0
    assert judged(found)["meetings from the rarest upward"].outcome == "fails"


def test_other_neurons_pruned_than_the_rarest_levels_is_not_the_remarks_case() -> None:
    assert {v.outcome for v in outcomes("reversed").values()} == {"premise-not-met"}


def test_a_rise_of_the_most_frequent_level_too_is_not_taken_for_the_cascade() -> None:
    found = results("claimed")
    strength, other = found["strength"].values.copy(), found["strength"].values
    middle = other[..., 1] / other[:, :, :, :, :1, 1]
    strength[:, :, 1, :, :, 0] *= middle[:, :, 1] ** 1.5  # the pruned runs only
    said = judged(found.assign(strength=found["strength"].copy(data=strength)))
    assert {claim: v.outcome for claim, v in by_claim(said).items()} == {
        "P7.1": "holds",
        "P7.2": "holds",
        "P7.3": "fails",
        "P7": "holds",
    }


def test_levels_that_have_met_before_are_a_premise_that_is_not_met() -> None:
    met = results("claimed")
    met["met"] = xr.zeros_like(met["met"])
    said = judged(met)
    assert {v.outcome for v in said.values()} == {"premise-not-met"}
    assert all(
        "levels apart when pruning begins in 0% of the runs" in v.note for v in said.values()
    )


def test_the_first_condition_decides_and_the_others_are_named_first() -> None:
    study, _, _ = measured()
    found = {words: rest for words, *rest in conditions(replace(study, alpha=(0.0, 0.1, 0.2)))}
    assert found == {
        "": ["theorem", 1.0, 0.1],
        "alpha=0.2": ["theorem", 1.0, 0.2],
        "no bias": ["theorem", 0.0, 0.1],
        "trained from random": ["random", 1.0, 0.1],
    }


# ---------------------------------------------------------------------------------------- the study


@cache
def measured() -> tuple[ContrastCascade, dict[str, np.ndarray], dict[str, np.ndarray]]:
    study = ContrastCascade.at(
        "tiny", seeds=4, before=40, steps=110, reads=(0, 10, 20, 30, 70), alpha=(0.0, 0.2)
    )
    assert isinstance(study, ContrastCascade)
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context())
    return study, dict(grid.values), found


def rows(**at: Any) -> np.ndarray:
    _, values, _ = measured()
    return np.logical_and.reduce([values[name] == value for name, value in at.items()])


def test_the_theorems_state_is_proportional_to_frequency_and_twins_begin_alike() -> None:
    study, _, found = measured()
    for bias in (0.0, 1.0):
        start = found["strength"][rows(begin="theorem", bias_scale=bias), 0]
        assert np.allclose(start / start[:, :1], study.levels, rtol=0.2)
    for begin in ("theorem", "random"):
        pruned, twin = (found["strength"][rows(begin=begin, alpha=alpha)] for alpha in (0.2, 0.0))
        assert np.array_equal(pruned[:, 0], twin[:, 0])
        assert not np.array_equal(pruned[:, -1], twin[:, -1])


def test_from_the_theorems_state_the_rarest_is_pruned_and_meets_the_next_earlier() -> None:
    _, _, found = measured()
    assert (found["pruned"][rows(begin="theorem", alpha=0.2), 0, -1] == 1).all()
    assert np.isnan(found["pruned"][rows(alpha=0.0)]).all()
    pruned, twin = (
        found["met"][rows(begin="theorem", bias_scale=0.0, alpha=alpha), 0] for alpha in (0.2, 0.0)
    )
    late = np.where(twin < 0, 70, twin)
    assert (pruned > 0).all() and (late - pruned).mean() > 5
