"""The verb ``rarefy granularity``: a folder of classes and a CSV of parents become curve, table and
sentence; stops lose nothing; one line for each mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import seen_in
from PIL import Image

from rarefy import cli
from rarefy.tools import forecasting

PARENTS = "child,parent\nbars,lines\ncolumns,lines\nblack,plain\nwhite,plain\n"
HERE = ("--jobs", "1", "--device", "cpu", "--network", "small_trainings:tiny", "--epochs", "2")
SHORT = ("photos", "--hierarchy", "parents.csv", *HERE, "--features", "pixels", "--seeds", "2")
STORE = Path("runs")


@pytest.fixture
def photos(here: Path) -> Path:
    """Four classes of ten images of 8 x 8, and who their parents are."""
    random = np.random.default_rng(0)
    for name in ("bars", "columns", "black", "white"):
        (here / "photos" / name).mkdir(parents=True)
        for number in range(10):
            pixels = random.integers(0, 90, (8, 8)).astype(np.uint8)
            if name in ("bars", "columns"):
                (pixels if name == "bars" else pixels.T)[::2] += 150
            elif name == "white":
                pixels += 150
            Image.fromarray(pixels).save(here / "photos" / name / f"{number}.png")
    (here / "parents.csv").write_text(PARENTS)
    return here


@pytest.fixture
def guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process to try a network in."""
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)


def rarefy(*words: str) -> int:
    return cli.main(["granularity", *words])


