"""Small long-tailed pre-trainings, and parts of made-up images of which a probe's answers are
known: for tests."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.data.images import ImageSet
from rarefy.tools.longtail.evaluation import Evaluation
from rarefy.tools.longtail.pretraining import PretrainTask
from rarefy.tools.longtail.sets import Parts, Tail
from rarefy.train.recipe import Recipe

CPU = torch.device("cpu")
KNN = Evaluation(("knn",))
SIDE = 4


def stopping(scratch: Path, after: int) -> Context:
    """A context in which time is over after so many updates."""
    stop, done = threading.Event(), []

    def advance(amount: float) -> None:
        done.append(amount)
        if len(done) >= after:
            stop.set()

    return Context(scratch=scratch, stop=stop, advance=advance)


def task(**changes: Any) -> PretrainTask:
    """102 digits, lenet, two epochs of three updates."""
    usual = PretrainTask(
        data="digits",
        network="lenet",
        recipe=Recipe(epochs=2, learning_rate=0.05, weight_decay=1e-4),
        tail=Tail("exponential", 8.0, "24"),
        batch=32,
        evaluation=KNN,
    )
    return dataclasses.replace(usual, **changes)


def image_set(labels: Sequence[int], shown: Sequence[int], classes: int, seed: int) -> ImageSet:
    """Images of noise, all different, whose first pixel is the label that they seem to have."""
    draws = torch.Generator().manual_seed(seed)
    shape = (len(labels), 1, SIDE, SIDE)
    images = torch.randint(0, 256, shape, generator=draws, dtype=torch.uint8)
    images[:, 0, 0, 0] = torch.tensor(shown, dtype=torch.uint8)
    names = tuple(f"class {number}" for number in range(classes))
    return ImageSet(images, torch.tensor(labels), names)


def made_up(
    right: Sequence[int], order: Sequence[int], counts: Sequence[int], tests: int = 10
) -> Parts:
    """Of the ``tests`` test images of class c ``right[c]`` look like it, the others like the next
    class. Forty training images a class, every fourth held out; the pre-training saw ``counts``."""
    classes, each = len(right), 40
    labels = [label for label in range(classes) for _ in range(each)]
    pool = image_set(labels, labels, classes, 1)
    asked = [label for label in range(classes) for _ in range(tests)]
    shown = [
        label if place < right[label] else (label + 1) % classes
        for label in range(classes)
        for place in range(tests)
    ]
    places = [
        label * each + n for label, count in zip(order, counts, strict=True) for n in range(count)
    ]
    held_out = torch.arange(len(labels)) % 4 == 0
    test = image_set(asked, shown, classes, 2)
    return Parts(
        pool.take(places), pool, held_out, test, tuple(order), tuple(counts), None, (0.5,), (0.3,)
    )


def seen_class(classes: int, noise: float = 0.1) -> Any:
    """Features in which the label that an image seems to have can be read, with some noise."""

    def features(images: Tensor) -> Tensor:
        one_hot = torch.nn.functional.one_hot(images[:, 0, 0, 0].long(), classes).float()
        return one_hot + noise * (images.flatten(1)[:, 1 : classes + 1].float() / 255 - 0.5)

    return features


def rewritten(source: Path, target: str, drop: tuple[str, ...] = (), **changed: Any) -> str:
    """A file with something else in it, or less."""
    about = torch.load(source, weights_only=True)
    kept = {name: value for name, value in about.items() if name not in drop}
    torch.save({**kept, **changed}, target)
    return target
