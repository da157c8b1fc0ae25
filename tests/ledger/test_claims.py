"""The declarations: read from TOML, and what is wrong with one named with its claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from rarefy.core.errors import RunError
from rarefy.ledger import claims as ledger

PRIMARY = """
[[B6.primary]]
study = "toy"
scale = "paper"
asks = "the mean"
expects = "at least 1"
tolerance = "none"
why = "as printed"
least_n = 20
premise = ""
null = "chance scores 0.2: told apart"
"""
CLAIM = """
[B6]
paper = "003"
where = "Fig. 3a, 3b"
statement = "It rises."
setting = ""
choices = ""
declared = 2026-11-17
seen = "before"
answer = "supported"
line = "It rises."
ran = ""
saw = ""
so = ""
change = ""
not_run = ""
figure = ""
"""
GOOD = CLAIM + PRIMARY


def read(text: str, folder: Path) -> list[ledger.Claim]:
    path = folder / "003.toml"
    path.write_text(text)
    return ledger.read(path)


def test_a_claim_with_its_primaries(tmp_path: Path) -> None:
    (claim,) = read(GOOD + PRIMARY, tmp_path)
    assert [one.id for one in claim.primaries] == ["B6.1", "B6.2"]
    assert claim.papers == ("003",) and claim.declared.isoformat() == "2026-11-17"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('why = "as printed"', 'why = ""', "a tolerance without a reason"),
        ('null = "chance scores 0.2: told apart"', 'null = ""', "null is empty"),
        ("least_n = 20", "least_n = 3", "least_n=3: fewer than 5 decide nothing"),
        ('expects = "at least 1"\n', "", "lacks expects"),
        ('so = ""', 'so = ""\nthus = ""', "does not know thus"),
        ('answer = "supported"', 'answer = "true"', "answer must be one of supported"),
        ('answer = "supported"', 'answer = "not run"', "not run needs its reason"),
        ('seen = "before"', 'seen = "never"', "seen must be before or after"),
        ('line = "It rises."', f'line = "{"x" * 89}"', "line has more than 88 characters"),
        ('line = "It rises."', 'line = ""', "line is empty"),
        ('paper = "003"', 'paper = "007"', "paper must be keys of"),
        ("[B6]", "[six]", "an id is a letter and a number"),
        (PRIMARY, "", "an answer needs a primary reading"),
        (PRIMARY, PRIMARY * 4, "more than 3 primary readings"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new)
    if old == "[B6]":
        text = text.replace("[[B6.", "[[six.")
    with pytest.raises(RunError, match="the ledger 003.toml, claim (B6|six): ") as error:
        read(text, tmp_path)
    assert said in str(error.value)


def test_two_answers_for_one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("003", "004"):
        (tmp_path / f"{name}.toml").write_text(GOOD)
    monkeypatch.setattr(ledger, "ledger_folder", lambda: tmp_path)
    ledger.load_claims.cache_clear()
    try:
        with pytest.raises(RunError, match="the ledger answers B6 twice"):
            ledger.load_claims()
        with pytest.raises(RunError, match="cannot read the ledger 003.toml"):
            read(GOOD + GOOD, tmp_path)  # TOML itself refuses it in one file
    finally:
        ledger.load_claims.cache_clear()
