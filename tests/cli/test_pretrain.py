"""The verb ``rarefy pretrain``: rows of methods beside their control, stops that lose nothing,
folders of any images, several processes, and one line for each mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_longtail import task

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.tools.longtail import several_processes
from rarefy.tools.saved_networks import load_backbone

Described = dict[str, Any]
Pretrain = Callable[..., Described]

SMALL = ("digits", "--rho", "8", "--head", "24", "--epochs", "2", "--network", "lenet")
"""102 images, 3 updates an epoch."""
QUICK = ("--batch", "32", "--protocols", "knn", "--method", "simclr,branches:0.3")
HERE = ("--jobs", "1", "--device", "cpu")


@pytest.fixture
def pretrain(here: Path, capsys: pytest.CaptureFixture[str]) -> Pretrain:
    """Runs the verb and gives what ``--json`` says."""

    def call(*arguments: str) -> Described:
        assert cli.main(["pretrain", *arguments, *HERE, "--json"]) == 0
        described: Described = json.loads(capsys.readouterr().out)
        return described

    return call


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pretrain", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Example: rarefy pretrain") == 3
    for option in ("--rho", "--method", "--split", "--unlabelled", "--save", "--max-seconds"):
        assert option in shown


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
    assert branches["difference"] == pytest.approx(branches["overall"] - plain["overall"])
    assert branches["pairs"] == 2 and len(branches["difference_interval"]) == 2
    names = sorted(path.name for path in (here / "nets").iterdir())
    assert len(names) == 8 and names[0] == "digits-lenet-branches-0.3-balanced-rho-8-seed-0.pt"

    # the same again: nothing is trained, and the table is whole in 80 columns
    for name in names:
        os.utime(here / "nets" / name, (1e9, 1e9))
    assert cli.main(["pretrain", *both, *HERE]) == 0
    shown = capsys.readouterr().out
    assert (here / "nets" / names[0]).stat().st_mtime == 1e9
    assert "none saved in nets: all was trained before" in shown
    for words in ("images", "method", "all", "many", "few", "Delta_20", "control", "branches:0.3"):
        assert words in shown
    assert "long-tail, branches:0.3: " in shown and "from simclr; too few seeds to tell" in shown
    table = shown[: shown.index("store:")]
    assert "…" not in table
    row = next(line for line in table.splitlines() if line.startswith("long-tail  branches:0.3 "))
    numbers = [branches[name] for name in ("overall", "many", "medium", "few", "delta_20")]
    assert row.split()[2:7] == [f"{value:.1f}" for value in numbers]

    # more seeds only add cells, and a split that was saved is used again
    assert pretrain(*SMALL, *QUICK, "--seeds", "3")["cells"] == 12
    again = ("digits", "--split", "tail.json", *SMALL[5:], *QUICK, "--seeds", "1", "--save", "more")
    assert [row["rho"] for row in pretrain(*again, "--out", "saved")["rows"]] == [1.0] * 4
    (one,) = (here / "more").glob("*simclr-long-tail-tail-seed-0.pt")
    first = here / "nets" / "digits-lenet-simclr-long-tail-rho-8-seed-0.pt"
    assert load_backbone(one)[1]["class_order"] == load_backbone(first)[1]["class_order"]


def test_stopped_it_goes_on_to_the_same_rows(
    pretrain: Pretrain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (*SMALL, *QUICK, "--seeds", "1", "--no-control")
    whole = pretrain(*given, "--out", "whole")
    asked: list[int] = []
    check = Context.check_time

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > 11:  # in the second training
            raise OutOfTime("the time given with --max-seconds is over")
        check(self)

    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        arguments = ["pretrain", *given, *HERE, "--out", "part", "--max-seconds", "500", "--json"]
        assert cli.main(arguments) == 0
    said = capsys.readouterr()
    part = json.loads(said.out)
    assert not part["finished"] and part["cells_done"] == 1
    assert "note: time is over: 1 of 2 cells are stored in part" in said.err
    assert "go on with: rarefy pretrain digits" in said.err
    assert list(Path(".part.scratch").iterdir())
    again = pretrain(*given, "--out", "part", "--max-seconds", "500")
    assert again["finished"] and again["rows"] == whole["rows"]
    assert not Path(".part.scratch").exists()


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
    assert rows[0]["overall"] is None and rows[1]["difference"] is None
    assert cli.main(["pretrain", *wild, *HERE, "--save", "nets"]) == 1
    said = capsys.readouterr()
    assert "long-tail, simclr: 1 stopped: not finite" in said.out
    assert "none saved in nets: all stopped, not finite" in said.out
    alone = (*given, "--method", "pixels", "--out", "alone", "--save", "nets")
    assert cli.main(["pretrain", *alone, *HERE]) == 0
    assert "none saved in nets: nothing was trained" in capsys.readouterr().out


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
        (("--split", "step", "--out", "b", "--save-split", "b.json"), f"holds {name} of another"),
        (("--rho", "4", "--out", "c", "--save", "other"), "holds another split; name another"),
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
    names = sorted(path.name for path in (here / "nets").iterdir())
    assert names[0] == "uneven-lenet-simclr-as-is-seed-0.pt"


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
    found = pretrain(*given)
    assert found["finished"] and found["rows"] == []
    (path,) = (here / "nets").iterdir()
    about = load_backbone(path)[1]
    assert (about["channels"], about["size"], about["seen"]) == (3, 12, 14)
    assert cli.main(["pretrain", *given, *HERE]) == 0
    assert "no labels: nothing is judged; rarefy probe does" in capsys.readouterr().out
    assert cli.main(["probe", str(path), "--protocols", "knn", "--device", "cpu"]) == 2
    assert "error: a probe needs labelled images" in capsys.readouterr().err


# -------------------------------------------------------------------------------- several processes


def test_two_processes_train_one_network_and_what_is_finished_is_kept(
    here: Path, toy_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*SMALL, "--batch", "32", "--protocols", "knn", "--method", "branches:0.3"]
    given += ["--seeds", "1", "--device", "cpu", "--out", "store", "--save", "nets"]
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rarefy"]
    done = subprocess.run(
        [sys.executable, *run, "pretrain", *given],
        cwd=here,
        env={**toy_environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # one process speaks
    assert (said["processes"], said["method"], said["rho"]) == (2, "branches:0.3", 8.0)
    assert 0 < said["knn"]["overall"] <= 100 and said["nonfinite_step"] == -1
    name = "digits-lenet-branches-0.3-rho-8-together"
    assert load_backbone(here / "nets" / f"{name}.pt")[1]["way"] == "branches:0.3"
    assert json.loads((here / "store" / f"{name}.json").read_text()) == said
    assert "epoch 1/2, loss" in done.stderr


def together(store: str = "store", save: Path | None = None, **more: Any) -> None:
    options = {"methods": ("simclr",), "seeds": 1, "tasks": [task()], "max_seconds": None, **more}
    several_processes.pretrain_together(**options, store=Path(store), device="cpu", save=save)


@pytest.mark.usefixtures("eager")
def test_together_what_is_finished_is_printed_and_other_settings_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together(save=here / "nets")
    first = json.loads(capsys.readouterr().out)
    (saved,) = (here / "nets").iterdir()
    written = saved.stat().st_mtime_ns
    together(save=here / "nets")
    said = capsys.readouterr()
    assert json.loads(said.out) == first and saved.stat().st_mtime_ns == written
    assert "note: this was trained before (--overwrite does it again)" in said.err
    with pytest.raises(UsageError, match="with other settings; use --overwrite or another --out"):
        together(tasks=[task(temperature=0.5)])
    together(tasks=[task(temperature=0.5)], overwrite=True)
    assert json.loads(capsys.readouterr().out)["loss"] != first["loss"]

    asked: list[int] = []

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > 4:
            raise OutOfTime("over")

    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        together("other", max_seconds=500.0)
    assert "note: out of time; the same command goes on" in capsys.readouterr().err
    assert len(list(Path("other", ".scratch").iterdir())) == 1
    together("other")
    again = json.loads(capsys.readouterr().out)
    assert again == first and not list(Path("other", ".scratch").iterdir())

    together("wild", tasks=[task(recipe=wild())])
    lost = json.loads(capsys.readouterr().out)
    assert lost["nonfinite_step"] >= 0 and lost["loss"] == [None] and "knn" not in lost


def wild() -> Any:
    from rarefy.train.recipe import Recipe

    return Recipe(epochs=1, learning_rate=1e30)


@pytest.mark.parametrize(
    "more", [{"seeds": 2}, {"methods": ("simclr", "pixels")}, {"tasks": [task(), task(batch=16)]}]
)
def test_together_one_network_is_trained(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="under torchrun one method, one rho and one seed"):
        together(**more)


# ----------------------------------------------------------------------------------------- mistakes


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
        ((*SMALL, "--save-split", "s.txt"), "save_split='s.txt': must end in .json"),
        ((*SMALL, "--protocols", "svm"), "unknown protocol 'svm'"),
        ((*SMALL, "--protocols", "knn,knn"), "has the same one twice"),
        ((*SMALL, "--protocols", ""), "must have at least one"),
        ((*SMALL, "--seeds", "0"), "seeds=0: must be at least 1"),
        ((*SMALL, "--epochs", "0"), "epochs=0: must be at least 1"),
        ((*SMALL, "--lr", "0"), "learning_rate=0.0: must be positive and finite"),
        ((*SMALL, "--temperature", "0"), "temperature=0.0: must be positive and finite"),
        ((*SMALL, "--crop", "2"), "crop=2.0: must be a share of the image"),
        ((*SMALL, "--network", "lenet5"), "lenet5"),
        ((*SMALL, "--save", "file"), "save='file': is a file; name a folder"),
        (("digits", "--save-split", "s.json"), "save_split: all images are used; there is no spl"),
        (("digits", "--rho", "8,9", "--save-split", "s.json"), "a file holds one split; name one"),
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
    assert cli.main(["pretrain", *wrong, *HERE]) == 2
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
