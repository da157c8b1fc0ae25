"""C9, the bounds: shape and constant apart, at the largest d, and beyond by the exact law."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import xarray as xr
from init_results import counted, judged

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.theory import initial_sets as theory

ContrastInit = get_study("contrast-init")
pytestmark = pytest.mark.usefixtures("eager")
SMALL: dict[str, Any] = {
    "seeds": 40,
    "d": (9, 16, 32, 64),
    "ratio": (0.85, 0.9, 1.0),
    "d1": 64,
    "drawn": 2000,
}


@cache
def measured() -> tuple[ContrastInit, xr.Dataset]:
    return counted(SMALL)


def verdict(results: xr.Dataset, start: str, study: ContrastInit | None = None) -> Verdict:
    study = study or measured()[0]
    (found,) = [v for v in judged(study, results) if v.setting == f"{start}, {study.setting}"]
    return found


def lucky_as(quotient: Any) -> xr.Dataset:
    """Results in which mean |M*_j| is quotient(d) times Xi_1, with a little noise over seeds."""
    study, results = measured()
    order = xr.DataArray(
        [
            [
                float(theory.xi_1_order(study.neurons(d), d, r, study.gamma)) * quotient(d)
                for r in study.ratio
            ]
            for d in study.d
        ],
        dims=("d", "ratio"),
    )
    noise = 1 + 0.001 * np.random.default_rng(0).normal(size=results.sizes["seed"])
    there = xr.DataArray(noise, dims="seed") * order
    return results.assign(lucky=there.transpose(*results["lucky"].dims))


# ------------------------------------------------------------------------------------ lower bounds


SHAPE = "shape: slope in d of Xi_1 (31) over mean |M*_j|"
CONSTANT = "mean |M*_j| over Xi_1 (31) at the largest d"


@pytest.mark.slow
def test_a_small_constant_has_the_right_shape() -> None:
    results = lucky_as(lambda d: 0.2)
    assert verdict(results, SHAPE).outcome == "holds"
    found = verdict(results, CONSTANT)
    assert found.outcome == "fails" and "d=64" in found.note and found.claim == "C9.1"


def test_a_quotient_that_is_still_rising_is_judged_where_d_is_largest() -> None:
    """0.15, 0.27, 0.53, 1.07: least favourable at d = 9, where no bound for large d speaks."""
    results = lucky_as(lambda d: d / 60)
    assert verdict(results, SHAPE).outcome == "holds"
    assert verdict(results, CONSTANT).outcome == "holds"


def test_a_quotient_that_falls_has_the_wrong_shape_however_large_it_is() -> None:
    results = lucky_as(lambda d: 50 / d)
    assert verdict(results, SHAPE).outcome == "fails"
    assert verdict(results, CONSTANT).outcome == "holds"


def test_one_ratio_below_its_bound_decides() -> None:
    study, _ = measured()
    good = lucky_as(lambda d: 1.0)
    one = good.assign(lucky=good["lucky"] * xr.where(good["ratio"] == 0.9, 0.1, 1.0))
    found = verdict(one, CONSTANT)
    assert found.outcome == "fails" and f"ratio 0.9, the worst of {len(study.ratio)}" in found.note
    assert verdict(one, "balanced: mean |M*_j| over Xi_1 (31)").outcome == "holds"


def test_a_dropped_half_logarithm_is_seen() -> None:
    results = lucky_as(lambda d: 0.3 * np.log(d) ** -0.5)
    assert verdict(results, SHAPE).outcome == "fails"
    assert verdict(results, CONSTANT).outcome == "fails"
    restored = "mean |M*_j| over Xi_1 (31) with the 1/sqrt(log d) of (238)"
    assert verdict(results, restored).outcome == "holds"


# ------------------------------------------------------------------------------------ upper bounds


def test_c9_ordinary_neurons_keep_their_upper_bound() -> None:
    _, results = measured()
    bound = "largest |M_j| over Xi_2 (31)"
    shape, constant = f"shape: slope in d of {bound}", f"{bound} at the largest d"
    assert verdict(results, shape).outcome == "holds"
    assert verdict(results, constant).outcome == "holds"
    assert verdict(results, constant).claim == "C9.2"
    more = results.assign(ordinary_most=results["ordinary_most"] * 9)
    assert verdict(more, shape).outcome == "holds"
    assert verdict(more, constant).outcome == "fails"
    # at one ratio only, and by less than the constant
    growing = xr.where(results["ratio"] == 0.9, (results["d"] / 64.0) ** 0.3, 1.0)
    more = results.assign(ordinary_most=results["ordinary_most"] * growing)
    found = verdict(more, shape)
    assert found.outcome == "fails" and "at ratio 0.9" in found.note
    assert verdict(more, constant).outcome == "holds"


def test_c9_the_largest_set_of_features_outgrows_its_bound_when_balanced() -> None:
    """Within the constant as far as networks are drawn, so a constant alone would let it pass."""
    _, results = measured()
    bound = "largest |N_i| over d^(1-r^2) (Lemma B.2 d)"
    found = verdict(results, f"{bound} at the largest d")
    assert found.outcome == "holds" and found.claim == "C9.3" and "4.4 at d=8192" in found.note
    found = verdict(results, f"shape: slope in d of {bound}")
    assert found.outcome == "fails" and "at ratio 1, the least favourable" in found.note


def test_pictures_show_the_exact_law_beyond_the_counts() -> None:
    study, results = measured()
    (against,) = [p for p in study.picture(results) if p.name == "against-d"]
    for panel in against.panels:
        assert max(curve.x.max() for curve in panel.curves) == 8192
    (table,) = study.tables(results)
    assert len(table.rows) == len(study.d) * len(study.ratio)


# ------------------------------------------------------------------------------- the deciding case


def test_the_worst_of_several_intervals() -> None:
    low, high = [0.9, 0.97, 1.2], [1.1, 1.03, 1.3]
    assert worst_of(low, high, 0.95, 1.05) == 2  # certainly outside
    assert worst_of(low[:2], high[:2], 0.95, 1.05) == 0  # sticks out most
    assert worst_of(low[:2], high[:2], 0.95, 1.05, [False, True]) == 1
    assert worst_of(low, high, 0.95, 1.05, [True, True, False]) == 2
    assert worst_of(low, high, ceiling=2.0) == 2 and worst_of(low, high, floor=0.0) == 0
    assert worst_of([np.nan, 1.0], [np.nan, 1.0], 0.95, 1.05) == 0  # nothing is known of the first
    assert corrected_level(5) == pytest.approx(0.99)
