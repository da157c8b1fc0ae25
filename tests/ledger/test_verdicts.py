"""The ledger: merged by identity, stable on disk, compared like with like."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from rarefy.core.contracts import Verdict
from rarefy.core.errors import RunError
from rarefy.ledger import verdicts as ledger

BASE = Verdict("T1", "toy", "tiny", "default", "4", "4.2", (4.1, float("inf")), 4, "0.5", "holds")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ledger, "ledger_folder", lambda: tmp_path)
    return tmp_path


def changed(**fields: object) -> Verdict:
    return dataclasses.replace(BASE, **fields)  # type: ignore[arg-type]


def test_an_empty_ledger_has_no_verdicts() -> None:
    assert ledger.load_verdicts() == []


def test_what_is_saved_is_loaded_and_merged_by_identity(folder: Path) -> None:
    ledger.save_verdicts([changed(claim="T2"), BASE])
    ledger.save_verdicts([changed(outcome="fails")])
    loaded = ledger.load_verdicts()
    assert [(v.claim, v.outcome) for v in loaded] == [("T1", "fails"), ("T2", "holds")]
    assert loaded[1].interval == (4.1, float("inf"))
    before = (folder / "verdicts-toy.json").read_bytes()
    ledger.save_verdicts(reversed(loaded))
    assert (folder / "verdicts-toy.json").read_bytes() == before
    json.loads(before, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_saving_can_drop() -> None:
    ledger.save_verdicts([BASE, changed(claim="T2")])
    ledger.save_verdicts([], drop=[BASE.identity])
    assert [v.claim for v in ledger.load_verdicts()] == ["T2"]


def test_a_verdict_is_a_line_and_a_study_a_file(folder: Path) -> None:
    ledger.save_verdicts([BASE, changed(claim="T2", note="à la carte"), changed(study="other")])
    assert {p.name for p in folder.iterdir()} == {"verdicts-toy.json", "verdicts-other.json"}
    lines = (folder / "verdicts-toy.json").read_text("utf-8").splitlines()
    assert lines[0] == "[" and lines[-1] == "]" and len(lines) == 4
    entries = [json.loads(line.rstrip(",")) for line in lines[1:-1]]
    assert [entry["claim"] for entry in entries] == ["T1", "T2"]
    assert "à la carte" in lines[2]
    # sorted by identity, claim before study, whichever file a verdict comes from
    assert [v.study for v in ledger.load_verdicts()] == ["other", "toy", "toy"]


def test_saving_one_study_leaves_the_files_of_others_alone(folder: Path) -> None:
    ledger.save_verdicts([BASE, changed(study="other")])
    other = folder / "verdicts-other.json"
    by_hand = other.read_text("utf-8").replace("\n]", "\n\n]")
    other.write_text(by_hand, "utf-8")
    ledger.save_verdicts([changed(outcome="fails")])
    assert other.read_text("utf-8") == by_hand
    ledger.save_verdicts([], drop=[changed(study="other").identity])
    assert not other.exists()
    assert [v.outcome for v in ledger.load_verdicts()] == ["fails"]


def test_a_ledger_that_cannot_be_written_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = folder / "no" / "such"
    monkeypatch.setattr(ledger, "ledger_folder", lambda: missing)
    with pytest.raises(RunError, match="cannot write the ledger: No such file"):
        ledger.save_verdicts([BASE])


def test_no_file_that_is_shipped_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    sizes = {path.name: path.stat().st_size for path in ledger.ledger_folder().glob("*.json")}
    assert max(sizes.values()) < 300_000, max(sizes, key=lambda name: sizes[name])


def test_compare_tells_changed_new_and_gone_apart() -> None:
    committed = [BASE, changed(claim="T2"), changed(claim="T9", scale="paper")]
    fresh = [changed(outcome="fails"), changed(claim="T3")]
    found = {(c.kind, c.identity[0]): (c.before, c.after) for c in ledger.compare(fresh, committed)}
    assert found == {
        ("changed", "T1"): ("holds", "fails"),
        ("new", "T3"): (None, "holds"),
        ("gone", "T2"): ("holds", None),
    }


def test_only_the_same_scale_and_setting_are_compared() -> None:
    other_scale = [changed(outcome="fails", scale="quick")]
    assert {c.kind for c in ledger.compare(other_scale, [BASE])} == {"new"}
    # a setting that is no longer judged at this scale is missed, not taken for unchanged
    other_setting = [changed(outcome="fails", setting="d=64")]
    assert {c.kind for c in ledger.compare(other_setting, [BASE])} == {"new", "gone"}


@pytest.mark.parametrize(
    ("fields", "after"),
    [
        ({"measured": "4.3"}, "4.3 [4.1, inf] (n 4)"),
        ({"measured": "slope 4.2"}, "slope 4.2 [4.1, inf] (n 4)"),
        ({"n": 5}, "4.2 [4.1, inf] (n 5)"),
        ({"interval": (4.101, float("inf"))}, "4.2 [4.101, inf] (n 4)"),
        ({"interval": (4.1, 9.0)}, "4.2 [4.1, 9.0] (n 4)"),
        ({"interval": None}, "4.2 (n 4)"),
    ],
)
def test_other_numbers_are_a_change(fields: dict[str, object], after: str) -> None:
    before = "4.2 [4.1, inf] (n 4)"
    assert ledger.compare([changed(**fields)], [BASE]) == [
        ledger.Change("numbers", BASE.identity, before, after)
    ]


def test_what_is_asked_belongs_to_a_verdict() -> None:
    """A bound that was loosened must not pass while the outcome stays."""
    for fields in ({"predicted": "at least 1"}, {"tolerance": "±9"}):
        (change,) = ledger.compare([changed(**fields)], [BASE])
        assert change.kind == "numbers" and str(change.after).startswith("asked ")


def test_the_last_digits_of_another_machine_are_no_change() -> None:
    committed = changed(measured="rho -1.01e-18", interval=(4.10003, float("inf")))
    assert ledger.compare([changed(measured="rho 0")], [committed]) == []
    # counts have no last digits
    many = [changed(n=100_000)], [changed(n=100_001)]
    assert [change.kind for change in ledger.compare(*many)] == ["numbers"]


def test_a_damaged_ledger_is_named(folder: Path) -> None:
    (folder / "verdicts-toy.json").write_text("[{")
    with pytest.raises(RunError, match=r"cannot read the ledger verdicts-toy\.json"):
        ledger.load_verdicts()
