"""The word for what to look at a sample for, and the rule that gave it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rarefy.core.errors import UsageError
from rarefy.tools.influence.triage import (
    CONFLICT,
    CORRUPT,
    MISLABELLED,
    RARE,
    Rules,
    add_triage,
    robust_deviation,
    silent_neighbours,
)


def ordinary(count: int = 40) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "label": ["a", "b"] * (count // 2),
            "influence": generator.random(count),
            "percentile": 50.0,
            "distance": 1 + 0.1 * generator.random(count),
            "norm": 5 + 0.1 * generator.random(count),
            "disagreement": 0.2,
            "neighbour_label": ["a", "b"] * (count // 2),
            "copies": 0,
            "conflict": False,
            "given_probability": 0.9,
            "suggested_label": ["a", "b"] * (count // 2),
            "suggested_probability": 0.9,
            "label_issue": False,
            "likeliest": True,
        }
    )


def with_(row: int, **values: object) -> pd.DataFrame:
    table = ordinary()
    for name, value in values.items():
        table.loc[row, name] = value
    return add_triage(table)


def test_ordinary_samples_have_no_word() -> None:
    found = add_triage(ordinary())
    assert set(found["triage"]) == {""} == set(found["rule"])


@pytest.mark.parametrize(
    ("values", "word", "told"),
    [
        ({"conflict": True, "copies": 2}, CONFLICT, "2 other samples have the same content"),
        ({"distance": 9.0}, CORRUPT, "robust stds"),
        ({"norm": 0.0}, CORRUPT, "robust stds"),
        (
            {"given_probability": np.nan, "disagreement": 0.9, "neighbour_label": "b"},
            MISLABELLED,
            "90 % of its neighbours",
        ),
        (
            {"label_issue": True, "given_probability": 0.04, "suggested_label": "b"},
            MISLABELLED,
            "label check: 'b' at 90 %, its own label at 4 %",
        ),
        ({"percentile": 97.5, "disagreement": 0.1}, RARE, "percentile 97.5"),
    ],
)
def test_each_word_has_its_rule(values: dict[str, object], word: str, told: str) -> None:
    found = with_(4, **values)
    assert found.loc[4, "triage"] == word and told in found.loc[4, "rule"]
    assert set(found["triage"].drop(4)) == {""}


DOUBTED = {"label_issue": True, "suggested_label": "b", "given_probability": 0.1}


@pytest.mark.parametrize(
    "values",
    [
        {"conflict": True, "copies": 1},
        {"distance": 99.0},
        {"norm": 99.0},
        {"percentile": 99.0, "disagreement": 0.0},
        {"disagreement": 1.0, "neighbour_label": "b"},
    ],
)
def test_a_label_in_doubt_is_that_before_all_else(values: dict[str, object]) -> None:
    assert with_(0, **values).loc[0, "triage"] != MISLABELLED  # the label check has asked it
    row = with_(0, **values, **DOUBTED).loc[0]
    assert row["triage"] == MISLABELLED and row["rule"].startswith("label check: 'b'")


def test_content_is_more_certain_than_distance() -> None:
    assert with_(0, conflict=True, copies=1, distance=99.0).loc[0, "triage"] == CONFLICT


def test_rare_but_right_needs_the_label_to_be_the_likeliest() -> None:
    assert with_(0, percentile=99.0, likeliest=False).loc[0, "triage"] == ""


def test_neighbours_speak_of_what_was_not_checked() -> None:
    asked = {"disagreement": 0.9, "neighbour_label": "b"}
    assert not with_(0, **asked).loc[0, "label_issue"]
    row = with_(0, **asked, given_probability=np.nan).loc[0]
    assert row["label_issue"] and row["suggested_label"] == "b"


def test_a_rare_sample_whose_neighbours_disagree_is_not_called_right() -> None:
    assert with_(0, percentile=99.0, disagreement=0.7).loc[0, "triage"] == ""


def test_neighbours_that_say_nothing_call_no_label_in_doubt() -> None:
    table = ordinary()
    table["disagreement"] = np.where(table["label"] == "a", 0.9, 0.2)
    table["neighbour_label"] = "c"
    assert silent_neighbours(table, Rules()) == []  # the label check has spoken of all
    table["given_probability"] = np.nan
    assert set(add_triage(table)["triage"]) == {""}
    (note,) = silent_neighbours(table, Rules())
    assert note.startswith("neighbour rule is off for class a (most neighbours of")
    table["disagreement"] = 0.9
    assert "off for 2 classes: a; b" in silent_neighbours(table, Rules())[0]
    assert silent_neighbours(ordinary(), Rules()) == []


def test_without_neighbours_only_content_and_distance_speak() -> None:
    table = ordinary()
    table["disagreement"] = np.nan
    table.loc[0, "percentile"] = 99.0
    assert set(add_triage(table)["triage"]) == {""} and not silent_neighbours(table, Rules())


def test_classes_without_spread_or_numbers_fire_nothing() -> None:
    labels = np.array(["a", "a", "a", "b", "c", "c"], dtype=object)
    values = np.array([1.0, 1.0, 1.0 + 1e-15, np.nan, np.nan, 2.0])
    np.testing.assert_array_equal(robust_deviation(values, labels), np.zeros(6))


def test_deviation_is_in_stds_of_a_normal_class() -> None:
    values = np.random.default_rng(1).normal(3, 2, 20_001)
    found = robust_deviation(values, np.full(len(values), "a", dtype=object))
    np.testing.assert_allclose(found, (values - 3) / 2, atol=0.15)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"far": 0.0}, "far=0.0: must be above 0"),
        ({"disagreeing": 1.5}, "disagreeing=1.5: must be from 0 to 1"),
        ({"agreeing": -0.1}, "agreeing=-0.1: must be from 0 to 1"),
        ({"atypical": 101.0}, "atypical=101.0: must be from 0 to 100"),
    ],
)
def test_rules_out_of_range(rule: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Rules(**rule)
