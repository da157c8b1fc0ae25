"""One answer per claim: the rule, on made-up verdicts."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from made_up import claim, primary, verdict
from scipy import stats

from rarefy.core.verdict import Verdict
from rarefy.ledger.answers import benjamini_hochberg, compute_answers, holm, p_smaller, p_values
from rarefy.measure.statistics import judge_bound, judge_difference, judge_equal

FAILS: dict[str, Any] = {"value": 0.2, "half": 0.3, "outcome": "fails"}
ASTRIDE: dict[str, Any] = {"value": 1.1, "half": 0.5, "outcome": "inconclusive"}


def state(*verdicts: Verdict, primaries: int = 1) -> str:
    return compute_answers([claim(primaries=primaries)], verdicts)["B1"].state


def test_all_primaries_hold() -> None:
    assert state(verdict()) == "supported"
    assert state(verdict(), verdict("B1.2"), primaries=2) == "supported"


def test_one_that_fails_contradicts() -> None:
    assert state(verdict(), verdict("B1.2", **FAILS), primaries=2) == "contradicted"


def test_an_interval_with_both_in_it_decides_nothing() -> None:
    assert state(verdict(), verdict("B1.2", **ASTRIDE), primaries=2) == "undecided"


def test_too_few_samples_decide_nothing() -> None:
    assert state(verdict(n=4)) == "undecided"
    answer = compute_answers([claim()], [verdict(n=4)])["B1"]
    assert answer.why == "n = 4, not 5"


def test_a_premise_that_is_not_met_is_no_failure() -> None:
    unmet = verdict("B1.2", outcome="premise-not-met", note="premise not met: loss 1.5")
    assert state(verdict(), unmet, primaries=2) == "premise not met"
    assert state(verdict(**FAILS), unmet, primaries=2) == "contradicted"


def test_without_a_verdict_it_was_not_run() -> None:
    assert state() == "not run"
    assert state(verdict(scale="quick")) == "not run"  # a rehearsal is not the reading declared
    assert state(verdict(study="other")) == "not run"
    assert state(primaries=0) == "not run"


def test_a_published_size_outside_the_interval() -> None:
    published = {"published": 7.0, "allowed": (0.0, float("inf"))}
    assert state(verdict(**published)) == "smaller than published"
    near_nothing = {"value": 0.1, "half": 0.3, "outcome": "inconclusive"}
    assert state(verdict(**near_nothing, **published)) == "smaller than published"
    assert state(verdict(value=6.8, **published)) == "supported"
    assert state(verdict(value=9.0, **published)) == "supported"  # larger is no contradiction
    assert state(verdict(value=-2.0, outcome="fails", **published)) == "contradicted"
    negative = {"published": -7.0, "allowed": (-float("inf"), 0.0)}
    assert state(verdict(value=-2.0, **negative)) == "smaller than published"
    assert state(verdict(value=-6.8, **negative)) == "supported"


def test_robustness_is_counted_and_never_decides() -> None:
    others = [
        verdict("B1", setting="other law"),
        verdict("B1", setting="other sigma", **FAILS),
        verdict("B1", setting="one seed", n=1, **FAILS),
        verdict("B1", setting="premise", outcome="premise-not-met"),
        verdict("B1", setting="rehearsal", scale="quick", **FAILS),
        verdict("", setting="ours", **FAILS),
    ]
    answer = compute_answers([claim()], [verdict(), *others])["B1"]
    assert (answer.state, answer.agree, len(answer.others)) == ("supported", 1, 2)
    assert [one.setting for one in answer.exceptions] == ["other sigma"]
    against = compute_answers([claim()], [verdict(**FAILS), *others])["B1"]
    assert (against.agree, [one.setting for one in against.exceptions]) == (1, ["other law"])


def test_holm_within_a_claim() -> None:
    # alone it is just certain (one-sided p 0.02); as one of three readings it is not
    just = {"value": 2.0, "half": 0.95}
    p = p_values(verdict(**just))[0]
    assert 0.017 < p < 0.024
    sure = [verdict(f"B1.{number}", half=0.01) for number in (2, 3)]
    assert state(verdict(**just)) == "supported"
    assert state(verdict(**just), *sure, primaries=3) == "supported"  # the largest is not raised
    thrice = [verdict(f"B1.{number}", **just) for number in (1, 2, 3)]
    assert state(*thrice, primaries=3) == "undecided"
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_benjamini_hochberg_over_the_claims_of_a_paper() -> None:
    just = {"value": 2.0, "half": 0.95}
    many = [claim(f"B{number}") for number in range(1, 9)]
    doubtful = [verdict(f"B{number}.1", **ASTRIDE) for number in range(2, 9)]
    found = compute_answers(many, [verdict(**just), *doubtful])
    assert found["B1"].state == "undecided" and "over the paper's claims" in found["B1"].why
    # the claims of another paper do not count
    elsewhere = [many[0], *(claim(one.id, paper="004") for one in many[1:])]
    assert compute_answers(elsewhere, [verdict(**just), *doubtful])["B1"].state == "supported"


@given(some.lists(some.floats(0, 1), min_size=1, max_size=12))
def test_corrections_agree_with_scipy_and_their_definitions(values: list[float]) -> None:
    adjusted = stats.false_discovery_control(values)
    assert benjamini_hochberg(values) == [bool(p <= 0.05 + 1e-15) for p in adjusted]
    corrected = holm(values)
    assert all(c >= p for c, p in zip(corrected, values, strict=True))
    assert min(corrected) == pytest.approx(min(1.0, len(values) * min(values)))
    assert np.argsort(values, kind="stable").tolist() == sorted(
        range(len(values)), key=lambda index: (corrected[index], values[index], index)
    )


@given(
    some.lists(some.floats(-3, 3), min_size=6, max_size=30).filter(lambda x: np.std(x) > 1e-3),
    some.floats(-2, 2),
)
def test_p_values_of_means_are_students(samples: list[float], bound: float) -> None:
    judged = judge_bound(("B1.1", "toy", "paper", "x"), samples, bound, "at_least")
    wanted = stats.ttest_1samp(samples, bound, alternative="greater").pvalue
    holds, fails = p_values(judged)
    assert holds == pytest.approx(wanted, abs=1e-6) and fails == pytest.approx(1 - wanted, abs=1e-6)
    # the judge's own rule, a two-sided interval, is the same test at 2.5 % to a side
    assert (judged.outcome == "holds") == (holds <= 0.025 + 1e-9) or abs(holds - 0.025) < 1e-6


def test_no_difference_is_claimed_by_two_one_sided_tests() -> None:
    samples = np.linspace(-0.1, 0.1, 20)
    inside = judge_equal(("B1.1", "toy", "paper", "x"), samples, 0.0, 0.5)
    lower = stats.ttest_1samp(samples, -0.5, alternative="greater").pvalue
    upper = stats.ttest_1samp(samples, 0.5, alternative="less").pvalue
    assert p_values(inside)[0] == pytest.approx(max(lower, upper))
    outside = judge_equal(("B1.1", "toy", "paper", "x"), samples + 2, 0.0, 0.5)
    assert outside.outcome == "fails" and p_values(outside)[1] < 1e-6
    wide = judge_equal(("B1.1", "toy", "paper", "x"), samples * 20, 0.0, 0.5)
    assert wide.outcome == "inconclusive" and p_values(wide)[0] > 0.025


def test_samples_that_are_all_equal_count_as_a_sign_test() -> None:
    same = judge_bound(("B1.1", "toy", "paper", "x"), [1.0] * 10, 0.9, "at_least")
    assert p_values(same) == (0.5**10, 1 - 0.5**10)
    assert state(dataclasses.replace(same, setting="y")) == "supported"


def test_samples_that_all_lie_on_the_edge_are_as_the_judge_has_them() -> None:
    none = judge_difference(("B1.1", "toy", "paper", "x"), [0.0] * 20, "positive")
    assert none.outcome == "fails" and state(none) == "contradicted"
    just = judge_bound(("B1.1", "toy", "paper", "x"), [0.9] * 20, 0.9, "at_least")
    assert just.outcome == "holds" and state(just) == "supported"


def test_a_size_that_is_almost_excluded_leaves_the_direction() -> None:
    # alone its p is 0.03: the published size is excluded; as one of three readings it is not
    near = verdict(published=2.55, allowed=(0.0, float("inf")))
    assert state(near) == "smaller than published"
    sure = [verdict(f"B1.{number}", half=0.01) for number in (2, 3)]
    assert state(near, *sure, primaries=3) == "supported"
    # so it is as one of many claims
    many = [claim(f"B{number}") for number in range(1, 9)]
    doubtful = [verdict(f"B{number}.1", **ASTRIDE) for number in range(2, 9)]
    assert compute_answers(many, [near, *doubtful])["B1"].state == "supported"


def test_a_trend_that_is_too_weak_is_read_off_its_interval() -> None:
    asked = {"p": 0.7, "allowed": (0.5, 1.0), "outcome": "fails"}
    assert state(verdict(value=0.02, half=0.1, **asked)) == "contradicted"


def test_p_of_the_published_size() -> None:
    samples = [0.0, 0.1, 0.2, 0.3, 0.4]
    one = judge_difference(("B1.1", "toy", "paper", "x"), samples, "positive", published=1.0)
    wanted = stats.ttest_1samp(samples, 1.0, alternative="less").pvalue
    assert p_smaller(one) == pytest.approx(wanted)
    assert p_smaller(dataclasses.replace(one, published=None)) == 1.0


def test_a_trend_has_its_own_p() -> None:
    trend = {"p": 1e-4, "allowed": (0.0, 1.0), "interval": (0.5, 0.9)}
    assert p_values(verdict(value=0.8, **trend)) == (5e-5, 1 - 5e-5)
    assert p_values(verdict(value=-0.8, **trend)) == (1 - 5e-5, 5e-5)


@given(some.permutations(["B1.1", "B1.2", "B1"]))
def test_the_order_of_verdicts_does_not_matter(names: list[str]) -> None:
    found = {name: verdict(name) for name in ("B1.1", "B1.2", "B1")}
    answer = compute_answers([claim(primaries=2)], [found[name] for name in names])["B1"]
    assert answer.state == "supported" and [part.id for part in answer.parts] == ["B1.1", "B1.2"]


def test_least_n_is_the_primary_s_own() -> None:
    strict = dataclasses.replace(claim(), primaries=(primary(least_n=30),))
    assert compute_answers([strict], [verdict(n=20)])["B1"].state == "undecided"
