"""The ledger as it is shipped: every claim answered, by what was declared and measured."""

from __future__ import annotations

import datetime
import re
from functools import cache

import pytest

from rarefy.core.papers import PAPERS
from rarefy.ledger.api import claims as table
from rarefy.ledger.api import current_answers
from rarefy.ledger.claims import Claim, load_claims
from rarefy.ledger.quotes import unfounded
from rarefy.ledger.verdicts import load_verdicts
from rarefy.studies import listed

COUNTS = {"C": 16, "P": 8, "S": 12, "B": 15, "G": 16}
"""Claims of the papers, by the letter of their ids."""
answers, verdicts = cache(current_answers), cache(load_verdicts)
every_claim = pytest.mark.parametrize("claim", load_claims(), ids=lambda claim: claim.id)


def test_every_claim_of_the_papers_is_there() -> None:
    names = {claim.id for claim in load_claims() if claim.paper != "own"}
    assert names == {f"{family}{n + 1}" for family, most in COUNTS.items() for n in range(most)}


@every_claim
def test_its_primaries_are_judged_as_declared(claim: Claim) -> None:
    known = {(v.claim, v.study, v.scale): v for v in verdicts()}
    for primary in claim.primaries:
        assert claim.id in listed()[primary.study].claims
        verdict = known.get((primary.id, primary.study, primary.scale))
        if verdict is None:  # not run yet: then it decides nothing
            assert claim.answer in ("not run", "premise not met", "undecided"), primary.id
            continue
        assert primary.expects == verdict.predicted
        assert primary.tolerance == verdict.tolerance


@every_claim
def test_its_words_agree_with_its_numbers(claim: Claim) -> None:
    assert unfounded(answers()[claim.id]) == []


@every_claim
def test_its_words_are_whole(claim: Claim) -> None:
    words = [claim.line, claim.statement]
    if claim.answer != "not run":
        words += [claim.setting, claim.ran, claim.saw, claim.so, claim.change]
    for text in words:
        assert text and "TODO" not in text and text[-1] in ".!?"
        keys = re.findall(rf"(?<![\d,.])(?:{'|'.join(PAPERS)})\b", text)
        assert keys == [], "papers are called by their authors"
    assert claim.line[0] == claim.line[0].upper()
    assert claim.declared <= datetime.date.today()


def test_no_answer_rests_on_few_samples() -> None:
    for answer in answers().values():
        if answer.state in ("supported", "contradicted", "smaller than published"):
            assert all(part.verdict is not None and part.verdict.n >= 5 for part in answer.parts
                       if part.state == answer.state)  # fmt: skip


def test_no_primary_reading_is_given_that_nobody_declared() -> None:
    declared = {one.id for claim in load_claims() for one in claim.primaries}
    primaries = [(v.claim, v.study, v.scale) for v in verdicts() if v.role == "primary"]
    assert len(set(primaries)) == len(primaries)
    known = {claim.id for claim in load_claims()}
    for verdict in verdicts():
        assert verdict.role != "primary" or verdict.claim in declared, verdict.claim
        assert verdict.role == "diagnostic" or verdict.about in known, verdict.claim


def test_the_table_has_a_row_per_claim() -> None:
    found = table()
    assert len(found) == len(load_claims()) and set(found["answer"]) <= {
        answer.state for answer in answers().values()
    }
    assert list(table("Xu Chen figure 3").index) == ["B6"]
