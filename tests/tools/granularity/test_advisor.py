"""The advisor on made-up results: each ending, each warning, and what may choose what."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rarefy.tools.decision import MOST_SEEDS
from rarefy.tools.granularity.advisor import Advice, advise
from rarefy.tools.granularity.rows import chosen, kind
from rarefy.tools.granularity.tables import error_picture, granularity_table

CLASSES = {"target": 2, "once": 2, "class": 10, "noun": 40, "random:10": 10, "samples": 900}
NAN = float("nan")


def results(
    gains: Mapping[str, float],
    seeds: int = 6,
    spread: float = 0.05,
    probes: Mapping[str, float] | None = None,
    **more: Mapping[str, float],
) -> xr.Dataset:
    """Accuracies of ``target`` are about 90 %; the others gain so many points, give or take
    ``spread``. ``more``: values of other outputs by labels."""
    names = ["target", *gains]
    base = 90 + np.random.default_rng(0).normal(0, 1, seeds)
    rows = [base]
    for place, gain in enumerate(gains.values()):
        noise = np.random.default_rng(place + 1).normal(0, 1, seeds)
        noise = (noise - noise.mean()) / noise.std(ddof=1) if seeds > 1 else 0 * noise
        rows.append(base + gain + spread * noise)
    tuned = np.stack(rows)[..., None, None] / 100
    asked = probes or {}
    gained = zip(names, [0, *gains.values()], strict=True)
    probe = np.array([[80 + asked.get(name, gain)] * seeds for name, gain in gained])

    def each(output: str, usual: float) -> Any:
        values = more.get(output, {})
        return ("labels", "seed"), [[values.get(name, usual)] * seeds for name in names]

    both = ("labels", "seed", "checkpoint", "tuned")
    return xr.Dataset(
        {
            "held_out_accuracy": (both, np.ones_like(tuned)),
            "test_accuracy": (both, tuned),
            "probe_held_out": (both[:3], np.ones((*probe.shape, 1))),
            "probe_accuracy": (both[:3], probe[..., None] / 100),
            "classes": (both[:2], [[CLASSES.get(name, 4)] * seeds for name in names]),
            "smallest": each("smallest", 30),
            "agreement": each("agreement", 1.0),
            "worst_subclass": each("worst_subclass", 0.7),
            "worst_tenth": each("worst_tenth", 0.72),
            "nonfinite_step": each("nonfinite_step", -1),
        },
        {"labels": names, "seed": np.arange(seeds), "checkpoint": [4], "tuned": [2]},
    )


def warned(advice: Advice, words: str) -> bool:
    return any(re.search(words, one) for one in advice.warnings)


# ------------------------------------------------------------------------------------- the endings


def test_the_coarsest_level_that_is_not_worse_than_the_best_is_advised() -> None:
    advice = advise(results({"class": 1.0, "noun": 1.2, "kmeans-within:2": 0.1}), "parity")
    assert advice.level == "class"
    assert re.fullmatch(
        r"pre-train on class \(10 classes\): \+1\.00 points over re-training on parity "
        r"\[\+0\.9\d, \+1\.0\d\], n = 6; it is the coarsest that is not worse than the best, "
        r"noun \(40 classes\): \+1\.20",
        advice.sentence,
    )
    assert "given labels are better" in advice.made and advice.warnings == ()


def test_a_level_with_less_than_half_of_the_best_gain_is_not_enough() -> None:
    advice = advise(results({"class": 0.3, "noun": 1.2}))
    assert advice.level == "noun" and "coarsest" not in advice.sentence
    noisy = advise(results({"class": 0.7, "noun": 1.2}, spread=0.4))
    assert noisy.level == "noun"  # (more than half on average, but that may be luck)


def test_made_labels_that_win_are_called_so() -> None:
    advice = advise(results({"class": 0.1, "kmeans-within:2": 1.0}))
    assert advice.level == "kmeans-within:2"
    assert "kmeans-within:2 (made labels, 4 classes)" in advice.sentence
    assert "made labels are better" in advice.made


def test_a_sure_but_small_gain_is_called_small() -> None:
    advice = advise(results({"class": 0.2}))
    assert advice.level == "class" and advice.sentence.endswith("of less than 0.5 points")


def test_no_level_helps_where_none_can_gain_what_is_worth_it() -> None:
    advice = advise(results({"class": 0.0, "noun": -1.0}), "parity")
    assert advice.level is None
    assert advice.sentence.startswith(
        "no level helps here: none gains 0.5 points over re-training on parity; the best is class"
    )
    assert advise(results({"class": 0.0, "noun": -1.0}), worth=0.01).level is None
    assert "cannot tell" in advise(results({"class": 0.0, "noun": -1.0}), worth=0.01).sentence


def test_one_uncertain_level_leaves_it_open() -> None:
    found = advise(results({"class": 0.0, "noun": 0.3}, spread=0.6)).sentence
    more = re.fullmatch(r"cannot tell: about (\d+) more seeds would; the best so far is .*", found)
    assert more and 1 <= int(more[1]) <= 200


def test_the_number_of_seeds_decides_four_times_in_five() -> None:
    """With the seeds that it asks for, simulated anew."""
    gain, spread = 0.5, 0.6
    found = advise(results({"class": gain}, seeds=5, spread=spread), worth=0.4).sentence
    more = re.search(r"about (\d+) more", found)
    assert more
    random, decided = np.random.default_rng(3), 0
    for _ in range(400):
        values = random.normal(gain, spread, 5 + int(more[1]))
        decided += values.mean() - 1.96 * values.std(ddof=1) / len(values) ** 0.5 > 0
    assert 0.7 < decided / 400 < 0.9


def test_many_seeds_are_not_counted() -> None:
    advice = advise(results({"class": 0.25}, spread=9.0))
    assert f"more than {MOST_SEEDS} seeds would" in advice.sentence


@pytest.mark.parametrize(("seeds", "words"), [(4, "about 1 more"), (1, "at least 4 more")])
def test_few_seeds_decide_nothing(seeds: int, words: str) -> None:
    advice = advise(results({"class": 2.0}, seeds=seeds, spread=0.01))
    assert advice.level is None and f"cannot tell: {words} seed" in advice.sentence
    assert warned(advice, f"n = {seeds}: fewer than 5 seeds decide nothing")


def test_intervals_are_corrected_for_the_number_of_candidates() -> None:
    alone = advise(results({"class": 0.6}, spread=0.5))
    many = {f"kmeans-within:{k}": -0.1 for k in range(2, 12)}
    assert alone.level == "class"
    assert advise(results({"class": 0.6, **many}, spread=0.5)).level is None


def test_controls_are_never_advised() -> None:
    advice = advise(results({"once": 2.0, "random:10": 2.0, "samples": 2.0}))
    assert advice.level is None
    assert advice.sentence == "cannot tell: no level is compared with re-training yet"
    assert advice.made == "made labels: none were compared"


def test_made_labels_alone_have_nothing_to_stand_beside() -> None:
    advice = advise(results({"kmeans-within:2": 0.2}))
    assert advice.made.endswith("no given level to compare with")


# ------------------------------------------------------------------------------------ the warnings


def test_few_images_per_class() -> None:
    good = results({"class": 1.0})
    assert warned(advise(good, images=9_990), "class has about 999 images per class")
    assert not advise(good, images=10_000).warnings and not advise(good).warnings


def test_misaligned_labels() -> None:
    advice = advise(results({"class": 1.0}, agreement={"class": 0.9, "target": 0.5}))
    assert advice.warnings == (
        "class is misaligned: 10 % of its images lie outside their label's target class",
    )


def test_a_probe_that_disagrees() -> None:
    found = results({"class": 1.0, "noun": 1.2}, probes={"class": 3.0})
    assert warned(advise(found), "fine-tuning is best with noun, a linear probe with class")


def test_a_probe_alone() -> None:
    found = results({"class": 1.0, "noun": 3.0})
    found["test_accuracy"][:] = NAN
    advice = advise(found)
    assert warned(advice, "judged by a linear probe alone") and advice.level == "noun"


def test_the_worst_subclass_falls() -> None:
    falling = {"target": 0.7, "class": 0.6}
    assert warned(
        advise(results({"class": 1.0}, worst_subclass=falling)),
        r"with class the worst subclass loses: -10\.00 points",
    )
    assert not advise(results({"class": -1.0}, worst_subclass=falling)).warnings


def test_one_pass_is_better_than_re_training() -> None:
    advice = advise(results({"once": 0.5, "class": 1.0}))
    assert warned(advice, r"one pass on the target is better than re-training: \+0\.50")
    assert not advise(results({"once": 0.0, "class": 1.0})).warnings


def test_one_pass_of_the_same_length_beats_the_level() -> None:
    advice = advise(results({"once": 1.5, "class": 1.0}), "parity")
    assert advice.level is None
    assert advice.sentence.startswith(
        "train once on parity, as long as both stages together: +0.50 points"
    )
    assert "pre-train on" not in advice.sentence and "class (10 classes): +1.00" in advice.sentence


def test_one_pass_that_is_not_told_apart_from_the_level_is_said() -> None:
    advice = advise(results({"once": 1.0, "class": 1.0}))
    assert advice.level == "class"
    assert "not told apart from one pass of the same length (" in advice.sentence
    assert "one pass" not in advise(results({"once": 0.2, "class": 1.0})).sentence


@pytest.mark.parametrize("control", ["random:10", "samples"])
def test_ids_that_mean_nothing_do_as_well(control: str) -> None:
    advice = advise(results({"class": 1.0, control: 1.0}))
    assert warned(advice, f"class is not certainly better than {control}")
    assert not advise(results({"class": 1.0, control: 0.1})).warnings


def test_trainings_that_stopped() -> None:
    advice = advise(results({"class": 1.0}, nonfinite_step={"class": 3}))
    assert warned(advice, "class: 6 trainings stopped, not finite")


# --------------------------------------------------------------------------- rows, table and curve


def test_rows_are_what_was_measured_and_json_holds_them() -> None:
    found = results({"once": -0.5, "class": 1.0})
    found["probe_accuracy"].loc[{"labels": "once"}] = NAN
    advice = advise(found, "parity", images=100, epochs=6)
    target, once, row = json.loads(json.dumps(advice.described(), allow_nan=False))["rows"]
    assert [one["kind"] for one in (target, once, row)] == ["re-training", "one pass", "given"]
    assert target["gain"] is None and target["n"] == 6 and target["pairs"] == 0
    assert once["probe_accuracy"] is None
    assert (row["classes"], row["smallest"], row["agreement"]) == (10, 30, 1.0)
    assert row["gain"] == pytest.approx(1.0) and row["n"] == row["pairs"] == 6
    low, high = row["gain_interval"]
    assert low < 1 < high and high - 1 == pytest.approx(2.5706 * 0.05 / 6**0.5, rel=1e-3)
    assert row["worst_subclass"] == pytest.approx(70) and row["images_shown"] == 600


def test_levels_that_are_not_run_yet_are_left_out_of_the_rule() -> None:
    found = results({"class": 1.0, "noun": 5.0})
    for name in ("test_accuracy", "held_out_accuracy", "probe_accuracy", "classes", "smallest"):
        found[name] = found[name].astype(float)
        found[name].loc[{"labels": "noun"}] = NAN
    advice = advise(found, "parity")
    assert advice.level == "class" and advice.rows[-1]["classes"] is None
    assert {one.label for one in error_picture(advice.rows, "parity").panels[0].curves} == {
        *("given", "re-training")
    }
    assert granularity_table(advice.rows, "").row_count == 3


def test_a_curve_per_kind_and_a_line_per_baseline() -> None:
    gains = {"once": 0.0, "class": 1.0, "noun": 2.0, "kmeans-within:2": 0.5}
    rows = advise(results(gains)).rows
    panel = error_picture(rows, "parity").panels[0]
    curves = {one.label: one for one in panel.curves}
    assert list(curves) == ["given", "kmeans-within", "re-training", "one pass"]
    assert curves["given"].x.tolist() == [10, 40] and panel.x_log
    given = curves["given"]
    assert given.y[0] - given.y[1] == pytest.approx(1.0)
    assert (given.low < given.y).all() and (given.y < given.high).all()
    assert curves["re-training"].x.tolist() == [2, 40] and curves["re-training"].style == "dashed"


@given(
    held=arrays(float, (2, 3, 2, 2), elements=st.sampled_from([0.5, 0.6, 0.7, NAN])),
    test=arrays(float, (2, 3, 2, 2), elements=st.floats(0, 1)),
)
def test_test_images_choose_nothing(held: np.ndarray, test: np.ndarray) -> None:
    dims = ("labels", "seed", "checkpoint", "tuned")
    coordinates = {"labels": ["target", "class"], "seed": [0, 1, 2]}
    found = chosen(xr.DataArray(held, coordinates, dims), xr.DataArray(test, coordinates, dims))
    for place in np.ndindex(2, 3):
        allowed = test[place][held[place] == np.nanmax(np.append(held[place], 0))]
        assert not allowed.size or found.values[place] in 100 * allowed


def test_kinds() -> None:
    names = ("target", "once", "class", "kmeans-within:2", "rebalanced:2", "kmeans:9", "random:3")
    assert [kind(one) for one in (*names, "samples")] == [
        *("re-training", "one pass", "given", "kmeans-within", "rebalanced", "kmeans", "random"),
        "samples",
    ]
