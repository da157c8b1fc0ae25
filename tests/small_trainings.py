"""Small supervised trainings for tests, each the same at every call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import torch
from same_trainings import Everything, in_common, unlike
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.data.images import ImageData, ImageSet
from rarefy.tools import image_data
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Augmentation, ImageBatches, Scaling
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe
from rarefy.train.resumable import Resumable
from rarefy.train.supervised import Training

Made = TypeVar("Made", bound=Resumable)

SIZE, CLASSES, IMAGES, BATCH = 5, 3, 26, 5
STEPS = IMAGES // BATCH
PRUNING_SPECS = {
    "dense": PruningSpec(),
    "project": PruningSpec(0.4),
    "project, every 3": PruningSpec(0.4, every=3),
    "project, once an epoch": PruningSpec(0.4, every=0),
    "dense rule": PruningSpec(0.4, "dense"),
    "masked rule, every 3": PruningSpec(0.4, "masked", every=3),
    "masked once": PruningSpec(0.4, "masked", once=True),
    "neurons": PruningSpec(0.5, "masked", "neuron", every=2),
}
CHANGES = Augmentation(1, True, 0.2)


def network(dropout: float = 0.0) -> nn.Sequential:
    torch.manual_seed(11)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Flatten(),
        nn.Linear(54, CLASSES),
    )


def images() -> tuple[Tensor, Tensor]:
    """Noise with a bright row that tells the class."""
    draws = torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 160, (IMAGES, 1, SIZE, SIZE), generator=draws, dtype=torch.uint8)
    labels = torch.arange(IMAGES) % CLASSES
    pixels[torch.arange(IMAGES), 0, labels] += 90
    return pixels, labels


def batches(
    dtype: torch.dtype = torch.float32,
    changes: Augmentation = CHANGES,
    device: str = "cpu",
    memory_format: torch.memory_format = torch.contiguous_format,
) -> ImageBatches:
    pixels, labels = (one.to(device) for one in images())
    scaling = Scaling((0.4,), (0.3,))
    return ImageBatches(pixels, labels, scaling, BATCH, 17, changes, dtype, memory_format)


def training(
    spec: str | PruningSpec = "dense",
    dropout: float = 0.0,
    model: nn.Module | None = None,
    shown: ImageBatches | None = None,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    graphs: bool = True,
    precision: str = "float32",
    **recipe: Any,
) -> Training:
    """The torch generator is seeded: dropout of two trainings is the same."""
    if isinstance(spec, str):
        spec = PRUNING_SPECS[spec]
    settings = {"epochs": 3, "learning_rate": 0.05, **recipe}
    model = network(dropout) if model is None else model
    shown = batches(dtype, device=device) if shown is None else shown
    made = Training(
        model.to(device, dtype),
        shown,
        Recipe(**settings),
        spec,
        precision=precision,
        graphs=graphs,
    )
    torch.manual_seed(23)
    return made


class Enough(Exception):
    """A test has seen enough; to a training it is as a deadline."""


def stopped_after(steps: int, error: type[BaseException] = Enough) -> Context:
    """A context that ends a training before update number ``steps``."""
    begun = [0]

    class Ends(Context):
        def check_time(self) -> None:
            if begun[0] == steps:
                raise error("stopped by a test")
            begun[0] += 1

    return Ends()


def counted(advanced: list[float], context: Context | None = None) -> Context:
    return dataclasses.replace(context or Context(), advance=advanced.append)


def interrupted(make: Callable[[], Made], checkpoint: Checkpoint, *steps: int) -> Made:
    """Stopped after so many updates each time, and gone on with by a new object; the last one runs
    to the end."""
    for count in steps:
        try:
            make().run(stopped_after(count), checkpoint)
        except Enough:
            continue
        raise AssertionError("it should have been stopped")
    last = make()
    last.run(Context(), checkpoint)
    return last


def everything(made: Training) -> Everything:
    """What two trainings must have in common to be the same."""
    answering = made.evaluation_model().state_dict()
    return in_common(made) | {f"answer {name}": one for name, one in answering.items()}


def differences(first: Training, second: Training) -> list[str]:
    """Names of what is not bit for bit the same."""
    return unlike(everything(first), everything(second))


def tiny(channels: int, size: int, classes: int) -> nn.Module:
    """A network by name: ``small_trainings:tiny``."""
    return nn.Sequential(
        nn.Conv2d(channels, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * ((size - 2) // 2) ** 2, classes),
    )


def instead_of_digits(monkeypatch: pytest.MonkeyPatch, data: ImageData) -> None:
    image_data._loaded.cache_clear()
    image_data._halves.cache_clear()
    monkeypatch.setattr(image_data, "load_images", lambda name: data)


def made_up(
    count: int = 40, height: int = 8, width: int = 8, classes: int = 4, tested: int = 20
) -> ImageData:
    """A data set sorted by class, as a folder of class folders is."""
    draws = torch.Generator().manual_seed(count)

    def split(count: int) -> ImageSet:
        shape = (count, 1, height, width)
        labels = (torch.arange(count) * classes) // count
        images = torch.randint(0, 50, shape, generator=draws, dtype=torch.uint8)
        images[torch.arange(count), 0, labels] += 150
        return ImageSet(images, labels, tuple("abcd"[:classes]))

    return ImageData("made up", split(count), split(tested), "nowhere")
