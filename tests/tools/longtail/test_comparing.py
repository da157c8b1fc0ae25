"""Judged networks beside each other: pairs, settings that are never mixed, tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rarefy.tools.longtail.comparing import (
    baseline_among,
    by_class,
    decide_probed,
    group_rows,
    name_differences,
    paired_differences,
)
from rarefy.tools.longtail.evaluation import Quality
from rarefy.tools.longtail.probing import ProbeResult

RANKS = 5


def probed(
    method: str,
    seed: int,
    overall: float,
    images: str = "long-tail",
    setting: str = "a",
    **more: Any,
) -> ProbeResult:
    accuracy = overall + torch.linspace(0.1, -0.1, RANKS, dtype=torch.float64)
    parts: Any = SimpleNamespace(
        counts=tuple(range(RANKS, 0, -1)),
        order=(4, 3, 2, 1, 0),
        labelled=SimpleNamespace(classes=tuple("vwxyz")),
    )
    name = f"{method}-{seed}"
    right = torch.empty(RANKS, dtype=torch.float64)
    right[list(parts.order)] = 1000 * accuracy
    missed = (1000 - right).numpy()
    # what is not right is taken for the next class
    confusion = np.diag(right.numpy()) + np.roll(np.diag(missed), 1, axis=1)
    quality = Quality({"knn": accuracy}, {}, {}, (), {"knn": confusion})
    order, conditions = more.pop("order", seed), more.pop("conditions", {})
    told = tuple((key, str(value)) for key, value in conditions.items())
    return ProbeResult(name, method, order, images, quality, parts, seed, setting, told)


def test_probed_networks_are_paired_by_seed_and_setting() -> None:
    found = [
        *(probed("branches:0.3", seed, value) for seed, value in ((0, 0.52), (1, 0.64), (2, 0.9))),
        *(probed("simclr", seed, value) for seed, value in ((1, 0.60), (0, 0.50), (5, 0.1))),
        probed("simclr", 0, 0.8, "balanced"),
    ]
    assert baseline_among(found) == "simclr"  # whatever the order of the files
    gain = paired_differences(found, "knn")["branches:0.3"]
    assert gain.n == 2 and gain.mean == pytest.approx(3.0)
    long, short, control = group_rows(found, "knn")
    assert (long["method"], long["n"], long["gain"]) == ("simclr", 3, None)
    assert long["balanced_accuracy"] == pytest.approx(40.0)
    # thirds of five ranks: two, two, one
    assert (long["head"], long["tail"]) == (pytest.approx(47.5), pytest.approx(30.0))
    assert (long["worst_class"], long["majority_accuracy"]) == ("v", pytest.approx(20.0))
    assert short["gain"] == gain and (control["images"], control["gain"]) == ("balanced", None)


def test_networks_judged_on_another_set_keep_their_pairs() -> None:
    """All have the order of that set then; each is still of its own seed."""
    found = [
        probed(method, seed, value + seed / 10, order=-2)
        for method, value in (("simclr", 0.3), ("pruned:0.5", 0.31))
        for seed in range(3)
    ]
    gain = paired_differences(found, "knn")["pruned:0.5"]
    assert gain.n == 3 and gain.mean == pytest.approx(1.0) == pytest.approx(gain.low)


def test_settings_are_never_mixed() -> None:
    found = [
        probed("simclr", 0, 0.5, setting="rho 10"),
        probed("simclr", 0, 0.3, setting="rho 100"),
        probed("pruned:0.5", 0, 0.4, setting="rho 100"),
    ]
    lines = group_rows(found, "knn")
    assert [(row["setting"], row["method"], row["n"]) for row in lines] == [
        ("rho 10", "simclr", 1),
        ("rho 100", "simclr", 1),
        ("rho 100", "pruned:0.5", 1),
    ]
    assert lines[2]["gain"].mean == pytest.approx(10.0)


def test_what_was_trained_differently_is_told_apart() -> None:
    """Files with the same words that differ in a rate or a temperature."""
    found = name_differences(
        [
            probed("simclr", 0, 0.5, conditions={"rate": 0.1, "temperature": 0.2}),
            probed("pruned:0.5", 0, 0.6, conditions={"rate": 0.1, "temperature": 0.2}),
            probed("simclr", 0, 0.2, conditions={"rate": 0.5, "temperature": 0.2}),
            probed("simclr", 0, 0.2, setting="b", conditions={"rate": 0.7, "temperature": 0.2}),
        ]
    )
    assert [one.setting for one in found] == ["a, rate 0.1", "a, rate 0.1", "a, rate 0.5", "b"]
    assert paired_differences(found, "knn")["pruned:0.5"].mean == pytest.approx(10.0)


def test_what_is_not_said_is_no_difference_unless_others_differ_in_it() -> None:
    """Files of older versions say less. (None is said: the usual.)"""
    said = [{"b": 2}, {"b": 2, "c": 1}, {"b": 2, "c": 1}, {}]
    alike = name_differences(
        [probed("simclr", n, 0.5, conditions=told) for n, told in enumerate(said)]
    )
    assert {one.setting for one in alike} == {"a"}
    assert group_rows(alike, "knn")[0]["n"] == 4
    said[2]["c"] = None
    apart = name_differences(
        [probed("simclr", n, 0.5, conditions=told) for n, told in enumerate(said)]
    )
    words = ["a, c not said", "a, c 1", "a, c None", "a, c not said"]
    assert [one.setting for one in apart] == words


def test_a_table_by_class_names_ranks_and_classes() -> None:
    table = by_class([probed("simclr", 0, 0.5)])
    assert table["class"].tolist() == ["z", "y", "x", "w", "v"]
    assert table["train"].tolist() == [5, 4, 3, 2, 1]
    assert table["recall"].tolist() == pytest.approx([60, 55, 50, 45, 40])
    assert table["group"].tolist() == ["head", "head", "middle", "middle", "tail"]


def test_networks_of_others_have_rows_of_their_own_and_no_difference() -> None:
    found = [probed("", 0, 0.5), probed("", 1, 0.7)]
    assert baseline_among(found) == "" and paired_differences(found, "knn") == {}
    assert [row["n"] for row in group_rows(found, "knn")] == [1, 1]
    told = decide_probed(found, "knn")
    assert (told.kind, told.choice, told.further_seeds) == ("cannot tell", None, 4)
    assert told.sentence == (
        "cannot tell -1 from -0: one network each decides nothing, 5 of each from other seeds "
        "would; of these 5000 test images -1 is right on 70.0 % [68.7, 71.3], "
        "-0 is right on 50.0 % [48.6, 51.4]"
    )
    alone = decide_probed(found[:1], "knn")
    assert alone.sentence == "cannot tell: nothing is compared with -0"


def test_networks_decide_by_method_over_the_seeds_that_they_share() -> None:
    values = {"simclr": 0.60, "branches:0.3": 0.64, "pixels": 0.5}
    found = [
        probed(method, seed, value + seed / 100 + (seed % 2) / 1000 * (method == "branches:0.3"))
        for method, value in values.items()
        for seed in range(5)
    ]
    told = decide_probed([*found, probed("simclr", 0, 0.8, "balanced")], "knn")
    assert (told.kind, told.choice) == ("use", "branches:0.3")
    assert told.sentence.startswith("use branches:0.3: +4.04 points of balanced accuracy (knn) ov")
    assert told.sentence.endswith("; +14.04 points over raw pixels")
    fewer = [one for one in found if one.seed < 4 or one.method != "simclr"]
    told = decide_probed(fewer, "knn")  # four pairs decide nothing
    assert (told.kind, told.choice) == ("cannot tell", None) and ", n = 4; " in told.sentence
