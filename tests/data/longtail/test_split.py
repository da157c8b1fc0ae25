"""Splits by content: nested, portable, and clear about what is missing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.data.images import ImageSet, load_images
from rarefy.data.longtail import LongTailSplit, class_order, control, make_split
from rarefy.data.longtail.counts import exponential

COUNTS = (12, 6, 3, 1)
ORDER = (2, 0, 3, 1)
NAMES = ("ant", "bee", "cat", "dog")


def _images(each: int = 20, classes: int = 4, seed: int = 0) -> ImageSet:
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (each * classes, 1, 3, 3), dtype=np.uint8)
    labels = torch.arange(classes).repeat_interleave(each)
    files = tuple(f"{NAMES[label]}/{place}.png" for place, label in enumerate(labels.tolist()))
    return ImageSet(torch.from_numpy(pixels), labels, NAMES[:classes], files)


@pytest.fixture(scope="module")
def images() -> ImageSet:
    return _images()


@pytest.fixture(scope="module")
def split(images: ImageSet) -> LongTailSplit:
    return make_split(images, COUNTS, ORDER, 5)


def _blocks(split: LongTailSplit) -> dict[int, set[str]]:
    blocks: dict[int, set[str]] = {}
    for identity, label in zip(split.ids, split.labels, strict=True):
        blocks.setdefault(label, set()).add(identity)
    return blocks


def test_a_split_has_what_was_asked_for(images: ImageSet, split: LongTailSplit) -> None:
    part = split.take(images)
    assert len(split) == len(part) == 22
    assert torch.equal(part.labels, torch.tensor(ORDER).repeat_interleave(torch.tensor(COUNTS)))
    assert part.labels.tolist() == list(split.labels)
    assert part.ids == split.ids and part.classes == images.classes
    assert split.order == (2, 0, 3, 1)
    assert split.about == {"seed": 5, "classes": ["cat", "ant", "dog", "bee"]}
    assert repr(split) == "LongTailSplit(22 images, 4 classes, 12 to 1 a class)"
    # names and pixels stay together
    assert part.files is not None and images.files is not None
    places = [images.files.index(file) for file in part.files]
    assert torch.equal(images.images[places], part.images)


def test_the_order_of_the_set_does_not_matter(images: ImageSet, split: LongTailSplit) -> None:
    mixed = np.random.default_rng(1).permutation(len(images))
    other = ImageSet(images.images[mixed], images.labels[mixed], images.classes)
    again = make_split(other, COUNTS, ORDER, 5)
    assert again == split and hash(again) == hash(split)
    assert torch.equal(again.take(other).images, split.take(images).images)


def test_another_seed_is_another_choice(images: ImageSet, split: LongTailSplit) -> None:
    other = make_split(images, COUNTS, ORDER, 6)
    assert set(other.ids) != set(split.ids) and other.fingerprint != split.fingerprint


def test_a_fingerprint_stands_for_images_and_ranks(split: LongTailSplit) -> None:
    turned = (*reversed(split.ids[:12]), *split.ids[12:])
    assert LongTailSplit(turned, split.counts, split.order).fingerprint == split.fingerprint
    assert LongTailSplit(split.ids, split.counts, (0, 2, 3, 1)).fingerprint != split.fingerprint


def test_the_choice_within_a_class_does_not_depend_on_its_rank(images: ImageSet) -> None:
    one = make_split(images, (8, 4, 2, 1), (0, 1, 2, 3), 3)
    other = make_split(images, (8, 4, 2, 1), (3, 2, 1, 0), 3)
    first, second = _blocks(one), _blocks(other)
    assert first[1] > second[1] and first[3] < second[3]


@settings(deadline=None, max_examples=30)
@given(st.data(), st.integers(0, 50))
def test_a_smaller_split_is_part_of_a_larger(data: st.DataObject, seed: int) -> None:
    images = _images()
    order = class_order(4, data.draw(st.integers(-1, 20)))
    large = sorted(data.draw(st.lists(st.integers(1, 20), min_size=4, max_size=4)), reverse=True)
    small = [data.draw(st.integers(1, count)) for count in large]
    small.sort(reverse=True)  # still below the large ones, rank by rank
    part, whole = (make_split(images, counts, order, seed) for counts in (small, large))
    assert set(part.ids) <= set(whole.ids)
    assert all(_blocks(part)[label] <= _blocks(whole)[label] for label in order)


def test_every_image_is_chosen_equally_often(images: ImageSet) -> None:
    draws = 400
    times: dict[str, int] = {}
    for seed in range(draws):
        for identity in make_split(images, (5,), (1,), seed).ids:
            times[identity] = times.get(identity, 0) + 1
    # 5 of 20, five standard deviations
    assert len(times) == 20
    assert all(abs(n - draws / 4) < 5 * np.sqrt(draws * 3 / 16) for n in times.values())


def test_copies_are_different_images(images: ImageSet) -> None:
    pixels = torch.cat([images.images[:4], images.images[:4]])
    labels = torch.tensor([0, 0, 1, 1, 0, 1, 0, 1])
    copies = ImageSet(pixels, labels, ("a", "b"))
    split = make_split(copies, (4, 4), (1, 0), 0)
    assert len(set(split.ids)) == 8
    mixed = [5, 2, 7, 0, 3, 6, 1, 4]
    other = ImageSet(pixels[mixed], labels[mixed], ("a", "b"))
    assert make_split(other, (3, 2), (1, 0), 0) == make_split(copies, (3, 2), (1, 0), 0)


def test_the_control_is_balanced_and_as_large(images: ImageSet, split: LongTailSplit) -> None:
    even = control(split, images)
    assert even.counts == (5, 5, 5, 5) and even.order == split.order
    assert even.about["control_of"] == split.fingerprint and even.about["seed"] == 5
    # the same seed: what can be shared is shared
    ours, theirs = _blocks(even), _blocks(split)
    assert all(ours[label] <= theirs[label] or theirs[label] <= ours[label] for label in ORDER)
    assert len(even.take(images)) == 20


def test_some_classes_can_be_left_out(images: ImageSet) -> None:
    split = make_split(images, (4, 2), (3, 1), 0)
    assert (split.counts, split.order) == ((4, 2), (3, 1))
    assert control(split, images).counts == (3, 3)
    assert sorted(set(split.take(images).labels.tolist())) == [1, 3]


def test_real_digits() -> None:
    images = load_images("digits").train
    fewest = int(torch.bincount(images.labels).min())
    split = make_split(images, exponential(fewest, 20, 10), class_order(10, 3), 3)
    part = split.take(images)
    found = torch.bincount(part.labels).tolist()
    assert [found[label] for label in split.order] == list(split.counts)
    assert len(control(split, images)) in range(len(split) - 9, len(split) + 1)


def test_what_is_missing_is_counted_with_three_examples(
    images: ImageSet, split: LongTailSplit
) -> None:
    gone = set(split.ids[:5])
    rest = images.take([identity not in gone for identity in images.ids])
    with pytest.raises(UsageError) as caught:
        split.take(rest)
    message = str(caught.value)
    assert message.startswith("images of the split that are not in this set of 75: 5 of 22: ")
    assert all(identity in message for identity in split.ids[:3])
    assert split.ids[3] not in message and "and 2 more" in message and "\n" not in message


def test_other_labels_are_refused(images: ImageSet, split: LongTailSplit) -> None:
    labels = images.labels.clone()
    labels[images.ids.index(split.ids[0])] = 0
    with pytest.raises(
        UsageError,
        match="with another label in this set: 1 of 22: .* is of class 0, of 2 in the split",
    ):
        split.take(ImageSet(images.images, labels, images.classes))


@pytest.mark.parametrize(
    ("counts", "order", "seed", "message"),
    [
        ((21, 20, 1), (1, 0, 2), 0, "too few images: class 'bee' has 20 images, wanted are 21"),
        ((22, 21), (1, 0), 0, "too few images: class 'bee' .* 22; class 'ant' .* 21$"),
        ((2, 1), (1, 1), 0, r"order=\(1, 1\): must be 2 different classes from 0 to 3"),
        ((2, 1), (1, 4), 0, r"order=\(1, 4\): must be 2 different classes from 0 to 3"),
        ((2, 1), (1,), 0, r"order=\(1,\): must be 2 different classes"),
        ((1, 2), (0, 1), 0, r"counts\[1\]=2: must be at most 1"),
        ((2, 1), (0, 1), -1, "seed=-1: must be a whole number, at least 0"),
    ],
)
def test_what_cannot_be_made_is_said(
    images: ImageSet, counts: tuple[int, ...], order: tuple[int, ...], seed: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make_split(images, counts, order, seed)


def test_a_class_with_one_image_is_spelled_right(images: ImageSet) -> None:
    with pytest.raises(UsageError, match="class 'ant' has 1 image, wanted are 2"):
        make_split(images.take([0, 30]), (2,), (0,), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a",), (2,), (0,)), "ids='1 ids': must be 2, the sum of the counts"),
        ((("a", "a"), (2,), (0,)), "ids='2 ids': must differ, 1 stand twice"),
        ((("a", "b"), (1, 1), (0,)), r"order=\(0,\): must be 2 different classes, one a count"),
        ((("a", "b"), (1, 1), (0, -1)), r"order=\(0, -1\): classes are whole numbers from 0 on"),
        (((), (), ()), r"counts=\(\): at least one class"),
    ],
)
def test_a_split_that_does_not_fit_itself_is_refused(arguments, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=message):
        LongTailSplit(*arguments)
