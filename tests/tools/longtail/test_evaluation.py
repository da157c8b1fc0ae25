"""What features are worth: right by class and rank, chosen without a look at test labels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from small_longtail import made_up, seen_class

from rarefy.core.errors import UsageError
from rarefy.measure.representation.linear_probe import strength_path
from rarefy.tools.longtail.evaluation import PROTOCOLS, Evaluation, Quality, evaluate_features
from rarefy.tools.longtail.sets import Parts

RIGHT = (9, 4, 7, 2)
"""Of ten test images of each class those that look like it."""
ORDER, COUNTS = (2, 0, 3, 1), (30, 20, 12, 8)


def judged(parts: Parts, how: Evaluation | None = None) -> Quality:
    return evaluate_features(seen_class(len(RIGHT)), parts, how or Evaluation(shots=5, draws=2))


@pytest.fixture(scope="module")
def parts() -> Parts:
    return made_up(RIGHT, ORDER, COUNTS)


@pytest.fixture(scope="module")
def quality(parts: Parts) -> Quality:
    return judged(parts)


def test_every_protocol_finds_the_known_accuracies_head_first(quality: Quality) -> None:
    assert list(quality.accuracy) == list(PROTOCOLS)
    for name, by_rank in quality.accuracy.items():
        assert by_rank.tolist() == [RIGHT[label] / 10 for label in ORDER], name
        assert by_rank.dtype == torch.float64
    assert quality.notes == ()


def test_confusions_count_every_test_image_by_label_and_answer(quality: Quality) -> None:
    """What does not look like its class looks like the next one; of few the mean over draws."""
    expected = np.diag(RIGHT) + np.roll(np.diag([10 - right for right in RIGHT]), 1, axis=1)
    assert list(quality.confusion) == list(PROTOCOLS)
    for name, counts in quality.confusion.items():
        assert counts == pytest.approx(expected), name


def test_another_order_permutes_the_accuracies_and_changes_nothing_else(parts: Parts) -> None:
    how = Evaluation(("linear", "knn"))
    turned = judged(dataclasses.replace(parts, order=ORDER[::-1]), how)
    first = judged(parts, how)
    for name in how.protocols:
        assert torch.equal(turned.accuracy[name], first.accuracy[name].flip(0))
    assert turned.strength == first.strength and turned.validation == first.validation


def test_choices_never_look_at_test_images(parts: Parts) -> None:
    """With noise in the features it matters where strengths are compared: test images, which seem
    to be of other classes here, would choose another one than held-out ones do."""
    features = seen_class(len(RIGHT), noise=2.0)
    how = Evaluation(("linear", "long-tail", "few"), shots=5, draws=2)
    quality = evaluate_features(features, parts, how)
    labels, out = parts.labelled.labels, parts.held_out
    known, asked = features(parts.labelled.images), features(parts.test.images)
    held_out, _ = strength_path((known[~out], labels[~out]), (known[out], labels[out]), len(RIGHT))
    on_test, _ = strength_path((known, labels), (asked, parts.test.labels), len(RIGHT))
    assert quality.strength["linear"] == held_out.best != on_test.best
    best = max(row.balanced_accuracy for row in held_out.table)
    assert quality.validation["linear"] == pytest.approx(best)
    assert set(quality.strength) == {"linear", "long-tail", "few"}  # (knn chooses nothing)

    poisoned = (parts.test.labels + 1) % len(RIGHT)
    turned = dataclasses.replace(parts.test, images=parts.test.images.flip(0), labels=poisoned)
    found = evaluate_features(features, dataclasses.replace(parts, test=turned), how)
    assert found.strength == quality.strength and found.validation == quality.validation
    assert not torch.equal(found.accuracy["linear"], quality.accuracy["linear"])


def test_strengths_are_chosen_on_held_out_images_alone(parts: Parts) -> None:
    """Held-out labels that disagree with all others make every strength look bad."""
    labels = parts.labelled.labels.clone()
    labels[parts.held_out] = (labels[parts.held_out] + 1) % len(RIGHT)
    pool = dataclasses.replace(parts.labelled, labels=labels)
    found = judged(dataclasses.replace(parts, labelled=pool), Evaluation(("linear",)))
    assert found.validation["linear"] == 0


def test_only_the_strengths_that_were_named_are_tried(parts: Parts) -> None:
    assert judged(parts, Evaluation(("linear",), strengths=(0.5,))).strength == {"linear": 0.5}


def test_long_tail_labels_are_those_of_the_pre_training(parts: Parts) -> None:
    """Labels of other training images may say anything."""
    seen = set(parts.seen.ids)
    other = torch.tensor([one not in seen for one in parts.labelled.ids])
    labels = torch.where(other, 0, parts.labelled.labels)
    pool = dataclasses.replace(parts.labelled, labels=labels)
    pool.__dict__["ids"] = parts.labelled.ids
    changed = dataclasses.replace(parts, labelled=pool)
    found = judged(changed, Evaluation(("long-tail", "linear")))
    assert found.accuracy["long-tail"].tolist() == [RIGHT[label] / 10 for label in ORDER]
    assert found.accuracy["linear"].tolist() != found.accuracy["long-tail"].tolist()


def test_a_class_without_test_images_is_nan_and_one_without_a_rank_is_left_out() -> None:
    parts = made_up(RIGHT, ORDER, COUNTS)
    kept = parts.test.take(parts.test.labels != 3)
    found = judged(dataclasses.replace(parts, test=kept), Evaluation(("knn",))).accuracy["knn"]
    assert found.isnan().tolist() == [False, False, True, False]
    fewer = dataclasses.replace(parts, order=(2, 0), counts=(30, 20))
    assert len(judged(fewer, Evaluation(("knn",))).accuracy["knn"]) == 2


def test_notes_say_what_was_less_than_asked(parts: Parts) -> None:
    how = Evaluation(("knn", "few"), shots=35, draws=1, neighbours=500)
    assert judged(parts, how).notes == (
        "knn: all 160 references vote, 500 were asked for",
        "few: 4 of 4 classes have fewer than 35 labels",
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"protocols": ("linear", "svm")}, "unknown protocol 'svm' .known: few, knn, linear"),
        ({"protocols": ()}, r"protocols=\(\): must have at least one"),
        ({"protocols": ("knn", "knn")}, "has the same one twice"),
        ({"shots": 0}, "shots=0: must be at least 1 label per class"),
        ({"draws": 0}, "draws=0: must be at least 1"),
        ({"neighbours": -1}, "neighbours=-1: must be at least 1, or 0"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Evaluation(**wrong)  # type: ignore[arg-type]
