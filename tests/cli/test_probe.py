"""The verb ``rarefy probe``: files of ``rarefy pretrain`` and networks of others, judged again."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from small_longtail import CPU, task

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.nets.backbones import build_backbone
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


def rewritten(source: Path, target: str, drop: tuple[str, ...] = (), **changed: Any) -> str:
    """A file with something else in it, or less."""
    about = torch.load(source, weights_only=True)
    kept = {name: value for name, value in about.items() if name not in drop}
    torch.save({**kept, **changed}, target)
    return target


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("my nets",), "my nets is a folder: name the files in it, 'my nets'/*.pt"),
        (("nets/",), "nets/ is a folder: name the files in it, nets/*.pt"),
        (("cut.pt",), "cut.pt is damaged or cut short: copy it again, or train it again with "),
        (("empty.pt",), "empty.pt is damaged or cut short"),
        (("archive.pt",), "archive.pt is not a network that rarefy wrote"),
        (("good.pt", "good.pt"), "good.pt is given twice: name it once"),
        (("good.pt", "nets/../good.pt"), "nets/../good.pt is given twice, once as good.pt: name"),
        (("good.pt", "link.pt"), "link.pt is given twice, once as good.pt: name it once"),
        (("my_models:net", "my_models:net", "--on", "digits"), "my_models:net is given twice"),
        (("elsewhere.pt",), "nor is there a folder of that name; name labelled images with --on D"),
        (("elsewhere.pt", "--on", "mlp3"), "unknown data set 'mlp3'"),
        (("good.pt", "--on", "grey"), "are 1 x 9 x 9: --size 8 makes them so"),
        (("changed.pt",), "of grey are 1 x 9 x 9: --on grey --size 8 makes them so"),
        (("good.pt", "--on", "colour"), "3 x 8 x 8: it cannot be judged on another number of chan"),
        (("large.pt",), "of digits are 1 x 8 x 8: name other images with --on (--size is for fold"),
        # and before any is judged
        (("good.pt", "cut.pt"), "cut.pt is damaged"),
        (("good.pt", "elsewhere.pt"), "elsewhere.pt was trained on mlp2: unknown data set 'mlp2'"),
        (("good.pt", "my_models:net", "--on", "digits"), "my_models"),
    ],
)
def test_a_bad_network_is_told_before_any_is_judged(
    nets: Path,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    wrong: tuple[str, ...],
    message: str,
) -> None:
    good = nets / "a-plain-0.pt"
    content = good.read_bytes()
    for name, part in (("good", content), ("cut", content[: len(content) // 2]), ("empty", b"")):
        Path(f"{name}.pt").write_bytes(part)
    Path("link.pt").symlink_to("good.pt")
    with zipfile.ZipFile("archive.pt", "w") as archive:
        archive.writestr("a.txt", "no network")
    for folder in ("nets", "my nets"):
        Path(folder).mkdir()
    rewritten(good, "elsewhere.pt", data="mlp2")
    rewritten(good, "changed.pt", data="grey", tail=asdict(Tail("as-is")))
    large = build_backbone("lenet", 1, 16)[0].state_dict()
    rewritten(good, "large.pt", size=16, state_dict=large)
    for name, shape in (("grey", (9, 9)), ("colour", (8, 8, 3))):
        for place in range(12):
            folder = Path(name) / f"class{place % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            pixels = torch.full(shape, 9 * place, dtype=torch.uint8)
            pixels[0, 0] = torch.arange(3) if len(shape) == 3 else 0  # (else it is grey)
            Image.fromarray(pixels.numpy()).save(folder / f"{place}.png")
    assert cli.main(["probe", *wrong, *CHEAP]) == 2
    said = capsys.readouterr()
    assert said.out == "" and message in said.err
    assert said.err.startswith("error: ") and len(said.err.splitlines()) == 1


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
