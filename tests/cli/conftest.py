"""What the tests of several verbs need: trained networks, images as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from small_commands import HERE
from small_longtail import CPU, task
from toy_study import Toy, only

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.core.writing import OutputFolder
from rarefy.ledger import verdicts as ledger
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.pretraining import pretrain_one
from rarefy.tools.longtail.sets import Tail
from rarefy.train.simclr.method import Method

Described = dict[str, Any]
Pretrain = Callable[..., Described]


@pytest.fixture
def only_toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The toy is the only study and the ledger lies in the test's folder, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAREFY_COMPILE", "0")
    only(monkeypatch, Toy)
    monkeypatch.setattr(ledger, "ledger_folder", lambda: tmp_path / "ledger")
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "claims.json").write_text("[]")
    return tmp_path


@pytest.fixture
def pretrain(here: Path, capsys: pytest.CaptureFixture[str]) -> Pretrain:
    """Runs the verb and gives what ``--json`` says."""

    def call(*arguments: str) -> Described:
        assert cli.main(["pretrain", *arguments, *HERE, "--json"]) == 0
        described: Described = json.loads(capsys.readouterr().out)
        return described

    return call


@pytest.fixture(scope="session")
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
        context = Context(models=OutputFolder(folder))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        pretrain_one(one, Method.parse(method), seed, seed, context, name)
        torch.set_num_threads(threads)
    return folder


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
