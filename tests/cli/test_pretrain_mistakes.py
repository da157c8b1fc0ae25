"""``rarefy pretrain`` asked wrongly, or for what cannot be: one line each, nothing lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import seen_in
from PIL import Image
from small_commands import HERE, SMALL

from rarefy import cli

Described = dict[str, Any]
Pretrain = Callable[..., Described]


@pytest.mark.slow
def test_nothing_of_another_run_is_replaced(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (*SMALL, "--batch", "32", "--protocols", "knn,few", "--method", "simclr")
    given = (*given, "--seeds", "1", "--no-control", "--save", "nets", "--save-split", "a.json")
    assert cli.main(["pretrain", *given, *HERE]) == 0
    shown = capsys.readouterr().out
    assert "10 labels" in shown  # few is a column already
    name = "digits-lenet-simclr-long-tail-rho-8-seed-0.pt"
    files = [here / "nets" / name, here / "a.json"]
    before = [path.read_bytes() for path in files]
    assert pretrain(*given)["finished"]  # the same again is no other run
    for more, message in (
        (("--split", "step", "--out", "b", "--save-split", "b.json"), f"{name}': was written by"),
        (("--rho", "4", "--out", "c", "--save", "other"), "a.json': was written by"),
        (("--rho", "4", "--save", "o", "--save-split", "b.json"), "use --overwrite or another --o"),
    ):
        assert cli.main(["pretrain", *given, *more, *HERE]) == 2
        assert message in capsys.readouterr().err
    assert [path.read_bytes() for path in files] == before
    assert not (here / "b").exists() and not (here / "b.json").exists()
    fresh = (*given, "--out", "b", "--epochs", "1", "--overwrite")
    assert pretrain(*fresh)["finished"] and files[0].read_bytes() != before[0]


def test_sets_that_are_not_what_was_asked_for_are_told(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draws = np.random.default_rng(0)
    for label, count in enumerate((40, 40, 10)):
        folder = here / "uneven" / f"c{label}"
        folder.mkdir(parents=True)
        for number in range(count):
            pixels = Image.fromarray(draws.integers(0, 256, (12, 12, 3), dtype=np.uint8))
            pixels.save(folder / f"{number}.png")
    given = ("uneven", "--network", "lenet", "--epochs", "1", "--seeds", "1", "--no-control")
    given = (*given, "--method", "simclr", "--protocols", "knn", "--batch", "4", "--save", "nets")
    assert cli.main(["pretrain", *given, *HERE, "--rho", "100"]) == 0
    said = capsys.readouterr().err
    assert "note: the largest class gets 8 images, as the smallest class of the set has" in said
    assert "note: rho 100 is out of reach with so few images: it is 8" in said
    assert cli.main(["pretrain", *given, *HERE, "--out", "whole"]) == 0
    assert "note: " not in capsys.readouterr().err
    names = sorted(path.name for path in seen_in(here / "nets"))
    assert names[0] == "uneven-lenet-simclr-as-is-seed-0.pt"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("digits", "--method", "prune:0.5"), "unknown method 'prune'"),
        (("digits", "--method", "pruned"), "needs the share of weights to keep, as pruned:0.3"),
        (("digits", "--method", "simclr,simclr"), "has the same one twice"),
        (("digits", "--method", ","), "name at least one of simclr"),
        (("digits", "--rho", "0.5"), "rho=0.5: must be a number, at least 1 (head over tail)"),
        (("digits", "--rho", "10,0.5"), "rho=0.5: must be a number, at least 1"),
        (("digits", "--rho", "ten"), "rho='ten': must be numbers, separated by commas"),
        (("digits", "--rho", "nan"), "rho=nan: must be a number"),
        (("digits", "--rho", "10,10"), "rho=(10.0, 10.0): has the same value twice"),
        (("digits", "--rho", "8", "--head", "all"), "head='all': must be full, sdclr or a number"),
        (("digits", "--rho", "8", "--head", "900"), "too few images: class '2' has 142 images, "),
        (("digits", "--head", "sdclr"), "head: of a long tail, which --rho or a split file makes"),
        (
            ("digits", "--split", "step"),
            "split='step': needs --rho, or is a split file (.json or .txt)",
        ),
        (("digits", "--split", "none.json"), "cannot read none.json"),
        (("digits", "--split", "a.json", "--rho", "8"), "rho: a split file has its own imbalance"),
        (("digits", "--rho", "8", "--split", "steep"), "unknown split 'steep'"),
        ((*SMALL, "--batch", "103"), "batch=103: must be at most the number of images, 102"),
        ((*SMALL, "--batch", "1"), "batch=1: must be at least 2"),
        ((*SMALL, "--batch", "0"), "batch=0: must be at least 2"),
        ((*SMALL, "--save-split", "s.txt"), "--save-split='s.txt': must end in .json"),
        ((*SMALL, "--protocols", "svm"), "unknown protocol 'svm'"),
        ((*SMALL, "--protocols", "knn,knn"), "has the same one twice"),
        ((*SMALL, "--protocols", ""), "is empty"),
        ((*SMALL, "--seeds", "0"), "seeds=0: must be at least 1"),
        ((*SMALL, "--epochs", "0"), "epochs=0: must be at least 1"),
        ((*SMALL, "--lr", "0"), "--lr=0.0: must be positive and finite"),
        ((*SMALL, "--temperature", "0"), "temperature=0.0: must be positive and finite"),
        ((*SMALL, "--crop", "2"), "crop=2.0: must be a share of the image"),
        ((*SMALL, "--network", "lenet5"), "lenet5"),
        (
            (*SMALL, "--method", "simclr+boost+boost"),
            "--method='simclr+boost+boost': has boost twice",
        ),
        ((*SMALL, "--method", "simclr,simclr+harmonise:130"), "130 directions need a projection"),
        ((*SMALL, "--save", "file"), "save='file': is a file; name a folder"),
        (("digits", "--save-split", "s.json"), "--save-split: all images are used; there is no s"),
        (("digits", "--rho", "8,9", "--save-split", "s.json"), "a file holds one split; name one"),
        ((*SMALL, "--save-split", "s.json", "--jobs", "-1"), "jobs=-1: must be at least 1"),
        ((*SMALL, "--save-split", "s.json", "--out", "file"), "out='file' is a file; a store is a"),
        (("folder", "--unlabelled", "--rho", "8"), "rho: without labels nobody knows"),
        (("folder", "--unlabelled", "--split", "a.json"), "split: without labels nobody knows"),
        (("folder", "--unlabelled"), "no images in it"),
        (("digits", "--unlabelled"), "--unlabelled is for folders, and there is none of this name"),
        (("digit",), "digit"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], wrong: tuple[str, ...], message: str
) -> None:
    (here / "file").write_text("")
    (here / "folder").mkdir()
    assert cli.main(["pretrain", *HERE, *wrong]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ") and said.err.count("\n") == 1
    assert message in said.err
    assert sorted(os.listdir(here)) == ["file", "folder"]


def test_no_control_of_a_folder_whose_small_classes_are_used_up(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its balanced control would need images that are not there: said, with how to do without."""
    from rarefy.data.images import load_images
    from rarefy.data.longtail import make_split, save_split

    draws = np.random.default_rng(0)
    for label, count in enumerate((40, 10)):
        folder = here / "pets" / f"class{label}"
        folder.mkdir(parents=True)
        for number in range(count):
            pixels = draws.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    pets = load_images("pets").train
    save_split(make_split(pets, (30, 8), (0, 1), 0), "pets.json")
    given = ["pretrain", "pets", "--split", "pets.json", "--network", "lenet", "--epochs", "1"]
    given += ["--batch", "8", "--seeds", "1", "--method", "simclr", "--protocols", "knn", *HERE]
    assert cli.main(given) == 2
    said = capsys.readouterr().err
    assert "of the balanced control too few images: class 'class1' has 8 images, wanted" in said
    assert "--no-control" in said
    assert cli.main([*given, "--no-control"]) == 0
