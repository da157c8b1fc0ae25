"""The verdicts on detectors where data are missing, and their parts one by one."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_detectors import ideal, judged, study

from rarefy.studies.granularity.detectors.judging import (
    STOP,
    Readings,
    judge_exponent,
    judge_range,
)


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
    words = "G3 fine labels, updates until own scores reach log(3/2)"
    assert found[words].outcome == "inconclusive"
    words = "G3 coarse labels, growth a step of common detectors at the first step"
    assert found[words].outcome == "inconclusive"


def test_one_k_that_never_stops_keeps_the_others_from_holding() -> None:
    of = study()
    results = ideal(of)
    for kind in ("common", "subclass"):
        results[f"{kind}_response"][{"subclasses": 1, "labels": 1}] *= 1e-3
    found = judged(of, results, "G5")
    for words in (
        "score from common patches over log(3/2)",
        "score from subclass patches over log(3/2)",
        "response ratio common/subclass",
    ):
        verdict = found[f"G5 fine labels, {words} when own scores reach log(3/2)"]
        assert verdict.outcome == "inconclusive" and "no interval at k=4" in verdict.note
        assert "never (k=4)" in verdict.note


def test_seeds_without_detectors_are_counted() -> None:
    of = study()
    results = ideal(of)
    results["common_growth"][{"subclasses": 0, "labels": 0, "seed": [1, 2, 5]}] = np.nan
    found = judged(of, results, "G3")
    said = "seeds without a value: 3 of 12 at k=2"
    for words in ("growth a step of common detectors at", "growth ratio common/subclass against k"):
        named = [each for name, each in found.items() if f"coarse labels, {words}" in name]
        assert named and all(said in each.note for each in named)


def test_an_exponent_needs_every_k() -> None:
    identity = ("G3", "s", "paper", "x")
    rows = np.random.default_rng(0).uniform(0.99, 1.01, 6)
    columns = {k: k * rows for k in (2, 4, 8)}
    assert judge_exponent(identity, columns, 1.0, 0.1).outcome == "holds"
    columns[4] = np.full(6, np.nan)
    found = judge_exponent(identity, columns, 1.0, 0.1)
    assert found.outcome == "inconclusive" and "no value at k=4" in found.note
    assert judge_exponent(identity, columns, 2.0, 0.1).outcome == "fails"
    assert judge_exponent(identity, columns, 2.0, 0.1, at_most=True).outcome == "inconclusive"


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
    read = Readings(of, results)
    times = read.stop_time("fine", 2)
    assert times[:3] == pytest.approx([12, 0, 12]) and np.isnan(times[3])
    results["subclass_response"][at] = 0.0
    assert read.stop("fine", 2) == -1 and read.before_stop("fine", 2) == of.steps
    results["subclass_response"][at] = STOP
    assert read.stop("fine", 2) == 0 and read.before_stop("fine", 2) == 0
    results["subclass_response"][{**at, "read": slice(0, 4)}] = 0.0
    assert read.stop("fine", 2) == 4 and read.before_stop("fine", 2) == of.reads[3]


def test_a_range_is_judged_by_its_worst_case() -> None:
    identity = ("G3", "s", "paper", "x")
    fine, bad = np.array([1.0, 1.01, 0.99]), np.array([3.0, 3.01, 2.99])
    good = judge_range(identity, {"a": fine, "b": fine}, 0.5, 2, "1", "none")
    assert good.outcome == "holds" and "the worst of 2 cases" in good.note
    assert judge_range(identity, {"a": fine, "b": bad}, 0.5, 2, "1", "none").outcome == "fails"
    nothing = np.array([np.nan, np.nan])
    open_case = judge_range(identity, {"a": fine, "b": nothing}, 0.5, 2, "1", "none")
    assert open_case.outcome == "inconclusive" and "no interval at b" in open_case.note
    assert judge_range(identity, {"a": bad, "b": nothing}, 0.5, 2, "1", "none").outcome == "fails"
    ratio = np.stack([2 * fine, fine], axis=1)
    assert judge_range(identity, {"a": ratio}, 1.9, 2.1, "2", "none").outcome == "holds"
