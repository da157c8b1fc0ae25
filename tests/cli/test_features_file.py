"""From images to features to a decision: what ``--features`` and ``--export`` of ``pretrain`` and
``probe`` write, and who takes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from small_commands import CHEAP, HERE, SMALL

import rarefy
from rarefy import cli
from rarefy.tools import forecasting
from rarefy.tools.image_data import on_device
from rarefy.tools.influence.writing import read_table
from rarefy.tools.longtail.features_file import ABOUT

Pretrain = Callable[..., dict[str, Any]]
TINY = (*SMALL, "--batch", "32", "--protocols", "knn", "--no-control")
TWO = (*TINY, "--method", "simclr,branches:0.3", "--seeds", "1")
DOCS = Path(__file__).parents[2] / "docs" / "longtail.md"


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried for a second first."""
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    return table.filter(regex=r"^f\d+$")


def loaded_by_pytorch_alone(images: torch.Tensor) -> torch.Tensor:
    """The two lines of the page, where rarefy cannot be imported; ``backbone.pt2`` is here."""
    lines = re.search(r"```python\n(.*torch\.export\.load.*?)```", DOCS.read_text("utf-8"), re.S)
    assert lines is not None and len(lines[1].split("\n\n")[1].strip().splitlines()) == 2
    torch.save(images, "images.pt")
    program = (
        "import sys\nsys.modules['rarefy'] = None\nimport torch\nimages = torch.load('images.pt')\n"
        f"{lines[1]}torch.save(features, 'found.pt')\n"
        "assert not [name for name in sys.modules if name.startswith('rarefy.')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    found: torch.Tensor = torch.load("found.pt")
    return found


@pytest.mark.slow
def test_one_row_per_image_and_the_network_beside_it(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (*TWO, "--features", "out.parquet", "--export", "backbone.pt2")
    found = pretrain(*given)
    network = "runs/pretrain-digits-networks/digits-lenet-simclr-long-tail-rho-8-seed-0.pt"
    assert found["written"] == {
        "network": network,
        "features": "out.parquet",
        "export": "backbone.pt2",
    }
    table, digits = pd.read_parquet("out.parquet"), on_device("digits", torch.device("cpu"))
    assert [*table.columns[:5]] == [*ABOUT]
    assert len(table) == 1797 and set(numbers(table).dtypes) == {np.dtype("float32")}
    assert set(table["method"]) == {"simclr"}
    assert table["id"].tolist() == [*digits.train.ids, *digits.test.ids]
    assert (
        table["label"].astype(int).tolist()
        == torch.cat([digits.train.labels, digits.test.labels]).tolist()
    )
    seen = table.groupby(["split", "pretraining"]).size().to_dict()
    assert seen[("train", "seen")] == 102 and ("test", "seen") not in seen
    # the same of the file that was saved, in Python and by the other verb
    pd.testing.assert_frame_equal(rarefy.features(network, device="cpu"), table)
    assert cli.main(["probe", network, "--features", "again.parquet", *CHEAP]) == 0
    assert "\nfeatures: again.parquet\n" in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_parquet("again.parquet"), table)
    # and PyTorch alone makes the same of the pixels
    images = torch.cat([digits.train.images, digits.test.images]) / 255
    alone = loaded_by_pytorch_alone(images)
    np.testing.assert_allclose(alone, numbers(table), rtol=1e-5, atol=1e-5)
    # the same command again says the same, and more seeds may replace it
    before = (here / "out.parquet").read_bytes()
    assert pretrain(*given)["written"] == found["written"]
    assert (here / "out.parquet").read_bytes() == before
    assert cli.main(["pretrain", *given, "--seeds", "2", *HERE]) == 0
    shown = capsys.readouterr().out
    assert f"\nnetwork: {network}\nfeatures: out.parquet\nexport: backbone.pt2\n" in shown


@pytest.mark.quick("npz", "csv")
@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
def test_other_verbs_and_scikit_learn_take_it_as_it_is(
    nets: Path, here: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    from sklearn.linear_model import LogisticRegression

    file = f"out.{ending}"
    assert cli.main(["probe", str(nets / "a-plain-0.pt"), "--features", file, *CHEAP]) == 0
    told = "" if ending == "npz" else f"note: labels: column 'label' of {file}\n"
    capsys.readouterr()
    small = ["--no-check-labels", "--no-gallery", "--neighbours", "0"]
    assert cli.main(["influence", file, *small]) == 0
    assert told in capsys.readouterr().err
    (scores,) = here.glob("runs/influence-*/scores.parquet")
    facts = read_table(scores).attrs
    assert facts["samples"] == 1797 and facts["features"] == 84
    assert cli.main(["checkup", file, "--only", "set", "--json"]) == 0
    said = capsys.readouterr()
    assert told in said.err
    part = json.loads(said.out)["sections"][0]
    assert part["numbers"]["samples"] == 1797 and part["numbers"]["classes"] == 10
    if ending == "npz":
        held = np.load(file)
        X, y, split = held["features"], held["labels"], held["split"]
    else:
        table = pd.read_parquet(file) if ending == "parquet" else pd.read_csv(file)
        X, y, split = numbers(table).to_numpy(), table["label"], table["split"]
    assert X.shape == (1797, 84)
    fitted = LogisticRegression(max_iter=50, tol=1e-2).fit(X[split == "train"], y[split == "train"])
    assert fitted.score(X[split == "test"], y[split == "test"]) > 0.5


def photos(folder: Path, count: int = 14) -> None:
    draws = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        pixels = Image.fromarray(draws.integers(0, 256, (9 + number, 12, 3), dtype=np.uint8))
        pixels.convert(("RGB", "L", "RGBA")[number % 3]).save(folder / f"={number}.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff")


ONES_OWN = ("photos", "--unlabelled", "--size", "12", "--batch", "7", "--network", "lenet")
ONES_OWN = (*ONES_OWN, "--epochs", "1")


def test_a_folder_without_labels_gives_features_without_labels(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What trains nothing is left out, one seed is enough, and networks are kept."""
    photos(here / "photos")
    assert cli.main(["pretrain", "photos", *HERE]) == 2
    assert "; --unlabelled takes all images below it\n" in capsys.readouterr().err
    given = (*ONES_OWN, "--skip-bad", "--features", "out.csv")
    assert cli.main(["pretrain", *given, *HERE, "--out", "one"]) == 0
    said = capsys.readouterr()
    assert "images of 3 x 12 x 12, lenet, 1 epochs: 2 trainings (1 seed)" in said.err
    assert "warning: 1 file of photos is left out" in said.err
    assert "2 networks saved in one-networks" in said.out
    assert "simclr-as-is-seed-0.pt\nfeatures: out.csv\nno labels: the last network is" in said.out
    table = pd.read_csv("out.csv")
    assert [*table.columns[:4]] == ["id", "split", "pretraining", "method"]
    assert table["id"].tolist() == sorted(f"'={number}.png" for number in range(14))
    assert {*table["split"], *table["pretraining"]} == {"train", "seen"}
    # without a file there are networks all the same: else nothing would be left
    assert cli.main(["pretrain", *ONES_OWN, "--skip-bad", "--seeds", "1", *HERE]) == 0
    assert re.search(
        r"2 networks saved in runs/pretrain-photos-\w+-networks", capsys.readouterr().out
    )
    (path,) = (here / "one-networks").glob("*simclr*.pt")
    found = rarefy.features(path, device="cpu")
    assert "label" not in found and len(found) == 14
    # the network is for further images too, be they labelled or not
    shutil.copytree("photos", "more/deep")
    given = ["probe", str(path), "--device", "cpu", "--on", "more", "--size", "12"]
    assert cli.main([*given, "--unlabelled"]) == 2
    assert "more cannot be read: deep/broken.jpg" in capsys.readouterr().err
    assert cli.main([*given, "--unlabelled", "--skip-bad"]) == 2
    assert "error: a probe needs labelled images" in capsys.readouterr().err
    assert cli.main([*given, "--unlabelled", "--skip-bad", "--features", "more.parquet"]) == 0
    assert capsys.readouterr().out == "features: more.parquet\n"
    again = pd.read_parquet("more.parquet")
    assert set(again["pretraining"]) == {"unknown"} and again["id"][0].startswith("deep/")
    pd.testing.assert_frame_equal(numbers(again), numbers(found))
    same = rarefy.features(path, "more", size=12, skip_bad=True, unlabelled=True, device="cpu")
    pd.testing.assert_frame_equal(same, again)
    assert cli.main(["probe", str(path), "--features", "own.npz", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"written": {"features": "own.npz"}}
    assert "labels" not in np.load("own.npz")
    for on in ((), ("--on", "digits")):
        assert cli.main(["probe", str(path), *on, "--unlabelled"]) == 2
        said = capsys.readouterr().err
        assert said == "error: --unlabelled=True: of a folder, which --on names\n"


def test_images_that_a_network_was_not_trained_on(
    nets: Path, here: Path, digits_folder: str
) -> None:
    table = rarefy.features(nets / "a-masked-0.pt", digits_folder, device="cpu")
    assert set(table["pretraining"]) == {"unknown"}
    assert set(table["label"]) == {"zero", "one", "two"}
    assert table["id"][0].startswith("train/one/") and set(table["method"]) == {"pruned:0.5"}
    (here / "my_taken_models.py").write_text(
        "import torch\ndef flat(size):\n    return torch.nn.Flatten()\n"
    )
    given = ["my_taken_models:flat", "--on", "digits", "--features", "flat.npz", *CHEAP]
    assert cli.main(["probe", *given, "--export", "backbone.pt2"]) == 0
    held = np.load("flat.npz")
    assert held["features"].shape == (1797, 64) and set(held["pretraining"]) == {"unknown"}
    images = on_device("digits", torch.device("cpu")).train.images[:5] / 255
    program = torch.export.load("backbone.pt2").module()
    np.testing.assert_allclose(program(images), held["features"][:5], rtol=1e-5, atol=1e-5)


def test_in_python_a_run_and_a_backbone_have_them_too(here: Path) -> None:
    small: dict[str, Any] = {"rho": 8, "head": "24", "epochs": 1, "seeds": 1, "device": "cpu"}
    small |= {"network": "lenet", "batch": 32, "protocols": "knn", "control": False}
    found = rarefy.pretrain_images("digits", ["simclr"], save="nets", **small)
    assert found is not None and found.written == {}
    table = found.features("cpu")
    assert len(table) == 1797
    unkept = rarefy.pretrain_images("digits", ["simclr"], out="unkept", **small)
    assert unkept is not None
    with pytest.raises(rarefy.core.errors.UsageError, match="no networks were kept"):
        unkept.features()
    images = on_device("digits", torch.device("cpu")).train.images[:32]
    learnt = rarefy.pretrain(images, "lenet", epochs=1, device="cpu", progress=False)
    learnt.export("backbone.pt2")
    program = torch.export.load("backbone.pt2").module()
    torch.testing.assert_close(program(images / 255), learnt.features(images), rtol=1e-5, atol=1e-5)
    with pytest.raises(rarefy.core.errors.UsageError, match=r"must end in \.pt2"):
        learnt.export("backbone.pt")


# ----------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--features", "out.txt"), "--features='out.txt': must end in .parquet, .csv, .npz"),
        (("--features", "out"), "--features='out': must end in .parquet"),
        (("--features", "no/out.csv"), "--features='no/out.csv': there is no folder no"),
        (("--features", "mine.csv"), "--features='mine.csv': is there, and rarefy has no record"),
        (("--features", "folder.csv"), "--features='folder.csv': is a folder; name a file"),
        (("--export", "out.pt"), "--export='out.pt': must end in .pt2"),
        (("--export", "no/out.pt2"), "--export='no/out.pt2': there is no folder no"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(
    nets: Path,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    wrong: tuple[str, ...],
    message: str,
) -> None:
    (here / "mine.csv").write_text("a,b\n")
    (here / "folder.csv").mkdir()
    for call in (["pretrain", *TWO, *HERE], ["probe", str(nets / "a-plain-0.pt"), *CHEAP]):
        assert cli.main([*call, *wrong]) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1
        assert said.err.startswith(f"error: {message}")
    assert sorted(os.listdir(here)) == ["folder.csv", "mine.csv"]


def test_what_there_is_no_network_for(
    nets: Path, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [str(nets / "a-plain-0.pt"), str(nets / "a-plain-1.pt")]
    photos(here / "photos")
    (here / "my_odd_models.py").write_text(
        "import torch\nclass Odd(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.linear = torch.nn.Linear(64, 4)\n"
        "    def forward(self, x):\n        x = self.linear(x.flatten(1))\n"
        "        return x if x.sum() > 0 else -x\n"
    )
    odd = (*TWO[:8], "my_odd_models:Odd", *TWO[9:], "--export", "odd.pt2")
    assert odd[7] == "--network"
    for call, message in (
        (["probe", *two, "--features", "a.csv"], "--features: of one network, and 2 are named"),
        (["probe", *two, "--export", "a.pt2"], "--export: of one network, and 2 are named"),
        (
            ["pretrain", *TINY, "--method", "pixels", "--features", "a.csv"],
            "--method='pixels': trains no network to write",
        ),
        (
            ["pretrain", *ONES_OWN, "--skip-bad", "--method", "pixels"],
            "--method='pixels': learns nothing, and is not judged without labels",
        ),
        (["pretrain", *odd], "--export: torch.export cannot follow the network 'my_odd_models:O"),
    ):
        assert cli.main([*call, "--device", "cpu"]) == 2
        said = capsys.readouterr()
        assert f"error: {message}" in said.err and said.out == ""
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["pretrain", *TINY, "--features", "a.csv", *HERE]) == 2
    assert "--features: not under torchrun; rarefy probe FILE --feat" in capsys.readouterr().err
    assert not (here / "runs").exists() and not list(here.glob("a.*"))


def test_features_of_another_run_are_not_replaced(
    pretrain: Pretrain, nets: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = (*TINY, "--method", "simclr", "--seeds", "1", "--features", "a.csv")
    other = (*one, "--epochs", "1", "--out", "other")
    pretrain(*one)
    before = (here / "a.csv").read_bytes()
    assert cli.main(["pretrain", *other, *HERE]) == 2
    said = capsys.readouterr().err
    assert "--features='a.csv': was written by: " in said and "pass --overwrite" in said
    assert (here / "a.csv").read_bytes() == before and not (here / "other").exists()
    assert cli.main(["probe", str(nets / "a-plain-0.pt"), "--features", "a.csv", *CHEAP]) == 2
    assert "name another --features" in capsys.readouterr().err
    assert pretrain(*other, "--overwrite")["written"]["features"] == "a.csv"
    assert (here / "a.csv").read_bytes() != before


@pytest.mark.slow
def test_trained_before_without_keeping_networks(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = (*TINY, "--method", "simclr", "--seeds", "1")
    pretrain(*one)
    assert cli.main(["pretrain", *one, "--features", "a.csv", *HERE]) == 2
    said = capsys.readouterr().err
    assert "error: --features: runs/pretrain-digits-networks/digits-lenet-simclr-" in said
    assert "seed-0.pt is missing: it was trained without --save, or" in said
    assert pretrain(*one, "--features", "a.csv", "--overwrite")["written"]["features"] == "a.csv"
    wild = (*one, "--lr", "1e30", "--out", "wild", "--features", "wild.csv")
    assert cli.main(["pretrain", *wild, *HERE]) == 1
    assert "no training came to its end" in capsys.readouterr().err
    assert not (here / "wild.csv").exists()
