"""Claims found as a person asks for them."""

from __future__ import annotations

import pytest
from made_up import claim

from rarefy.core.errors import UsageError
from rarefy.ledger.search import families, find, places

CLAIMS = [
    claim("C10", paper="000", where="Fig. 2-3", line="Rare features win fewer neurons."),
    claim("P6", paper="000", where="Table 2", line="Pruning helps rare classes."),
    claim("B6", where="Fig. 3a, 3b", line="Memorised noise generalises."),
    claim("B7", where="Fig. 4a", line="More samples help."),
    claim("Q1", paper="own", where="our question", line="Masks on the right neurons."),
]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("b6", ["B6"]),
        ("Xu Chen figure 3", ["B6"]),
        ("benign overfitting figure 3", ["B6"]),
        ("Does Fig. 3 of Xu & Chen come out?", ["B6"]),
        ("fig 3", ["C10", "B6"]),
        ("Liao table 2", ["P6"]),
        ("rare features", ["C10"]),
        ("memorised noise", ["B6"]),
        ("003 fig 3", ["B6"]),
        ("benign overfiting figure 3", ["B6"]),
        ("is table 2 reproduced?", ["P6"]),
        ("B6.1", ["B6"]),
        ("B6 B7", ["B6", "B7"]),
    ],
)
def test_by_words(asked: str, found: list[str]) -> None:
    assert [one.id for one in find(CLAIMS, asked)] == found


def test_by_paper_and_place() -> None:
    assert [one.id for one in find(CLAIMS, paper="003")] == ["B6", "B7"]
    assert [one.id for one in find(CLAIMS, paper="Xu Chen", figure="Fig. 4")] == ["B7"]
    assert [one.id for one in find(CLAIMS, figure="3")] == ["C10", "B6"]
    assert [one.id for one in find(CLAIMS, paper="own")] == ["Q1"]
    assert list(families(CLAIMS))[-1] == "Our own questions"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": "B66"}, r"no claim is called or about 'B66'; nearest: B6 \(.*\), .*, "),
        ({"paper": "Xi & Chen"}, "paper='Xi & Chen' is not one of ours; nearest: 003"),
        ({"figure": "Fig. 33"}, r"figure='Fig. 33': no claim stands there; nearest: \w+ \(Fig"),
        ({"text": "Xu Chen figure 9"}, "no claim is called or about 'Xu Chen figure 9'; nearest"),
    ],
)
def test_what_is_unknown_has_its_nearest_three(asked: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        find(CLAIMS, **asked)
    assert str(error.value).count("(") >= 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fig. 3a, 3b", {("fig", "3")}),
        ("Fig. 2-4", {("fig", "2"), ("fig", "3"), ("fig", "4")}),
        ("Fig. 3, 4, A.2", {("fig", "3"), ("fig", "4"), ("fig", "a.2")}),
        ("Theorem 3.1 end, Remark 2", {("thm", "3.1"), ("remark", "2")}),
        ("Thm 4.3, (H.4)", {("thm", "4.3")}),
        ("Lemmas 3-4", {("lemma", "3"), ("lemma", "4")}),
        ("Fig. 6, Fig. 1", {("fig", "6"), ("fig", "1")}),
        ("Tables 4, 6", {("table", "4"), ("table", "6")}),
        ("our question", set()),
        ("Fig. 1-999999999", {("fig", "1"), ("fig", "999999999")}),
    ],
)
def test_places(text: str, found: set[tuple[str, str]]) -> None:
    assert places(text) == found
