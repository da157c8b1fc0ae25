"""Long-tailed pre-training: what verdicts, tables and pictures say of hand-made results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_longtail import SEEDS, WAYS, results, study

from rarefy.core.contracts import Study, Verdict
from rarefy.studies import get_study
from rarefy.studies.longtail.words import spoken
from rarefy.sweep.grid import grid_of
from rarefy.tools.longtail.experiment import by_look


def judged(found: xr.Dataset, which: Study | None = None) -> dict[tuple[str, str], Verdict]:
    rho = tuple(found["rho"].values.tolist())
    said = (which or study(rho)).verdicts(found, "tiny")
    return {(one.claim, one.setting.removeprefix("digits, lenet, 2 epochs, ")): one for one in said}


def test_a_gain_is_judged_pair_by_pair_and_each_reading_of_the_method_alone() -> None:
    found = results({"pruned:0.5": (-0.02, -0.03), "branches:0.1": (0.02, 0.03)})
    said = judged(found)
    one, two = "rho 100, Algorithm 1, 0.5 kept", "rho 100, two branches, 0.1 kept"
    assert said["P6", f"{one}: accuracy"].outcome == "fails"
    better = said["P6", f"{two}: accuracy"]
    # three points, though seeds differ by as much: pairs
    assert better.outcome == "holds" and better.n == 3 and "mean 3" in better.measured
    assert len(said) == 2 * (2 + 1) + 1  # two rho and their trend each; whose units are masked


def test_several_shares_kept_are_one_reading() -> None:
    found = results({"pruned:0.5": (-0.02, -0.02), "branches:0.1": (0.04, 0.04)})
    alike = found.assign_coords(algorithm=["simclr", "branches:0.1", "branches:0.3"])
    one = judged(alike)["P6", "rho 100, two branches, mean over shares kept: accuracy"]
    assert one.value == pytest.approx(1.0, abs=0.2)
    alike["accuracy"].loc[{"algorithm": "branches:0.1", "seed": slice(0, 2)}] = (
        np.nan
    )  # both or none
    assert judged(alike)["P6", "rho 100, two branches, mean over shares kept: accuracy"].n == 2
    ours = found.assign_coords(algorithm=["simclr", "branches:0.1+straight", "branches:0.1"])
    one = judged(ours)["P6", "rho 100, two branches, 0.1 kept: accuracy"]  # what is added is ours
    assert one.value == pytest.approx(4.0, abs=0.2)


def test_mirrored_orders_are_counted_as_the_pairs_they_are() -> None:
    """Gains that differ by order but not by pair are certain; few pairs show all their gains."""
    found = results({"branches:0.1": (0.01, 0.01)})
    flips = xr.DataArray([0.03, -0.03] * 3, dims="seed")
    here = found["algorithm"] == "branches:0.1"
    found = found.assign(accuracy=found["accuracy"] + flips * here)
    where = "P6", "rho 100, two branches, 0.1 kept: accuracy"
    verdict = judged(found)[where]
    assert (verdict.outcome, verdict.n) == ("holds", 3) and verdict.note.endswith("; 3 pairs")
    few = judged(found.isel(seed=slice(0, 3)))[where]
    assert (few.outcome, few.n, few.interval) == ("inconclusive", 2, None)
    assert few.note.endswith("1 pair + 1 order (+3.90, -2.10, +4.00): too few for an interval")
    assert few.measured == "mean 2.45"  # the mean of a pair and of a single order
    as_is = study(split="as-is", rho=(100.0,))  # no order is drawn, no mirror image
    assert as_is.verdicts(found.sel(rho=[100.0]), "tiny")[1].n == 6


def test_one_seed_and_stopped_runs_decide_nothing() -> None:
    alone = judged(results({"branches:0.1": (0.1, 0.1)}, seeds=1))
    assert {one.outcome for one in alone.values()} == {"inconclusive"}
    found = results({"branches:0.1": (0.1, 0.1)})
    found["accuracy"][:, :, 2, 1:] = np.nan
    verdict = judged(found)["P6", "rho 10, two branches, 0.1 kept: accuracy"]
    assert verdict.outcome == "inconclusive" and verdict.n == 1


def test_the_gain_grows_with_rho_or_does_not() -> None:
    rho = (1.0, 10.0, 50.0, 100.0)
    rising = {"pruned:0.5": (0.04, 0.03, 0.02, 0.01), "branches:0.1": (0.01, 0.02, 0.03, 0.04)}
    said = judged(results(rising, rho))
    grown = ": gain at rho 100 less at rho 1"
    branches, algorithm = (
        said["P8", name + grown] for name in ("two branches, 0.1 kept", "Algorithm 1, 0.5 kept")
    )
    assert (branches.outcome, branches.n, algorithm.outcome) == ("holds", 3, "fails")
    assert branches.value == pytest.approx(3.0, abs=0.01)
    assert branches.published is None  # (digits)
    assert not any(claim == "P8" for claim, _ in judged(results({}, (10.0,))))


def test_growth_has_scales_of_its_own_which_repeat_no_row() -> None:
    rising = {"branches:0.1": (0.01, 0.03)}
    for data, number in (("cifar10", "P8.1"), ("cifar100", "P8.2")):
        (one,) = (
            verdict
            for verdict in study(data=data, head="full").verdicts(
                results(rising), f"{data}-growth-500"
            )
            if "two branches" in verdict.setting
        )
        assert (one.claim, one.outcome) == (number, "holds")
        assert one.published == {"cifar10": 1.4, "cifar100": 2.69}[data]


def test_whose_units_are_masked_counts_a_seed_once_and_no_set_without_a_tail() -> None:
    slopes = np.zeros((1, 3, 3, 6))
    slopes[:, 0] = -1.0  # rho 1: no tail, and nothing to be found
    slopes[:, 1:, 2] = np.repeat([[0.5, 0.6, 0.7], [0.7, 0.8, 0.9]], 2, axis=1)
    found = results({}, (1.0, 10.0, 100.0), slopes=slopes)
    words = "units of tail classes are masked more"
    verdict = judged(found)["P4", words]  # the mean of two methods, of which one has none
    assert verdict.n == 3 and verdict.outcome == "holds" and "0.35" in verdict.measured


def test_a_store_of_controls_alone_claims_nothing() -> None:
    found = results({"branches:0.1": (0.1, 0.1)}, images=("balanced",))
    assert judged(found, study(images=("balanced",))) == {}


def test_pictures_and_tables_are_drawn_without_a_complaint() -> None:
    both = ("long-tail", "balanced")
    found, which = results({"branches:0.1": (0.1, 0.2)}, images=both), study(images=both)
    pictures = which.picture(found)
    assert [one.name for one in pictures] == ["ranks", "gains", "training", "masked-units"]
    quality, gained, protocols = which.tables(found)  # (one look: none on the way)
    assert len(quality.rows) == len(protocols.rows) == 2 * 2 * 3
    gains = [row[3] for row in gained.rows if row[2] == "two branches, 0.1 kept"]
    assert [gain.partition(" [")[0] for gain in gains] == ["+10.00", "+20.00"]
    assert {row[-1] for row in gained.rows} == {"3 pairs"}
    # one line a rho, not their mean
    shown = {row[0]: row[3] for row in protocols.rows if row[2] == "two branches, 0.1 kept"}
    assert float(shown["100"]) - float(shown["10"]) == pytest.approx(10.0)


def test_over_training_is_in_the_report() -> None:
    looks = {"simclr": (0.5, 0.7, 0.6), "pruned:0.5": (0.5, 0.6, 0.7)}
    found, which = results({}, (100.0,), knn=looks), study((100.0,), epochs=6, evaluations=3)
    course = which.tables(found)[3]
    assert [row[2:7] for row in course.rows[:2]] == [
        ("SimCLR", 4, "70.00", "60.00", "10.00 [10.00, 10.00]"),
        ("Algorithm 1, 0.5 kept", 6, "70.00", "70.00", "-"),
    ]
    assert [row[-1] for row in course.rows] == ["yes", "no", "no"]
    few = which.tables(results({}, (100.0,), seeds=2, knn=looks))[3]
    assert few.rows[0][-1] == "too few seeds"


def at_500(scale: str, rho: float = 100.0, **other: Any) -> dict[str, Verdict]:
    cifar = get_study("longtail-table").at(
        scale, algorithm=WAYS, protocols=("linear",), seeds=6, **other
    )
    said = cifar.verdicts(results({}, (rho,), gaps={"branches:0.1": 0.02}), scale)
    return {f"{one.claim} {one.setting.partition('rho')[2]}": one for one in said}


def test_the_published_row_is_primary_with_what_was_published_beside_it() -> None:
    said = at_500("cifar10-rho100-500")
    assert said["P6.1  100, Algorithm 1, 0.5 kept: accuracy"].published == pytest.approx(7.07)
    assert said["P6.2  100, two branches, 0.1 kept: accuracy"].published == pytest.approx(7.07)
    gap = said["P6  100, two branches, 0.1 kept: Delta_20"]
    assert gap.published == pytest.approx(-0.07) and gap.outcome == "holds"
    # a mirrored pair and four orders without their mirror images
    assert said["P6.2  100, two branches, 0.1 kept: accuracy"].n == 5
    assert get_study("longtail-table").at("cifar10-rho100-500").pairs(range(6)) == [
        0,
        0,
        1,
        2,
        3,
        4,
    ]


@pytest.mark.parametrize(
    "scale", ["cifar100-rho100-500", "cifar10-rho100-2000", "cifar10-decay-500"]
)
def test_other_sets_and_lengths_are_robustness(scale: str) -> None:
    assert {one.claim for one in at_500(scale).values()} == {"P6", "P4"}


@pytest.mark.parametrize(
    "other", [{"head": "sdclr"}, {"split": "step"}, {"split": "as-is"}, {"data": "digits"}]
)
def test_another_set_is_not_the_published_one(other: dict[str, Any]) -> None:
    said = at_500("cifar10-rho100-500", **other).values()
    assert {one.claim for one in said} == {"P6", "P4"}
    assert len(said) == 3 and all(one.published is None for one in said)
    elsewhere = at_500("cifar10-rho100-500", rho=20.0).values()
    assert all(one.published is None and one.role == "robustness" for one in elsewhere)


def test_settings_are_checked_without_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who reads results may not have them."""
    monkeypatch.setenv("RAREFY_DATA", "nowhere")
    get_study("longtail-table").at("cifar10-rho100-500", crop=0.2)


