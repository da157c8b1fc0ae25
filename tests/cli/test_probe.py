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
import torch
from small_longtail import CPU, task

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.nets.by_name import build
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.pretraining import pretrain_one
from rarefy.tools.longtail.sets import Tail
from rarefy.tools.saved_networks import save_network
from rarefy.train.contrast.method import Method

Probe = Callable[..., dict[str, Any]]

PRETRAIN = ("pretrain", "digits", "--rho", "20", "--epochs", "2", "--seeds", "2", "--head", "24")
PRETRAIN = (*PRETRAIN, "--network", "lenet", "--method", "simclr,branches:0.3", "--no-control")
CHEAP = ("--protocols", "knn", "--device", "cpu")


def test_from_the_first_command_to_the_table(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The real entry point, as in the README."""
    made = command(*PRETRAIN, "--jobs", "1", "--protocols", "knn", "--save", "nets", "--json")
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)["rows"]
    files = sorted(f"nets/{path.name}" for path in (tmp_path / "nets").iterdir())
    assert len(files) == 4
    done = command("probe", *files, "--table", "t.csv", "--protocols", "knn,long-tail")
    assert done.returncode == 0, done.stderr
    assert "knn: labels of the most similar training images" in done.stdout
    assert "digits, lenet, 2 epochs, rho 20, 24" in done.stdout
    assert done.stdout.count("branches:0.3: ") == 2 and "from simclr, n = 2" in done.stdout
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


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods, two seeds, and a control; and one of another rho."""
    folder = tmp_path_factory.mktemp("nets")
    control = task(tail=Tail("exponential", 8.0, "24", True))
    for method, seed, one, name in (
        ("simclr", 0, task(), "a-plain-0"),
        ("simclr", 1, task(), "a-plain-1"),
        ("pruned:0.5", 0, task(), "a-masked-0"),
        ("pruned:0.5", 1, task(), "a-masked-1"),
        ("simclr", 0, control, "a-plain-balanced"),
        ("simclr", 0, task(tail=Tail("exponential", 2.0, "24")), "b-plain-0"),
    ):
        context = Context(models=folder)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        pretrain_one(one, Method.parse(method), seed, seed, context, name)
        torch.set_num_threads(threads)
    return folder


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


@pytest.fixture
def digits_folder(tmp_path: Path) -> str:
    """Three classes of digits as files, with a test part."""
    from PIL import Image

    digits = on_device("digits", CPU)
    for part, images, count in (("train", digits.train, 12), ("test", digits.test, 6)):
        for label, name in enumerate(("zero", "one", "two")):
            folder = tmp_path / "digits as files" / part / name
            folder.mkdir(parents=True)
            for place in (images.labels == label).nonzero().flatten()[: count + label].tolist():
                Image.fromarray(images.images[place, 0].numpy()).save(folder / f"{place}.png")
    return str(tmp_path / "digits as files")


def test_tables_of_methods_and_of_each(
    nets: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    files = [str(path) for path in sorted(nets.iterdir())]
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


def test_networks_of_others_are_judged_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "import torch\ndef flat(**_):\n    return torch.nn.Flatten()\n"
    (tmp_path / "my_probed_models.py").write_text(source)
    name = "my_probed_models:flat"
    assert cli.main(["probe", name, "--on", "digits", *CHEAP, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["networks"]
    assert one["network"] == name and one["method"] == "" and one["knn"]["overall"] > 90
    assert cli.main(["probe", name, *CHEAP]) == 2
    assert capsys.readouterr().err == f"error: {name}: say on which images, with --on\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("gone.pt",), "cannot read gone.pt: there is no such file"),
        (("text.pt",), "text.pt is not a network that rarefy wrote"),
        (("classifier.pt",), "classifier.pt is no backbone: rarefy pretrain --save writes them"),
        (("good.pt", "--protocols", "svm"), "unknown protocol 'svm'"),
        (("good.pt", "--protocols", "knn,knn"), "has the same one twice"),
        (("good.pt", "--protocols", ","), "must have at least one"),
        (("good.pt", "--shots", "0"), "shots=0: must be at least 1 label a class"),
        (("good.pt", "--neighbours", "-1"), "neighbours=-1: must be at least 1, or 0"),
        (("good.pt", "--table", "no/t.csv"), "table='no/t.csv': must be a file in a folder that"),
        (("good.pt", "--network", "cnn"), "good.pt does not fit network 'cnn'"),
        (("good.pt", "--on", "digit"), "digit"),
        (("good.pt", "--on", "digits as files", "--size", "9"), "wants images of 1 x 8 x 8, those"),
    ],
)
def test_a_mistake_is_one_line(
    nets: Path,
    digits_folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wrong: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.pt").write_text("no network")
    Path("good.pt").write_bytes((nets / "a-plain-0.pt").read_bytes())
    digits = on_device("digits", CPU)
    save_network(Path("classifier.pt"), build("lenet", 1, 8, 10), digits, {"network": "lenet"})
    assert cli.main(["probe", *wrong, "--device", "cpu"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and message in said.err
    assert said.err.splitlines()[-1].startswith("error: ")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probe", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Example: rarefy") == 2
    for option in ("--on", "--protocols", "--shots", "--table", "--each"):
        assert option in shown
