"""Trained networks on disk: weights, what they need to be used, and how they came about."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rarefy.core.errors import RunError, UsageError
from rarefy.data.images import ImageData
from rarefy.nets.by_name import NETWORKS, build


def save_network(path: Path, network: nn.Module, data: ImageData, about: Mapping[str, Any]) -> None:
    """Write the weights (zero where they were pruned) with the shape and scale of the images they
    expect; ``about`` must name the ``network`` as ``rarefy train`` does."""
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
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(state, partial)
        os.replace(partial, path)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise RunError(f"cannot write {path}: {error}") from error


def load_network(path: Path | str, network: str | None = None) -> tuple[nn.Module, dict[str, Any]]:
    """A network that ``rarefy train --save`` wrote, in ``eval`` mode, and what is known about it.

    It wants pixels in [0, 1], less ``mean``, over ``std`` (a value a channel). One of your own must
    be named again as ``network="module:callable"``: a file does not decide what is imported.
    """
    try:
        about: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        weights = about.pop("state_dict")
        asked = (about["channels"], about["size"], len(about["classes"]))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # whatever meets the wrong bytes first
        raise UsageError(f"{path} is not a network that rarefy wrote") from error
    name = network or str(about.get("network"))
    if network is None and name not in NETWORKS:
        raise UsageError(f"{path} has a network {name!r}: name it again with network={name!r}")
    found = build(name, *asked)
    try:
        found.load_state_dict(weights)
    except RuntimeError as error:
        raise UsageError(f"{path} does not fit network {name!r}: its code has changed") from error
    return found.eval(), about
