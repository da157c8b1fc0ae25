"""Networks of timm and torchvision by name, with stand-ins for the two, which need not be there."""

from __future__ import annotations

import importlib.abc
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from small_commands import HERE, SMALL
from torch import nn

from rarefy import cli
from rarefy.core.errors import UsageError
from rarefy.nets.backbones import build_backbone
from rarefy.nets.builder import build, identity
from rarefy.tools.saved_networks import load_backbone


class TwoHeads(nn.Module):
    """As distilled transformers have them: their mean is the answer."""

    def __init__(self, in_chans: int, num_classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(in_chans, 6, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.reset_classifier(num_classes)

    def reset_classifier(self, num_classes: int) -> None:
        two = (nn.Linear(6, num_classes) if num_classes else nn.Identity() for _ in range(2))
        self.head, self.other = two

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).flatten(1)
        return (self.head(x) + self.other(x)) / 2


def colour(classes: int, last: str) -> nn.Module:
    """Three channels, and a classifier that is a linear layer or a convolution."""
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if last == "conv":
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, classes, 1), *pooled)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), *pooled, nn.Linear(4, classes))


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The calls of timm 1.0 that are used; weights of others may not be asked for."""
    module: Any = ModuleType("timm")
    names = ["resnet18", "resnet34", "resnet50", "vit_tiny"]

    def create_model(name: str, pretrained: bool, in_chans: int, num_classes: int) -> nn.Module:
        assert name in names and pretrained is False
        if name == "vit_tiny":
            raise AssertionError("Input height (8) doesn't match model (224).")
        return TwoHeads(in_chans, num_classes)

    module.create_model, module.list_models = create_model, lambda: names
    module.is_model, module.__version__ = names.__contains__, "1.0.9"
    monkeypatch.setitem(sys.modules, "timm", module)
    return module


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("torchvision")
    module.models = ModuleType("torchvision.models")
    kinds = {"resnet18": "linear", "squeezenet1_0": "conv"}

    def get_model(name: str, weights: None, num_classes: int) -> nn.Module:
        assert weights is None
        return colour(num_classes, kinds[name])

    module.models.get_model = get_model
    module.models.list_models = lambda module: list(kinds) if module else [*kinds, "fcn_resnet50"]
    monkeypatch.setitem(sys.modules, "torchvision", module)
    return module


def test_a_library_makes_classifiers_and_backbones(timm: Any, torchvision: Any) -> None:
    assert build("timm:resnet34", 1, 8, 7)(torch.rand(2, 1, 8, 8)).shape == (2, 7)
    assert build("torchvision:resnet18", 3, 8, 7)(torch.rand(2, 3, 8, 8)).shape == (2, 7)
    for name, channels, width in (("timm:resnet34", 1, 6), ("torchvision:resnet18", 3, 4)):
        backbone, found = build_backbone(name, channels, 8)
        assert found == width
        assert backbone(torch.rand(5, channels, 8, 8)).shape == (5, width)
        assert not any(isinstance(each, nn.Linear) for each in backbone.modules())


def test_another_version_is_another_network(timm: Any, torchvision: Any) -> None:
    assert identity("timm:resnet34") == "timm:resnet34 (1.0.9)"
    timm.__version__ = "1.1"
    assert identity("timm:resnet34") == "timm:resnet34 (1.1)"
    assert identity("torchvision:resnet18") == "torchvision:resnet18 (version unknown)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("timm:resnet3", "timm has no classifier of images 'resnet3'; nearest: resnet34, resnet"),
        ("timm:zzz", "timm has no classifier of images 'zzz'; timm's list_models() has them all"),
        ("timm:hf-hub:a/b", "timm has no classifier of images 'hf-hub:a/b'"),
        ("timm:", "timm has no classifier of images ''"),
        ("timm:vit_tiny", "it raised AssertionError: Input height (8) doesn't match model (224)."),
        ("torchvision:resnet", "has no classifier of images 'resnet'; nearest: resnet18"),
        ("torchvision:fcn_resnet50", "torchvision has no classifier of images 'fcn_resnet50'"),
        ("torchvision:squeezenet1_0", "does not end in a linear layer, which could be taken off"),
    ],
)
def test_a_name_that_will_not_do_is_one_line(
    timm: Any, torchvision: Any, name: str, words: str
) -> None:
    with pytest.raises(UsageError) as found:
        build_backbone(name, 3, 8)
    assert str(found.value).startswith(f"network={name!r}: ") and words in str(found.value)
    assert "\n" not in str(found.value)


def test_torchvision_takes_colour_alone(torchvision: Any) -> None:
    with pytest.raises(UsageError, match="given images of 1 x 8 x 8 it raised .* 3 channels"):
        build("torchvision:resnet18", 1, 8, 7)


class Broken(importlib.abc.MetaPathFinder):
    """Finds timm and torchvision, and fails as installations do."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name in ("timm", "torchvision"):
            raise self.error


@pytest.mark.parametrize("library", ["timm", "torchvision"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("operator torchvision::nms does not exist\nmore"), "does not exist; it must"),
        (ImportError("libcudart.so.12: cannot open"), "ImportError: libcudart.so.12: cannot open"),
        (ModuleNotFoundError("No module named 'safetensors'", name="safetensors"), "'safetensors'"),
    ],
)
def test_a_broken_installation_is_one_line(
    monkeypatch: pytest.MonkeyPatch, library: str, error: Exception, words: str
) -> None:
    monkeypatch.delitem(sys.modules, library, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(error), *sys.meta_path])
    with pytest.raises(UsageError) as found:
        build(f"{library}:resnet18", 3, 32, 10)
    said = str(found.value)
    assert said.startswith(f"network='{library}:resnet18': importing {library!r} raised ")
    assert words in said and said.endswith(f"it must be one that fits torch {torch.__version__}")
    assert "\n" not in said


def test_what_is_not_installed_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in ("timm", "torchvision"):
        absent = ModuleNotFoundError(f"No module named {library!r}", name=library)
        monkeypatch.delitem(sys.modules, library, raising=False)
        monkeypatch.setattr(sys, "meta_path", [Broken(absent), *sys.meta_path])
        given = ["digits", "--network", f"{library}:resnet18", "--device", "cpu"]
        for verb in ("pretrain", "train", "granularity"):
            assert cli.main([verb, *given]) == 2
            assert capsys.readouterr().err == (
                f"error: --network='{library}:resnet18': no module {library!r}, which is optional: "
                f"pip install {library}\n"
            )
        assert cli.main(["probe", f"{library}:resnet18", "--on", "digits"]) == 2
        assert f"pip install {library}\n" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.slow
def test_trained_saved_and_probed_without_naming_it_again(
    timm: Any, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library is no code of a stranger's: its name in a file is enough."""
    given = (*SMALL[:-1], "timm:resnet34", "--batch", "32", "--protocols", "knn", "--seeds", "1")
    given = (*given, "--method", "simclr", "--no-control", "--save", "nets")
    assert cli.main(["pretrain", *given, *HERE]) == 0
    path = here / "nets" / "digits-timm-resnet34-simclr-long-tail-rho-8-seed-0.pt"
    assert load_backbone(path)[1]["network"] == "timm:resnet34"
    assert cli.main(["probe", str(path), "--protocols", "knn", "--device", "cpu"]) == 0
    small = ["--epochs", "1", "--seeds", "1", "--samples", "60"]
    train = ["train", "digits", "--network", "timm:resnet34", "--keep", "0.5", *small, *HERE]
    assert cli.main(train) == 0
    assert "timm:resnet34" in capsys.readouterr().err
