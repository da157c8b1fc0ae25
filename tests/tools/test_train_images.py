"""``rarefy.train`` and ``rarefy.pretrain_images``: the verbs are faces of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rarefy
from rarefy import cli
from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.studies.api import open_store

NETWORK = "small_trainings:tiny"
"""Trains in no time."""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_train_compares_dense_and_pruned_and_the_verb_finds_its_store(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = rarefy.train("digits", 0.5, NETWORK, epochs=1, samples=100, seeds=2, device="cpu")
    assert found.finished and found.path.is_dir() and found.path.parent == Path("runs")
    assert found.frame["keep"].tolist() == [1.0, 0.5] and found.frame["n"].tolist() == [2, 2]
    words = ["train", "digits", "--keep", "0.5", "--network", NETWORK, "--epochs", "1"]
    words += ["--samples", "100", "--seeds", "2", "--device", "cpu", "--jobs", "1", "--json"]
    assert cli.main(words) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == found.described()
    assert "start" not in said.err  # nothing was left to train
    store = open_store(found.path)
    assert isinstance(store.study, get_study("train-images")) and store.study.claims == ()
    assert store.study.verdicts(store.read(), "quick") == []  # own images judge no claim
    # the page has the sentence and every class
    first, *_ = store.study.picture(store.read())
    assert first.caption.startswith(f"{found.decision.sentence}. ")
    use, classes, *_ = store.study.tables(store.read())
    assert use.caption == found.decision.sentence and len(use.rows) == 4
    assert len(classes.rows) == 20 and len(found.classes) == 20


def test_methods_are_compared_and_the_verb_finds_their_store(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = rarefy.pretrain_images(
        "digits", ["simclr", "pixels"], "lenet",
        rho=4, head="24", control=False, epochs=1, batch=32, seeds=1, protocols=["knn"],
        device="cpu",
    )  # fmt: skip
    assert found is not None and found.finished and found.trained == ["simclr"]
    assert found.frame["method"].tolist() == ["simclr", "pixels"] and not found.all_stopped
    words = ["pretrain", "digits", "--method", "simclr,pixels", "--network", "lenet", "--rho", "4"]
    words += ["--head", "24", "--no-control", "--epochs", "1", "--batch", "32", "--seeds", "1"]
    assert cli.main([*words, "--protocols", "knn", "--device", "cpu", "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found.described()
    assert isinstance(open_store(found.path).study, get_study("pretrain-images"))


def test_train_is_a_verb_and_a_room() -> None:
    from rarefy.train.recipe import Recipe

    assert callable(rarefy.train) and rarefy.train.recipe.Recipe is Recipe  # type: ignore[attr-defined]


def test_what_cannot_be_is_told_before_anything_is_written() -> None:
    with pytest.raises(UsageError, match="unknown network 'lenot'"):
        rarefy.train("digits", network="lenot")
    with pytest.raises(UsageError, match="head: of a long tail"):
        rarefy.pretrain_images("digits", head="full")
    assert not list(Path().iterdir())
