"""The verb ``rarefy pretrain``: rows of methods beside their control, stops that lose nothing,
folders of any images."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import seen_in
from PIL import Image
from small_commands import HERE, SMALL

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.tools import forecasting
from rarefy.tools.saved_networks import load_backbone

Described = dict[str, Any]
Pretrain = Callable[..., Described]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried for a second first."""
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)


RUNS = Path(__file__).parents[2] / "docs" / "runs.md"
QUICK = ("--batch", "32", "--protocols", "knn", "--method", "simclr,branches:0.3")


def test_methods_stand_beside_each_other_and_the_control(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = (*SMALL, *QUICK, "--seeds", "2", "--save", "nets", "--save-split", "tail.json")
    found = pretrain(*both)
    assert found["finished"] and found["cells"] == 8
    assert found["store"] == "runs/pretrain-digits"
    methods = [(row["images"], row["method"], row["n"]) for row in found["rows"]]
    assert methods == [
        (images, method, 2)
        for images in ("long-tail", "balanced")
        for method in ("simclr", "branches:0.3")
    ]
    plain, branches = found["rows"][:2]
    assert plain["control_delta_20"] == pytest.approx(found["rows"][2]["delta_20"])
    gained = branches["balanced_accuracy"] - plain["balanced_accuracy"]
    assert branches["difference"] == pytest.approx(gained)
    assert branches["pairs"] == 2 and len(branches["difference_interval"]) == 2
    names = sorted(path.name for path in seen_in(here / "nets"))
    assert len(names) == 8 and names[0] == "digits-lenet-branches-0.3-balanced-rho-8-seed-0.pt"

    # the same again: nothing is trained, and the table is whole in 80 columns
    for name in names:
        os.utime(here / "nets" / name, (1e9, 1e9))
    assert cli.main(["pretrain", *both, *HERE]) == 0
    shown = capsys.readouterr().out
    assert (here / "nets" / names[0]).stat().st_mtime == 1e9
    assert "none saved in nets: all was trained before" in shown
    assert "long-tail, branches:0.3: " in shown and "from simclr, n = 2\n" in shown
    table = shown[: shown.index("store:")]
    assert "…" not in table and max(map(len, table.splitlines())) <= 80
    row = next(line for line in table.splitlines() if line.startswith("long-tail  branches:0.3 "))
    read = ("accuracy", "balanced_accuracy", "macro_f1", "head", "middle", "tail", "worst_recall")
    assert row.split()[2:9] == [f"{branches[name]:.1f}" for name in read]
    guess = next(line for line in table.splitlines() if "largest class" in line)
    assert guess.split()[4] == "10.0"  # balanced, of ten classes
    # seeds have other orders of the classes: a row per rank, the rarest first
    ranks = [line.split()[1] for line in table.splitlines() if line.startswith("rank ")]
    assert ranks == [str(rank) for rank in range(10, 0, -1)]
    assert shown.splitlines()[-1] == found["decision"]["sentence"]
    assert found["decision"]["sentence"].startswith("cannot tell branches:0.3 from simclr: ")
    assert "test images are few" not in shown  # 35 are enough


@pytest.mark.slow
def test_more_seeds_only_add_cells_and_a_saved_split_is_used_again(
    pretrain: Pretrain, here: Path
) -> None:
    saved = ("--save", "nets", "--save-split", "tail.json")
    assert pretrain(*SMALL, *QUICK, "--seeds", "2", *saved)["cells"] == 8
    assert pretrain(*SMALL, *QUICK, "--seeds", "3")["cells"] == 12
    again = ("digits", "--split", "tail.json", *SMALL[5:], *QUICK, "--seeds", "1", "--save", "more")
    assert [row["rho"] for row in pretrain(*again, "--out", "saved")["rows"]] == [1.0] * 4
    (one,) = (here / "more").glob("*simclr-long-tail-tail-seed-0.pt")
    first = here / "nets" / "digits-lenet-simclr-long-tail-rho-8-seed-0.pt"
    assert load_backbone(one)[1]["class_order"] == load_backbone(first)[1]["class_order"]


@pytest.mark.slow
def test_stopped_and_moved_it_goes_on_to_the_same_rows(
    pretrain: Pretrain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (*SMALL, *QUICK, "--seeds", "1", "--no-control")
    whole, store = pretrain(*given, "--out", "whole"), "runs/pretrain-cifar10"
    asked: list[int] = []
    check = Context.check_time

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > 11:  # in the second training
            raise OutOfTime("the time given with --max-seconds is over")
        check(self)

    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        arguments = ("pretrain", *given, *HERE, "--out", store, "--max-seconds", "500", "--json")
        assert cli.main(arguments) == 3
    said = capsys.readouterr()
    part = json.loads(said.out)
    assert not part["finished"] and part["cells_done"] == 1
    assert f"note: time is over: 1 of 2 cells are stored in {store}" in said.err
    assert "go on with: rarefy pretrain digits" in said.err
    for line in re.findall(r"^cd runs && (tar .*?) +(?:#|&&)", RUNS.read_text("utf-8"), re.M):
        Path("runs").mkdir(exist_ok=True)
        subprocess.run(line, shell=True, check=True, cwd="runs")
        if " czf " in line:
            shutil.rmtree("runs")
    assert list(Path("runs/.pretrain-cifar10.scratch").iterdir())
    again = pretrain(*given, "--out", store, "--max-seconds", "500")
    assert again["finished"] and again["rows"] == whole["rows"]
    assert not Path("runs/.pretrain-cifar10.scratch").exists()


@pytest.mark.slow
def test_a_loss_that_is_no_number_stops_one_training_and_is_told(
    pretrain: Pretrain, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (*SMALL, "--batch", "32", "--protocols", "knn", "--seeds", "1", "--no-control")
    wild = (*given, "--method", "simclr,pixels", "--lr", "1e30")
    assert cli.main(["pretrain", *wild, *HERE, "--json"]) == 1
    said = capsys.readouterr()
    rows = json.loads(said.out)["rows"]
    assert "error: no training came to its end: the loss is no number" in said.err
    assert [(row["method"], row["stopped"], row["n"]) for row in rows] == [
        ("simclr", 1, 0),
        ("pixels", 0, 1),
    ]
    assert rows[0]["balanced_accuracy"] is None and rows[1]["difference"] is None
    assert cli.main(["pretrain", *wild, *HERE, "--save", "nets"]) == 1
    said = capsys.readouterr()
    assert "\nsimclr: 1 stopped: not finite" in said.out
    assert said.out.splitlines()[-1].startswith("cannot tell: nothing is compared with raw pixels")
    assert "none saved in nets: all stopped, not finite" in said.out
    alone = (*given, "--method", "pixels", "--out", "alone", "--save", "nets")
    assert cli.main(["pretrain", *alone, *HERE]) == 0
    assert "none saved in nets: nothing was trained" in capsys.readouterr().out


def test_any_folder_of_images_will_do(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of mixed size and mode, at any depth, without a label."""
    draws = np.random.default_rng(0)
    modes = ("RGB", "L", "RGBA", "P", "1", "LA", "CMYK")
    for number in range(14):
        size = (17 + number, 30 - number, 3)
        pixels = Image.fromarray(draws.integers(0, 256, size, dtype=np.uint8))
        folder = here / "photos" / ("deep" if number % 2 else ".")
        folder.mkdir(parents=True, exist_ok=True)
        mode = modes[number % len(modes)]
        kind = "tif" if mode == "CMYK" else "png"
        pixels.convert(mode).save(folder / f"{number}.{kind}")
    given = ("photos", "--unlabelled", "--size", "12", "--method", "branches:0.3", "--batch", "7")
    given = (*given, "--network", "lenet", "--epochs", "1", "--seeds", "1", "--save", "nets")
    assert cli.main(["pretrain", *given, *HERE]) == 0
    assert "; 1 network saved in nets\n" in capsys.readouterr().out
    found = pretrain(*given)
    assert found["finished"] and found["rows"] == []
    (path,) = seen_in(here / "nets")
    about = load_backbone(path)[1]
    assert (about["channels"], about["size"], about["seen"]) == (3, 12, 14)
    assert cli.main(["pretrain", *given, *HERE]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    told = r"no labels: the last network is kept \(effective rank of features \d+\.\d\), nothing "
    assert re.match(told, last)  # one look, one number
    assert last.endswith("nothing is judged; rarefy probe does, with labelled images")
    assert cli.main(["probe", str(path), "--protocols", "knn", "--device", "cpu"]) == 2
    assert "error: a probe needs labelled images" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------- mistakes


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
