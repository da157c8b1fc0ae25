"""``topk-phase``: what it judges, on made-up results, and what it says of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.topk.phase.regions import (
    LEARNT,
    published_constants,
    published_curves,
    published_region,
)
from rarefy.studies.topk.phase.study import TopKPhase

GRID = TopKPhase(
    sigma=tuple(round(0.1 * i, 1) for i in range(1, 11)), keep=tuple(range(2, 201, 6)), seeds=3
)
GRID = dataclasses.replace(GRID, keep=(*GRID.keep, 200) if 200 not in GRID.keep else GRID.keep)


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
    sigma, keep = np.array(GRID.sigma), np.array(GRID.keep, dtype=float)
    empty = made_up(np.zeros((len(sigma), len(keep)), dtype=bool))
    return outcomes(made_up(published_region(GRID, empty)))


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


def test_everything_generalising_is_no_window() -> None:
    sigma, keep = len(GRID.sigma), len(GRID.keep)
    verdicts = outcomes(made_up(np.ones((sigma, keep), dtype=bool)))
    assert the(verdicts, "S7", "revive: below the lower").outcome == "fails"
    assert the(verdicts, "S7", "revive: above the upper").outcome == "fails"
    assert the(verdicts, "S5", "fixed: test loss at least log(T)/4 below").outcome == "fails"
    rescue = the(verdicts, "S4", "fixed: test loss below")
    assert rescue.outcome != "holds" and "2 or more in 0% of runs" in rescue.note


def test_nothing_generalising_fails_the_window() -> None:
    verdicts = outcomes(made_up(np.zeros((len(GRID.sigma), len(GRID.keep)), dtype=bool)))
    assert the(verdicts, "S7", "revive: inside").outcome == "fails"
    assert the(verdicts, "S7", "revive: region").outcome == "fails"
    assert the(verdicts, "S4", "fixed: test loss at most").outcome == "fails"
    assert the(verdicts, "S4", f"fixed: test loss under {LEARNT:g}").outcome == "fails"
    # as high as Theorem 4.5 says, but not because of K
    floor = the(verdicts, "S5", "fixed: test loss at least log(T)/4 where")
    assert floor.outcome == "holds" and "other K of these noise levels 100% have it" in floor.note
    assert the(verdicts, "S5", "fixed: test loss higher where").outcome == "inconclusive"
    assert the(verdicts, "S7", "fixed: the window's width").outcome == "inconclusive"


def test_a_seed_is_one_sample_however_many_cells_share_its_draws(
    as_published: list[Verdict],
) -> None:
    assert {verdict.n for verdict in as_published} == {GRID.seeds}


def test_a_loss_that_is_higher_with_more_coordinates_fails_the_lower_side() -> None:
    few = np.array(GRID.keep)[None, :] < np.where(np.array(GRID.sigma)[:, None] > 0.7, 20, 300)
    verdicts = outcomes(made_up(np.broadcast_to(few, (len(GRID.sigma), len(GRID.keep)))))
    assert the(verdicts, "S5", "revive: test loss higher where").outcome == "fails"


def test_a_window_without_a_lower_side_has_no_fitted_constant() -> None:
    keep, sigma = np.array(GRID.keep, dtype=float), np.array(GRID.sigma)
    verdicts = outcomes(made_up(keep[None, :] <= published_curves(GRID, sigma)[1][:, None]))
    lower = the(verdicts, "S7", "revive: log of fitted over published constant, lower")
    assert lower.outcome == "fails" and "fitted none (under 3.3), none" in lower.note
    assert the(verdicts, "S7", "revive: log of fitted over published constant, upper").outcome == (
        "holds"
    )


def test_fitted_constants_are_in_the_setting_s_own_units() -> None:
    assert published_constants(GRID) == (120, 95)
    small = dataclasses.replace(GRID, samples=40, classes=4, d=40, keep=(2, 40))
    low, high = published_constants(small)
    sigma = np.array([1.0])
    lower, upper = published_curves(small, sigma)
    assert low * np.exp(-0.5) == pytest.approx(lower[0]) and high == pytest.approx(upper[0])


def test_readings_are_compared_seed_by_seed() -> None:
    sigma, keep = len(GRID.sigma), len(GRID.keep)
    empty = made_up(np.zeros((sigma, keep), dtype=bool))
    whole = made_up(np.ones((sigma, keep), dtype=bool))
    good = made_up(published_region(GRID, empty))
    mixed = xr.concat(
        [whole.sel(reading="revive"), good.sel(reading="revive0"), good.sel(reading="fixed")],
        "reading",
    ).transpose(*whole["test_loss"].dims)
    verdicts = outcomes(mixed)
    nearer = the(verdicts, "S7", "revive0 minus revive")
    assert nearer.outcome == "holds" and "nearer in 3 of 3 seeds" in nearer.note
    assert the(verdicts, "S7", "revive0 minus fixed").outcome == "fails"  # no difference at all


def test_the_premises_are_in_a_table() -> None:
    results = made_up(np.ones((len(GRID.sigma), len(GRID.keep)), dtype=bool))
    tables = {table.name: table for table in GRID.tables(results)}
    rows = {row[0]: row for row in tables["conditions"].rows}
    assert rows["SNR"][4:] == ["no", "14.1 times"] and rows["last K"][4] == "no"


def test_the_caption_says_what_decides_a_fixed_support() -> None:
    results = made_up(np.ones((len(GRID.sigma), len(GRID.keep)), dtype=bool))
    said = {picture.name: picture.caption for picture in GRID.picture(results)}
    assert "0.45 times the std" in said["first"] and "owes much to chance" in said["first"]
    small = dataclasses.replace(GRID, sigma_0=1e-4)
    said = {picture.name: picture.caption for picture in small.picture(results)}
    assert "it is the update that decides" in said["first"]


def test_an_untrained_diagram_fails_the_training_claims() -> None:
    region = np.ones((len(GRID.sigma), len(GRID.keep)), dtype=bool)
    verdicts = outcomes(made_up(region, train=0.5))
    assert the(verdicts, "S6", "revive:").outcome == "fails"
    assert the(verdicts, "S5", "revive: training loss under 0.01 where").outcome == "fails"


def test_the_first_update_is_compared_with_its_law(as_published: list[Verdict]) -> None:
    # 0.0045 = lr (1/T)(1 - 1/T) mu: right for the signal, far too large for the noise
    assert the(as_published, "S12", "signal coordinate, measured over its law").outcome == "holds"
    assert the(as_published, "S12", "noise std, measured over its law").outcome == "fails"
    assert the(as_published, "S12", "share of filters that keep").outcome == "fails"


def test_settings_are_unique(as_published: list[Verdict]) -> None:
    assert len({v.identity for v in as_published}) == len(as_published)


def test_without_the_dense_column_nothing_is_rescued() -> None:
    results = made_up(np.ones((len(GRID.sigma), len(GRID.keep)), dtype=bool))
    verdicts = outcomes(results.sel(keep=[k for k in GRID.keep if k < 200]))
    rescue = the(verdicts, "S4", "revive: test loss below")
    assert rescue.outcome == "inconclusive" and "no cell of the grid is dense" in rescue.note


def test_the_curves_choose_where_rescue_is_judged_and_losses_do_not() -> None:
    """95/sigma^2 < 200 from sigma = 0.7 on: 4 of 10 noise levels, whatever dense training did."""
    everywhere, nowhere = (np.full((len(GRID.sigma), len(GRID.keep)), good) for good in (1, 0))
    only_loud = np.broadcast_to(np.array(GRID.sigma)[:, None] < 0.9, everywhere.shape)
    for region in (everywhere, nowhere, only_loud):
        found = [v for v in outcomes(made_up(region.astype(bool))) if v.claim == "S4"]
        assert len(found) == 3 * len(GRID.reading)
        for verdict in found:
            assert "4 noise levels from sigma = 0.7 on" in verdict.note
            assert verdict.setting.endswith("where the curves say that dense training fails")
    quiet = outcomes(made_up(everywhere.astype(bool)).sel(sigma=[0.1, 0.3, 0.6]))
    rescue = the(quiet, "S4", "fixed: test loss below")
    assert rescue.outcome == "inconclusive" and "premise not met" in rescue.note
