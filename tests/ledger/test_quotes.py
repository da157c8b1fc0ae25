"""The words of an answer against its numbers."""

from __future__ import annotations

import pytest
from made_up import claim, verdict

from rarefy.ledger.answers import compute_answers
from rarefy.ledger.quotes import unfounded


def said(saw: str, state: str = "supported", **given: object) -> list[str]:
    one = claim(saw=saw, answer=state)
    seen = verdict(value=0.9442, half=0.0111, allowed=(0.9, 1.0), note="chance 0.20", **given)
    others = [verdict("B1", setting="other law")]
    return unfounded(compute_answers([one], [seen, *others])["B1"])


@pytest.mark.parametrize(
    "saw",
    [
        "0.944 [0.933, 0.955], n = 20",
        "0.94, at least 0.9",
        "94.4 % against a chance of 20 % (Fig. 3, Theorem 4.1)",
        "1 of 1 readings agree",
        "no numbers at all",
    ],
)
def test_what_was_measured_may_be_quoted(saw: str) -> None:
    assert said(saw) == []


@pytest.mark.parametrize("saw", ["0.945", "0.944 at n = 21", "95.4 %", "7.07 points", "p 1e-9"])
def test_a_number_that_was_not_measured_is_named(saw: str) -> None:
    (wrong,) = said(saw)
    assert wrong.startswith("saw quotes ") and wrong.endswith("which no primary measured")


def test_another_answer_than_the_rule_s_is_named() -> None:
    assert said("", "undecided") == ["it says undecided, the rule gives supported"]
    (wrong,) = said("", n=3)
    assert wrong == "it says supported, the rule gives undecided (n = 3, not 5)"
