"""Knobs are chosen by validation, and verdicts on made-up results come out as they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from made_up_results import fabricated

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


def results(levels: dict[str, float], spread: float = 0.01) -> xr.Dataset:
    """Losses at the end of training by method, the same at all noise levels but the first, where
    nothing fails; ``early``: the dense run's loss half-way. The error is a tenth of the loss."""
    generator = np.random.default_rng(1)
    found = {}
    for name in ("validation_loss", "test_loss", "test_error", "train_loss"):
        values = generator.normal(0, spread, (len(ARMS), len(SIGMA), SEEDS, len(READS)))
        for place, word in enumerate(ARMS):
            method = word.partition("-")[0]
            level = levels.get(method, 2.5)
            if name == "test_error":
                level, values[place] = level / 10, values[place] / 10
            values[place] += level
            if method == "dense" and name != "test_error":
                values[place, :, :, 1] += levels.get("early", level) - level
            if word.endswith("-8"):
                values[place] += 0.5  # the worse of two knobs
        values[:, 0] = 0.3 + 0.1 * (name == "test_error")
        found[name] = (("arm", "sigma", "seed", "read"), values)
    return fabricated(STUDY, SEEDS, found)


def row(data: xr.Dataset, method: str, sigma: str = "1") -> tuple[str, ...]:
    """Of the table of choices: knob, validation loss, test loss, test error."""
    (one,) = [each for each in STUDY.tables(data)[0].rows if list(each[:2]) == [sigma, method]]
    return tuple(str(value) for value in one[2:])


def against(data: xr.Dataset, rival: str) -> Verdict:
    (one,) = [v for v in STUDY.verdicts(data, "quick") if v.setting.startswith(f"{rival}: ")]
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
    assert against(data, "dense").n == 0


# ----------------------------------------------------------------------------------------- verdicts


def test_a_rescue_that_nothing_else_brings_holds_and_theorem_4_4_says_nothing_of_it() -> None:
    found = STUDY.verdicts(results({"dense": 3.0, "revive": 0.1}), "quick")
    assert [v.claim for v in found] == ["S4", "", "", ""] and {v.n for v in found} == {SEEDS}
    assert [v.outcome for v in found] == ["premise-not-met", *["holds"] * 3]
    # judged at the loudest noise: SNR = 1/(1.5 sqrt(200)) against 1/200
    assert "SNR is 9.4/n" in found[0].note and all("sigma_p=1.5" in v.setting for v in found)


def test_weight_decay_that_does_better_makes_its_comparison_fail_and_no_other() -> None:
    data = results({"dense": 3.0, "revive": 1.0, "decay": 0.5})
    assert against(data, "weight decay").outcome == "fails"
    assert against(data, "random mask").outcome == "holds"


def test_early_stopping_may_win() -> None:
    data = results({"dense": 3.0, "early": 0.5, "revive": 1.0})
    assert against(data, "early stopping").outcome == "fails"


def test_equal_to_the_last_bit_is_no_effect_and_fails() -> None:
    data = results({"dense": 3.0})
    for name in data:
        for knob in (2, 8):
            same = data[name].sel(arm=f"random-{knob}").values
            data[name].loc[{"arm": f"revive-{knob}"}] = same
    found = against(data, "random mask")
    assert found.outcome == "fails" and "no effect at all" in found.note


def test_differences_lost_in_the_spread_between_seeds_decide_nothing() -> None:
    data = results({"dense": 3.0, "revive": 2.45, "decay": 2.5}, spread=0.4)
    assert against(data, "weight decay").outcome == "inconclusive"


def test_what_seeds_share_cancels_in_a_paired_difference() -> None:
    data = results({"dense": 3.0, "revive": 0.9, "decay": 1.0})
    shift = xr.DataArray(np.linspace(0, 3, SEEDS), dims="seed")  # far more than the difference
    for name in ("test_loss", "validation_loss"):
        data[name] = data[name] + shift
    found = against(data, "weight decay")
    assert found.outcome == "holds" and found.interval is not None
    assert found.interval[1] - found.interval[0] < 0.1


def test_rivals_that_were_not_run_are_not_judged() -> None:
    data = results({"dense": 3.0, "revive": 0.1})
    some = data.sel(arm=["dense", "revive-2", "decay-0.1"])
    assert len(STUDY.verdicts(some, "quick")) == 3  # dense, weight decay, early stopping
    assert STUDY.verdicts(data.sel(arm=["dense", "fixed-2"]), "quick") == []
