"""Networks without their last layer, for learning without labels, and what stands behind them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from rarefy.core.errors import bad_value
from rarefy.nets.builder import build, preserve_state

CLASSES = 10
"""A network is built as a classifier, whose last layer is then taken off."""
NORMALISATIONS = ("batch", "none")


class Features(nn.Module):
    """A network that gives a row of numbers per image, whatever shape it ends in: maps are averaged
    over their places."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.network(images)
        return found.mean(dim=(2, 3)) if found.ndim == 4 else found


class Projection(nn.Module):
    """Where the contrastive loss looks: ``depth`` linear layers, all but the last as wide as the
    features, with normalisation ("batch") and ReLU between them. It is thrown away afterwards."""

    def __init__(self, width: int, out: int = 128, depth: int = 2, norm: str = "batch") -> None:
        super().__init__()
        if depth < 1:
            raise bad_value("head_depth", depth, "must be at least 1 layer")
        if norm not in NORMALISATIONS:
            raise bad_value("head_norm", norm, f"must be one of {', '.join(NORMALISATIONS)}")
        layers: list[nn.Module] = []
        for _ in range(depth - 1):
            layers.append(nn.Linear(width, width, bias=norm == "none"))
            layers += [nn.BatchNorm1d(width)] if norm == "batch" else []
            layers.append(nn.ReLU())
        layers.append(nn.Linear(width, out))
        self.layers = nn.Sequential(*layers)

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = self.layers(features)
        return found


class Encoder(nn.Module):
    """Backbone and projection: images to points for the loss; ``.backbone`` is what stays."""

    def __init__(self, backbone: nn.Module, projection: nn.Module) -> None:
        super().__init__()
        self.backbone, self.projection = backbone, projection

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.projection(self.backbone(images))
        return found


class Headed(nn.Module):
    """Backbone and one linear layer: a classifier whose last layer can be changed for another."""

    def __init__(self, backbone: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.head(self.backbone(images))
        return found

    def load_backbone(self, state: Mapping[str, Tensor]) -> None:
        """From the ``state_dict`` of another one, whatever it classified."""
        before = "backbone."
        own = {k.removeprefix(before): v for k, v in state.items() if k.startswith(before)}
        self.backbone.load_state_dict(own)


def build_backbone(name: str, channels: int, size: int) -> tuple[Features, int]:
    """A new network by name or ``module:callable`` without its classifier, and how many numbers it
    gives an image. Of somebody's network the last linear layer goes if it answers as many classes
    as were asked for; one that has no such parameter gives features already."""
    network = build(name, channels, size, CLASSES, any_width=True)
    if name.startswith("timm:"):  # (which may have several heads, or one that is not linear)
        network.reset_classifier(0)  # type: ignore[operator]
    example = torch.zeros(2, channels, size, size)
    example = example.to(next(iter(network.parameters()), example).device)
    with preserve_state(network):
        answers = network(example)
    if not isinstance(answers, Tensor):
        kind = type(answers).__name__
        raise bad_value("network", name, f"must give a row of numbers per image, not {kind}")
    linear = [place for place, module in network.named_modules() if _classifies(module)]
    # (one somewhere inside of a network that gives features is no classifier)
    if linear and answers.shape[-1:] == (CLASSES,):
        if not linear[-1]:  # the network is this one layer
            raise bad_value("network", name, "is its own classifier: there are no features before")
        network.set_submodule(linear[-1], nn.Identity())
    elif name.startswith("torchvision:"):
        raise bad_value("network", name, "does not end in a linear layer, which could be taken off")
    backbone = Features(network)
    with preserve_state(backbone):
        found = backbone(example)
    if found.ndim != 2 or len(found) != 2 or not found.is_floating_point():
        shape = tuple(found.shape)
        raise bad_value("network", name, f"must give a row of numbers per image, not {shape} for 2")
    return backbone, found.shape[1]


def _classifies(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and module.out_features == CLASSES


def following_norms(network: nn.Module, layers: list[str], images: Tensor) -> dict[str, str]:
    """For each layer the normalisation that reads its output, or the layer itself where none does:
    where a whole filter can be left out without its normalisation dividing by nothing. Found by
    sending ``images`` through. Layers whose module is never called (the output projection of an
    attention) are not in it: nothing stands behind them."""
    modules = dict(network.named_modules())
    kinds = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm)
    norms = {name: module for name, module in modules.items() if isinstance(module, kinds)}
    made: dict[int, str] = {}
    kept: list[Tensor] = []  # alive, or another tensor may get the same id
    behind: dict[str, str] = {}

    def wrote(layer: str):  # type: ignore[no-untyped-def]
        def hook(module: nn.Module, given: object, output: Tensor) -> None:
            made[id(output)] = layer
            kept.append(output)
            behind.setdefault(layer, layer)

        return hook

    def read(norm: str):  # type: ignore[no-untyped-def]
        def hook(module: nn.Module, given: tuple[Tensor, ...]) -> None:
            layer = made.get(id(given[0])) if given else None
            if layer is not None:
                behind[layer] = norm

        return hook

    hooks = [modules[layer].register_forward_hook(wrote(layer)) for layer in layers]
    hooks += [module.register_forward_pre_hook(read(name)) for name, module in norms.items()]
    try:
        with preserve_state(network):
            network(images)
    finally:
        for hook in hooks:
            hook.remove()
    return behind
