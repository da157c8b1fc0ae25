"""Content ids: the same for the same pixels, whatever the order; splits that follow them."""

from __future__ import annotations

import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.data.images.ids import choose_by_content, content_ids, digest_of
from rarefy.data.images.image_set import ImageData, ImageSet

FEW_IMAGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=2, max_size=14)
"""(value of all pixels, label): six different images only, so that copies abound."""


def _set(samples: list[tuple[int, int]]) -> ImageSet:
    images = torch.tensor([value for value, _ in samples], dtype=torch.uint8)
    labels = torch.tensor([label for _, label in samples], dtype=torch.int64)
    return ImageSet(
        images[:, None, None, None].expand(-1, 1, 2, 2).contiguous(), labels, ("a",) * 3
    )


def test_ids_tell_pixels_and_shapes_apart() -> None:
    flat = torch.arange(12, dtype=torch.uint8)
    labels = torch.zeros(1, dtype=torch.int64)
    shapes = [(1, 1, 3, 4), (1, 1, 4, 3), (1, 3, 2, 2), (1, 3, 1, 4)]
    ids = {content_ids(flat.reshape(shape), labels)[0] for shape in shapes}
    assert len(ids) == len(shapes)
    changed = flat.clone()
    changed[7] += 1
    assert content_ids(changed.reshape(shapes[0]), labels)[0] not in ids


def test_copies_are_numbered() -> None:
    ids = _set([(1, 0), (1, 0), (2, 0), (1, 1)]).ids
    assert len(set(ids)) == 4
    assert len({digest_of(one) for one in ids}) == 2
    assert [one.partition("-")[2] for one in ids] == ["", "1", "", "2"]


def test_ids_do_not_depend_on_memory_layout() -> None:
    images = torch.randint(0, 256, (5, 3, 4, 4), dtype=torch.uint8)
    labels = torch.zeros(5, dtype=torch.int64)
    turned = images.to(memory_format=torch.channels_last)
    assert content_ids(images, labels) == content_ids(turned, labels)


@given(FEW_IMAGES, st.randoms(use_true_random=False))
def test_another_order_gives_the_same_samples_their_ids(samples, random) -> None:  # type: ignore[no-untyped-def]
    places = list(range(len(samples)))
    random.shuffle(places)
    there = _set([samples[place] for place in places])
    here = _set(samples)
    named = sorted(zip(here.ids, here.labels.tolist(), strict=True))
    assert sorted(zip(there.ids, there.labels.tolist(), strict=True)) == named
    assert len(set(here.ids)) == len(samples)


@given(FEW_IMAGES, st.randoms(use_true_random=False))
def test_the_fingerprint_does_not_depend_on_the_order(samples, random) -> None:  # type: ignore[no-untyped-def]
    test = _set([(0, 0)])
    shuffled = list(samples)
    random.shuffle(shuffled)
    one = ImageData("one", _set(samples), test, "here")
    other = ImageData("other", _set(shuffled), test, "there")
    assert one.fingerprint == other.fingerprint
    swapped = ImageData("swapped", test, _set(samples), "here")
    assert swapped.fingerprint != one.fingerprint
    relabelled = [(value, (label + 1) % 3) for value, label in samples]
    if sorted(relabelled) != sorted(samples):
        # names of classes count, not their numbers, and here all have one name
        names = ("a", "b", "c")
        kept = ImageSet(one.train.images, one.train.labels, names)
        moved = ImageSet(kept.images, (kept.labels + 1) % 3, names)
        small = ImageSet(test.images, test.labels, names)
        before = ImageData("one", kept, small, "").fingerprint
        assert ImageData("one", moved, small, "").fingerprint != before


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), min_size=1, max_size=60),
    st.floats(0.01, 0.99),
    st.randoms(use_true_random=False),
)
def test_a_split_follows_content_alone(samples, share, random) -> None:  # type: ignore[no-untyped-def]
    keys = [f"{value}" for value, _ in samples]
    labels = [label for _, label in samples]
    chosen = choose_by_content(keys, labels, share)
    places = list(range(len(samples)))
    random.shuffle(places)
    again = choose_by_content(
        [keys[place] for place in places], [labels[place] for place in places], share
    )
    assert again == [chosen[place] for place in places]
    for label in set(labels):
        here = [place for place, one in enumerate(labels) if one == label]
        sides = {(keys[place], chosen[place]) for place in here}
        different = {keys[place] for place in here}
        assert len(sides) == len(different)  # copies stay together
        inside = {key for key, side in sides if side}
        assert (0 < len(inside) < len(different)) == (len(different) > 1)


def test_the_share_is_met_exactly_without_copies_and_purposes_differ() -> None:
    keys = [str(number) for number in range(1000)]
    labels = [number % 4 for number in range(1000)]
    first = choose_by_content(keys, labels, 0.2)
    other = choose_by_content(keys, labels, 0.2, purpose="validation")
    for label in range(4):
        assert sum(first[label::4]) == sum(other[label::4]) == 50
    both = sum(one and two for one, two in zip(first, other, strict=True))
    assert 10 <= both <= 80  # 40 are expected of two independent draws, std under 6


@pytest.mark.parametrize("shape", [(60_000, 1, 28, 28), (50_000, 3, 32, 32)])
def test_hashing_a_whole_set_takes_seconds_at_most(shape: tuple[int, ...]) -> None:
    images = torch.zeros(shape, dtype=torch.uint8)
    images[:, 0, 0, 0] = torch.arange(shape[0]) % 256
    begun = time.monotonic()
    content_ids(images, torch.zeros(shape[0], dtype=torch.int64))
    assert time.monotonic() - begun < 5  # half a second on an idle core
