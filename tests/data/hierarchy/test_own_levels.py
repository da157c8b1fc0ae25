"""What a set knows itself: groups of known sets, folders inside class folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_hierarchy import data_of_files, names_at, small_data

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.groupings import KNOWN
from rarefy.data.hierarchy.levels import label_levels, parents
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images import load_images

# as in the official file
COARSE = """aquatic_mammals fish flowers food_containers fruit_and_vegetables
household_electrical_devices household_furniture insects large_carnivores
large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores
medium_mammals non-insect_invertebrates people reptiles small_mammals trees vehicles_1 vehicles_2
""".split()
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()


def test_digits_have_parity(tmp_path: Path) -> None:
    digits = with_hierarchy(load_images("digits"))
    labels, names = digits.test.levels["parity"]
    assert names == ("even", "odd") and torch.equal(labels, digits.test.labels % 2)
    path = tmp_path / "wrong.csv"
    path.write_text("class,parity,size\n" + "".join(f"{n},even,{n // 5}\n" for n in range(10)))
    with pytest.raises(UsageError, match="the set has a level 'parity' already"):
        with_hierarchy(digits, path)
    assert with_hierarchy(small_data("012")).train.levels == {}


def test_groups_of_cifar() -> None:
    assert list(names_at(with_hierarchy(small_data(CIFAR10, 1)), "living")).count("animals") == 6
    data = small_data([f"class {n}" for n in range(20)], each=1)
    train, test = (
        replace(split, levels={"coarse": (split.labels, tuple(COARSE))})
        for split in (data.train, data.test)
    )
    levels = label_levels(with_hierarchy(replace(data, train=train, test=test)).train)
    assert [len(names) for _, names in levels.values()] == [2, 6, 20, 20]
    group_of = parents(levels["coarse"], levels["group"])
    groups = [levels["group"][1][group] for group in group_of]
    assert [groups[COARSE.index(one)] for one in ("people", "trees", "fish")] == [
        *("mammals", "plants", "other animals")
    ]
    living = parents(levels["group"], levels["living"])
    assert sum(levels["living"][1][one] == "living" for one in living) == 3


def test_every_label_stands_in_one_group() -> None:
    for _, levels in KNOWN:
        for groups in levels.values():
            labels = " ".join(groups.values()).split()
            assert len(labels) == len(set(labels)) in (10, 20)


def test_folders_inside_class_folders() -> None:
    data = with_hierarchy(
        data_of_files(
            [
                *("train/cat/persian/1.png", "train/cat/siamese/old/1.png"),
                *("train/cat/siamese/new/2.png", "train/car/1.png", "train/car/2.png"),
            ],
            ["test/cat/persian/3.png", "test/car/3.png", "test/cat/siamese/old/3.png"],
        )
    )
    assert names_at(data, "subfolder") == ["cat/persian", *["cat/siamese"] * 2, "car", "car"]
    assert names_at(data, "subfolder-2") == [
        *("cat/persian", "cat/siamese/old", "cat/siamese/new", "car", "car")
    ]
    assert data.notes == ()


def test_folders_that_say_nothing() -> None:
    flat = data_of_files(["a/1.png", "b/1.png"], ["a/2.png", "b/2.png"])
    assert with_hierarchy(flat).train.levels == {}
    alone = data_of_files(["a/images/1.png", "b/images/1.png"], ["a/images/2.png", "b/images/2"])
    assert with_hierarchy(alone).train.levels == {}
    mixed = with_hierarchy(data_of_files(["a/x/1.png", "a/1.png", "b/1.png"], ["a/2.png", "b/2"]))
    assert mixed.train.levels == {}
    assert mixed.notes == ("only some images of 'a' lie in folders inside it: no subclasses",)
