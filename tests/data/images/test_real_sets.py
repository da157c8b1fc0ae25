"""The real sets, wherever the project's own setting says they are."""

from __future__ import annotations

import time

import pytest
import torch

from rarefy.data.images import ImageData, load_images
from rarefy.data.images.catalog import SETS, describe_set
from rarefy.data.images.checking import examine
from rarefy.data.images.places import SETTING, data_folder


def _real(name: str) -> ImageData:
    if not describe_set(name)["present"]:
        pytest.skip(f"{name} is not in {data_folder()} (set {SETTING} to a folder that has it)")
    begun = time.monotonic()
    data = load_images(name)
    assert time.monotonic() - begun < 60  # two seconds on an idle core
    return data


@pytest.mark.parametrize("name", SETS)
def test_real_sets_are_what_the_catalogue_says(name: str) -> None:
    data, known = _real(name), SETS[name]
    assert (len(data.train), len(data.test)) == (known.train, known.test)
    assert (len(data.classes), data.shape) == (known.classes, known.shape)
    found = examine(data)
    assert found.train.fewest > 0 and found.test.fewest > 0
    assert len(set(data.train.ids)) == known.train


def test_real_mnist_has_its_published_mean_and_std() -> None:
    data = _real("mnist")
    assert data.mean == pytest.approx((0.1307,), abs=5e-5)
    assert data.std == pytest.approx((0.3081,), abs=5e-5)
    assert data.train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("cifar10", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
        ("cifar100", (0.5071, 0.4866, 0.4409), (0.2673, 0.2564, 0.2762)),
    ],
)
def test_real_cifar_has_its_published_mean_and_std(
    name: str, mean: tuple[float, ...], std: tuple[float, ...]
) -> None:
    data = _real(name)
    # half of 1/255: copies with values rounded to multiples of three pass too
    assert data.mean == pytest.approx(mean, abs=0.002)
    assert data.std == pytest.approx(std, abs=0.002)


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_real_levels_refine_the_classes(name: str) -> None:
    data = _real(name)
    for split in (data.train, data.test):
        nouns, names = split.levels["noun"]
        for label in range(len(data.classes)):
            here = {names[noun] for noun in nouns[split.labels == label].unique().tolist()}
            assert here and all(one.startswith(f"{data.classes[label]}/") for one in here)
    if name == "cifar100":
        coarse, names = data.train.levels["coarse"]
        assert len(names) == 20
        pairs = torch.stack([data.train.labels, coarse]).unique(dim=1)
        assert pairs.shape[1] == 100  # each class lies in one superclass
        assert torch.bincount(pairs[1]).tolist() == [5] * 20