def test_a_folder_and_a_csv_of_parents_give_curve_table_and_sentence(
    photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert rarefy(*SHORT) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    first = shown.err.splitlines()[0]
    assert re.fullmatch(
        r"target parent, pre-trained on class, kmeans-within:2, random:3, beside re-training and "
        r"one pass, 2 \+ 1 epochs: 10 trainings \(2 seeds\), 1 at once on the cpu: about [\d.]+ s "
        r"\([\d.]+ s per seed\), [\d.]+ GB of memory; --seeds and --epochs change that",
        first,
    )
    table = lines[: next(place for place, line in enumerate(lines) if line.startswith("n = 2"))]
    assert max(map(len, table)) <= 80
    starts = [line.split()[0] for line in table[3:]]
    assert starts == ["target", "once", "class", "kmeans-within:2", "random:3"]
    assert "warning: n = 2: fewer than 5 seeds decide nothing" in lines
    assert lines[-1].startswith("cannot tell: ") and lines[-2].startswith("made labels are worth")
    store, page = re.fullmatch(r"store: (\S+); page: (\S+)", lines[-3]).groups()  # type: ignore[union-attr]
    # the target's classes, rarest first, beside re-training
    heads = next(line for line in lines if line.startswith("class  group"))
    assert heads.split()[-3:] == ["precision", "answered", "re-trained"]
    assert {line.split()[0] for line in lines if line.startswith(("lines ", "plain "))} == {
        *("lines", "plain"),
    }
    assert any(": test images are few (from " in line for line in lines)
    assert Path(store).is_dir()
    html = Path(page).read_text()
    assert lines[-1].split(" [")[0][1:] in html and html.count("<tr><td>") == 5 + 2 * 2
    assert html.count("Target classes, rarest first: ") == 2
    assert 'src="data:image/svg+xml' in html and not re.search(r'(src|href)="https?:', html)


@pytest.mark.slow
def test_json_has_it_all_and_more_seeds_extend_it(
    photos: Path, guessed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rarefy(*SHORT, "--json", "--made", "random:3") == 0
    shown = capsys.readouterr()
    assert "8 trainings" in shown.err and "about 43 s (22 s per seed), " in shown.err
    found: dict[str, Any] = json.loads(shown.out)
    assert [row["labels"] for row in found["rows"]] == ["target", "once", "class", "random:3"]
    assert found["level"] is None and found["sentence"].startswith("cannot tell")
    assert found["decision"]["sentence"] == found["sentence"]
    assert [one["labels"] for one in found["judged"]] == ["target", "once", "class", "random:3"]
    assert {row["class"] for row in found["judged"][0]["classes"]} == {"lines", "plain"}
    assert found["finished"] and isinstance(found["warnings"], list)
    assert rarefy(*SHORT, "--json", "--made", "random:3") == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == found and again.err == ""  # nothing was left to do
    assert rarefy(*SHORT, "--json", "--made", "random:3", "--seeds", "3") == 0
    more = capsys.readouterr()
    assert "4 trainings" in more.err and "18 s (12 s" not in more.err
    assert json.loads(more.out)["rows"][2]["n"] == 3


@pytest.mark.slow
def test_stopped_by_the_clock_the_same_command_goes_on(
    photos: Path, guessed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*SHORT, "--json", "--out", "store")
    assert rarefy(*words, "--max-seconds", "1e-9") == 3
    shown = capsys.readouterr()
    assert "time is over: 0 of 10 cells" in shown.err
    assert "go on with: rarefy granularity photos" in shown.err
    assert not Path("store.html").exists()
    assert rarefy(*words) == 0
    found = json.loads(capsys.readouterr().out)
    assert rarefy(*SHORT, "--json", "--out", "whole") == 0
    whole = json.loads(capsys.readouterr().out)
    assert found["rows"] == whole["rows"]


def test_a_page_that_is_not_ours_is_not_replaced(
    photos: Path, guessed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.html").write_text("mine")
    assert rarefy(*SHORT, "--page", "mine.html") == 2
    assert "no record of writing it" in capsys.readouterr().err
    assert Path("mine.html").read_text() == "mine" and not STORE.exists()


MISTAKES = {
    "unknown level 'parnet'; did you mean 'parent'": ["--target", "parnet"],
    "unknown level 'genus'": ["--levels", "class,genus"],
    "target 'class' is no ancestor of level 'parent': label 'lines' lies in two": [
        *("--target", "class", "--levels", "parent"),
    ],
    "target class 'lines' has 14": ["--made", "kmeans-within:15"],
    "labels='kmeans:29': more clusters than samples: there are 28": ["--made", "kmeans:29"],
    "wrong.npy: an embedding of 5 x 2; it must have a row per training image, 32 rows": [
        *("--features", "wrong.npy"),
    ],
    "two.csv: 'bars' has more than one parent: 'lines' and 'plain'": ["--hierarchy", "two.csv"],
    "few.csv: no 'parent' of class 'white'": ["--hierarchy", "few.csv"],
    "there is no file none.csv": ["--hierarchy", "none.csv"],
    "checkpoints='a': must be numbers": ["--checkpoints", "a"],
    "--seeds=0": ["--seeds", "0"],
    "--samples=7: must be 0 (all) or at least two per class, 8": ["--samples", "7"],
    "--lr=0.0: must be positive and finite": ["--lr", "0"],
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(
    words: str, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "two.csv").write_text(PARENTS + "bars,plain\n")
    (photos / "few.csv").write_text(PARENTS.replace("white,plain\n", ""))
    np.save(photos / "wrong.npy", np.zeros((5, 2)))
    before = seen_in(photos)
    _refused([*SHORT, *MISTAKES[words]], words, capsys)
    assert seen_in(photos) == before


def test_classes_without_images_or_without_parents(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "photos" / "empty").mkdir()
    _refused(SHORT, "class folder 'empty' is empty", capsys)
    (photos / "photos" / "empty").rmdir()
    _refused(["photos", *HERE], r"no level .* \(levels: class \(4\)\); --hierarchy FILE", capsys)
    assert not STORE.exists()


def _refused(words: Sequence[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rarefy(*words) == 2
    shown = capsys.readouterr()
    assert re.search(told if "FILE" in told else re.escape(told), shown.err)
    assert re.fullmatch(r"error: .*\n", shown.err) and not shown.out
