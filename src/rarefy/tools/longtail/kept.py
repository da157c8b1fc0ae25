"""Which network of a training was kept: the best one on the way by the nearest neighbours of
held-out images, not the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from rarefy.tools.longtail.readings import PERCENT


@dataclass(frozen=True)
class Kept:
    """Of one method: per seed the epoch whose network was kept, and after which the training was
    stopped (None: it went to its end); neighbours of held-out images there and at the end, per
    cent, means over seeds."""

    images: str
    rho: float
    method: str
    of: int
    """Epochs that were asked for."""
    epochs: tuple[int, ...]
    stopped: tuple[int | None, ...]
    best: float
    last: float

    def described(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "epochs": [*self.epochs], "stopped": [*self.stopped]}

    def words(self) -> str:
        """``kept epoch 40 of 80: held-out neighbours 61.2 %, at the end 55.0 %``"""
        stops = [epoch for epoch in self.stopped if epoch is not None]
        found = f"kept epoch{_range(self.epochs)} of {self.of}: held-out neighbours {self.best:.1f}"
        found += " %" if set(self.epochs) == {self.of} else f" %, at the end {self.last:.1f} %"
        if not stops:
            return found
        which = f"{len(stops)} of {len(self.epochs)} " if len(self.epochs) > 1 else ""
        return f"{found} ({which}stopped after epoch{_range(stops)}: over-training is certain)"


def kept_networks(results: xr.Dataset) -> Iterator[Kept]:
    """Of every method that trained with labels to look at, of what ``rarefy pretrain`` stores."""
    looks, asked = results["watched_epoch"].values, int(results["epoch"].values.max())
    for rho, images, method in product(
        *(results[name].values for name in ("rho", "images", "algorithm"))
    ):
        here = results.sel(images=images, rho=rho, algorithm=method)
        knn = PERCENT * here["watched_knn"].transpose("seed", "watched_epoch").values
        kept, stopped = here["kept_epoch"].values, here["stopped_epoch"].values
        seeds = np.flatnonzero(np.isfinite(kept) & np.isfinite(knn[:, 0]))
        if not len(seeds):
            continue
        ends = [np.flatnonzero(np.isfinite(knn[seed]))[-1] for seed in seeds]
        yield Kept(
            str(images),
            float(rho),
            str(method),
            asked,
            tuple(int(epoch) for epoch in kept[seeds]),
            tuple(int(epoch) or None for epoch in stopped[seeds]),
            float(np.mean([knn[seed, looks == kept[seed]][0] for seed in seeds])),
            float(np.mean([knn[seed, end] for seed, end in zip(seeds, ends, strict=True)])),
        )


def _range(epochs: tuple[int, ...] | list[int]) -> str:
    low, high = min(epochs), max(epochs)
    return f" {low}" if low == high else f"s {low} to {high}"
