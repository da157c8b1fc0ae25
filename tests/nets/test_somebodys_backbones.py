"""Networks that were not written for this: what of them is taken off, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.nets.backbones import build_backbone, following_norms


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
