"""A study whose cells run one at a time, for tests of several processes: each cell walks, and one
of them can wait, raise or die. Spawned processes import it from here."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Study, Verdict
from rarefy.core.errors import RunError
from rarefy.core.picture import Picture

STEPS = 4


@dataclass(frozen=True, kw_only=True)
class ToyTraining(Study):
    name: ClassVar[str] = "toy-training"
    title: ClassVar[str] = "Cells that run one at a time"
    lab: ClassVar[str] = "toy"
    paper_says: ClassVar[str] = "Nothing."
    claims: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[tuple[str, ...]] = ("height",)
    scales: ClassVar[Mapping[str, Mapping[str, Any]]] = {"tiny": {}}
    one_at_a_time: ClassVar[bool] = True

    seeds: int = 3
    height: tuple[float, ...] = (1.0, 2.0)
    folder: str = ""
    """Where cells leave traces and look for orders; nothing of it is in the results."""
    patient: bool = True
    """Whether a cell looks at the clock on its way."""

    def outputs(self) -> tuple[Output, ...]:
        return (Output("end", (), "where the walk ends"),)

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def cost(self) -> Cost:
        return Cost(1000, STEPS)

    def inputs(self) -> dict[str, str]:
        told = Path(self.folder, "content")
        return {"data": told.read_text()} if self.folder and told.exists() else {}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        assert len(cells) == 1
        seed, height = int(cells.values["seed"][0]), float(cells.values["height"][0])
        self._obey(f"{seed}-{height:g}", context)
        place = 0.0
        for step in range(STEPS):
            if self.patient:
                context.check_time()
            place += height * float(cells.draws(context).normal("walk", (1,), step)[0, 0])
            context.advance(1)
            context.say(f"cell {seed}-{height:g} at step {step + 1}")
        return {"end": np.array([place])}

    def _obey(self, name: str, context: Context) -> None:
        """What the file ``NAME.order`` says: the cell of that name waits, raises or dies."""
        if not self.folder:
            return
        folder = Path(self.folder)
        (folder / f"{name}.{os.getpid()}.begun").touch()
        order = folder / f"{name}.order"
        word = order.read_text() if order.exists() else ""
        if word == "wait":
            while True:
                context.check_time()
                time.sleep(0.01)
        if word == "be late":  # done only after everybody was asked to stop
            while context.stop is None or not context.stop.is_set():
                time.sleep(0.01)
        if word == "raise":
            raise ZeroDivisionError("the toy was told to break")
        if word == "stumble":  # once
            order.unlink()
            raise ConnectionResetError("the toy has lost a file server")
        if word == "fail":
            raise RunError("the toy has lost its disk")
        if word == "die":
            os._exit(3)

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return []

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return []


@dataclass(frozen=True, kw_only=True)
class ToySumming(ToyTraining):
    """One whose last digits depend on the number of threads, which it also tells."""

    name: ClassVar[str] = "toy-summing"

    def outputs(self) -> tuple[Output, ...]:
        return (Output("end", (), "a long sum"), Output("threads", (), "torch's", "1"))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        rows = cells.draws(context).normal("long", (300_000,), 0)
        return {"end": rows.sum(1).numpy(), "threads": np.array([torch.get_num_threads()])}


@dataclass(frozen=True, kw_only=True)
class ToyKeeping(ToyTraining):
    """One that tells whether it could keep a checkpoint, and what denormal numbers become."""

    name: ClassVar[str] = "toy-keeping"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("kept", (), "1 if it could", "1"),
            Output("denormal", (), "half of the least"),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        self._obey(f"{cells.values['seed'][0]}-{cells.values['height'][0]:g}", context)
        if context.scratch is not None:
            context.scratch.mkdir(exist_ok=True)
            (context.scratch / f"{cells.keys[0]}.pt").touch()
        half = torch.full((1,), torch.finfo(torch.float32).tiny) / 2
        return {"kept": np.array([context.scratch is not None]), "denormal": half.numpy()}
