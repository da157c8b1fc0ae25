"""Whose units are masked, and features while they are learnt: made-up networks of which the answer
is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_longtail import made_up, task
from small_pretrainings import pretraining
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.data.images import ImageSet
from rarefy.nets.backbones import Encoder, Features
from rarefy.pruning.filters import Filters
from rarefy.tools.longtail.features import final_encoder
from rarefy.tools.longtail.mechanism import look_inside
from rarefy.tools.longtail.pretraining import pretrain_one
from rarefy.tools.longtail.sets import Parts
from rarefy.tools.longtail.watching import watched_features
from rarefy.train.image_batches import Scaling
from rarefy.train.simclr.data_parallel import World
from rarefy.train.simclr.method import Method

CLASSES, UNITS, SIDE, EACH = 10, 8, 4, 12
ORDER = (3, 7, 1, 0, 9, 5, 2, 8, 6, 4)
SCALING = Scaling((0.5,), (0.3,))
CONV = "backbone.network.0"


def bright_pixels() -> Parts:
    """In images of class c pixel c is bright; classes have different numbers of them."""
    draws = torch.Generator().manual_seed(0)
    sizes = [EACH + rank for rank in range(CLASSES)]
    labels = torch.repeat_interleave(torch.arange(CLASSES), torch.tensor(sizes))
    images = torch.randint(0, 60, (len(labels), 1, SIDE, SIDE), generator=draws, dtype=torch.uint8)
    images.flatten(1)[torch.arange(len(labels)), labels] += 180
    pool = ImageSet(images, labels, tuple("abcdefghij"))
    nobody = torch.zeros(len(labels), dtype=torch.bool)
    counts = tuple(range(CLASSES, 0, -1))
    return Parts(pool, pool, nobody, pool, ORDER, counts, None, (0.5,), (0.3,))


def detectors() -> Encoder:
    """Eight filters of each class, which respond to its pixel alone, behind a normalisation."""
    conv = nn.Conv2d(1, CLASSES * UNITS, SIDE, bias=False)
    with torch.no_grad():
        conv.weight.mul_(0.01)
        place = torch.arange(CLASSES).repeat_interleave(UNITS)
        conv.weight.flatten(1)[torch.arange(CLASSES * UNITS), place] = 1
    network = nn.Sequential(conv, nn.BatchNorm2d(CLASSES * UNITS), nn.ReLU(), nn.Flatten())
    return Encoder(Features(network), nn.Linear(CLASSES * UNITS, 4)).eval()


def training(encoder: Encoder, masks: dict[str, Tensor]) -> Any:
    """As much of a training as is looked at."""
    filters = {}
    for name, mask in masks.items():
        filters[name] = Filters.of(encoder.get_submodule(name.rpartition(".")[0]), mask)
    pruner = SimpleNamespace(masks=masks, rule=SimpleNamespace(filters=filters))
    return SimpleNamespace(
        pruner=pruner,
        batches=SimpleNamespace(scaling=SCALING),
        precision="float32",
        world=World(),
    )


def masked(share_of_unit: Tensor) -> dict[str, Tensor]:
    """Sixteen weights a filter, the first ones masked."""
    places = torch.arange(SIDE * SIDE) / (SIDE * SIDE)
    mask = (places >= share_of_unit[:, None] - 1e-9).float()
    return {f"{CONV}.weight": mask.reshape(-1, 1, SIDE, SIDE)}


RANK = torch.tensor([ORDER.index(label) for label in range(CLASSES)])


def test_masks_on_the_units_of_the_tail_are_found_there() -> None:
    parts, encoder = bright_pixels(), detectors()
    by_class = (RANK + 1) / 16.0
    found = look_inside(
        training(encoder, masked(by_class.repeat_interleave(UNITS))), encoder, parts
    )
    assert found.units.tolist() == [UNITS] * CLASSES
    assert found.slope == pytest.approx(1.0)
    # by rank: as much above the mean share as it was placed there
    expected = (torch.arange(CLASSES) - 4.5) / 16
    torch.testing.assert_close(found.excess, expected.double(), atol=0.01, rtol=0)
    assert (found.excess[-3:] > found.high[-3:]).all()
    assert (found.excess[:3] < found.low[:3]).all()
    other_way = look_inside(
        training(encoder, masked((10 - RANK).repeat_interleave(UNITS) / 16.0)), encoder, parts
    )
    assert other_way.slope == pytest.approx(-1.0)


def test_random_masks_are_near_chance() -> None:
    parts, encoder = bright_pixels(), detectors()
    slopes, outside = [], []
    for seed in range(12):
        draws = torch.Generator().manual_seed(seed)
        shares = torch.randint(0, 16, (CLASSES * UNITS,), generator=draws) / 16.0
        found = look_inside(training(encoder, masked(shares)), encoder, parts)
        slopes.append(found.slope)
        outside.append((found.excess < found.low) | (found.excess > found.high))
    # twelve Spearman coefficients of ten ranks: standard error 1 / (3 sqrt(12)) = 0.1
    assert abs(sum(slopes) / len(slopes)) < 0.3
    assert float(torch.stack(outside).double().mean()) < 0.12  # 0.05 by chance, of 120


def test_equal_shares_and_layers_that_are_never_called_say_nothing() -> None:
    class Hidden(nn.Module):
        """Uses a layer's weight without calling it, as an attention does."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(CLASSES * UNITS, 6)

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.linear(x, self.inner.weight)

    parts, plain = bright_pixels(), detectors()
    network = nn.Sequential(*plain.backbone.network, Hidden())  # type: ignore[misc]
    encoder = Encoder(Features(network), nn.Identity()).eval()
    masks = masked(torch.full((CLASSES * UNITS,), 0.5))
    masks["backbone.network.4.inner.weight"] = torch.zeros(6, CLASSES * UNITS)
    found = look_inside(training(encoder, masks), encoder, parts)
    assert found.units.sum() == CLASSES * UNITS  # those of the convolution
    assert found.excess.abs().max() < 1e-9
    assert found.slope != found.slope


