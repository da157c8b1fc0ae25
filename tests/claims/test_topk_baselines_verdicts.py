"""Knobs are chosen by validation, and verdicts on made-up results come out as they must."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

TopKBaselines: Any = get_study("topk-baselines")

ARMS = (
    "dense",
    "revive-2",
    "revive-8",
    "revive0-2",
    "revive0-8",
    "fixed-2",
    "fixed-8",
    "random-2",
    "random-8",
    "decay-0.1",
)
SIGMA, READS, SEEDS = (0.5, 1.0, 1.5), (5, 50, 500), 8
STUDY = TopKBaselines.at(
    "quick", arm=ARMS, sigma=SIGMA, steps=500, reads=READS, seeds=SEEDS, test_samples=1000
)
SIZES = {"arm": len(ARMS), "sigma": len(SIGMA), "seed": SEEDS, "read": len(READS)}


def results(levels: dict[str, float], spread: float = 0.01, **others: float) -> xr.Dataset:
    """Losses at the end of training by method, the same at all noise levels but the first, where
    nothing fails; ``early``: the dense run's loss half-way. The error is a tenth of the loss unless
    ``error_METHOD`` says otherwise."""
    generator = np.random.default_rng(1)
    found = {}
    for name in ("validation_loss", "test_loss", "test_error", "train_loss"):
        values = generator.normal(0, spread, tuple(SIZES.values()))
        for place, word in enumerate(ARMS):
            method = word.partition("-")[0]
            level = levels.get(method, 2.5)
            if name == "test_error":
                level = others.get(f"error_{method}", level / 10)
                values[place] *= 0.1
            values[place] += level
            if method == "dense":
                values[place, :, :, 1] += levels.get("early", level) - level
                if name == "test_error" and "early" in levels:
                    early = others.get("error_early", levels["early"] / 10)
                    values[place, :, :, 1] += early - levels["early"]
            if word.endswith("-8"):
                values[place] += 0.5  # the worse of two knobs
        values[:, 0] = 0.3 + 0.1 * (name == "test_error")
        found[name] = (tuple(SIZES), values)
    coords = {"arm": list(ARMS), "sigma": list(SIGMA), "seed": range(SEEDS), "read": list(READS)}
    return xr.Dataset(found, coords=coords)


def row(data: xr.Dataset, method: str, sigma: str = "1") -> tuple[str, ...]:
    """Of the table of choices: knob, validation loss, test loss, test error."""
    (one,) = [each for each in STUDY.tables(data)[0].rows if list(each[:2]) == [sigma, method]]
    return tuple(str(value) for value in one[2:])


def judged(data: xr.Dataset) -> list[object]:
    """At which noise levels dense training fails."""
    return [each[-1] for each in STUDY.tables(data)[1].rows]


def verdict(found: list[Verdict], *words: str) -> Verdict:
    (one,) = [each for each in found if all(word in each.setting for word in words)]
    return one


# ----------------------------------------------------------------------------------------- choosing


def test_the_knob_is_chosen_by_validation_and_never_by_the_test() -> None:
    data = results({"revive": 1.0})
    assert row(data, "TopK revive")[0] == row(data, "TopK revive", "1.5")[0] == "K 2*"
    other = data.copy(deep=True)
    other["test_loss"].loc[{"arm": "revive-8"}] = 0.0  # the test would have preferred it
    assert row(other, "TopK revive") == row(data, "TopK revive")
    assert STUDY.verdicts(other, "quick") == STUDY.verdicts(data, "quick")


def test_each_seed_and_noise_level_chooses_for_itself() -> None:
    data = results({})
    data["validation_loss"].loc[{"arm": "fixed-8", "seed": 3, "sigma": 1.0}] = 0.01
    data["test_loss"].loc[{"arm": "fixed-8", "seed": 3, "sigma": 1.0}] = 100.0
    knob, _, loss, _ = row(data, "TopK fixed")
    others = data["test_loss"].sel(arm="fixed-2", sigma=1.0, read=500).drop_sel(seed=3)
    assert knob == "K 2* (2 to 8)" and loss == f"{(float(others.sum()) + 100) / SEEDS:.3g}"
    assert row(data, "TopK fixed", "1.5")[0] == "K 2*"


def test_early_stopping_reads_the_dense_run_where_validation_is_lowest() -> None:
    data = results({"dense": 3.0, "early": 2.0})
    knob, _, loss, _ = row(data, "early stopping")
    half_way = data["test_loss"].sel(arm="dense", read=50, sigma=1.0).mean()
    assert knob == "steps 50" and loss == f"{float(half_way):.3g}"
    knob, _, loss, _ = row(data, "dense")
    assert knob == "none" and float(loss) > 2.9


def test_a_run_that_went_wrong_is_never_chosen_and_of_equals_the_first_is() -> None:
    data = results({})
    data["validation_loss"].loc[{"arm": "revive-2"}] = np.nan
    assert row(data, "TopK revive")[0] == "K 8*"
    data["validation_loss"].loc[{"arm": ["revive-2", "revive-8"]}] = 1.0
    assert row(data, "TopK revive")[0] == "K 2*"
    for name in data:
        data[name].loc[{"arm": ["revive-2", "revive-8"]}] = np.nan
    assert row(data, "TopK revive")[1:] == ("undefined",) * 3
    assert verdict(STUDY.verdicts(data, "quick"), "revive against dense", "loss").n == 0


# -------------------------------------------------------------------------------- where dense fails


def test_two_is_failure_for_ten_classes_and_as_near_to_guessing_for_others() -> None:
    data = results({})
    assert "at least 2 (Fig. 2" in STUDY.tables(data)[1].caption
    fewer = dataclasses.replace(STUDY, classes=4).tables(data)[1].caption
    assert f"at least {2 * np.log(4) / np.log(10):.3g} (Fig. 2" in fewer


def test_dense_training_fails_by_its_validation_loss_alone() -> None:
    data = results({"dense": 1.9})
    data["test_loss"].loc[{"arm": "dense"}] = 5.0
    assert judged(data) == ["no", "no", "no"]
    data = results({"dense": 2.1})
    data["test_loss"].loc[{"arm": "dense"}] = 0.1
    assert judged(data) == ["no", "yes", "yes"]


def test_where_dense_never_fails_nothing_is_concluded() -> None:
    found = STUDY.verdicts(results({"dense": 1.5, "revive": 0.1, "fixed": 0.1}), "quick")
    assert len(found) == 27
    for each in found:
        assert each.outcome == "inconclusive" and each.n == 0 and each.interval is None
        assert "premise not met" in each.note


# ----------------------------------------------------------------------------------------- verdicts


def test_a_rescue_that_nothing_else_brings_holds_everywhere() -> None:
    levels = {"dense": 3.0, "revive": 0.1, "revive0": 0.3, "fixed": 0.2}
    found = STUDY.verdicts(results(levels), "quick")
    assert {each.outcome for each in found} == {"holds"} and {each.n for each in found} == {SEEDS}


def test_a_reading_that_does_not_rescue_fails_while_the_other_holds() -> None:
    found = STUDY.verdicts(results({"dense": 2.4, "revive": 0.1, "fixed": 2.4}), "quick")
    assert verdict(found, "TopK, ReLU'(0)=0 reaches").outcome == "fails"
    assert verdict(found, "revive reaches").outcome == "holds"
    assert verdict(found, "fixed reaches").outcome == "fails"
    assert verdict(found, "fixed against dense", "loss").outcome == "inconclusive"


def test_weight_decay_that_does_better_makes_its_comparison_fail_and_no_other() -> None:
    data = results({"dense": 3.0, "revive": 1.0, "fixed": 1.0, "decay": 0.5})
    found = STUDY.verdicts(data, "quick")
    for measure in ("loss", "error"):
        assert verdict(found, "revive against weight decay", measure).outcome == "fails"
        assert verdict(found, "revive against random mask", measure).outcome == "holds"
        assert verdict(found, "revive against dense", measure).outcome == "holds"


def test_early_stopping_may_win_by_loss_and_lose_by_error() -> None:
    data = results({"dense": 3.0, "early": 0.5, "revive": 1.0}, error_early=0.8, error_revive=0.1)
    found = STUDY.verdicts(data, "quick")
    assert verdict(found, "revive against early stopping", "loss").outcome == "fails"
    assert verdict(found, "revive against early stopping", "error").outcome == "holds"


def test_equal_to_the_last_bit_is_no_effect_and_fails() -> None:
    data = results({"dense": 3.0})
    for name in data:
        for knob in (2, 8):
            same = data[name].sel(arm=f"random-{knob}").values
            data[name].loc[{"arm": f"revive-{knob}"}] = same
    found = verdict(STUDY.verdicts(data, "quick"), "revive against random mask", "loss")
    assert found.outcome == "fails" and "no effect at all" in found.note


def test_differences_lost_in_the_spread_between_seeds_decide_nothing() -> None:
    data = results({"dense": 3.0, "revive": 2.45, "fixed": 2.45, "decay": 2.5}, spread=0.4)
    found = STUDY.verdicts(data, "quick")
    assert verdict(found, "revive against weight decay", "loss").outcome == "inconclusive"


def test_what_seeds_share_cancels_in_a_paired_difference() -> None:
    data = results({"dense": 3.0, "revive": 0.9, "decay": 1.0})
    shift = xr.DataArray(np.linspace(0, 3, SEEDS), dims="seed")  # far more than the difference
    for name in ("test_loss", "validation_loss"):
        data[name] = data[name] + shift
    found = verdict(STUDY.verdicts(data, "quick"), "revive against weight decay", "loss")
    assert found.outcome == "holds" and found.interval is not None
    assert found.interval[1] - found.interval[0] < 0.1


def test_the_worst_noise_level_decides_and_is_named() -> None:
    data = results({"dense": 3.0, "revive": 0.1, "fixed": 0.1})
    for name in ("test_loss", "validation_loss"):
        data[name].loc[{"arm": ["revive-2", "revive-8"], "sigma": 1.5}] += (
            2.6  # 2.7: above decay's 2.5
        )
    found = STUDY.verdicts(data, "quick")
    against = verdict(found, "revive against weight decay", "loss")
    assert against.outcome == "fails" and "sigma_p=1.5, the worst of 2 noise levels" in against.note
    reaches = verdict(found, "revive reaches")
    assert reaches.outcome == "fails" and "sigma_p=1.5" in reaches.note
    assert verdict(found, "revive against dense", "loss").outcome == "holds"


def test_one_failing_noise_level_needs_no_correction() -> None:
    data = results({"dense": 3.0, "revive": 0.1}).isel(sigma=[0, 2])
    found = verdict(STUDY.verdicts(data, "quick"), "revive against dense", "loss")
    assert "sigma_p=1.5, the only noise level at which dense training fails" in found.note


def test_rivals_that_were_not_run_are_not_judged_and_the_paper_is_not_blamed() -> None:
    data = results({"dense": 3.0, "revive": 0.1})
    some = data.sel(arm=["dense", "revive-2", "decay-0.1"])
    found = STUDY.verdicts(some, "quick")
    assert len(found) == 7  # low loss; dense, decay, early stopping by loss and by error
    assert all("not a claim of the paper" in each.note for each in found if "decay" in each.setting)
    assert all("not a claim" not in each.note for each in found if "dense, test" in each.setting)
