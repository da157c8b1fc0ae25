"""The verb ``rarefy data``: listing, fetching, checking, and what it says when something is bad."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from folders import seen_in
from PIL import Image

import rarefy
from rarefy import cli
from rarefy.data.images import catalog, download


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the sets of whoever runs it."""
    folder = tmp_path / "sets"
    folder.mkdir()
    monkeypatch.setenv("RAREFY_DATA", str(folder))
    monkeypatch.setenv("COLUMNS", "100")
    return folder


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        for number in range(6):
            path = tmp_path / "pets" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)
    return tmp_path / "pets"


def _write_mnist(folder: Path) -> None:
    for split, count in (("train", 30), ("t10k", 10)):
        images = struct.pack(">4B3I", 0, 0, 8, 3, count, 4, 4) + bytes(range(16)) * count
        labels = struct.pack(">4BI", 0, 0, 8, 1, count) + bytes(n % 10 for n in range(count))
        for name, content in (("images-idx3", images), ("labels-idx1", labels)):
            (folder / f"{split}-{name}-ubyte.gz").write_bytes(gzip.compress(content))


def test_help_is_quick_and_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ([], ["fetch"], ["check"]):
        assert cli.main(["data", *verb, "--help"]) == 0
        assert f"Example: {' '.join(['rarefy', 'data', *verb])}" in capsys.readouterr().out
    code = "import sys; from rarefy.cli import main; main(['data', '--help']); print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(rarefy.__file__).parents[1])},
    ).stdout
    assert not {"torch", "PIL", "numpy", "sklearn"} & set(shown.split())