def test_a_held_out_image_does_not_find_itself() -> None:
    """Images of noise: only an image itself could tell its class."""
    parts = made_up((10,) * 4, (0, 1, 2, 3), (40, 40, 40, 40))
    encoder: Any = SimpleNamespace(backbone=nn.Flatten())
    found = watched_features(encoder, training(detectors(), {}), parts)
    assert set(parts.labelled.ids) == set(parts.seen.ids)  # all are trained on
    assert 0 <= found["knn"][0] < 0.6  # 0.25 by chance, of 40
    assert len(found["separability"]) == 4
    nobody = parts.labelled.take(parts.held_out)
    alone = Parts(
        nobody,
        *(getattr(parts, name) for name in ("labelled", "held_out", "test")),
        parts.order,
        (10,) * 4,
        None,
        (0.5,),
        (0.3,),
    )
    nothing = watched_features(encoder, training(detectors(), {}), alone)["knn"][0]
    assert nothing != nothing


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("word", ["random", "noise"])
def test_where_there_is_no_mask_nothing_is_said_of_one(word: str) -> None:
    said: list[str] = []
    method = Method.parse(f"branches:0.3+{word}")
    found = pretrain_one(task(), method, 0, 0, Context(say=said.append), "one")
    assert found.quality is not None and said
    there = {found.mechanism is not None, found.masked_quality is not None}
    assert there | {any("churn" in words for words in said)} == {word == "random"}


def test_the_dense_network_that_saw_no_image_gets_statistics_of_its_own() -> None:
    made = pretraining("branches:0.3+both")
    made.run(Context())
    mean = "backbone.network.5.running_mean"
    assert not made.export_encoder().get_buffer(mean).any()
    found, masked = final_encoder(made), made.export_encoder("masked")
    assert bool(found.get_buffer(mean).any())
    assert not torch.allclose(found.get_buffer(mean), masked.get_buffer(mean), atol=1e-3)
