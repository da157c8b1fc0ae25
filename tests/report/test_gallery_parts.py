"""What a gallery chooses, its histograms and its sheet."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_scores import scores

from rarefy.report.gallery import choice, columns
from rarefy.report.gallery.choice import MISLABELLED, STRIP, choose
from rarefy.report.gallery.numbers import histogram
from rarefy.report.gallery.table import read_table
from rarefy.tools.influence import triage


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=30).filter(any),
    most=st.integers(60, 2000),
    flagged=st.integers(0, 40),
)
def test_a_page_has_room_for_what_is_chosen(sizes: list[int], most: int, flagged: int) -> None:
    table = scores({f"c{number}": size for number, size in enumerate(sizes) if size})
    table["triage"] = np.where(table["index"] < flagged, MISLABELLED, "")
    samples = read_table(table)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(choice, "MOST_SAMPLES", most)
        chosen = choose(samples)
    shown = set(chosen.rows.tolist())
    assert len(shown) <= most
    assert set(range(min(flagged, len(table)))) <= shown, "the doubtful labels come first"
    highest = table.dropna(subset="influence").groupby("label")["influence"].idxmax()
    names = [samples.classes[number] for number in chosen.classes]
    assert set(highest.reindex(names).dropna()) <= shown, "the highest of every class on the page"
    assert sorted(map(len, samples.members()))[-len(names) :] == sorted(
        len(samples.members()[number]) for number in chosen.classes
    )


def test_samples_at_random_do_not_depend_on_the_order_of_rows() -> None:
    table = scores({"a": 300})
    turned = table.sample(frac=1, random_state=1).reset_index(drop=True)
    first, second = (set(t["id"].iloc[choose(read_table(t)).random[0]]) for t in (table, turned))
    assert first == second
    assert len(first) == STRIP


def test_equal_scores_and_categories_are_fine() -> None:
    table = scores({"a": 40, "b": 3}).assign(influence=1.0, percentile=50.0)
    table["label"] = table["label"].astype("category")
    rows = choose(read_table(table, ("a", "b"))).highest["influence"][0]
    assert rows.tolist() == np.flatnonzero(table["label"] == "a")[:STRIP].tolist()


def test_wrong_labels_come_by_disagreement_and_others_by_influence() -> None:
    table = scores({"a": 60, "b": 60})
    table["triage"] = np.where(np.arange(120) % 3, MISLABELLED, "rare but right")
    for word, keys in {
        MISLABELLED: ["disagreement", "percentile"],
        "rare but right": ["percentile"],
    }.items():
        mine = table[table["triage"] == word]
        expected = mine.sort_values(keys, ascending=False, kind="stable").index
        assert choose(read_table(table)).triage[word].tolist() == expected.tolist()
    without = table.drop(columns="disagreement")
    mine = without[without["triage"] == MISLABELLED]
    expected = mine.sort_values("percentile", ascending=False, kind="stable").index
    assert choose(read_table(without)).triage[MISLABELLED].tolist() == expected.tolist()
    checked = table.assign(given_probability=table["norm"] / table["norm"].max())
    mine = checked[checked["triage"] == MISLABELLED]
    expected = mine.sort_values("given_probability", kind="stable").index
    found = choose(read_table(checked)).triage
    assert found[MISLABELLED].tolist() == expected.tolist(), "the least likely label first"
    assert list(found) == [MISLABELLED, "rare but right"]
    assert MISLABELLED == triage.MISLABELLED, "the page and the rules have one word for it"


def test_a_histogram_counts_every_score() -> None:
    drawn = histogram(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 2.0]))
    assert drawn is not None
    assert (drawn.low, drawn.middle, drawn.high, drawn.logarithmic) == ("0", "0", "2", False)
    heights = [40 - int(y) for y in re.findall(r"V(\d+)h4", drawn.path)]
    assert [heights[place] for place in (0, 20, 39)] == [40, 10, 10]
    assert sum(height > 0 for height in heights) == 3
    tail = histogram(np.append(np.zeros(999), 1.0))
    assert tail is not None
    assert tail.logarithmic
    assert tail.path.endswith("V35h4V40z"), "log 2 / log 1000 of 40, rounded up to be seen"
    assert histogram(np.array([])) is None
    assert histogram(np.array([3.0])) is not None


@given(st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), max_size=9))
def test_what_is_usual_is_the_median_of_known_values(rows: list[list[float]]) -> None:
    held = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    for found, column in zip(columns._median(held, 3), held.T, strict=True):
        known = column[np.isfinite(column)]
        assert found == np.median(known) if len(known) else np.isnan(found)
