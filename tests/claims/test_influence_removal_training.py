"""What is left out, and what a training on the rest reaches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.studies.influence.removal.data import Source, parts_of
from rarefy.studies.influence.removal.training import (
    Order,
    Removal,
    highest,
    left_after,
    train_without,
)
from rarefy.tools.sparse_training import Task
from rarefy.train.image_batches import Augmentation
from rarefy.train.recipe import Recipe

CPU = torch.device("cpu")
DIGITS = Source("digits")


def task(network: str, data: str = "digits", epochs: int = 1) -> Task:
    return Task(data, network, Recipe(epochs=epochs, learning_rate=0.05), Augmentation(), batch=32)


# ------------------------------------------------------------------------------------- who leaves


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=40),
    st.integers(1, 4),
    st.floats(0, 0.99),
    st.sampled_from(["class", "all"]),
)
def test_the_highest_leave_and_no_class_is_emptied(
    values: list[float], classes: int, share: float, within: str
) -> None:
    given_ = np.array(values)
    labels = np.arange(len(given_)) % classes
    gone = highest(given_, labels, share, within)
    for label in range(classes):
        rows = labels == label
        assert not rows.any() or not gone[rows].all()
        if within == "class" and rows.any():
            assert gone[rows].sum() == min(round(share * rows.sum()), rows.sum() - 1)
            if gone[rows].any():
                assert given_[rows & gone].min() >= given_[rows & ~gone].max()


def test_undefined_scores_never_leave() -> None:
    values = np.array([np.nan, 3.0, 1.0, np.nan])
    gone = highest(values, np.zeros(4, dtype=np.int64), 0.75, "class")
    assert gone.tolist() == [False, True, True, False]


def test_equal_scores_leave_by_chance_and_not_by_place() -> None:
    values, labels = np.zeros(1_000), np.zeros(1_000, dtype=np.int64)
    chance = np.random.default_rng(0).random(1_000)
    gone = highest(values, labels, 0.3, "class", chance)
    assert gone.sum() == 300 and 400 < np.flatnonzero(gone).mean() < 600
    assert chance[gone].max() < chance[~gone].min()


def test_a_class_of_one_is_drawn_and_never_leaves(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    kinds = ["a"] * 30 + ["b"] * 30 + ["z"]
    frame = pd.DataFrame(generator.normal(0, 1, (61, 3)), columns=list("xyz")).assign(kind=kinds)
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = Source(str(tmp_path / "t.csv"), label="kind", columns="x,y")
    parts = parts_of(source)
    assert parts.train.features.shape[1] == 2
    alone = parts.train.labels == 2
    for fraction in (0.0, 0.5):
        left = left_after(Removal("random", fraction, subsample=0.5), parts, 1, CPU)
        assert left[alone].all() == alone.any()
    frame["kind"] = ["a"] * 31 + ["b"] * 30
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert len(parts_of(source).train.classes) == 2  # read again


def test_high_and_low_are_opposite_ends() -> None:
    parts = parts_of(DIGITS)
    score = parts.score("influence", CPU)
    left = {by: left_after(Removal(by, 0.2), parts, 1, CPU) for by in ("high", "low", "random")}
    assert len({int(one.sum()) for one in left.values()}) == 1
    for label in range(10):
        own = parts.train.labels == label
        assert score[own & ~left["high"]].min() >= score[own & left["high"]].max()
        assert score[own & ~left["low"]].max() <= score[own & left["low"]].min()
    again = left_after(Removal("random", 0.2), parts, 1, CPU)
    other = left_after(Removal("random", 0.2), parts, 2, CPU)
    assert (again == left["random"]).all() and (other != left["random"]).any()


def test_a_seed_draws_its_part_first_and_all_ways_share_it() -> None:
    parts = parts_of(DIGITS)
    whole = left_after(Removal("high", 0.0, subsample=0.5), parts, 3, CPU)
    part = left_after(Removal("high", 0.3, subsample=0.5), parts, 3, CPU)
    assert 0.48 < whole.mean() < 0.52 and not (part & ~whole).any()
    assert part.sum() == pytest.approx(0.7 * whole.sum(), abs=6)


@pytest.mark.parametrize("by", ["distance", "mahalanobis", "norm", "disagreement", "norm-low"])
def test_plainer_scores_choose_too(by: str) -> None:
    parts = parts_of(DIGITS)
    left = left_after(Removal(by, 0.1), parts, 0, CPU)
    assert left.mean() == pytest.approx(0.9, abs=0.01)


# ---------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("network", ["logistic", "lenet"])
def test_a_training_on_the_rest(network: str, tmp_path: Path) -> None:
    told: list[float] = []
    context = Context(advance=told.append, scratch=tmp_path)
    after = train_without(Removal("high", 0.3), DIGITS, task(network, epochs=2), 5, context)
    assert sum(told) == pytest.approx(2)
    assert after.trained == pytest.approx(0.7 * 1438, abs=6)
    assert 0 <= after.tail <= 1 and after.smallest == pytest.approx(0.7, abs=0.02)
    assert 0 <= after.far <= 1 and after.rest >= after.test - 0.2
    assert 0.8 * after.rest - 0.01 <= after.test <= 0.2 + 0.9 * after.rest + 0.01
    assert not list(tmp_path.glob("*.pt"))


def test_tables_are_split_by_content(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(200) % 2
    frame = pd.DataFrame(generator.normal(3 * labels[:, None], 1, (200, 4)), columns=list("abcd"))
    frame.assign(kind=labels).to_csv(tmp_path / "t.csv", index=False)
    text = str(tmp_path / "t.csv")
    source = Source(text, label="kind")
    parts = parts_of(source)
    assert len(parts.train) + len(parts.test) == 200 and not parts.is_images
    after = train_without(Removal("random", 0.2), source, task("logistic", text), 0, Context())
    assert after.test > 0.9
    with pytest.raises(UsageError, match="network='lenet': needs images; for other data use log"):
        train_without(Removal("low", 0.2), source, task("lenet", text), 0, Context())


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"by": "hig"}, "did you mean 'high'"),
        ({"by": "random-low"}, "unknown way to choose"),
        ({"fraction": 1.0}, "fraction=1.0: must be at least 0 and below 1"),
        ({"subsample": 0.0}, "subsample=0.0: must be above 0"),
        ({"within": "row"}, "unknown within 'row'"),
    ],
)
def test_bad_removals(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Removal(**values)  # type: ignore[arg-type]


def test_words_for_orders() -> None:
    assert Order.parse("low") == Order("influence", True) == Order.parse("influence-low")
    assert Order.parse("distance") == Order("distance", False)