def test_methods_have_words_of_their_own() -> None:
    ways = ("sdclr", "sdclr:0.3", "sdclr+straight", "branches:0.3", "branches:0.1", "pruned:0.3")
    words = {spoken(way) for way in ways}
    assert len(words) == len(ways) and "two branches as in SDCLR, 0.3 kept" in words


def test_a_split_that_lacks_classes_keeps_its_looks_apart() -> None:
    found = by_look([1.0, 2.0, 3.0, 4.0], 2, (3, 4))
    assert found[:2, :2].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert np.isnan(found[2]).all() and np.isnan(found[:, 2:]).all()
    assert np.isnan(by_look((), 2, (3, 4))).all()


def test_the_largest_rho_is_shown_wherever_it_stands() -> None:
    found = results({"branches:0.1": (0.2, 0.1)}, rho=(100.0, 10.0))
    which = study((100.0, 10.0))
    gains = next(one for one in which.picture(found) if one.name == "gains")
    curve = next(one for one in gains.panels[0].curves if one.label == "two branches, 0.1 kept")
    assert curve.y == pytest.approx(20.0, abs=0.2)


def test_all_cells_of_a_seed_share_their_draws() -> None:
    """Methods, imbalances and the control are compared in pairs."""
    grid = grid_of(study(images=("long-tail", "balanced")))
    for seed in range(SEEDS):
        assert len(set(grid.keys[grid.values["seed"] == seed].tolist())) == 1
    assert len(set(grid.keys.tolist())) == SEEDS
