"""What ``rarefy train`` says of rare classes, its last sentence, the keep it chooses, and sets that
are too small."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rarefy import cli
from rarefy.measure.class_report import COLUMNS
from rarefy.tools import forecasting

Train = Callable[..., dict[str, Any]]
HERE = ("--jobs", "1", "--device", "cpu")


@pytest.fixture(autouse=True)
def guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No training is tried before they start."""
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 60.0)


@pytest.fixture
def train(here: Path, capsys: pytest.CaptureFixture[str]) -> Train:
    """Runs the verb and gives what ``--json`` says."""

    def call(*arguments: str) -> dict[str, Any]:
        assert cli.main(["train", *arguments, *HERE, "--json"]) == 0
        described: dict[str, Any] = json.loads(capsys.readouterr().out)
        return described

    return call


def rare(here: Path, counts: tuple[int, ...] = (40, 12, 6, 4)) -> None:
    """A folder with a long tail, in which a class is a bright row."""
    random = np.random.default_rng(0)
    for row, count in enumerate(counts):
        for number in range(count):
            path = here / "photos" / f"row {row}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = random.integers(0, 60, (8, 8), dtype=np.uint8)
            pixels[2 * row] += 190
            Image.fromarray(pixels).save(path)


def test_rare_classes_first_and_a_sentence_last(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rare(here)
    monkeypatch.setenv("COLUMNS", "80")
    asked = ["train", "photos", "--network", "small_trainings:tiny", "--epochs", "4", *HERE]
    assert cli.main([*asked, "--seeds", "5"]) == 0
    said = capsys.readouterr()
    assert "10 trainings (5 seeds), 1 at once on the cpu: about 1.5 min" in said.err.splitlines()[0]
    lines = said.out.splitlines()
    assert max(len(line.rstrip()) for line in lines if "──" in line) <= 80
    names = [line[:5] for line in lines if line.startswith("row ")]
    assert names == ["row 3", "row 2", "row 1", "row 0"]
    assert any(line.startswith("(tail)") for line in lines)
    assert any(line.startswith("always 'row 0'  ") for line in lines)
    assert any(line.startswith("pixels alone ") for line in lines)
    assert any(line.startswith("warning: ") and "'row 3'" in line for line in lines)
    assert lines[-2].startswith("store: ")
    assert cli.main([*asked, "--seeds", "5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decision"]["sentence"] == lines[-1]
    assert len(told["classes"]) == 8 and {*COLUMNS, "keep"} <= told["classes"][0].keys()
    assert [f"warning: {one}" for one in told["warnings"]] == [
        line for line in lines if line.startswith("warning")
    ]
    assert told["baselines"]["always answering 'row 0'"]["balanced_accuracy"] == 25


@pytest.mark.slow
def test_a_network_that_has_learnt_nothing_is_told(train: Train, here: Path) -> None:
    """What a new user saw: the share of the largest class, twice, and not a word about it."""
    rare(here)
    asked = ("photos", "--network", "small_trainings:tiny", "--epochs", "1", "--lr", "1e-9")
    found = train(*asked, "--seeds", "5")
    decision = found["decision"]
    assert decision["kind"] in ("none", "cannot tell")
    assert "a logistic regression on pixels" in decision["sentence"]


@pytest.mark.slow
def test_a_keep_is_raced_for_and_stays(train: Train, here: Path) -> None:
    rare(here)
    asked = ("photos", "--network", "small_trainings:tiny", "--epochs", "4", "--keep", "auto")
    first = train(*asked, "--seeds", "1")
    chosen = first["rows"][1]["keep"]
    assert first["choice"].endswith(f"; keep {chosen:g} is trained beside it")
    more = train(*asked, "--seeds", "2")
    assert more["choice"] == f"keep {chosen:g}: as the store was begun with"
    assert [row["n"] for row in more["rows"]] == [2, 2]


def test_many_classes_show_the_worst(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rare_rows = np.random.default_rng(0)
    for name in range(14):
        for number in range(4):
            path = here / "photos" / f"class {name}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rare_rows.integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
    asked = ["train", "photos", "--network", "small_trainings:tiny", "--epochs", "1", *HERE]
    assert cli.main([*asked, "--seeds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Classes, the 10 worst of 14" in shown and shown.count("\nclass ") == 11  # and the head


@pytest.mark.parametrize(
    ("counts", "complaint"),
    [
        ((9,), "only one class folder, 'row 0'; at least 2 are needed"),
        ((1, 1), "at least 2 different images of each class are needed to split it"),
    ],
)
def test_too_little_to_train_on(
    counts: tuple[int, ...], complaint: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rare(here, counts)
    assert cli.main(["train", "photos", *HERE]) == 2
    said = capsys.readouterr().err
    assert complaint in said and said.count("\n") == 1 and not (here / "runs").exists()


def test_files_that_cannot_be_used(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rare(here)
    (here / "photos" / "row 1" / "broken.png").write_bytes(b"no image")
    assert cli.main(["train", "photos", *HERE]) == 2
    assert "row 1/broken.png (not an image); remove them" in capsys.readouterr().err
    (here / "split").mkdir()
    (here / "photos").rename(here / "split" / "train")
    (here / "split" / "test" / "row 0").mkdir(parents=True)
    (here / "split" / "train" / "row 0" / "0.png").rename(here / "split/test/row 0/0.png")
    assert cli.main(["train", "split", "--skip-bad", *HERE]) == 2
    said = capsys.readouterr().err
    assert "is missing in test/" in said and said.count("\n") == 1
    assert not (here / "runs").exists()


def test_no_keep_can_be_raced_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rare(here, (2, 2))
    assert cli.main(["train", "photos", "--keep", "auto", *HERE]) == 2
    said = capsys.readouterr().err
    assert "keep='auto': needs a class with two different training images" in said
    assert said.count("\n") == 1 and not (here / "runs").exists()
