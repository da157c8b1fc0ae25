"""Which images a pre-training sees: heads, shapes, files, controls, and who is kept from whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_longtail import CPU

from rarefy.core.errors import UsageError
from rarefy.data.longtail import save_split
from rarefy.data.longtail.order import class_order
from rarefy.tools.image_data import with_options
from rarefy.tools.longtail.sets import AS_IS, Parts, Tail, parts_of


def parts(tail: Tail, seed: int = 0, data: str = "digits") -> Parts:
    return parts_of(data, tail, seed, CPU)


def found(one: Parts) -> list[int]:
    """Images of each class, counted, by rank."""
    by_class = torch.bincount(one.seen.labels, minlength=one.classes)
    return by_class[list(one.order)].tolist()


def validation_ids(one: Parts) -> set[str]:
    return {one.labelled.ids[place] for place in one.held_out.nonzero().flatten().tolist()}


def test_a_full_head_has_all_images_of_the_smallest_class() -> None:
    one = parts(Tail("exponential", 20.0))
    smallest = min(torch.bincount(one.labelled.labels).tolist())
    assert one.counts[0] == smallest and one.counts[-1] == int(smallest / 20)
    assert found(one) == list(one.counts)
    assert one.order == class_order(10, 0)
    assert len(one.labelled) + len(one.test) == 1797
    # a tenth of every class, the same whatever the order
    shares = [one.held_out[one.labelled.labels == label].double().mean() for label in range(10)]
    assert all(abs(float(share) - 0.1) < 0.01 for share in shares)
    assert torch.equal(one.held_out, parts(Tail("step", 3.0), 5).held_out)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("seed", [0, 3])
def test_with_sdclr_validation_images_are_in_no_training(seed: int, balanced: bool) -> None:
    one = parts(Tail("exponential", 20.0, "sdclr", balanced), seed)
    assert not validation_ids(one) & set(one.seen.ids)
    whole = parts(Tail("exponential", 20.0, "full", balanced), seed)
    assert validation_ids(whole) & set(whole.seen.ids)  # there they are
    assert len(one.seen) < len(whole.seen)


def test_no_test_image_is_ever_trained_on_or_held_out() -> None:
    one = parts(Tail(AS_IS))
    assert not set(one.test.ids) & set(one.labelled.ids)
    assert set(parts(Tail()).seen.ids) <= set(one.labelled.ids)


def test_orders_come_in_mirrored_pairs_and_the_control_has_the_same() -> None:
    tail = Tail("exponential", 10.0, "40")
    first, mirrored = parts(tail, 0), parts(tail, 1)
    assert first.order == mirrored.order[::-1] and first.counts == mirrored.counts
    control = parts(Tail("exponential", 10.0, "40", balanced=True), 0)
    assert control.order == first.order
    assert set(control.counts) == {sum(first.counts) // 10} == set(found(control))
    assert parts(tail, -1).order == tuple(range(10))


def test_the_images_are_those_of_the_seed_and_a_smaller_head_is_a_part() -> None:
    large, small = parts(Tail("step", 4.0, "40")), parts(Tail("step", 4.0, "20"))
    assert set(small.seen.ids) < set(large.seen.ids)
    assert not set(parts(Tail("step", 4.0, "20"), 2).seen.ids) <= set(large.seen.ids)


def test_as_it_is_everything_is_seen_and_classes_are_ranked_by_size() -> None:
    one = parts(Tail(AS_IS))
    assert one.split is None and len(one.seen) == len(one.labelled)
    assert list(one.counts) == sorted(one.counts, reverse=True) == found(one)


def test_a_split_file_says_which_and_its_control_is_as_large(tmp_path: Path) -> None:
    made = parts(Tail("pareto", 6.0, "30"), 4)
    assert made.split is not None
    path = tmp_path / "tail.json"
    save_split(made.split, path)
    for seed in (0, 7):  # whose order is the file's
        again = parts(Tail(str(path)), seed)
        assert (again.seen.ids, again.order, again.counts) == (
            made.seen.ids,
            made.order,
            made.counts,
        )
    control = parts(Tail(str(path), balanced=True))
    assert len(control.seen) == len(made.seen) // 10 * 10 and control.order == made.order


def test_a_folder_without_labels_is_all_seen_and_has_none(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    for number in range(6):
        pixels = draws.integers(0, 256, (9, 8 + number % 2, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    one = parts(Tail(AS_IS), data=with_options(str(tmp_path), 8, None, False, True))
    assert not one.has_labels and len(one.seen) == 6 and one.counts == (6,)
    assert parts(Tail(AS_IS)).has_labels


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rho": 0.5}, "rho=0.5: must be a number, at least 1"),
        ({"rho": float("nan")}, "rho=nan: must be a number"),
        ({"rho": float("inf")}, "rho=inf: must be a number"),
        ({"head": "half"}, "head='half': must be full, sdclr or a number of images"),
        ({"head": "0"}, "head='0': must be full, sdclr or a number"),
        ({"head": "-3"}, "head='-3': must be full"),
        ({"head": "\u00b2"}, "must be full, sdclr or a number"),
        ({"shape": "linear"}, "unknown split 'linear' .known: as-is, exponential, pareto, step."),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Tail(**wrong)  # type: ignore[arg-type]


def test_too_few_images_of_a_class_name_it_has_and_wanted() -> None:
    with pytest.raises(UsageError, match=r"too few images: class '\d' has 1\d\d images, wanted"):
        parts(Tail("exponential", 2.0, "200"))
    with pytest.raises(UsageError, match="cannot read .*none.json"):
        parts(Tail("none.json"))
