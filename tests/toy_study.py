"""A small study for tests of the machinery: a random walk that can be slow, fail or go NaN."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Study, Verdict
from rarefy.core.parameters import AtLeast
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.studies import Entry


def only(monkeypatch: pytest.MonkeyPatch, *kinds: type[Study]) -> None:
    """These are the only studies there are."""
    entries = {kind.name: Entry.of(kind) for kind in kinds}
    monkeypatch.setattr("rarefy.studies.listed", lambda: entries)


@dataclass(frozen=True, kw_only=True)
class Toy(Study):
    name: ClassVar[str] = "toy"
    title: ClassVar[str] = "A random walk with drift"
    papers: ClassVar[tuple[str, ...]] = ()
    shows: ClassVar[str] = "the law of large numbers"
    paper_says: ClassVar[str] = "A walk with drift ends near drift times steps."
    claims: ClassVar[tuple[str, ...]] = ("T1",)
    axes: ClassVar[tuple[str, ...]] = ("drift", "sigma")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma",)
    scales: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {"seeds": 2, "steps": 4},
        "quick": {"seeds": 30, "steps": 8},
        "paper": {},
    }
    headline: ClassVar[bool] = True

    drift: tuple[float, ...] = (0.0, 0.5, 1.0)
    sigma: tuple[Annotated[float, AtLeast(0)], ...] = (0.1, 0.2)
    steps: int = 16
    lr: float = 1.0
    rule: str = "plain"
    reflect: bool = False
    pause: float = 0.0
    """Seconds a batch sleeps at each step, unless a file ``hurry`` lies in the current folder."""
    break_at_seed: int = -1
    nan_at_seed: int = -1
    gigabytes: float = 0.0
    offset: float = 0.0
    """Moves the measured end and so the verdict."""

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("end", (), "where the walk ends", "1"),
            Output("path", ("step", "side"), "the walk and its mirror image", "1"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"step": np.arange(self.steps), "side": np.array(["left", "right"])}

    def cost(self) -> Cost:
        return Cost(int(1000 + self.gigabytes * 1e9), self.steps)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        draws = cells.draws(context)
        drift, sigma = cells.column("drift", context), cells.column("sigma", context)
        seed = np.asarray(cells.values["seed"])
        if (seed == self.break_at_seed).any():
            raise ZeroDivisionError("the toy was told to break")
        place = torch.zeros(len(cells), dtype=context.dtype, device=context.device)
        path = []
        for step in range(self.steps):
            context.check_time()
            noise = draws.normal("noise", (1,), step)[:, 0]
            place = place + self.lr * (drift + sigma * noise)
            path.append(torch.stack([place, -place], dim=1))
            if self.pause and not Path("hurry").exists():
                time.sleep(self.pause)
            context.advance(len(cells))
        walked = torch.stack(path, dim=1).cpu().numpy()
        wrong = seed == self.nan_at_seed
        walked[wrong, 2:] = np.nan
        return {
            "end": walked[:, -1, 0] + self.offset,
            "path": walked,
            "nonfinite_step": np.where(wrong, 2, -1),
        }

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        end = results["end"].isel(drift=-1)
        mean, expected = float(end.mean()), self.drift[-1] * self.steps * self.lr
        close = abs(mean - expected) < 0.5
        return [
            Verdict(
                claim="T1",
                study=self.name,
                scale=scale,
                setting=self.setting,
                predicted=f"{expected:.3g}",
                measured=f"{mean:.3g}",
                interval=(mean - 0.1, mean + 0.1),
                n=end.size,
                tolerance="0.5",
                outcome="holds" if close else "fails",
            )
        ]

    def picture(self, results: xr.Dataset) -> list[Picture]:
        mean = results["path"].isel(side=0).mean(["seed", "sigma"])
        curves = [
            Curve(f"drift {value:g}", mean["step"].values, mean.sel(drift=value).values)
            for value in self.drift
        ]
        return [Picture("walk", "The walk", "It drifts.", [Lines(curves, "step", "place")])]
