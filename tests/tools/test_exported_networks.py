"""Networks as programs: the same numbers for any number of images, or a line that says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.nets.backbones import Features, build_backbone
from rarefy.nets.builder import NETWORKS
from rarefy.tools.exported_networks import exported, write_exported
from rarefy.tools.longtail.features import features_of
from rarefy.train.image_batches import Scaling

SCALING = Scaling((0.3, 0.4, 0.5), (0.2, 0.0, 0.3))
"""One channel never changes."""
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.mark.quick("lenet", "cnn-small")
@pytest.mark.parametrize("name", NETWORKS)
def test_the_program_gives_our_features(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    backbone, width = build_backbone(name, 3, 12)
    with torch.no_grad():  # statistics of its own, as after a training
        backbone.train()(torch.rand(16, 3, 12, 12))
    state = {name: value.clone() for name, value in backbone.state_dict().items()}
    write_exported(exported(backbone, SCALING, 12, name), tmp_path / "one.pt2", "test")
    assert backbone.training and all(
        torch.equal(value, state[name]) for name, value in backbone.state_dict().items()
    )
    program = torch.export.load(tmp_path / "one.pt2").module()
    for count in (1, 2, 9):
        images = torch.randint(0, 256, (count, 3, 12, 12), dtype=torch.uint8)
        found = program(images / 255)
        assert found.shape == (count, width) and not found.requires_grad
        torch.testing.assert_close(found, features_of(backbone, images, SCALING), **CLOSE)


class Flat(nn.Module):
    """Somebody's network, whose forward pass is given."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.linear, self.kind = nn.Linear(3 * 64, 5), kind

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x.reshape(len(x), -1))
        if self.kind == "branches":
            return x if x.sum() > 0 else -x
        return x + torch.rand_like(x) if self.kind == "random" else x


def test_a_network_that_asks_for_the_length_of_a_batch_can_be_followed() -> None:
    network = Features(Flat("plain"))
    program = exported(network, SCALING, 8, "mine").module()
    images = torch.randint(0, 256, (7, 3, 8, 8), dtype=torch.uint8)
    torch.testing.assert_close(
        program(images / 255), features_of(network, images, SCALING), **CLOSE
    )


@pytest.mark.quick("random")
@pytest.mark.parametrize("kind", ["branches", "random"])
def test_what_cannot_be_followed_is_one_line(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as found:
        exported(Features(Flat(kind)), SCALING, 8, "my_nets:flat")
    said = str(found.value)
    assert said.startswith("export: torch.export cannot follow the network 'my_nets:flat' (")
    assert "load the saved weights into its own code" in said and "\n" not in said
    assert capfd.readouterr() == ("", "")
