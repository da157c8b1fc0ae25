"""Trained networks on disk: weights, what they need to be used, and how they came about."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rarefy.core.errors import UsageError
from rarefy.core.reading import read_tensors
from rarefy.core.writing import OutputFolder
from rarefy.data.images import ImageData
from rarefy.nets.backbones import build_backbone
from rarefy.nets.builder import NETWORKS, build
from rarefy.nets.named import is_library

BACKBONE = "backbone"
"""Kind of a file without a classifier."""
FIELDS = {"state_dict": dict, "channels": int, "size": int, "classes": list, "network": str}
FIELDS |= {"mean": list, "std": list}
"""What every file says, and of which kind it is."""
OF_BACKBONES = {"data": str, "tail": dict, "way": str, "class_order_seed": int, "recipe": dict}
OF_BACKBONES |= {"epochs": int}
BEGINNING = b"PK\x03\x04"
"""Of every file that PyTorch writes: they are zip archives."""


def save_network(
    folder: OutputFolder, name: str, network: nn.Module, data: ImageData, about: Mapping[str, Any]
) -> None:
    """Write ``name``.pt: the weights (zero where they were pruned), shape and scale of the images
    they expect; ``about`` must name the ``network`` as ``rarefy train`` does."""
    channels, size, _ = data.shape
    state = {
        "state_dict": network.state_dict(),
        "channels": channels,
        "size": size,
        "classes": list(data.classes),
        "mean": list(data.mean),
        "std": [value or 1.0 for value in data.std],
        **about,
    }

    def save(path: Path) -> None:
        with path.open("wb") as file:  # (given a name, PyTorch would keep it in the file)
            torch.save(state, file)

    folder.write(folder.path / f"{name}.pt", save)


def load_network(path: Path | str, network: str | None = None) -> tuple[nn.Module, dict[str, Any]]:
    """A network that ``rarefy train --save`` wrote, in ``eval`` mode, and what is known about it.

    It wants pixels in [0, 1], less ``mean``, over ``std`` (a value per channel). One of your own
    must be named again as ``network="module:callable"``: a file does not decide what is imported.
    """
    about = _read(path)
    if about.get("kind") == BACKBONE:
        raise UsageError(f"{path} is a backbone of rarefy pretrain: see load_backbone")
    return _loaded(path, network, about, lambda name: build(name, *_asked(about)))


def load_backbone(path: Path | str, network: str | None = None) -> tuple[nn.Module, dict[str, Any]]:
    """A backbone that ``rarefy pretrain --save`` wrote, likewise: images to rows of features."""
    about = _read(path)
    if about.get("kind") != BACKBONE:
        raise UsageError(f"{path} is no backbone: rarefy pretrain --save writes them")
    _need(path, about, OF_BACKBONES)
    _need(path, about["tail"], {"balanced": bool, "rho": float | int})
    channels, size, _ = _asked(about)
    return _loaded(path, network, about, lambda name: build_backbone(name, channels, size)[0])


def _read(path: Path | str) -> dict[str, Any]:
    try:
        about: dict[str, Any] = read_tensors(path)
        about["state_dict"]
        _asked(about)
    except Exception as error:  # whatever meets the wrong bytes first
        # (where a file ends too early PyTorch may complain like a disk, but without a file's name)
        if isinstance(error, OSError) and error.filename is not None:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
        if _damaged(path):
            raise UsageError(
                f"{path} is damaged or cut short: copy it again, or train it again with --save"
            ) from error
        raise UsageError(f"{path} is not a network that rarefy wrote") from error
    _need(path, about, FIELDS)
    return about


def _need(path: Path | str, about: dict[str, Any], fields: Mapping[str, Any]) -> None:
    for name, kind in fields.items():
        if not isinstance(about.get(name), kind):
            raise UsageError(
                f"{path} is not a whole network of rarefy's: its {name} is missing or of another "
                "kind; train it again with --save"
            )


def _damaged(path: Path | str) -> bool:
    """Whether it begins like a file of PyTorch (an empty one too) and is not a whole one."""
    try:
        with open(path, "rb") as file:
            if not BEGINNING.startswith(file.read(len(BEGINNING))):
                return False
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is not None
    except Exception:  # whatever meets the gap first
        return True


def _asked(about: dict[str, Any]) -> tuple[int, int, int]:
    return about["channels"], about["size"], len(about["classes"])


def _loaded(
    path: Path | str,
    network: str | None,
    about: dict[str, Any],
    make: Callable[[str], nn.Module],
) -> tuple[nn.Module, dict[str, Any]]:
    weights = about.pop("state_dict")
    name = network or str(about.get("network"))
    if network is None and name not in NETWORKS and not is_library(name):
        raise UsageError(f"{path} has a network {name!r}: name it again with network={name!r}")
    try:
        found = make(name)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        found.load_state_dict(weights)
    except RuntimeError as error:
        raise UsageError(f"{path} does not fit network {name!r}: its code has changed") from error
    return found.eval(), about
