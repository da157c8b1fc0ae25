"""Levels of a set, agreement and parents, and the identity of all levels."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_hierarchy import small_data, small_set

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.levels import (
    agreement,
    label_levels,
    level_of,
    levels_identity,
    parent_level,
    parents,
    smallest,
)
from rarefy.data.images.image_set import ImageSet, Level

KIND: Level = (torch.tensor([0, 0, 0, 0, 0, 0, 1, 1]), ("animal", "thing"))
ODD: Level = (torch.tensor([0, 1, 0, 0, 0, 0, 1, 1]), ("a", "b", "never"))


def _leveled() -> ImageSet:
    return replace(small_set(), levels={"odd": ODD, "kind": KIND})


def test_levels_come_coarsest_first() -> None:
    images = _leveled()
    assert list(label_levels(images)) == ["kind", "odd", "class"]
    assert level_of(images, "class") == (images.labels, images.classes)
    with pytest.raises(UsageError, match=r"unknown level 'knd'; did you mean 'kind'\?"):
        level_of(images, "knd")


def test_agreement_and_parents() -> None:
    images = _leveled()
    assert agreement(images.labels, KIND[0]) == 1
    assert agreement(images.labels, ODD[0]) == 7 / 8
    assert parents((images.labels, images.classes), KIND) == [0, 0, 0, 1]
    assert parents(ODD, (torch.zeros(8, dtype=torch.int64), ("all",))) == [0, 0, -1]
    with pytest.raises(UsageError, match="'husky' lies in two coarser ones, 'a' and 'b'"):
        parents((images.labels, images.classes), ODD)
    for other in (KIND[0][:1], KIND[0][:4]):
        with pytest.raises(UsageError, match="must be labels of the same images"):
            agreement(images.labels, other)


def test_the_parent_is_the_finest_level_that_it_lies_in() -> None:
    images = _leveled()
    # odd is finer than kind, but cuts through husky
    assert parent_level(images, "class") == ("kind", 1.0)
    assert parent_level(images, "odd") == ("kind", 7 / 8)
    assert parent_level(images, "kind") is None
    assert smallest(*KIND[:1], 2) == 2 and smallest(ODD[0], 3) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=30))
def test_agreement_is_one_exactly_where_there_are_parents(pairs: list[tuple[int, int]]) -> None:
    fine, coarse = (torch.tensor(labels) for labels in zip(*pairs, strict=True))
    by_hand = sum(
        max(sum(pair == (one, other) for pair in pairs) for other in range(4)) for one in range(6)
    )
    assert agreement(fine, coarse) == by_hand / len(pairs)
    levels = (fine, tuple("abcdef")), (coarse, tuple("wxyz"))
    if by_hand == len(pairs):
        found = parents(*levels)
        assert all(found[one] == other for one, other in pairs)
    else:
        with pytest.raises(UsageError, match="lies in two"):
            parents(*levels)


def test_identity_knows_names_and_labels_but_no_order() -> None:
    data = small_data()
    with_levels = replace(data, train=_leveled())
    identity = levels_identity(with_levels)
    assert levels_identity(data) != identity
    turned = with_levels.train.take(list(range(7, -1, -1)))
    assert levels_identity(replace(data, train=turned)) == identity
    swapped = replace(_leveled(), levels={"kind": KIND, "odd": ODD})
    assert levels_identity(replace(data, train=swapped)) == identity
    for other in (
        {"odd": ODD, "sort": KIND},
        {"odd": ODD, "kind": (KIND[0], ("animal", "car"))},
        {"odd": ODD, "kind": (1 - KIND[0], KIND[1])},
    ):
        changed = replace(_leveled(), levels=other)
        assert levels_identity(replace(data, train=changed)) != identity