def test_the_list_says_what_is_here(
    empty_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["data"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"digits +yes", shown) and re.search(r"mnist +no", shown)
    assert "rarefy data fetch cifar10 (170.5 MB)" in shown
    assert f"data folder: {empty_folder}" in shown
    _write_mnist(empty_folder)
    assert cli.main(["data", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["folder"] == str(empty_folder)
    entries = {entry["name"]: entry for entry in listed["sets"]}
    assert entries["mnist"]["present"] and entries["mnist"]["where"] == str(empty_folder)
    assert entries["mnist"]["bytes"] == sum(p.stat().st_size for p in empty_folder.iterdir())
    assert not entries["cifar10"]["present"] and entries["cifar10"]["shape"] == [3, 32, 32]
    assert cli.main(["data", "--data-folder", str(tmp_path / "none")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"mnist +no", shown) and "(not there yet)" in shown


def test_check_tells_what_a_set_holds(
    empty_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _write_mnist(other)
    for arguments in (
        ["data", "check", "mnist", "--data-folder", str(other)],
        ["data", "--data-folder", str(other), "check", "mnist"],
    ):
        assert cli.main(arguments) == 0
        shown = capsys.readouterr().out
        assert "train: 30 images, 3 per class, 29 exact copies" in shown
        assert (
            "in both train and test: 10 test images; under more than one class: 1 images" in shown
        )
        assert re.search(r"mean 0\.0294, std 0\.0181", shown)
        assert re.search(r"fingerprint [0-9a-f]{16}\n", shown)


def test_check_as_json_and_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "new" / "digits.png"
    assert cli.main(["data", "check", "digits", "--json", "--sheet", str(sheet)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["train"]["images"] + found["test"]["images"] == 1797
    assert found["shape"] == [1, 8, 8] and found["shared"] == 0
    with Image.open(sheet) as drawn:
        pixels = np.asarray(drawn)
    assert pixels.shape[0] > 400 and pixels.shape[1] > 600 and pixels.std() > 30
    assert [path.name for path in seen_in(sheet.parent)] == ["digits.png"]
    assert cli.main(["data", "check", "digits", "--sheet", str(tmp_path / "x.txt")]) == 2
    assert "must end in one of .png" in capsys.readouterr().err


def test_check_of_a_folder(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = pets.parent / "pets.png"
    assert cli.main(["data", "check", str(pets), "--size", "5", "--sheet", str(sheet)]) == 0
    shown = capsys.readouterr().out
    assert "images of 3x5x5, 2 classes" in shown and "10 images, 5 per class" in shown
    assert "note: split by content, 0.2 of each class" in shown
    assert sheet.exists()
    assert cli.main(["data", "check", str(pets), "--test-share", "0.5"]) == 0
    assert "test: 6 images" in capsys.readouterr().out


def test_check_lists_every_bad_file(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        (pets / "cat" / f"bad{number:02}.png").write_bytes(b"nothing")
    assert cli.main(["data", "check", str(pets)]) == 1
    shown = capsys.readouterr().out
    assert shown.count("bad file: cat/bad") == 12 and "(not an image)" in shown
    assert cli.main(["data", "check", str(pets), "--skip-bad"]) == 0


def test_check_shows_levels(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pets.parent / "labels.csv"
    rows = [f"{name}/{n}.png,{name}{n // 4},{n % 2}" for name in ("cat", "dog") for n in range(6)]
    table.write_text("file,age,odd\n" + "\n".join(rows))
    command = ["data", "check", str(pets), "--test-share", "0.01", "--hierarchy", str(table)]
    assert cli.main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["hierarchy"]
    assert list(found) == ["class", "odd", "age"]
    assert (found["class"]["parent"], found["age"]["parent"]) == ("", "class")
    assert found["age"]["classes"] == 4 and found["age"]["agreement"] == 1
    assert found["age"]["fewest"] <= 2 and found["age"]["most"] >= 3
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    assert "level 'class': 2 classes, 5 per class\n" in shown
    counts = r"4 classes, [12] \((cat|dog)1\) to [34] \((cat|dog)0\) per class"
    assert re.search(rf"level 'age': {counts}, in 'class'\n", shown)
    table.write_text("class,kind\ncat,a\ndog,b\n")
    (pets / "cat" / "old").mkdir()
    for number in range(3):
        (pets / "cat" / f"{number}.png").rename(pets / "cat" / "old" / f"{number}.png")
    assert cli.main(command) == 0
    assert "note: only some images of 'cat' lie in folders" in capsys.readouterr().out


def test_check_says_where_a_level_cuts_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    rows = [f"{digit},{digit // 4}" for digit in range(10)]
    path.write_text("class,size\n" + "\n".join(rows))
    assert cli.main(["data", "check", "digits", "--hierarchy", str(path)]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"level 'size': 3 .* per class, not in 'parity' \(agreement 0\.5\d\d\d\)", shown
    )
    assert re.search(r"level 'class': 10 .* per class, in 'size'\n", shown)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "cat,pet\ndog,pet\ncat,wild\n", "'cat' has more than one parent"),
        ("a.csv", "cat,pet\ndog,pet\npet,cat\n", "'cat' is its own ancestor (cat > pet > cat)"),
        ("a.csv", "cat,pet\ndog,\n", "empty parent of 'dog'"),
        ("a.csv", "cat,pet\n", "no 'parent' of class 'dog'"),
        ("a.csv", "class,class,x\ncat,a,a\ndog,b,b\n", "has a level 'class' already"),
        ("a.pdf", "cat,pet\n", "unknown format"),
        ("a.csv", None, "there is no file"),
    ],
)
def test_a_bad_hierarchy_is_one_line(
    pets: Path, name: str, text: str | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, sheet = pets.parent / name, pets.parent / "sheet.png"
    if text is not None:
        path.write_text(text)
    command = ["data", "check", str(pets), "--hierarchy", str(path), "--sheet", str(sheet)]
    assert cli.main(command) == 2
    told = capsys.readouterr()
    assert re.fullmatch(r"error: .*\n", told.err) and words in told.err and str(path) in told.err
    assert told.out == "" and not sheet.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "mnst"], "did you mean 'mnist'"),
        (["check", "mnist"], "rarefy data fetch mnist"),
        (["check", "./none"], "there is no folder ./none"),
        (["check", "digits", "--size", "9"], "size=9"),
        (["check"], "Missing argument"),
        (["fetch", "digits", "cifar11"], "did you mean 'cifar10'"),
        (["fetch"], "Missing argument"),
        (["fech"], "fech"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["data", *arguments]) == 2
    told = capsys.readouterr()
    assert re.fullmatch(r"error: .*\n", told.err) and words in told.err
    assert told.out == ""


def test_an_empty_class_folder_is_one_line(pets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pets / "empty").mkdir()
    assert cli.main(["data", "check", str(pets)]) == 2
    assert "'empty' is empty" in capsys.readouterr().err
    shutil.rmtree(pets)
    pets.mkdir()
    assert cli.main(["data", "check", str(pets)]) == 2
    assert "no class folders" in capsys.readouterr().err


def test_fetch_says_what_it_did(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_mnist(empty_folder)
    assert cli.main(["data", "fetch", "mnist", "digits"]) == 0
    shown = capsys.readouterr().out
    assert f"mnist: is already in {empty_folder}" in shown and "digits: needs no fetching" in shown

    def pretend(file: download.RemoteFile, folder: Path, progress: bool) -> Path:
        return folder / file.path

    monkeypatch.setattr(catalog, "fetch", pretend)
    assert cli.main(["data", "fetch", "cifar100"]) == 0
    assert capsys.readouterr().out == f"cifar100: {empty_folder / 'cifar-100-python.tar.gz'}\n"


def test_fetch_without_a_network_is_one_line(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(*arguments: object, **options: object) -> None:
        raise download.urllib.error.URLError(OSError(101, "Network is unreachable"))

    monkeypatch.setattr(download.urllib.request, "urlopen", unreachable)
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    assert cli.main(["data", "fetch", "cifar10"]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("error: cannot fetch https://www.cs.toronto.edu/~kriz/cifar-10-python")
    assert "Network is unreachable" in told
    assert f"put it at {empty_folder / 'cifar-10-python.tar.gz'}" in told
    assert list(empty_folder.iterdir()) == []
