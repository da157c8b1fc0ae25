"""Whose units a mask leaves out: the mechanism that 000 proves for its model (Remark 2 of Thm 3.2,
claim P4) looked for in a real network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rarefy.measure.representation.selective_units import class_selectivity, masked_by_class
from rarefy.measure.trends import spearman_rho
from rarefy.nets.backbones import Encoder, following_norms
from rarefy.pruning.filters import TRANSPOSED
from rarefy.tools.longtail.sets import Parts, balanced_places
from rarefy.train.image_batches import unit_pixels
from rarefy.train.precision import mixed_precision
from rarefy.train.simclr.pretraining import Pretraining

IMAGES_A_CLASS = 200
"""As many of each class, or units that prefer nothing would seem to prefer the tail."""
LEAST_SELECTIVITY = 0.5
"""Half a standard deviation between the preferred class and the others."""
ROWS = 500
ROUNDING = 1e-9


@dataclass(frozen=True)
class Mechanism:
    """By rank, head first: how much more than chance the units that prefer a class are masked, with
    the central 95 % of chance (shares exchanged within layers), and how many there are."""

    excess: Tensor
    low: Tensor
    high: Tensor
    units: Tensor
    slope: float
    """Spearman's correlation of rank and excess: above 0, the tail's units are masked more."""


def look_inside(training: Pretraining, encoder: Encoder, parts: Parts) -> Mechanism:
    """Activations of the dense encoder, masks as the training left them. A unit is a filter of a
    convolution or a neuron of a linear layer, seen behind its normalisation and ReLU."""
    pruner = training.pruner
    assert pruner is not None
    masks = pruner.masks
    layers = {name.rpartition(".")[0]: name for name in masks}
    places = balanced_places(parts.test.labels, parts.classes, IMAGES_A_CLASS)
    # nothing is chosen by it, and training images would be known ones in the head and new ones in
    # the tail
    images, labels = parts.test.images[places], parts.test.labels[places]
    activations = _activations(encoder, list(layers), images, training)
    preferred, selectivity, shares, strata = [], [], [], []
    for number, (layer, name) in enumerate(layers.items()):
        if layer not in activations:  # its module is never called, as inside an attention
            continue
        found = class_selectivity(activations[layer], labels, parts.classes)
        mask = pruner.rule.filters[name].rows(masks[name])
        preferred.append(found.preferred)
        selectivity.append(found.selectivity)
        shares.append(1 - mask.double().mean(dim=1).cpu())
        strata.append(torch.full((len(mask),), number))
    found_all = masked_by_class(
        torch.cat(shares),
        torch.cat(preferred),
        torch.cat(selectivity),
        parts.classes,
        least=LEAST_SELECTIVITY,
        strata=torch.cat(strata),
    )
    order = list(parts.order)
    excess = found_all.difference[order]
    middle = found_all.share[order] - excess
    return Mechanism(
        excess,
        found_all.low[order] - middle,
        found_all.high[order] - middle,
        found_all.units[order],
        _spearman(excess),
    )


@torch.no_grad()
def _activations(
    encoder: Encoder, layers: list[str], images: Tensor, training: Pretraining
) -> dict[str, Tensor]:
    """By layer: (image, unit), the mean over places of what passes the ReLU."""
    dtype = next(encoder.parameters()).dtype
    scaling = training.batches.scaling
    example = scaling(unit_pixels(images[:2], dtype), dtype)
    behind = following_norms(encoder, layers, example)
    kept: dict[str, list[Tensor]] = {layer: [] for layer in layers}
    modules = dict(encoder.named_modules())

    def keep(layer: str):  # type: ignore[no-untyped-def]
        convolution = isinstance(modules[layer], (nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED))

        def hook(module: nn.Module, given: object, output: Tensor) -> None:
            found = output.relu()
            if convolution:
                found = found.flatten(2).mean(dim=2)
            elif found.ndim > 2:  # tokens
                found = found.flatten(1, -2).mean(dim=1)
            kept[layer].append(found.float())

        return hook

    hooks = [modules[place].register_forward_hook(keep(layer)) for layer, place in behind.items()]
    encoder.eval()
    try:
        for first in range(0, len(images), ROWS):
            x = scaling(unit_pixels(images[first : first + ROWS], dtype), dtype)
            with mixed_precision(images.device, training.precision):
                encoder.backbone(x)
    finally:
        for hook in hooks:
            hook.remove()
    return {layer: torch.cat(parts) for layer, parts in kept.items() if parts}


def _spearman(values: Tensor) -> float:
    """Of values by rank; NaN where fewer than three are known, or all are equal (as where every
    filter keeps the same share: it then says nothing which units are masked)."""
    there = ~values.isnan()
    # differences of rounding have no order
    known = (values[there] / ROUNDING).round()
    if len(known) < 3 or bool((known == known[0]).all()):
        return float("nan")
    rank = torch.arange(len(values))[there]
    return spearman_rho(rank.numpy(), known.numpy())
