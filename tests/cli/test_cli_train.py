"""The verb ``rarefy train``: rows of dense and pruned networks, stops that lose nothing, files that
load, and one line for each mistake."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from folders import seen_in
from PIL import Image

from rarefy import cli
from rarefy.core.errors import UsageError
from rarefy.tools import forecasting
from rarefy.tools.image_data import on_device
from rarefy.tools.saved_networks import load_network
from rarefy.train.evaluation import evaluate
from rarefy.train.image_batches import Scaling

Described = dict[str, Any]
"""What ``--json`` says."""
Train = Callable[..., Described]

DIGITS = ("digits", "--epochs", "1", "--samples", "150", "--network", "lenet", "--seeds", "2")
SMALL = ("digits", "--samples", "100", "--network", "small_trainings:tiny", "--seeds", "1")
"""A network that trains in no time."""
HERE = ("--jobs", "1", "--device", "cpu")


@pytest.fixture(autouse=True)
def guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No training is tried before they start."""
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 60.0)


@pytest.fixture
def train(here: Path, capsys: pytest.CaptureFixture[str]) -> Train:
    """Runs the verb and gives what ``--json`` says."""

    def call(*arguments: str) -> Described:
        code = cli.main(["train", *arguments, *HERE, "--json"])
        described: Described = json.loads(capsys.readouterr().out)
        assert code == (0 if described["finished"] else 3)
        return described

    return call


