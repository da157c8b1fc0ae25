"""Verdicts, tables and pictures of removal on made-up results, and shared trainings of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from made_up_results import fabricated

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.studies.influence.removal import experiment as influence_removal
from rarefy.studies.influence.removal.data import Source, parts_of
from rarefy.studies.influence.removal.tables import spoken
from rarefy.studies.influence.removal.training import (
    Order,
    Removal,
    highest,
    left_after,
    train_without,
)
from rarefy.sweep.grid import grid_of
from rarefy.tools.sparse_training import Task
from rarefy.train.image_batches import Augmentation
from rarefy.train.recipe import Recipe

InfluenceRemoval = get_study("influence-removal")
STUDY: Any = InfluenceRemoval.at("quick", seeds=4, within=("class", "all"))


def made(study: Any, loss: dict[str, float], spread: float = 0.001) -> xr.Dataset:
    """Accuracy falls by ``loss`` times the fraction, otherwise as at random (0.05)."""
    generator = np.random.default_rng(0)
    falls = xr.DataArray([loss.get(by, 0.05) for by in study.by], dims="by")
    results = fabricated(study, study.seeds, {}, rest=0.95).map(
        lambda full: full + spread * generator.normal(0, 1, full.shape)
    )
    return results - falls * results["fraction"]


def outcomes(results: xr.Dataset) -> set[str]:
    return {each.outcome for each in STUDY.verdicts(results, "quick")}


def test_high_scores_that_cost_more_hold_and_those_that_cost_less_fail() -> None:
    assert outcomes(made(STUDY, {"high": 0.5, "low": 0.01})) == {"holds"}
    assert outcomes(made(STUDY, {"high": 0.01, "low": 0.5})) == {"fails"}
    assert "inconclusive" in outcomes(made(STUDY, {}, spread=0.05))


def test_the_mean_over_fractions_is_judged_and_by_the_papers_protocol_each() -> None:
    verdicts = STUDY.verdicts(made(STUDY, {"high": 0.5}), "quick")
    # two places, all test samples and the farthest; four fractions of the paper's protocol
    assert len(verdicts) == 2 * 2 + 4 == len({each.identity for each in verdicts})
    first = verdicts[0]
    assert "mean over fractions" in first.setting and first.n == 4
    assert first.setting.startswith("digits, logistic, same share of every class, all test")
    low, high = first.interval or (0.0, 0.0)
    assert low < 45 * 0.4 < high
    single = [each for each in verdicts if "left out" in each.setting]
    assert all("sorted over the whole set, all test" in each.setting for each in single)


@pytest.mark.parametrize(("scale", "claim"), [("paper", "B13.1"), ("cifar10", "B13.2")])
def test_the_papers_protocol_on_its_sets_is_primary(scale: str, claim: str) -> None:
    study = InfluenceRemoval.at(scale)
    assert study.seeds >= 5
    (first,) = [
        each for each in study.verdicts(made(study, {"high": 0.5}), scale) if each.role == "primary"
    ]
    assert first.claim == claim
    assert "sorted over the whole set, all test samples: mean over fractions" in first.setting


def test_without_one_of_the_two_nothing_is_asked() -> None:
    study = InfluenceRemoval.at("quick", by=("high", "random"))
    assert study.verdicts(made(study, {}), "quick") == []


def test_tables_show_differences_from_random_removal() -> None:
    tables = {table.name: table for table in STUDY.tables(made(STUDY, {"high": 0.5}, 0.0))}
    assert list(tables) == ["removed-class", "removed-all", "shares"]
    row = next(row for row in tables["removed-all"].rows if row[1] == "highest influence")
    assert row[2] == "95.00" and row[3] == "90.00 (-4.50 ±0.00*)"
    random = next(row for row in tables["removed-all"].rows if row[1] == "at random")
    assert random[3] == "94.50"
    only = InfluenceRemoval.at("quick", within=("class",))
    assert [table.name for table in only.tables(made(only, {}))] == ["removed-class"]


def test_pictures_have_a_curve_a_way() -> None:
    (picture,) = STUDY.picture(made(STUDY, {"high": 0.5}))
    assert len(picture.panels) == 6
    assert [curve.label for curve in picture.panels[0].curves] == [spoken(by) for by in STUDY.by]
    assert spoken("norm-low") == "lowest by norm"


def test_what_leaves_nothing_out_is_trained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = InfluenceRemoval.at("tiny", seeds=2)
    trained: list[Any] = []
    real = influence_removal.train_without

    def counted(removal: Any, *arguments: Any) -> Any:
        trained.append(removal)
        return real(removal, *arguments)

    monkeypatch.setattr(influence_removal, "train_without", counted)
    grid = grid_of(study)
    found = study.simulate(grid.cells(np.arange(len(grid))), Context(scratch=tmp_path))
    assert sum(one.fraction == 0 for one in trained) == 2 < len(grid) / 3
    assert found["test_accuracy"].shape == (len(grid),)


# ------------------------------------------------------------------------ trainings without samples


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
