"""Trained networks as programs that plain PyTorch loads: no class of ours or yours is needed."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.core.writing import write_output
from rarefy.nets.named import in_a_line
from rarefy.train.image_batches import Scaling

if TYPE_CHECKING:
    from torch.export import ExportedProgram

ENDING = ".pt2"
_EXAMPLES = 4
"""Images by which a network is followed; the program takes any number."""


class ScaledNetwork(nn.Module):
    """Pixels in [0, 1] to what the network makes of them: their scale is part of it."""

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, scaling: Scaling) -> None:
        super().__init__()
        self.network = network
        std = [value or 1.0 for value in scaling.std]
        for name, values in (("mean", scaling.mean), ("std", std)):
            self.register_buffer(name, torch.tensor(values).reshape(-1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.network((pixels - self.mean) / self.std)
        return found


def exported(network: nn.Module, scaling: Scaling, size: int, name: str) -> ExportedProgram:
    """The network as a program, in float32 and as in ``eval`` mode: images (n, channels, size,
    size) of any number, pixels in [0, 1], to rows of numbers. ``name``: for the complaint where
    PyTorch cannot follow its code."""
    plain = copy.deepcopy(network).cpu().float().requires_grad_(False)
    plain = plain.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    model = ScaledNetwork(plain, scaling).eval()
    images = torch.rand(
        _EXAMPLES, len(scaling.mean), size, size, generator=torch.Generator().manual_seed(0)
    )
    shapes = {"pixels": {0: torch.export.Dim("images")}}
    failed: Exception
    for strict in (False, True):  # (quicker; knows that len(x) is a number of images)
        try:
            with torch.no_grad(), _silent():
                found = torch.export.export(model, (images,), dynamic_shapes=shapes, strict=strict)
                fewer = images[1:]  # float32 sums in another order, at most
                torch.testing.assert_close(
                    found.module()(fewer), model(fewer), rtol=1e-4, atol=1e-5
                )
                return found
        except Exception as error:  # whatever PyTorch meets in somebody's code
            failed = error
    raise UsageError(
        f"export: torch.export cannot follow the network {name!r} ({in_a_line(failed)}); do "
        "without it, and load the saved weights into its own code"
    ) from failed


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """PyTorch prints whole programs where it cannot go on."""
    before = logging.root.manager.disable
    logging.disable()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        finally:
            logging.disable(before)


def write_exported(program: ExportedProgram, path: Path, of: str, overwrite: bool = False) -> None:
    """For ``torch.export.load(path).module()``, with the PyTorch that wrote it or a later one."""

    def save(partial: Path) -> None:
        with partial.open("wb") as file:  # (given a name, it wants that ending)
            torch.export.save(program, file)

    write_output(path, save, of, overwrite)
