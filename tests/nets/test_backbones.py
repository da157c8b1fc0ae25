"""Networks without their classifier, and the normalisation behind each layer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.nets.backbones import Encoder, Projection, build_backbone, following_norms
from rarefy.nets.builder import NETWORKS, build


@pytest.mark.quick("vit", "cnn", "lenet", "cnn-small")
@pytest.mark.parametrize("name", NETWORKS)
def test_the_features_are_what_the_classifier_saw(name: str) -> None:
    torch.manual_seed(0)
    classifier = build(name, 3, 16, 10).eval()
    torch.manual_seed(0)
    backbone, width = build_backbone(name, 3, 16)
    x = torch.rand(3, 3, 16, 16)
    seen: list[torch.Tensor] = []
    head = classifier.head
    assert isinstance(head, nn.Linear)
    head.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    with torch.no_grad():
        classifier(x)
        found = backbone.eval()(x)
    assert width == head.in_features and torch.equal(found, seen[0])


def test_somebodys_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_nets.py").write_text(
        "from torch import nn\n"
        "def features(channels):\n"
        "    return nn.Sequential(nn.Conv2d(channels, 7, 3), nn.ReLU())\n"
        "def classifier(in_chans, num_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.LazyLinear(6), nn.ReLU(),\n"
        "        nn.Linear(6, num_classes))\n"
        "def alone(num_classes):\n"
        "    return nn.Linear(8, num_classes)\n"
        "def odd():\n"
        "    return nn.Identity()\n"
    )
    monkeypatch.chdir(tmp_path)
    backbone, width = build_backbone("their_nets:features", 3, 8)
    assert width == 7 and backbone(torch.rand(2, 3, 8, 8)).shape == (2, 7)  # maps are averaged
    assert build_backbone("their_nets:classifier", 3, 8)[1] == 6
    with pytest.raises(UsageError, match="is its own classifier"):
        build_backbone("their_nets:alone", 1, 8)
    with pytest.raises(UsageError, match="no such|there is no"):
        build_backbone("their_nets:absent", 1, 8)


def test_projections() -> None:
    one = Projection(6, 4, depth=1)
    assert [type(module) for module in one.layers] == [nn.Linear]
    kinds = [type(module).__name__ for module in Projection(6, 4, depth=3).layers]
    assert kinds == ["Linear", "BatchNorm1d", "ReLU"] * 2 + ["Linear"]
    plain = Projection(6, 4, depth=2, norm="none")
    assert not any(isinstance(module, nn.BatchNorm1d) for module in plain.modules())
    with pytest.raises(UsageError, match="head_depth=0: must be at least 1"):
        Projection(6, 4, depth=0)
    with pytest.raises(UsageError, match="head_norm='layer'"):
        Projection(6, 4, norm="layer")


def test_every_convolution_of_resnet_has_its_normalisation_behind() -> None:
    backbone, width = build_backbone("resnet18", 3, 16)
    encoder = Encoder(backbone, Projection(width, 8))
    before = {name: buffer.clone() for name, buffer in encoder.named_buffers()}
    layers = [
        name
        for name, module in encoder.named_modules()
        if name.startswith("backbone.") and isinstance(module, nn.Conv2d)
    ]
    behind = following_norms(encoder, layers, torch.rand(2, 3, 16, 16))
    assert len(layers) == 20 and len(set(behind.values())) == 20
    assert behind["backbone.network.stem"] == "backbone.network.norm"
    first = "backbone.network.blocks.2"
    assert behind[f"{first}.first"] == f"{first}.first_norm"
    assert behind[f"{first}.shortcut.0"] == f"{first}.shortcut.1"
    after = dict(encoder.named_buffers())
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_layer_without_normalisation_stands_for_itself() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))
    assert following_norms(network, ["0", "2"], torch.rand(2, 1, 8, 8)) == {"0": "0", "2": "3"}


# ----------------------------------------------------------------------------- somebody's backbones


def test_a_layer_of_ten_inside_is_no_classifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other_nets.py").write_text(
        "from torch import nn\n"
        "def narrow():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.ReLU(), nn.Linear(10, 7))\n"
        "class Pair(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x, x\n"
    )
    monkeypatch.chdir(tmp_path)
    backbone, width = build_backbone("other_nets:narrow", 1, 8)
    assert width == 7
    assert [type(one).__name__ for one in backbone.network].count("Linear") == 2
    with pytest.raises(UsageError) as error:
        build_backbone("other_nets:Pair", 1, 8)
    assert str(error.value) == (
        "network='other_nets:Pair': must give a row of numbers per image, not tuple"
    )


class Attends(nn.Module):
    """The output projection of an attention is read without being called; its norm by a name."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, images: Tensor) -> Tensor:
        x = self.norm(input=self.wide(images.flatten(2)))
        found: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return found


def test_layers_that_are_never_called_have_nothing_behind_them() -> None:
    found = following_norms(Attends(), ["wide", "attention.out_proj"], torch.rand(2, 3, 2, 2))
    assert found == {"wide": "wide"}
