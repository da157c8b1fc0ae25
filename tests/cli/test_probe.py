"""The verb ``rarefy probe``: files of ``rarefy pretrain`` and networks of others, judged again."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import seen_in
from small_commands import CHEAP, HERE
from small_longtail import rewritten

from rarefy import cli

Probe = Callable[..., dict[str, Any]]

PRETRAIN = ("pretrain", "digits", "--rho", "20", "--epochs", "2", "--seeds", "2", "--head", "24")
PRETRAIN = (*PRETRAIN, "--network", "lenet", "--method", "simclr,branches:0.3", "--no-control")


@pytest.mark.slow
def test_from_the_first_command_to_the_table(
    command: Callable[..., subprocess.CompletedProcess[str]],
    here: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The real entry point of ``probe``, as in the README."""
    assert cli.main([*PRETRAIN, *HERE, "--protocols", "knn", "--save", "nets", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["rows"]
    files = sorted(f"nets/{path.name}" for path in seen_in(tmp_path / "nets"))
    assert len(files) == 4
    done = command("probe", *files, "--table", "t.csv", "--protocols", "knn,long-tail")
    assert done.returncode == 0, done.stderr
    assert "knn: labels of the most similar training images" in done.stdout
    assert "digits, lenet, 2 epochs, rho 20, 24" in done.stdout
    assert done.stdout.count("branches:0.3: ") == 2
    assert done.stdout.count("from simclr, n = 2\n") == 4  # and raw pixels
    last = done.stdout.splitlines()[-1]
    assert last.startswith("cannot tell branches:0.3 from simclr: ") and " more seeds would" in last
    assert "class by class: t.csv" in done.stdout and "…" not in done.stdout
    with open(tmp_path / "t.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4 * 2 * 10
    one = [line for line in lines if line["network"] == Path(files[2]).stem]
    assert one[0]["method"] == "simclr" and int(one[0]["train"]) == 24
    # what pretrain said is what probe finds
    knn = [
        float(line["recall"])
        for line in lines
        if (line["method"], line["protocol"]) == ("simclr", "knn")
    ]
    assert said[0]["balanced_accuracy"] == pytest.approx(sum(knn) / len(knn))


@pytest.fixture
def probe(
    nets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Probe:
    """Runs the verb and gives what ``--json`` says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(files: str, *options: str) -> dict[str, Any]:
        named = [str(path) for path in sorted(nets.glob(files))]
        assert cli.main(["probe", *named, *options, "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
        return found

    return call


def test_json_has_every_network_and_pairs_within_their_setting(probe: Probe) -> None:
    found = probe("*.pt", *CHEAP)
    by_name = {one["network"]: one for one in found["networks"]}
    assert len(by_name) == 6 and by_name["a-plain-balanced"]["images"] == "balanced"
    one = by_name["a-masked-1"]
    assert (one["method"], one["seed"], one["class_order"]) == ("pruned:0.5", 1, 1)
    recalls = [row["recall"] for row in one["knn"]["classes"]]
    assert len(recalls) == 10 and one["notes"] == []
    assert one["knn"]["balanced_accuracy"] == pytest.approx(sum(recalls) / 10)
    gains = {(one["setting"][-5:], one["method"]): one for one in found["differences"]}
    assert set(gains) == {("8, 24", "pruned:0.5"), ("8, 24", "pixels"), ("2, 24", "pixels")}
    gain = gains["8, 24", "pruned:0.5"]
    overall = {name: said["knn"]["balanced_accuracy"] for name, said in by_name.items()}
    mean = sum(overall[f"a-masked-{s}"] - overall[f"a-plain-{s}"] for s in (0, 1)) / 2
    assert gain["mean"] == pytest.approx(mean)
    assert (gain["method"], gain["baseline"], gain["n"]) == ("pruned:0.5", "simclr", 2)
    assert gain["setting"] == "digits, lenet, 2 epochs, rho 8, 24"


def test_judged_on_a_set_it_was_not_trained_for(probe: Probe, digits_folder: str) -> None:
    found = probe("a-*-[01].pt", "--on", digits_folder + os.sep, *CHEAP)
    assert {one["class_order"] for one in found["networks"]} == {-2}
    assert len(found["networks"][0]["knn"]["classes"]) == 3
    assert [one["n"] for one in found["differences"]] == [2, 2]  # seeds stay pairs


def test_what_is_no_number_is_null(probe: Probe) -> None:
    gain, _ = probe("a-*-0.pt", *CHEAP)["differences"]
    assert gain["n"] == 1 and gain["mean"] is not None
    assert gain["low"] is None and gain["high"] is None


def test_tables_of_methods_and_of_each(
    nets: Path,
    digits_folder: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    files = [str(path) for path in seen_in(nets)]
    assert cli.main(["probe", *files, *CHEAP]) == 0
    shown = capsys.readouterr().out
    assert shown.count("knn: labels of the most similar training images") == 2  # one a setting
    assert "digits, lenet, 2 epochs, rho 8, 24" in shown
    assert "digits, lenet, 2 epochs, rho 2, 24" in shown
    begin = ("simclr ", "pruned:0.5 ", "pixels ", "largest class ")
    rows = [line.split() for line in shown.splitlines() if line.startswith(begin)]
    assert [row[:2] for row in rows if row[0] != "largest"] == [
        ["simclr", "long-tail"],
        ["pruned:0.5", "long-tail"],
        ["pixels", "long-tail"],
        ["simclr", "balanced"],
        ["simclr", rows[-3][1]],  # (no control there, and so no column for it)
        ["pixels", rows[-2][1]],
    ]
    assert max(map(len, shown[: shown.index("per cent of")].splitlines())) <= 80
    # the last lines say what to do, one per setting
    *_, first, second = shown.splitlines()
    assert first.startswith("digits, lenet, 2 epochs, rho 8, 24: cannot tell pruned:0.5 from simc")
    assert second.startswith("digits, lenet, 2 epochs, rho 2, 24: cannot tell simclr from raw pix")
    few = ("--on", digits_folder, "--protocols", "few", "--shots", "20")
    assert cli.main(["probe", *files[:2], *CHEAP[2:], *few]) == 0
    shown = capsys.readouterr().out
    assert "note: 2 networks: few: 3 of 3 classes have fewer than 20 labels" in shown


@pytest.fixture
def flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Somebody's network, in the current folder."""
    monkeypatch.chdir(tmp_path)
    source = "import torch\ndef flat(**_):\n    return torch.nn.Flatten()\n"
    (tmp_path / "my_probed_models.py").write_text(source)
    return "my_probed_models:flat"


def test_networks_of_others_are_judged_too(flat: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = flat
    assert cli.main(["probe", name, "--on", "digits", *CHEAP, "--json"]) == 0
    shown = capsys.readouterr().out
    (one,) = json.loads(shown)["networks"]
    assert one["network"] == name and one["method"] == ""
    assert one["knn"]["balanced_accuracy"] > 90
    told = json.loads(shown)["decision"]
    assert told["kind"] == "cannot tell" and told["further_seeds"] == 4
    assert told["sentence"].startswith(f"cannot tell {name} from raw pixels: one network each deci")
    assert "of these 359 test images" in told["sentence"]
    assert cli.main(["probe", name, *CHEAP]) == 2
    assert capsys.readouterr().err == f"error: {name}: say on which images, with --on\n"


@pytest.mark.slow
def test_without_a_known_pre_training_the_protocol_of_its_images_is_left_out(
    flat: str, nets: Path, digits_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ["probe", flat, "--on", digits_folder, "--device", "cpu", "--shots", "3"]
    note = "long-tail is left out: which images its pre-training saw is not known"
    assert cli.main(alone) == 0
    shown = capsys.readouterr().out
    assert "the images of the pre-training alone" not in shown
    assert all(f"{name}: " in shown for name in ("linear", "few", "knn"))
    assert f"note: {flat}: {note}\n" in shown
    assert cli.main([*alone, str(nets / "a-plain-0.pt"), "--table", "t.csv", "--json"]) == 0
    theirs, ours = json.loads(capsys.readouterr().out)["networks"]
    assert ours.keys() - theirs.keys() == {"long-tail"}
    assert theirs["notes"][0] == note and note not in ours["notes"]
    with open("t.csv", newline="") as file:
        told = {(line["network"], line["protocol"]) for line in csv.DictReader(file)}
    assert len(told) == 3 + 4 and (flat, "long-tail") not in told
    # whoever asks for it gets it: all training images
    assert cli.main([*alone, "--protocols", "linear,long-tail", "--json"]) == 0
    (asked,) = json.loads(capsys.readouterr().out)["networks"]
    both = [asked[name]["balanced_accuracy"] for name in ("long-tail", "linear")]
    assert both[0] == both[1] and asked["notes"] == []


def test_what_an_older_file_does_not_say_is_no_difference(probe: Probe, nets: Path) -> None:
    unsaid = ("batch", "head", "smallest_crop")
    older = rewritten(nets / "a-masked-0.pt", "older.pt", unsaid)
    found = probe("a-plain-0.pt", older, *CHEAP)
    assert {one["setting"] for one in found["networks"]} == {"digits, lenet, 2 epochs, rho 8, 24"}
    assert [one["n"] for one in found["differences"]] == [1, 1]
    # of two that differ nobody knows to which it belongs
    other = rewritten(nets / "a-masked-1.pt", "other.pt", batch=64, smallest_crop=0.5)
    found = probe("a-plain-0.pt", older, other, *CHEAP)
    assert [one["setting"].partition("24, ")[2] for one in found["networks"]] == [
        "batch 32, smallest crop None",
        "batch not said, smallest crop not said",
        "batch 64, smallest crop 0.5",
    ]
    assert {one["method"] for one in found["differences"]} == {"pixels"}


def test_five_seeds_end_in_a_decision(
    nets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = []
    for kind in ("plain", "masked"):  # the first seed's under other seeds
        for seed in range(5):
            name = f"{kind}-{seed}.pt"
            files.append(rewritten(nets / f"a-{kind}-0.pt", name, class_order_seed=2 * seed))
    assert cli.main(["probe", *files, *CHEAP, "--on", "digits"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    # two epochs of a LeNet: raw pixels are better, in every seed
    assert last.startswith("none of these beats raw pixels: the best is ")
    assert last.endswith(", n = 5; use raw pixels")