def test_a_store_is_gone_on_with_and_extended_and_networks_load(
    train: Train, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = train(*DIGITS, "--out", "store", "--save", "nets")
    assert first["cells"] == first["cells_done"] == 4 and first["finished"]
    assert [(row["keep"], row["n"]) for row in first["rows"]] == [(1.0, 2), (0.3, 2)]
    dense, pruned = first["rows"]
    assert dense["difference"] is None and len(pruned["difference_interval"]) == 2
    gain = pruned["balanced_accuracy"] - dense["balanced_accuracy"]
    assert pruned["difference"] == pytest.approx(gain)

    begin = "digits-lenet-keep-"
    names = [f"{begin}{keep}-noise-0-seed-{seed}.pt" for keep in ("0.3", "1") for seed in (0, 1)]
    assert sorted(path.name for path in seen_in(here / "nets")) == names
    _check_saved(here / "nets", first)

    written = {path: path.stat().st_mtime_ns for path in seen_in(here / "nets")}
    assert train(*DIGITS, "--out", "store", "--save", "nets") == first  # nothing is left to do
    more = train(*DIGITS, "--seeds", "3", "--out", "store", "--save", "nets")
    assert more["cells"] == more["cells_done"] == 6
    assert [row["n"] for row in more["rows"]] == [3, 3]
    assert {path: path.stat().st_mtime_ns for path in written} == written  # none is trained again
    assert len(list(seen_in(here / "nets"))) == 6
    assert cli.main(["train", *DIGITS, "--seeds", "3", *HERE, "--out", "store"]) == 0
    shown = capsys.readouterr().out
    assert "store: store\n" in shown
    number, signed = r" +\d+\.\d +", r"[+-]\d+\.\d"
    assert re.search(rf"\ndense{number}{number}{number}", shown)
    assert re.search(rf"\nkeep 0.3{number}{signed} \[{signed}, {signed}\]{number}", shown)


def _check_saved(nets: Path, described: Described) -> None:
    data = on_device("digits", torch.device("cpu"))
    scaling = Scaling(data.mean, data.std)
    for row in described["rows"]:
        accuracies, kept = [], []
        for seed in (0, 1):
            network, about = load_network(
                nets / f"digits-lenet-keep-{row['keep']:g}-noise-0-seed-{seed}.pt"
            )
            assert not network.training
            assert about["network"] == "lenet" and len(about["classes"]) == 10
            assert about["thinning"]["keep"] == row["keep"]
            found = evaluate(network, data.test.images, data.test.labels, scaling).accuracy
            assert found == pytest.approx(about["test_accuracy"][0])
            accuracies.append(100 * found)
            weights = [one for one in network.parameters() if one.ndim == 4]
            kept.append(float(np.mean([float((one != 0).double().mean()) for one in weights])))
        assert np.mean(accuracies) == pytest.approx(row["test_accuracy"], abs=1e-4)
        assert np.mean(kept) == pytest.approx(row["keep"], abs=0.05)


@pytest.mark.slow
def test_stopped_by_the_clock_the_same_command_goes_on(
    train: Train,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    stops_every: Callable[[int], None],
) -> None:
    asked = (*SMALL, "--epochs", "4")
    whole = train(*asked, "--out", "whole")
    words = ["train", *asked, *HERE, "--out", "store", "--max-seconds", "1e-9"]
    assert cli.main(words) == 3
    shown = capsys.readouterr()
    assert "store:" not in shown.out  # there is nothing to show yet
    assert "note: time is over: 0 of 2 cells are stored in store" in shown.err
    assert f"go on with: rarefy {' '.join(words)}" in shown.err
    stops_every(25)
    stops, found = 0, train(*asked, "--out", "store", "--max-seconds", "500")
    assert found["rows"] == []
    while not found["finished"]:
        stops += 1
        found = train(*asked, "--out", "store", "--max-seconds", "500")
    assert stops > 1
    assert found["rows"] == whole["rows"]
    assert [path.name for path in seen_in(here)] == ["store", "whole"]  # no scratch left


def test_another_question_of_the_same_store_is_refused(
    train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    train(*SMALL, "--epochs", "1", "--out", "store")
    assert cli.main(["train", *SMALL, "--epochs", "1", "--keep", "0.5", "--out", "store"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"error: .*keep=1.0,0.3, not 1.0,0.5; use --overwrite or .*\n", said)


@pytest.mark.slow
def test_noise_is_a_row_of_its_own(train: Train, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (*SMALL, "--epochs", "1", "--noise", "0,0.5", "--test-noise", "0,2", "--noise-once")
    rows = train(*asked)["rows"]
    assert {(row["noise"], row["test_noise"]) for row in rows} == {
        (noise, asked) for noise in (0.0, 0.5) for asked in (0.0, 2.0)
    }
    assert len(rows) == 2 * 2 * 2 and all(row["difference_interval"] is None for row in rows)
    assert cli.main(["train", *asked, *HERE]) == 0
    shown = capsys.readouterr().out
    assert "test noise" in shown and len(re.findall(r"\nkeep 0.3 +0", shown)) == 4


@pytest.mark.slow
def test_it_says_how_many_networks_were_saved(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["train", *SMALL, "--epochs", "1", *HERE, "--out", "store", "--save", "nets"]
    assert cli.main(asked) == 0
    assert "store: store; 2 networks saved in nets\n" in capsys.readouterr().out
    for path in seen_in(here / "nets"):
        os.utime(path, (0, 0))  # of long ago: they are not counted again
    assert cli.main(asked) == 0
    assert "; none saved in nets: all was trained before" in capsys.readouterr().out
    assert cli.main([*asked, "--seeds", "2"]) == 0
    assert "; 2 networks saved in nets\n" in capsys.readouterr().out
    assert len(list(seen_in(here / "nets"))) == 4


def test_a_file_does_not_decide_what_is_imported(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "small_trainings:tiny"
    assert cli.main(["train", *SMALL, "--epochs", "1", *HERE, "--save", "nets"]) == 0
    path = here / "nets" / "digits-small_trainings-tiny-keep-0.3-noise-0-seed-0.pt"
    with pytest.raises(UsageError, match=f"name it again with network='{own}'") as caught:
        load_network(path)
    assert "\n" not in str(caught.value)
    network, about = load_network(path, network=own)
    assert about["network"] == own and not network.training
    with pytest.raises(UsageError, match="does not fit network 'lenet'") as caught:
        load_network(path, network="lenet")
    assert "\n" not in str(caught.value)
    torch.save({**about, "network": None, "state_dict": network.state_dict()}, here / "other.pt")
    with pytest.raises(UsageError, match="other.pt"):
        load_network(here / "other.pt")


@pytest.mark.slow
def test_masks_can_be_chosen_once_an_epoch(train: Train) -> None:
    found = train(*SMALL, "--epochs", "2", "--every", "0")
    assert found["finished"] and found["rows"][1]["weights_kept"] == pytest.approx(0.3, abs=0.05)


def test_the_same_test_noise_twice_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", *SMALL, "--test-noise", "0.1,0.1", *HERE]) == 2
    said = capsys.readouterr().err
    assert "--test-noise" in said and "twice" in said and said.count("\n") == 1
    assert not (here / "runs").exists()


def test_a_folder_is_one_set_however_it_is_typed(train: Train, here: Path) -> None:
    for name in ("a", "b"):
        for number in range(10):
            path = here / "photos" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((8, 8), 10 * number, dtype=np.uint8)).save(path)
    asked = ("--network", "small_trainings:tiny", "--epochs", "1", "--seeds", "1", "--batch", "8")
    first, again = train("photos", *asked), train("./photos/", *asked)
    assert first == again
    assert first["rows"][0]["stopped"] == 0


def test_ones_own_images_and_network(train: Train, here: Path) -> None:
    random = np.random.default_rng(0)
    for name, least in (("dark", 0), ("light", 100)):
        for number in range(20):
            path = here / "my photos" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = random.integers(least, least + 100, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path)
    asked = ("--network", "small_trainings:tiny", "--epochs", "8", "--seeds", "1", "--batch", "8")
    found = train("my photos", *asked)
    assert re.fullmatch(r"runs/train-my-photos-small_trainings-tiny-[0-9a-f]{8}", found["store"])
    assert found["rows"][0]["test_accuracy"] > 70  # it is easy


# ----------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["digts"], "unknown data set 'digts'; did you mean 'digits'?"),
        (["digits", "--network", "lenot"], "unknown network 'lenot'; did you mean 'lenet'?"),
        (["digits", "--network", "nowhere:net"], "no module 'nowhere'"),
        (["digits", "--network", "json:net"], "there is no 'net' in 'json'"),
        (["digits", "--keep", "0"], r"keep=0.0: must be a share, above 0 and at most 1"),
        (["digits", "--keep", "1.5"], r"keep=1.5: must be a share, above 0 and at most 1"),
        (["digits", "--keep", "abc"], r"keep='abc': must be numbers, separated by commas"),
        (["digits", "--noise", "-1"], r"noise=-1.0: must be finite and at least 0"),
        (["digits", "--test-noise", "-1"], r"test-noise=-1.0: must be finite and at least 0"),
        (
            ["digits", "--update", "projct"],
            "update='projct': must be one of dense, masked, project",
        ),
        (["digits", "--granularity", "filtr"], "granularity='filtr': must be one of filter, layer"),
        (["digits", "--save", "file"], "save='file': is a file; name a folder"),
        (["digits", "--seeds", "0"], "seeds=0: must be at least 1"),
        (["digits", "--epochs", "0"], "epochs=0: must be at least 1"),
        (["digits", "--every", "-1"], "every=-1: must be at least 1, or 0 for once per epoch"),
        (["digits", "--lr", "-1"], "lr=-1.0: must be positive"),
        (["digits", "--optimizer", "sdg"], "optimizer"),
        (["digits", "--schedule", "cosin"], "schedule"),
        (["digits", "--samples", "-5"], "samples=-5: must be at least 0"),
        (["mnist", "--data-folder", "empty"], "mnist is not in .*empty.*rarefy data fetch mnist"),
        (["digits", "--kep", "0.3"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_done(
    arguments: list[str], complaint: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "empty").mkdir()
    (here / "file").write_text("in the way")
    quick = ["--epochs", "1"] if "--epochs" not in arguments else []
    assert cli.main(["train", *arguments, *(quick if arguments else [])]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(rf"error: .*{complaint}.*\n", said.err), said.err
    assert not (here / "runs").exists()
