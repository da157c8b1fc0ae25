"""What is done when nothing is said: by the size and the kind of a set."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.data.images import ImageData, ImageSet
from rarefy.tools.longtail.recipes import usual_pretraining
from rarefy.tools.recipes import LEAST_UPDATES, usual_network, usual_recipe, usual_seeds
from rarefy.train.image_batches import Augmentation
from rarefy.train.recipe import Recipe


def data(count: int, channels: int = 1, size: int = 8) -> ImageData:
    def split(count: int) -> ImageSet:
        pixels = torch.zeros(1, channels, size, size, dtype=torch.uint8)
        return ImageSet(pixels.expand(count, -1, -1, -1), torch.zeros(count).long(), ("a",))

    return ImageData("made up", split(count), split(1), "nowhere")


@pytest.mark.parametrize(
    ("count", "channels", "size", "expected"),
    [
        (1437, 1, 8, {"batch": 64, "epochs": 20, "learning_rate": 0.05, "shift": 0, "flip": False}),
        (5_000, 3, 16, {"batch": 64, "epochs": 20, "shift": 2, "flip": True}),
        (5_001, 3, 16, {"batch": 128, "epochs": 20, "learning_rate": 0.05}),
        (20_000, 1, 8, {"batch": 128, "epochs": 20}),
        (20_001, 1, 8, {"batch": 512, "epochs": 11, "learning_rate": 0.1}),
        (60_000, 1, 28, {"batch": 512, "epochs": 10, "learning_rate": 0.1}),  # MNIST
        (20_001, 3, 32, {"batch": 512, "epochs": 20, "shift": 4, "flip": True}),  # as CIFAR
    ],
)
def test_a_recipe_by_size_and_kind(
    count: int, channels: int, size: int, expected: dict[str, Any]
) -> None:
    found = usual_recipe(data(count, channels, size), "cnn")
    assert {name: found[name] for name in expected} == expected
    assert (found["optimizer"], found["weight_decay"]) == ("sgd", 5e-4)


@pytest.mark.parametrize(
    ("count", "batch", "epochs"),
    [
        (1437, 64, 20),  # 22 batches an epoch
        (512, 64, 50),  # 8 batches are enough
        (511, 32, 27),
        (100, 8, 34),
        (64, 8, 50),
        (20, 8, 200),  # not below 8 images a batch
        (5, 8, 400),  # (a batch has all images then)
        (1, 8, 400),
    ],
)
def test_a_small_set_gets_enough_updates(count: int, batch: int, epochs: int) -> None:
    found = usual_recipe(data(count), "cnn")
    assert (found["batch"], found["epochs"]) == (batch, epochs)
    assert found["epochs"] * max(count // batch, 1) >= 400


def test_it_is_the_recipe_of_the_images_that_are_used() -> None:
    for samples, count in ((300, 300), (0, 60_000), (70_000, 60_000)):
        assert usual_recipe(data(60_000), "cnn", samples) == usual_recipe(data(count), "cnn")


def test_a_transformer_is_trained_with_adamw() -> None:
    plain, found = (usual_recipe(data(100, 3), name) for name in ("cnn", "vit"))
    changed = {name: value for name, value in found.items() if value != plain[name]}
    assert changed == {"optimizer": "adamw", "learning_rate": 0.002, "weight_decay": 0.05}


def test_a_resnet9_on_many_photographs_has_a_recipe_of_its_own() -> None:
    many, few = (usual_recipe(data(count, 3, 32), "resnet9") for count in (20_001, 20_000))
    assert (many["epochs"], many["learning_rate"], many["label_smoothing"]) == (36, 0.4, 0.1)
    assert few == usual_recipe(data(20_000, 3, 32), "cnn")
    here = usual_recipe(data(20_001, 3, 32), "resnet9", on_cpu=True)
    assert here["epochs"] < 36 and here | {"epochs": 36} == many


@pytest.mark.parametrize("network", ["cnn", "vit", "resnet9"])
def test_every_recipe_can_be_used(network: str) -> None:
    found = usual_recipe(data(100, 3), network)
    Augmentation(found.pop("shift"), found.pop("flip"))
    assert found.pop("batch") >= 2
    Recipe(**found)


@pytest.mark.parametrize(
    ("images", "size", "device", "expected"),
    [
        (230, 32, "cpu", ("lenet", 64, 80)),  # a folder of photographs
        (230, 32, "cuda", ("resnet18", 64, 80)),
        (468, 8, "cpu", ("cnn", 128, 80)),  # digits with --rho 20
        (12_406, 32, "cpu", ("lenet", 512, 20)),  # CIFAR10-LT: minutes, not days
        (12_406, 32, "cuda", ("resnet18", 512, 500)),
        (50_000, 32, "cpu", ("lenet", 512, 5)),
        (2_000_000, 32, "cpu", ("lenet", 512, 1)),
        (7, 32, "cpu", ("lenet", 2, 80)),
    ],
)
def test_pretraining_by_the_images_and_the_device(
    images: int, size: int, device: str, expected: tuple[str, int, int]
) -> None:
    found = usual_pretraining(images, size, None, None, device)
    assert (found["network"], found["batch"], found["epochs"]) == expected
    assert found["learning_rate"] == pytest.approx(0.5 * found["batch"] / 512)
    assert usual_pretraining(images, size, "vit", None, device)["network"] == "vit"


CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_the_network_follows_the_device_and_the_size_of_the_images() -> None:
    assert usual_network(data(100, 3, 32), CPU) == "cnn-small"
    assert usual_network(data(100, 3, 32), GPU) == "cnn"
    assert usual_network(data(20_001, 3, 32), GPU) == "resnet9"
    assert usual_network(data(20_001, 3, 32), CPU) == "cnn-small"
    assert usual_network(data(20_001, 1, 32), GPU) == "cnn"
    assert usual_network(data(100, 1, 8), CPU) == "cnn"  # small already


@given(st.integers(1, 400), st.sampled_from([8, 32, 64]))
def test_on_a_cpu_large_sets_are_shown_fewer_times(hundreds: int, size: int) -> None:
    images = data(100 * hundreds, 3, size)
    there = usual_recipe(images, "cnn-small")
    here = usual_recipe(images, "cnn-small", on_cpu=True)
    assert here["epochs"] <= there["epochs"] and here | {"epochs": 0} == there | {"epochs": 0}
    updates = here["epochs"] * (100 * hundreds // here["batch"])
    assert updates >= min(LEAST_UPDATES, there["epochs"] * (100 * hundreds // there["batch"]))


def test_five_seeds_where_that_does_not_take_hours() -> None:
    assert usual_seeds(data(230, 3, 32), "cnn-small", 29, 0, True) == 5
    assert usual_seeds(data(50_000, 3, 32), "resnet18", 4, 0, True) == 3
    assert usual_seeds(data(50_000, 3, 32), "resnet18", 4, 0, False) == 5
    assert usual_seeds(data(50_000, 3, 32), "resnet18", 4, 500, True) == 5
