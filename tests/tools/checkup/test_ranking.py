"""What to do first: made-up findings, and the rule that each must wake."""

from __future__ import annotations

from typing import Any

import pytest

from rarefy.tools.checkup.ranking import COSTS, SPOILS, TRY, commands_for, things_to_do
from rarefy.tools.checkup.sections import FAILED, SKIPPED, Section

FINE: dict[str, dict[str, Any]] = {
    "set": {"samples": 1000, "test": 200, "shared": 0, "copies": 0, "broken": 0},
    "samples": {"samples": 1000, "issues": 0, "conflicts": 0, "rare": 0, "label_accuracy": 0.9},
    "learning": {
        **{"balanced": 90.0, "no_better_than": "", "head": 92.0, "tail": 88.0, "classes": 4},
        **{"worst_class": "d", "worst_recall": 70.0, "worst_train": 8, "untold": 0},
        **{"untold_class": "", "untold_images": 0, "enough": 25, "decision": "none"},
        **{"sentence": "use keep 0.3: it gains", "gain": 2.0},
    },
    "features": {"tail_gain": -1.0, "n": 2},
    "finer": {"silhouette": 0.1, "clear_class": "a"},
}


def found(**changed: dict[str, Any]):  # type: ignore[no-untyped-def]
    sections = [
        Section(part, part, "", numbers={**numbers, **changed.get(part, {})})
        for part, numbers in FINE.items()
    ]
    return things_to_do(sections, commands_for("photos"))


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("part", "changed", "level", "words"),
    [
        ("set", {"broken": 3, "first_broken": "a.png"}, SPOILS, "3 files that cannot be read"),
        ("set", {"shared": 20}, SPOILS, "take training images out"),
        ("samples", {"conflicts": 4}, SPOILS, "which label copies have"),
        (
            "samples",
            {"issues": 5, "issue_class": "d", "issue_class_count": 5, "issue_class_size": 8},
            COSTS,
            "look at 5 labels in doubt",
        ),
        ("samples", {"issues": 300, "label_accuracy": 0.5}, TRY, "with an embedding"),
        ("learning", {"no_better_than": "always answering 'a'"}, COSTS, "do not trust"),
        ("learning", {"tail": 40.0}, COSTS, "collect more of 'd'"),
        ("learning", {"untold": 2, "untold_class": "d", "untold_images": 2}, COSTS, "about 25"),
        ("set", {"copies": 50}, TRY, "thin out"),
        ("learning", {"decision": "use"}, TRY, "prune while training"),
        ("features", {"tail_gain": 5.0}, TRY, "pre-train without labels"),
        ("finer", {"levels": ["species"]}, TRY, "finer labels"),
        ("finer", {"silhouette": 0.6}, TRY, "is two classes"),
        ("samples", {"rare": 7}, TRY, "rare but right"),
    ],
)
def test_each_rule(part: str, changed: dict[str, Any], level: int, words: str) -> None:
    (one,) = found(**{part: changed})
    assert one.level == level and words in one.what
    assert one.evidence and one.command.startswith("rarefy ") and "photos" in one.command


def test_rows_of_numbers_are_not_to_be_embedded() -> None:
    """They may be an embedding already."""
    told = {"issues": 300, "label_accuracy": 0.5}
    assert found(samples={**told, "pixels": True}) and not found(samples={**told, "pixels": False})


def test_what_spoils_comes_first_then_what_concerns_more() -> None:
    issue = {"issue_class": "d", "issue_class_count": 5, "issue_class_size": 8}
    things = found(
        set={"copies": 900, "shared": 2},
        samples={"issues": 5, "rare": 7, **issue},
        learning={"tail": 30.0},
    )
    assert [one.level for one in things] == [SPOILS, COSTS, COSTS, TRY, TRY]
    assert things[1].what.startswith("collect") and things[-1].what.startswith("look at what is")


@pytest.mark.parametrize("status", [SKIPPED, FAILED])
def test_parts_that_did_not_run_say_nothing(status: str) -> None:
    assert (
        things_to_do(
            [Section("set", "", "", status, numbers={"broken": 3})], commands_for("photos")
        )
        == []
    )


def test_commands_carry_what_the_data_were_read_with() -> None:
    commands = commands_for("my photos", size=32, hierarchy="h.csv", label="kind", skip_bad=True)
    assert commands("train", "--keep auto") == (
        "rarefy train 'my photos' --size 32 --skip-bad --keep auto"
    )
    assert commands("granularity").endswith("--skip-bad --hierarchy h.csv")
    assert commands_for("wine.csv", label="kind", size=None)("influence", "--open") == (
        "rarefy influence wine.csv --label kind --open"
    )
