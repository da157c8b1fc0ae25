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
from small_commands import CHEAP
from small_longtail import rewritten

from rarefy import cli

Probe = Callable[..., dict[str, Any]]

PRETRAIN = ("pretrain", "digits", "--rho", "20", "--epochs", "2", "--seeds", "2", "--head", "24")
PRETRAIN = (*PRETRAIN, "--network", "lenet", "--method", "simclr,branches:0.3", "--no-control")


def test_from_the_first_command_to_the_table(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The real entry point, as in the README."""
    made = command(*PRETRAIN, "--jobs", "1", "--protocols", "knn", "--save", "nets", "--json")
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)["rows"]
    files = sorted(f"nets/{path.name}" for path in seen_in(tmp_path / "nets"))
    assert len(files) == 4
    done = command("probe", *files, "--table", "t.csv", "--protocols", "knn,long-tail")
    assert done.returncode == 0, done.stderr
    assert "knn: labels of the most similar training images" in done.stdout
    assert "digits, lenet, 2 epochs, rho 20, 24" in done.stdout
    assert done.stdout.count("branches:0.3: ") == 2
    # the same remark as pretrain's
    assert done.stdout.count("from simclr, n = 2; too few seeds to tell: 3 or more") == 2
    assert "class by class: t.csv" in done.stdout and "…" not in done.stdout
    with open(tmp_path / "t.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4 * 2 * 10
    one = [line for line in lines if line["network"] == Path(files[2]).stem]
    assert one[0]["method"] == "simclr" and int(one[0]["images_of_class"]) == 24
    # what pretrain said is what probe finds
    knn = [
        float(line["accuracy"])
        for line in lines
        if (line["method"], line["protocol"]) == ("simclr", "knn")
    ]
    assert said[0]["overall"] == pytest.approx(100 * sum(knn) / len(knn))


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
    assert len(one["knn"]["by_rank"]) == 10 and one["notes"] == []
    assert one["knn"]["overall"] == pytest.approx(sum(one["knn"]["by_rank"]) / 10)
    (gain,) = found["differences"]  # the other setting has the baseline alone
    overall = {name: said["knn"]["overall"] for name, said in by_name.items()}
    mean = sum(overall[f"a-masked-{s}"] - overall[f"a-plain-{s}"] for s in (0, 1)) / 2
    assert gain["mean"] == pytest.approx(mean)
    assert (gain["method"], gain["baseline"], gain["n"]) == ("pruned:0.5", "simclr", 2)
    assert gain["setting"] == "digits, lenet, 2 epochs, rho 8, 24"


def test_judged_on_a_set_it_was_not_trained_for(probe: Probe, digits_folder: str) -> None:
    found = probe("a-*-[01].pt", "--on", digits_folder + os.sep, *CHEAP)
    assert {one["class_order"] for one in found["networks"]} == {-2}
    assert len(found["networks"][0]["knn"]["by_rank"]) == 3
    (gain,) = found["differences"]
    assert gain["n"] == 2  # seeds stay pairs


def test_what_is_no_number_is_null(probe: Probe) -> None:
    (gain,) = probe("a-*-0.pt", *CHEAP)["differences"]
    assert gain["n"] == 1 and gain["mean"] is not None
    assert gain["low"] is None and gain["high"] is None


def test_tables_of_methods_and_of_each(
    nets: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    files = [str(path) for path in seen_in(nets)]
    assert cli.main(["probe", *files, *CHEAP]) == 0
    shown = capsys.readouterr().out
    assert shown.count("knn: labels of the most similar training images") == 2  # one a setting
    assert "digits, lenet, 2 epochs, rho 8, 24" in shown
    assert "digits, lenet, 2 epochs, rho 2, 24" in shown
    begin = ("simclr ", "pruned:0.5 ")
    rows = [line.split() for line in shown.splitlines() if line.startswith(begin)]
    assert [row[:2] for row in rows] == [
        ["simclr", "long-tail"],
        ["pruned:0.5", "long-tail"],
        ["simclr", "balanced"],
        ["simclr", "long-tail"],
    ]
    delta = rows[2][6]
    assert rows[0][8] == delta  # the control's, beside it
    assert cli.main(["probe", *files, "--each", "--neighbours", "2000", *CHEAP]) == 0
    each = capsys.readouterr().out
    assert all(Path(name).stem in each for name in files)
    assert "note: a-plain-0: knn: all 1438 references vote, 2000 were asked for" in each


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
    (one,) = json.loads(capsys.readouterr().out)["networks"]
    assert one["network"] == name and one["method"] == "" and one["knn"]["overall"] > 90
    assert cli.main(["probe", name, *CHEAP]) == 2
    assert capsys.readouterr().err == f"error: {name}: say on which images, with --on\n"


def test_without_a_known_pre_training_the_protocol_of_its_images_is_left_out(
    flat: str, nets: Path, digits_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ["probe", flat, "--on", digits_folder, "--device", "cpu", "--shots", "3"]
    note = "long-tail is left out: which images its pre-training saw is not known"
    for options in ([], ["--each"]):
        assert cli.main([*alone, *options]) == 0
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
    assert asked["long-tail"]["overall"] == asked["linear"]["overall"] and asked["notes"] == []


def test_what_an_older_file_does_not_say_is_no_difference(probe: Probe, nets: Path) -> None:
    unsaid = ("batch", "head", "smallest_crop")
    older = rewritten(nets / "a-masked-0.pt", "older.pt", unsaid)
    found = probe("a-plain-0.pt", older, *CHEAP)
    assert {one["setting"] for one in found["networks"]} == {"digits, lenet, 2 epochs, rho 8, 24"}
    assert found["differences"][0]["n"] == 1
    # of two that differ nobody knows to which it belongs
    other = rewritten(nets / "a-masked-1.pt", "other.pt", batch=64, smallest_crop=0.5)
    found = probe("a-plain-0.pt", older, other, *CHEAP)
    assert [one["setting"].partition("24, ")[2] for one in found["networks"]] == [
        "batch 32, smallest crop None",
        "batch not said, smallest crop not said",
        "batch 64, smallest crop 0.5",
    ]
    assert found["differences"] == []


def test_three_seeds_say_what_a_difference_means(
    nets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [str(path) for path in nets.glob("a-*-[01].pt")]
    for kind in ("plain", "masked"):  # the first seed's under another seed
        files.append(rewritten(nets / f"a-{kind}-0.pt", f"{kind}.pt", class_order_seed=2))
    assert cli.main(["probe", *files, *CHEAP]) == 0
    (line,) = (one for one in capsys.readouterr().out.splitlines() if ": +" in one or ": -" in one)
    assert ", n = 3; " in line and "too few" not in line
    assert line.endswith(("better than simclr", "worse than simclr", "not told apart from simclr"))


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probe", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Example: rarefy") == 2
    for option in ("--on", "--protocols", "--shots", "--table", "--each"):
        assert option in shown
