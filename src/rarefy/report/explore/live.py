"""Cells that are computed while the page is open: the study at quick size, in stores that last as
long as the page.

Every choice of its numeric parameters is a source of its own, begun when it is first asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rarefy.core.contracts import Context, Study
from rarefy.core.errors import OutOfTime, UsageError, bad_value
from rarefy.core.parameters import parameters_of
from rarefy.core.settings import resolve_dtype
from rarefy.report.explore.sources import ALL, Source, Stops
from rarefy.report.style import number
from rarefy.sweep.choices import choose, fitting, machine_here
from rarefy.sweep.process_state import prepared_cpu
from rarefy.sweep.store import Store
from rarefy.sweep.workers import compute

SCALE, DTYPE = "quick", "float32"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""A slider of a parameter has the quick value times these, where the study takes them."""


def _nobody(amount: float) -> None:
    return None


def refusal(kind: type[Study]) -> str:
    """Why cells of this study are not computed while a page waits; nothing where they are."""
    if not kind.one_at_a_time:
        return ""
    return (
        f"A cell of {kind.name} is the training of a whole network: it is not computed here. "
        f"rarefy run {kind.name} trains, and this page shows what is stored."
    )


class Live:
    """The study ``kind`` at quick size with the parameters set by hand. One computation runs at a
    time; ``done`` of ``total`` run-steps of it are through."""

    def __init__(self, kind: type[Study], settings: Mapping[str, Any], folder: Path) -> None:
        self.kind, self.settings, self.folder = kind, dict(settings), folder
        self.study = kind.at(SCALE, **self.settings)
        self.parameters = self._parameters()
        self.sources: dict[str, Source] = {}
        self.done = self.total = 0.0
        self._heard: Callable[[float], None] = _nobody
        self._stores: dict[str, Store] = {}
        self._turn = self._running = 0
        self._closed = False
        self._busy, self._counting, self._opening = (threading.Lock() for _ in range(3))

    def _parameters(self) -> dict[str, dict[str, Any]]:
        """Numeric parameters, each with the values of its slider and where it stands at first."""
        found = {}
        for name, parameter in parameters_of(self.kind).items():
            usual = getattr(self.study, name)
            single = name not in (*self.kind.axes, "seeds") and not parameter.many
            if not single or parameter.kind not in (int, float) or not usual:
                continue
            values = sorted({parameter.kind(usual * factor) for factor in FACTORS} | {usual})
            values = [value for value in values if self._takes(name, value)]
            if len(values) > 1:
                found[name] = {
                    "meaning": parameter.meaning,
                    "values": values,
                    "labels": [number(value) for value in values],
                    "usual": values.index(usual),
                }
        return found

    def _takes(self, name: str, value: float) -> bool:
        try:
            study = self.kind.at(SCALE, **{**self.settings, name: value})
            study.coordinates(), study.cost()
        except Exception:  # rules that tie it to other parameters may say so in any way
            return False
        return True

    def key(self, places: Mapping[str, int]) -> str:
        """The source of a choice of parameters: ``quick``, or ``quick;lr=0.2``."""
        parts = []
        for name, place in sorted(places.items()):
            about = self.parameters[name]
            if place != about["usual"]:
                parts.append(f";{name}={about['labels'][place]}")
        return SCALE + "".join(parts)

    def source(self, places: Mapping[str, int]) -> Source:
        with self._opening:
            key = self.key(places)
            if key not in self.sources:
                chosen = {
                    name: self.parameters[name]["values"][place] for name, place in places.items()
                }
                study = self.kind.at(SCALE, **{**self.settings, **chosen})
                store = Store(self.folder / f"{len(self._stores)}", study, SCALE, DTYPE)
                store.begin()
                self._stores[key] = store
                title = f"{SCALE} size, computed here{key.removeprefix(SCALE).replace(';', '; ')}"
                self.sources[key] = Source(key, title, study, store.read())
            return self.sources[key]

    def compute(
        self, source: Source, stops: Stops | None = None, heard: Callable[[float], None] = _nobody
    ) -> int:
        """Compute what is missing at these positions (everywhere if not given), as ``rarefy run``
        does; how many cells. What is under way or waits is stopped first: who moves a slider no
        longer waits for where it was. ``heard`` is told of run-steps."""
        store = self._stores[source.key]
        mine = self.stop()
        with self._busy:
            if mine != self._turn or self._closed:
                return 0
            self._running, self._heard = mine, heard
            pending = self.missing(source, stops)
            if not len(pending):
                return 0
            steps = max(store.study.cost().steps_per_cell, 1)
            self.done, self.total = 0.0, float(len(pending) * steps)
            before = int(store.done().sum())
            try:
                self._fill(store, pending, steps)
            except OutOfTime:
                pass  # stopped: what was through is kept
            finally:
                self.done = self.total = 0.0
                source.renew(store.read())
            return int(store.done().sum()) - before

    def _fill(self, store: Store, pending: np.ndarray, steps: int) -> None:
        machine = machine_here(store.study, "auto", DTYPE)
        choices = choose(store, machine, fitting(store.study, machine), "auto", None, None)
        context = Context(
            device=machine.device,
            dtype=resolve_dtype(DTYPE),
            compiled=choices["compiled"],
            advance=self._advance,
        )
        # windows of the run axis, as a run of the whole grid has them
        windows = pending // choices["batch"]
        batches = [pending[windows == window] for window in np.unique(windows)]
        work = 0.0
        with (
            prepared_cpu(),
            compute(store.study, store.grid, batches, context, 1, choices.get("threads")) as found,
        ):
            begun = time.monotonic()
            for runs, outputs in found:
                store.write(runs, outputs, time.monotonic() - begun)
                begun, work = time.monotonic(), work + len(runs) * steps
                with self._counting:  # (a study need not tell of its steps)
                    self.done = max(self.done, work)

    def _advance(self, amount: float) -> None:
        if self._turn != self._running:  # (batches that run at once have a stop of their own)
            raise OutOfTime("stopped")
        with self._counting:
            self.done = min(self.done + amount, self.total)
        self._heard(amount)

    def missing(self, source: Source, stops: Stops | None = None) -> np.ndarray:
        """The cells at these positions that are not computed, as places on the run axis."""
        stops = stops or (ALL,) * len(source.sizes)
        store = self._stores[source.key]
        places = np.arange(len(store.grid)).reshape(store.grid.shape)
        chosen = tuple(slice(None) if stop == ALL else slice(stop, stop + 1) for stop in stops)
        wanted = np.sort(places[(slice(None), *chosen)].ravel())
        return np.asarray(wanted[~store.done()[wanted]])

    def stop(self) -> int:
        """End the computation under way after the steps it is at, and those that wait; the number
        of the next turn."""
        with self._counting:
            self._turn += 1
            return self._turn

    def close(self) -> None:
        """Wait for the end of what is under way; nothing is computed from now on."""
        self._closed = True
        self.stop()
        with self._busy:
            for store in self._stores.values():
                with contextlib.suppress(Exception):  # they are removed in any case
                    store.close()


def check_stops(source: Source, stops: Mapping[str, str]) -> Stops:
    """Positions as an address has them, one per axis; "all" where one is not named."""
    found = []
    for axis, size in zip(source.study.axes, source.sizes, strict=True):
        found.append(check_place(axis, stops.get(axis, str(ALL)), ALL, size))
    return tuple(found)


def check_place(name: str, text: str, least: int, size: int) -> int:
    try:
        place = int(text)
    except ValueError:
        place = least - 1
    if not least <= place < size:
        raise bad_value(name, text, f"must be a whole number from {least} to {size - 1}")
    return place


def check_known(live: Live | None, places: Mapping[str, str]) -> dict[str, int]:
    """Positions of the sliders of parameters."""
    known = live.parameters if live is not None else {}
    if strange := places.keys() - known.keys():
        raise UsageError(f"parameter={min(strange)!r}: has no slider")
    return {
        name: check_place(name, text, 0, len(known[name]["values"]))
        for name, text in places.items()
    }
