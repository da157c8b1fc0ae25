"""``rarefy probe`` asked wrongly: one line each, before anything is judged."""

from __future__ import annotations

import zipfile
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from PIL import Image
from small_commands import CHEAP
from small_longtail import CPU, rewritten

from rarefy import cli
from rarefy.core.writing import OutputFolder
from rarefy.nets.backbones import build_backbone
from rarefy.nets.builder import build
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.sets import Tail
from rarefy.tools.saved_networks import save_network


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
        (("good.pt", "--shots", "0"), "shots=0: must be at least 1 label per class"),
        (
            ("good.pt", "--table", "good.pt"),
            "table='good.pt': is what is read; name another --table",
        ),
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
    about = {"network": "lenet"}
    save_network(OutputFolder(Path()), "classifier", build("lenet", 1, 8, 10), digits, about)
    assert cli.main(["probe", *wrong, "--device", "cpu"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and message in said.err
    assert said.err.splitlines()[-1].startswith("error: ")
