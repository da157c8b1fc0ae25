"""The verdicts on detectors where data are missing."""

from __future__ import annotations

import math

import numpy as np
from made_up_detectors import ideal, judged, scaled, study

STOP = math.log(1.5)
BEFORE = "growth ratio common/subclass just before own scores reach log(3/2)"


def test_what_the_data_do_not_show_stays_open() -> None:
    """A loss that never becomes small, scores that never reach the stop, intervals too wide."""
    of = study()
    results = ideal(of)
    results["loss"] = results["loss"] + 1
    for kind in ("common", "subclass"):
        results[f"{kind}_response"] = results[f"{kind}_response"] * 1e-3
    wild = np.random.default_rng(0).lognormal(0, 1, results["common_growth"].shape)
    results["common_growth"] = results["common_growth"] * wild
    found = judged(of, results)
    late = [each for name, each in found.items() if "late growth" in name]
    assert [each.outcome for each in late] == ["inconclusive"] * 4
    assert all("never" in each.note for each in late)
    words = "G5 fine labels, response ratio common/subclass when own scores reach log(3/2)"
    assert found[words].outcome == "inconclusive"
    assert "never (k=16)" in found[words].note and "too few values" in found[words].note
    for words in (
        "G3 fine labels, updates until own scores reach log(3/2)",
        "G3 coarse labels, growth a step of common detectors at the first step",
    ):
        assert found[words].outcome == "inconclusive"


def test_one_k_without_values_keeps_the_others_from_holding_but_not_from_failing() -> None:
    of = study()
    results = ideal(of)
    for kind in ("common", "subclass"):
        results[f"{kind}_response"][{"subclasses": 1, "labels": 1}] *= 1e-3
    # a stop that is never reached: none of the fine claims about it
    results["common_growth"][{"subclasses": 1, "labels": 0}] = np.nan
    results["common_growth"][{"subclasses": 0, "labels": 0, "seed": [1, 2, 5]}] = np.nan
    results["able_size"][{"subclasses": 1}] = np.nan
    scaled("able_size", 1.3)(results)
    found = judged(of, results)
    for words in (
        "score from common patches over log(3/2)",
        "score from subclass patches over log(3/2)",
        "response ratio common/subclass",
    ):
        verdict = found[f"G5 fine labels, {words} when own scores reach log(3/2)"]
        assert verdict.outcome == "inconclusive" and "no interval at k=4" in verdict.note
        assert "never (k=4)" in verdict.note
    lost = "seeds without a value: 3 of 12 at k=2"
    rate = found["G3 coarse labels, growth a step of common detectors at the first step"]
    slope = found["G3 coarse labels, growth ratio common/subclass against k at the first step"]
    for verdict, why in ((rate, "no interval at k=4"), (slope, "no value at k=4")):
        assert verdict.outcome == "inconclusive" and why in verdict.note and lost in verdict.note
    (size,) = (each for name, each in found.items() if "expectation: S, all" in name)
    assert size.outcome == "fails" and "the worst of 4 cases; no interval at k=4" in size.note


def test_an_exponent_that_is_wrong_fails_although_a_k_is_missing() -> None:
    of = study()
    results = ideal(of)
    results["subclass_response"][{"subclasses": 1, "labels": 0}] = np.nan
    results["common_growth"][{"subclasses": 1}] = np.nan
    k = results["subclasses"].astype(float)
    results["common_growth"] = (results["common_growth"] * k).transpose(
        *results["common_growth"].dims
    )
    found = judged(of, results)
    slope = found["G3 coarse labels, growth ratio common/subclass against k at the first step"]
    assert slope.outcome == "fails"
    bound = found["G5 coarse labels, final response to a subclass patch against k"]
    assert bound.outcome == "inconclusive" and "no value at k=4" in bound.note


def test_times_of_the_stop_lie_between_reads() -> None:
    of = study(seeds=4)
    results = ideal(of)
    s, at = of.feature_patches, {"variation": 0, "subclasses": 0, "labels": 1}
    results["common_response"][at] = 0.0
    own = results["subclass_response"]
    own[at] = 0.0
    own[{**at, "seed": 0}] = np.array(of.reads) * STOP / s / 12  # crosses after 12 updates
    own[{**at, "seed": 1}] = STOP  # above from the start
    own[{**at, "seed": 2, "read": slice(5, None)}] = 2 * STOP / s  # halfway between 8 and 16
    phases = {table.name: table for table in of.tables(results)}["phases"]
    (row,) = (row for row in phases.rows if row[:2] == ["fine", 2])
    assert row[3].startswith("8.000 [")  # mean of 12, 0 and 12; one never


def test_growth_is_read_just_before_the_stop() -> None:
    of = study(seeds=2)
    results = ideal(of)
    at = {"variation": 0, "labels": 1}
    results["common_response"][at] = 0.0
    own = results["subclass_response"]
    own[{**at, "subclasses": 0}] = 0.0  # never: all updates
    own[{**at, "subclasses": slice(1, None)}] = STOP  # from the start: none
    own[{**at, "subclasses": 2, "read": slice(0, 4)}] = 0.0
    note = judged(of, results)[f"G3 fine labels, {BEFORE}"].note
    assert f"updates: {of.steps} (k=2), 0 (k=4), {of.reads[3]} (k=8), 0 (k=16)" in note
