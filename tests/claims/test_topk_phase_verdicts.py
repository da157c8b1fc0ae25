"""``topk-phase``: what it judges, on made-up results, and what it says of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import HeatMap, Lines
from rarefy.studies import get_study

TopKPhase: Any = get_study("topk-phase")

GRID = TopKPhase(
    sigma=tuple(round(0.1 * i, 1) for i in range(1, 11)), keep=tuple(range(2, 201, 9)), seeds=3
)
SIGMA, KEEP = np.array(GRID.sigma)[:, None], np.array(GRID.keep)[None, :]
LOWER, UPPER = 120 * np.exp(-1 / (2 * SIGMA**2)), 95 / SIGMA**2
"""The curves of 002 Fig. 2."""
EVERYWHERE = np.ones((len(GRID.sigma), len(GRID.keep)), dtype=bool)
PUBLISHED = (KEEP >= LOWER) & (KEEP <= UPPER)


def made_up(region: np.ndarray, train: float = 1e-3, bad: float = 3.0) -> xr.Dataset:
    """Results of ``GRID`` with test loss 0.02 inside a region, (sigma, keep), ``bad`` outside."""
    shape = (len(GRID.reading), len(GRID.sigma), len(GRID.keep), GRID.seeds)
    jitter = 1e-3 * np.random.default_rng(0).random(shape)
    loss = np.where(region[None, :, :, None], 0.02, bad) + jitter
    dims = ("reading", "sigma", "keep", "seed")
    steps = np.array([0.0045] * len(GRID.sigma))
    alike = np.broadcast_to(steps[None, :, None, None], shape)
    return xr.Dataset(
        {
            "test_loss": ((*dims, "read"), loss[..., None]),
            "test_error": ((*dims, "read"), (loss / 4)[..., None]),
            "train_loss": ((*dims, "read"), np.full((*shape, 1), train)),
            "signal_held": (dims, jitter),
            "first_kept": (dims, jitter),
            "first_signal": (dims, alike),
            "first_noise": (dims, alike),
        },
        coords={
            "reading": list(GRID.reading),
            "sigma": list(GRID.sigma),
            "keep": list(GRID.keep),
            "seed": range(GRID.seeds),
            "read": [5000],
        },
    )


def the(verdicts: list[Verdict], claim: str, words: str) -> Verdict:
    found = [v for v in verdicts if v.claim == claim and words in v.setting]
    assert len(found) == 1, [v.setting for v in found]
    return found[0]


def outcomes(results: xr.Dataset) -> list[Verdict]:
    return GRID.verdicts(results, "paper")


@pytest.fixture(scope="module")
def as_published() -> list[Verdict]:
    return outcomes(made_up(PUBLISHED))


@pytest.fixture(scope="module")
def everything() -> list[Verdict]:
    return outcomes(made_up(EVERYWHERE))


@pytest.fixture(scope="module")
def nothing() -> list[Verdict]:
    return outcomes(made_up(~EVERYWHERE, train=0.5))


def test_a_diagram_as_published_holds(as_published: list[Verdict]) -> None:
    for reading in GRID.reading:
        assert the(as_published, "S6", f", {reading}:").outcome == "holds"
        for verdict in as_published:
            if verdict.claim == "S7" and f", {reading}:" in verdict.setting:
                assert verdict.outcome == "holds", verdict
        assert the(as_published, "S4", f"{reading}: test loss below").outcome == "holds"
        assert the(as_published, "S5", f"{reading}: test loss at least log(T)/4 where").outcome == (
            "holds"
        )


def test_everything_generalising_is_no_window(everything: list[Verdict]) -> None:
    assert the(everything, "S7", "revive: below the lower").outcome == "fails"
    assert the(everything, "S7", "revive: above the upper").outcome == "fails"
    assert the(everything, "S5", "fixed: test loss at least log(T)/4 below").outcome == "fails"
    rescue = the(everything, "S4", "fixed: test loss below")
    assert rescue.outcome != "holds" and "2 or more in 0% of runs" in rescue.note


def test_nothing_generalising_fails_the_window(nothing: list[Verdict]) -> None:
    assert the(nothing, "S7", "revive: inside").outcome == "fails"
    assert the(nothing, "S7", "revive: region").outcome == "fails"
    assert the(nothing, "S4", "fixed: test loss under 2").outcome == "fails"
    # as high as Theorem 4.5 says, but not because of K
    floor = the(nothing, "S5", "fixed: test loss at least log(T)/4 where")
    assert floor.outcome == "holds" and "other K of these noise levels 100% have it" in floor.note
    assert the(nothing, "S5", "fixed: test loss higher where").outcome == "inconclusive"
    assert the(nothing, "S7", "fixed: the window's width").outcome == "inconclusive"


def test_an_untrained_diagram_fails_the_training_claims(nothing: list[Verdict]) -> None:
    assert the(nothing, "S6", "revive:").outcome == "fails"
    assert the(nothing, "S5", "revive: training loss under 0.01 where").outcome == "fails"


def test_a_test_loss_far_above_the_training_loss_fails_theorem_4_4() -> None:
    one = made_up(~EVERYWHERE, train=0.01).sel(reading=["fixed"])
    assert the(outcomes(one), "S4", "test loss at most 4 T L_S").outcome == "fails"


def test_a_seed_is_one_sample_however_many_cells_share_its_draws(
    as_published: list[Verdict],
) -> None:
    assert {verdict.n for verdict in as_published} == {GRID.seeds}


def test_a_loss_that_is_higher_with_more_coordinates_fails_the_lower_side() -> None:
    few = KEEP < np.where(SIGMA > 0.7, 20, 300)
    verdicts = outcomes(made_up(few).sel(reading=["revive"]))
    assert the(verdicts, "S5", "revive: test loss higher where").outcome == "fails"


def test_a_window_without_a_lower_side_has_no_fitted_constant() -> None:
    verdicts = outcomes(made_up(KEEP <= UPPER).sel(reading=["revive"]))
    lower = the(verdicts, "S7", "log of fitted over published constant, lower")
    assert lower.outcome == "fails" and "fitted none (under 3.3), none" in lower.note
    upper = the(verdicts, "S7", "log of fitted over published constant, upper")
    assert upper.outcome == "holds" and "published 95;" in upper.note


def test_published_constants_are_in_the_setting_s_own_units() -> None:
    """The lower one scales with d, the upper one with sqrt(n)/T."""
    small = dataclasses.replace(GRID, samples=40, classes=4, d=40)
    one = made_up(PUBLISHED).sel(reading=["fixed"], seed=[0], sigma=[1.0])
    caption = small.tables(one)[0].caption
    assert f"(published: 24 and {95 * np.sqrt(40 / 200) * 10 / 4:.3g})" in caption
    assert "(published: 120 and 95)" in GRID.tables(one)[0].caption


def test_the_curves_lie_over_the_map() -> None:
    one = made_up(PUBLISHED).sel(reading=["fixed"])
    panel = GRID.picture(one)[0].panels[0]
    assert isinstance(panel, HeatMap)
    curves = {curve.label: curve for curve in panel.curves}
    lower, upper = curves["published, lower"], curves["published, upper"]
    np.testing.assert_allclose(lower.y, 120 * np.exp(-1 / (2 * lower.x**2)))
    np.testing.assert_allclose(upper.y, 95 / upper.x**2)
    for name in ("first update, lower", "first update, upper"):
        window = curves[name].y
        assert len(window) and np.array_equal(window, window.round())
        assert (window >= 1).all() and (window <= GRID.d).all()


def test_the_width_of_the_window_counts_uneven_grids_fairly() -> None:
    good = np.broadcast_to(KEEP == 11, EVERYWHERE.shape)
    one = made_up(good).sel(reading=["fixed"])
    for keep in ([2, 11, 29], [29, 2, 11]):  # edges 2, 6.5, 20, 29
        panel = GRID.picture(one.sel(keep=keep))[1].panels[-1]
        assert isinstance(panel, Lines)
        np.testing.assert_allclose(panel.curves[0].y, 13.5 / 27)


def test_readings_are_compared_seed_by_seed() -> None:
    whole, good = made_up(EVERYWHERE), made_up(PUBLISHED)
    mixed = xr.concat(
        [whole.sel(reading="revive"), good.sel(reading="revive0"), good.sel(reading="fixed")],
        "reading",
    ).transpose(*whole["test_loss"].dims)
    verdicts = outcomes(mixed)
    nearer = the(verdicts, "S7", "revive0 minus revive")
    assert nearer.outcome == "holds" and "nearer in 3 of 3 seeds" in nearer.note
    assert the(verdicts, "S7", "revive0 minus fixed").outcome == "fails"  # no difference at all


def test_the_premises_are_in_a_table() -> None:
    one = made_up(EVERYWHERE).sel(reading=["fixed"])
    tables = {table.name: table for table in GRID.tables(one)}
    rows = {row[0]: row for row in tables["conditions"].rows}
    assert rows["SNR"][4:] == ["no", "14.1 times"] and rows["last K"][4] == "no"


def test_the_caption_says_what_decides_a_fixed_support() -> None:
    one = made_up(EVERYWHERE).sel(reading=["fixed"], sigma=[0.5, 1.0])
    said = {picture.name: picture.caption for picture in GRID.picture(one)}
    assert "0.45 times the std" in said["first"] and "owes much to chance" in said["first"]
    small = dataclasses.replace(GRID, sigma_0=1e-4)
    said = {picture.name: picture.caption for picture in small.picture(one)}
    assert "it is the update that decides" in said["first"]


def test_the_first_update_is_compared_with_its_law(as_published: list[Verdict]) -> None:
    # 0.0045 = lr (1/T)(1 - 1/T) mu: right for the signal, far too large for the noise
    assert the(as_published, "S12", "signal coordinate, measured over its law").outcome == "holds"
    assert the(as_published, "S12", "noise std, measured over its law").outcome == "fails"
    assert the(as_published, "S12", "share of filters that keep").outcome == "fails"


def test_settings_are_unique(as_published: list[Verdict]) -> None:
    assert len({v.identity for v in as_published}) == len(as_published)


def test_without_the_dense_column_nothing_is_rescued() -> None:
    one = made_up(EVERYWHERE).sel(reading=["revive"])
    rescue = the(outcomes(one.sel(keep=slice(199))), "S4", "revive: test loss below")
    assert rescue.outcome == "inconclusive" and "no cell of the grid is dense" in rescue.note


def test_the_curves_choose_where_rescue_is_judged_and_losses_do_not(
    everything: list[Verdict], nothing: list[Verdict]
) -> None:
    """95/sigma^2 < 200 from sigma = 0.7 on: 4 of 10 noise levels, whatever dense training did."""
    quiet_only = outcomes(made_up(np.broadcast_to(SIGMA < 0.9, EVERYWHERE.shape)))
    for verdicts in (everything, nothing, quiet_only):
        found = [v for v in verdicts if v.claim == "S4"]
        assert len(found) == 3 * len(GRID.reading)
        for verdict in found:
            assert "4 noise levels from sigma = 0.7 on" in verdict.note
            assert verdict.setting.endswith("where the curves say that dense training fails")
    quiet = made_up(EVERYWHERE).sel(sigma=[0.1, 0.3, 0.6], reading=["fixed"])
    rescue = the(outcomes(quiet), "S4", "fixed: test loss below")
    assert rescue.outcome == "inconclusive" and "premise not met" in rescue.note
