"""Methods judged per class over seeds, and the last sentence: made-up results whose answers are
known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.measure.class_report import class_report
from rarefy.tools.decision import Decision
from rarefy.tools.longtail.judging import (
    JudgedSeed,
    decide_judged,
    decide_methods,
    guessing,
    report_of,
)

LITTLE = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])


def scores(**means: float) -> dict[str, np.ndarray]:
    """Five seeds that differ by more than methods do, and a little for each method."""
    spread = np.array([0.0, 3.0, -2.0, 1.0, 4.0])
    names = {"branches": "branches:0.1"}
    return {
        names.get(name, name): mean + spread + LITTLE * (place + 1)
        for place, (name, mean) in enumerate(means.items())
    }


def test_seeds_of_one_order_have_a_row_per_class_and_of_several_a_row_per_rank() -> None:
    confusion = np.array([[8, 2, 0], [0, 5, 5], [1, 0, 3]])
    one = report_of([JudgedSeed(confusion, (1, 0, 2), (9, 5, 2))] * 2, ("a", "b", "c"))
    assert one.table["class"].tolist() == ["b", "a", "c"]
    assert one.table["train"].tolist() == [9, 5, 2] and one.table["n"].tolist() == [10, 10, 4]
    assert one.table["recall"].tolist() == pytest.approx([50, 80, 75])
    same = class_report(confusion, (5, 9, 2), ("a", "b", "c"))
    assert one.table.equals(same.table) and one.summary == same.summary
    mirrored = JudgedSeed(confusion, (2, 0, 1), (9, 5, 2))
    ranks = report_of([JudgedSeed(confusion, (1, 0, 2), (9, 5, 2)), mirrored], ("a", "b", "c"))
    assert ranks.table["class"].tolist() == ["rank 1", "rank 2", "rank 3"]
    assert ranks.table["recall"].tolist() == pytest.approx([62.5, 80, 62.5])


def test_a_class_that_a_split_lacks_has_no_training_images() -> None:
    confusion = np.array([[8, 2, 0], [0, 5, 5], [1, 0, 3]])
    found = report_of([JudgedSeed(confusion, (0, 2), (9, 5))], ("a", "b", "c"))
    assert found.table["class"].tolist() == ["a", "c", "b"]
    assert found.table["train"].tolist() == [9, 5, 0]
    assert guessing(found) == pytest.approx(100 / 3)


def test_what_gains_for_sure_is_used_and_stands_beside_raw_pixels() -> None:
    told = decide_methods(scores(simclr=60, branches=63, pixels=50))
    assert (told.kind, told.choice) == ("use", "branches:0.1")
    assert told.sentence.startswith("use branches:0.1: +3.00 points of balanced accuracy over simc")
    assert told.sentence.endswith("; +13.00 points over raw pixels")
    unsure = scores(simclr=60, branches=63, pixels=62.9)
    unsure["pixels"] = unsure["pixels"] + np.array([1, -1, 1, -1, 0])
    told = decide_methods(unsure)
    assert told.choice == "branches:0.1"
    assert told.sentence.endswith("; branches:0.1 is not told apart from raw pixels (+0.10)")


def test_where_raw_pixels_are_better_the_sentence_says_so() -> None:
    told = decide_methods(scores(simclr=60, branches=63, pixels=70, untrained=20))
    assert (told.kind, told.choice) == ("none", "pixels")
    assert told.sentence.startswith("none of these beats raw pixels: the best is branches:0.1, -7.")
    assert told.sentence.endswith("; use raw pixels")
    few = {name: values[:3] for name, values in scores(simclr=60, branches=63, pixels=70).items()}
    told = decide_methods(few)
    assert told.kind == "cannot tell" and told.further_seeds == 2
    assert told.sentence.startswith("cannot tell branches:0.1 from simclr: about 2 more seeds woul")
    assert told.sentence.endswith("; ahead so far: raw pixels (+6.90 over branches:0.1)")


def test_one_method_is_compared_with_what_needs_no_training() -> None:
    told = decide_methods(scores(simclr=60, pixels=50))
    assert (told.kind, told.choice) == ("use", "simclr")
    assert "over raw pixels" in told.sentence
    assert decide_methods(scores(pixels=50, untrained=40)).kind == "none"
    alone = decide_methods(scores(simclr=60))
    assert alone.sentence == "cannot tell: nothing is compared with simclr yet"


def test_first_whether_anything_was_learnt() -> None:
    """200 and 20 test images: for which the interval of a balanced accuracy is wide."""

    def told(rare: int, **means: float) -> Decision:
        report = class_report(np.array([[190, 10], [20 - rare, rare]]), (90, 9), ("a", "b"))
        judged = {"simclr": report, "branches:0.1": report}
        return decide_judged(scores(**means), judged)

    none = told(0, simclr=50, branches=50)
    assert (none.kind, none.choice) == ("none", "always answering the largest class")
    assert none.sentence.startswith("none of these beats always answering the largest class: the b")
    unsure = told(2, simclr=52, branches=55)
    assert (unsure.kind, unsure.choice) == ("cannot tell", None)
    assert unsure.sentence.startswith("cannot tell simclr from always answering the largest class")
    assert "; among these: use branches:0.1: +3.00 points" in unsure.sentence
    sure = told(15, simclr=85, branches=88)
    assert (sure.kind, sure.choice) == ("use", "branches:0.1")


def test_trainings_that_were_lost_decide_nothing() -> None:
    lost = np.full(5, np.nan)
    told = decide_methods({"simclr": lost, "branches:0.1": lost, "pixels": lost + 1})
    assert told.kind == "cannot tell" and told.choice is None
    known = scores(simclr=60, branches=63)
    told = decide_methods({**known, "simclr": lost, "pixels": known["simclr"]})
    assert told.kind == "cannot tell" and "nothing is compared with simclr" in told.sentence


values = st.lists(st.floats(26, 100), min_size=5, max_size=5).map(np.array)


@given(values, values, values)
def test_whatever_the_scores_the_choice_is_a_method_and_the_sentence_names_it(
    plain: np.ndarray, masked: np.ndarray, pixels: np.ndarray
) -> None:
    told = decide_methods({"simclr": plain, "branches:0.1": masked, "pixels": pixels})
    assert told.choice in (None, "simclr", "branches:0.1", "pixels")
    assert told.kind in ("use", "none", "cannot tell")
    assert (told.choice is None) == (told.kind == "cannot tell")
    if told.choice is not None:
        assert {"pixels": "raw pixels"}.get(told.choice, told.choice) in told.sentence
