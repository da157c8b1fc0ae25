"""Small contrastive trainings for tests, each the same at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from same_trainings import Everything, in_common, unlike
from torch import Tensor, nn

from rarefy.nets.backbones import Encoder, Features, Projection
from rarefy.train.image_batches import Scaling
from rarefy.train.recipe import Recipe
from rarefy.train.simclr import pretraining as room
from rarefy.train.simclr.data_parallel import World
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import Pretraining
from rarefy.train.simclr.view_batches import ViewBatches
from rarefy.train.views.views import Views

if TYPE_CHECKING:
    from torch._dynamo.testing import CompileCounterWithBackend

SIZE, IMAGES, BATCH = 8, 26, 6
STEPS = IMAGES // BATCH
METHODS = (
    "simclr",
    "simclr+one-sided",
    "simclr+schedule",
    "pruned:0.5",
    "pruned:0.5+layer+epoch",
    "pruned:0.5+neuron",
    "branches:0.3",
    "branches:0.3+straight+step",
    "branches:0.3+own-norms+filter",
    "sdclr",
    "branches:0.7+random",
    "branches:0.3+frozen",
    "branches:0.3+both",
    "branches:0.3+dropout",
    "branches:0.3+noise+own-norms",
)

REMEMBERING = ("simclr+boost", "pruned:0.5+harmonise:4", "branches:0.3+boost+harmonise:6+schedule")
"""Methods that remember something of each image."""


def images(count: int = IMAGES) -> Tensor:
    """Noise with a bright place of its own, somewhere else in every image."""
    draws = torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 90, (count, 1, SIZE, SIZE), generator=draws, dtype=torch.uint8)
    places = torch.randint(0, SIZE - 2, (count, 2), generator=draws)
    for one, (row, column) in zip(pixels, places.tolist(), strict=True):
        one[0, row : row + 3, column : column + 3] += 150
    return pixels


def batches(
    count: int = IMAGES,
    batch: int = BATCH,
    dtype: torch.dtype = torch.float32,
    world: World | None = None,
    run_key: int = 17,
    device: str = "cpu",
) -> ViewBatches:
    pixels = images(count).to(device)
    return ViewBatches(
        pixels, Views.default(1, SIZE), Scaling((0.3,), (0.3,)), batch, run_key, dtype, world
    )


def encoder(norms: bool = True, dropout: float = 0.0, width: int = 8, depth: int = 2) -> Encoder:
    """Two convolutions and a projection. ``norms=False``: every image goes its own way."""
    torch.manual_seed(11)

    def block(channels: int, out: int, stride: int) -> list[nn.Module]:
        convolution = nn.Conv2d(channels, out, 3, stride, padding=1, bias=not norms)
        return [convolution, *([nn.BatchNorm2d(out)] if norms else []), nn.ReLU()]

    network = nn.Sequential(*block(1, 6, 1), nn.Dropout(dropout), *block(6, width, 2))
    return Encoder(Features(network), Projection(width, 5, depth, "batch" if norms else "none"))


def pretraining(
    method: str = "simclr",
    model: Encoder | None = None,
    shown: ViewBatches | None = None,
    dtype: torch.dtype = torch.float32,
    dropout: float = 0.0,
    tau: float = 0.2,
    compiled: bool = False,
    precision: str = "float32",
    device: str = "cpu",
    graphs: bool = True,
    **recipe: Any,
) -> Pretraining:
    """The torch generator is seeded: dropout of two trainings is the same."""
    found = Method.parse(method)
    settings = {"epochs": 3, "learning_rate": 0.1, **recipe}
    made = Pretraining(
        (model or encoder(dropout=dropout, depth=found.head_depth or 2)).to(device, dtype),
        batches(dtype=dtype, device=device) if shown is None else shown,
        Recipe(**settings),
        found,
        tau,
        precision,
        compiled,
        graphs,
    )
    torch.manual_seed(23)
    return made


def everything(made: Pretraining) -> Everything:
    """What two trainings must have in common to be the same."""
    found = in_common(made) | {"sums": made._sums}
    if made.pruner is not None:
        if made.pruner.branch is not None:
            found |= {f"branch {name}": one for name, one in made.pruner.branch.state().items()}
        if made.method.masked:
            kept = made.export_encoder("masked").state_dict()
            found |= {f"masked {name}": one for name, one in kept.items()}
        else:
            assert made.pruner.branch is not None
            found |= {f"factor {name}": one for name, one in made.pruner.branch.factors.items()}
    for kind, state in made.remembering.state_dict().items():
        found |= {f"{kind} {name}": one for name, one in state.items()}
    return found | {
        f"learnt {name}": one for name, one in made.export_encoder().state_dict().items()
    }


def differences(first: Pretraining, second: Pretraining) -> list[str]:
    """Names of what is not bit for bit the same."""
    return unlike(everything(first), everything(second))


def counting_compiler(monkeypatch: pytest.MonkeyPatch) -> CompileCounterWithBackend:
    """Trainings are compiled to graphs as the compiler sees them, without kernels, and counted."""
    from torch._dynamo.testing import CompileCounterWithBackend  # late: seconds of imports

    counter = CompileCounterWithBackend("aot_eager")
    real = torch.compile
    monkeypatch.setattr(room, "can_compile", lambda device: True)
    monkeypatch.setattr(torch, "compile", lambda function: real(function, backend=counter))
    return counter
