"""C10 at a small size, and that runs with and without a bias are the same runs up to T1."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Context, Verdict
from rarefy.studies import get_study
from rarefy.studies.contrastive.sensitivity.experiment import KINDS, VARIATIONS
from rarefy.sweep.grid import Grid, grid_of

ContrastAlignment = get_study("contrast-alignment")
pytestmark = pytest.mark.usefixtures("eager")
EARLY = 3
"""a read before any T1 at this learning rate"""


@cache
def measured() -> tuple[ContrastAlignment, Grid, dict[str, np.ndarray]]:
    study = ContrastAlignment.at(
        "tiny",
        seeds=30,
        eps_min=(0.1, 1.0),
        bias_scale=(0.0, 1.0),
        lr=0.3,
        reads=(0, EARLY, 40),
    )
    assert isinstance(study, ContrastAlignment)
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context())
    return study, grid, found


def by_bias(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows without and with the bias, in the same order of the other coordinates."""
    _, grid, _ = measured()
    scale = grid.values["bias_scale"]
    return values[scale == 0], values[scale == 1]


def test_runs_with_and_without_bias_share_their_draws_seed_by_seed() -> None:
    _, grid, _ = measured()
    for name in ("seed", "eps_min", "sigma"):
        assert np.array_equal(*by_bias(grid.values[name]))
    without, with_bias = by_bias(grid.keys)
    assert np.array_equal(without, with_bias)
    assert len(np.unique(without)) == len(without)  # and eps_min draws afresh


def test_up_to_t1_they_are_the_same_runs_bit_for_bit_and_later_they_are_not() -> None:
    study, _, found = measured()
    assert (found["t1"] > EARLY).all()
    assert np.array_equal(*by_bias(found["t1"]))
    early = [study.reads.index(read) for read in (0, EARLY)]
    for name in ("aligned", "best", "pure", "mixed"):
        without, with_bias = by_bias(found[name])
        assert np.array_equal(without[:, early], with_bias[:, early]), name
        if name == "best":
            assert (without[:, -1] != with_bias[:, -1]).mean() > 0.9, name
    for name in ("initial_set", "lucky"):
        assert np.array_equal(*by_bias(found[name])), name


def test_c10_rare_features_are_aligned_with_less_than_frequent_ones() -> None:
    """eps_min 0.1 against 1: the difference of means is over five standard errors."""
    _, grid, found = measured()
    for scale in (0.0, 1.0):
        here = grid.values["bias_scale"] == scale
        best = found["best"][:, -1, 1]
        rare, even = (best[here & (grid.values["eps_min"] == eps)] for eps in (0.1, 1.0))
        error = np.sqrt(rare.var(ddof=1) / len(rare) + even.var(ddof=1) / len(even))
        assert even.mean() - rare.mean() > 5 * error, scale


def test_before_training_nothing_favours_the_majority() -> None:
    _, _, found = measured()
    start = found["best"][:, 0]
    gap = start[:, 0] - start[:, 1]
    assert abs(gap.mean()) < 5 * gap.std() / np.sqrt(len(gap))


# ------------------------------------------------------------------------------------- the verdicts


def made_up(slope: dict[float, float]) -> list[Verdict]:
    """Verdicts of results in which the best cosine rises with eps_min by ``slope``, by sigma."""
    study = ContrastAlignment.at(
        "tiny", seeds=10, eps_min=(0.2, 0.4, 0.6, 0.8, 1.0), sigma=tuple(slope)
    )
    steep = xr.DataArray(list(slope.values()), dims="sigma")
    results = fabricated(study, 10, {}, rest=0.5).map(
        lambda full: full + 0.01 * np.random.default_rng(0).normal(size=full.shape)
    )
    return study.verdicts(results + results["eps_min"] * steep, "tiny")


def test_c10_stands_or_falls_at_the_noise_where_the_trend_is_weakest() -> None:
    for slopes, outcome in (((0.3, 0.2), "holds"), ((0.3, -0.2), "fails")):
        found = made_up(dict(zip((0.01, 0.05), slopes, strict=True)))
        (best,) = [v for v in found if v.claim == "C10.2"]
        assert best.outcome == outcome and "at sigma=0.05, the weakest of 2" in best.note
        assert "paper's bias" in best.setting


def test_there_is_one_verdict_for_every_primary_reading() -> None:
    primaries = [v.claim for v in made_up({0.03: 0.1}) if v.role == "primary"]
    assert sorted(primaries) == ["C10.1", "C10.2", "C7.1", "C7.2", "C8.1", "C8.2"]


# ------------------------------------------------------------------------ variations of the setting


ContrastSensitivity = get_study("contrast-sensitivity")
FLOAT64 = Context(dtype=torch.float64)


def test_every_variation_changes_the_setting_of_contrast_alignment() -> None:
    study = ContrastSensitivity()
    chosen = ContrastAlignment.at("paper").parameters()
    for name, changes in VARIATIONS.items():
        found = study.varied(name).parameters()
        same = set(chosen) - set(changes) - {"eps_min", "reads", "figure_read", "steps"}
        assert all(found[one] == chosen[one] for one in same), name
        assert all(found[one] == value for one, value in changes.items()), name
    assert sum(len(kind) for kind in KINDS.values()) == len(VARIATIONS)


def test_trained_attention_and_companions_reach_the_training() -> None:
    study = ContrastSensitivity.at("tiny", variation=tuple(VARIATIONS)[-2:])
    cells = grid_of(study).cells(np.arange(2))
    same = {"sigma": np.full(2, 0.03), "bias_scale": np.ones(2), "eps_min": np.full(2, 0.3)}
    setups = [study.varied(name) for name in study.variation]
    trials = [one.setup(type(cells)(same, cells.keys), FLOAT64) for one in setups]
    assert [set(trial.parameters) for trial in trials] == [{"weights", "query", "key"}, {"weights"}]
    assert trials[0].data.companions is None
    together = trials[1].data.companions
    assert together is not None and together.of == (0, 1, 2, 3, 4, 0, 1, 2, 3)
    # a rare feature is there only where its companion is
    present = trials[1].data.sample(trials[1].draws, 200, 0).present()
    assert present[..., 5:].any() and not (present[..., 5:] & ~present[..., :4]).any()


def judged(rise: dict[str, float]) -> list[Verdict]:
    study = ContrastSensitivity.at("tiny", seeds=20, variation=tuple(rise), eps_min=(0.3, 1.0))
    noise = np.random.default_rng(0).normal(0, 0.01, (len(rise), 2, 20, 2))
    rises = np.outer(list(rise.values()), (0.3, 1.0))[:, :, None, None]
    best = (("variation", "eps_min", "seed", "read"), noise + rises)
    return study.verdicts(fabricated(study, 20, {"best": best}), "tiny")


def test_a_kind_is_judged_by_its_weakest_change() -> None:
    found = judged({"lr 0.1": 0.4, "lr 1": -0.4, "96 neurons": 0.4})
    assert [v.outcome for v in found] == ["fails", "holds"]
    assert "at lr 1, the weakest of 2" in found[0].note
    assert {v.claim for v in found} == {"C10"}
