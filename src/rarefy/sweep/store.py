"""The store of a run: a Zarr group with a flat ``run`` axis, killed and resumed without loss.

On disk, all with the leading dimension ``run``: the coordinates of each run (its axes, ``seed`` and
``key``), every output, ``run_seconds`` (its share of its batch's time) and ``done``, which is
written last, when the disk has the rest. All outputs are floats in the dtype of the run, whole
numbers too, so that NaN can say "not done". Zarr replaces a chunk file as a whole, and the group is
made under another name and then renamed (at an address nothing can be: there a mark beside it says
that it is not finished): there is no moment at which a kill or a power cut leaves something
half-written in place. What is damaged later is found by checksums (``chunks``).
"""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from rarefy.core.contracts import Experiment
from rarefy.core.errors import Busy, RunError, UsageError, WentAway
from rarefy.core.place import Place, Remote, Unreachable, as_place
from rarefy.sweep.arrays import Arrays, all_outputs, coordinates_of
from rarefy.sweep.chunks import Damage, flush_all, has_checksums, in_words
from rarefy.sweep.examine import MARK, examine, hash_of
from rarefy.sweep.grid import Grid, grid_of
from rarefy.sweep.lease import Lease
from rarefy.sweep.lock import Lock
from rarefy.sweep.making import beside, clear, make, scratch_of
from rarefy.sweep.repairing import mend
from rarefy.sweep.spec import Find, Spec, differences, experiment_of, spec_hash, spec_of

_told_old: set[Place] = set()


class Store:
    """The store of ``study`` at ``path``. Making the object only looks; ``begin`` creates or
    extends the store and locks it for writing, ``close`` unlocks it."""

    def __init__(
        self, path: Place, study: Experiment, scale: str, dtype: str, overwrite: bool = False
    ) -> None:
        self.path, self.study, self.scale, self.dtype = path, study, scale, dtype
        self.spec = spec_of(study, dtype)
        self.grid: Grid = grid_of(study)
        self._lock: Lock | Lease
        if isinstance(path, Path):
            path = path if path.name else path.resolve()  # (read from inside: report .)
            self._lock = Lock(beside(path, "lock"), path)
        else:
            self._lock = Lease(beside(path, "lock"), path)
        self._replace = overwrite
        self._group: zarr.Group | None = None
        self.arrays = Arrays(study, self.grid, dtype, lambda: self._lock.check(ask=False))
        self.shapes = self.arrays.shapes
        attributes = examine(path, overwrite)
        if attributes is not None and not overwrite:
            self._refuse_other_spec(attributes)
            self._group = self.arrays.open(path, "r")

    # Looking

    @property
    def scratch(self) -> Path:
        """A folder of this machine for trainings under way."""
        return scratch_of(self._lock.guarded, self.attributes)

    def done(self) -> np.ndarray:
        """Which cells are finished, shape (run,)."""
        finished = np.zeros(len(self.grid), dtype=bool)
        if self._group is not None:
            self._check_there()
            stored = self._column("done")[: len(self.grid)]
            finished[: len(stored)] = stored
        return finished

    def wall_seconds(self) -> float:
        """Time spent computing the finished cells, over all resumed runs."""
        if self._group is None:
            return 0.0
        stored = self._column("done")
        return float(self._column("run_seconds")[stored].sum())

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._group.attrs) if self._group is not None else {}

    def read(self) -> xr.Dataset:
        """Everything, with dimensions (axes..., ``seed``, an output's own); NaN where a cell is
        not done."""
        if self._group is None:
            raise UsageError(f"no store at {self.path}")
        self.check_whole()
        grid, done = self.grid, self.done()
        axes = tuple(grid.axes)
        variables = {}
        for output in all_outputs(self.study):
            flat = np.full((len(grid), *self.shapes[output.name]), np.nan, dtype=self.dtype)
            stored = self._column(output.name)[: len(grid)]
            flat[: len(stored)] = stored
            flat[~done] = np.nan
            # cells lie as (seed, axes...); the Dataset has the seed last, beside what it repeats
            values = np.moveaxis(flat.reshape(*grid.shape, *flat.shape[1:]), 0, len(axes))
            attributes = {"meaning": output.meaning, "unit": output.unit}
            variables[output.name] = ((*axes, "seed", *output.dims), values, attributes)
        stored_provenance = dict(self.attributes.get("provenance", {}))
        stored_provenance["wall_seconds"] = round(self.wall_seconds(), 2)
        return xr.Dataset(
            variables,
            coordinates_of(self.study),
            {
                "study": self.study.name,
                "title": self.study.title,
                "scale": self.scale,
                "version": self.study.version,
                "dtype": self.dtype,
                "parameters": json.dumps(self.spec["parameters"]),
                "spec_hash": spec_hash(self.spec, self.study.renamed),
                "cells": len(grid),
                "cells_done": int(done.sum()),
                "provenance": json.dumps(stored_provenance),
            },
        )

    def check_whole(self) -> list[Damage]:
        """Raise where a file of a finished cell is missing or not as it was written; the damage
        that does not matter."""
        try:
            found = self.arrays.damage()
        except OSError as error:
            raise RunError(f"cannot read store {self.path}: {error}") from error
        certain = [
            each for each in found if each.certain and (len(each.cells) or each.is_description)
        ]
        if certain:
            raise RunError(in_words(self.path, certain))
        if self.path not in _told_old and not has_checksums(self.arrays["done"]):
            _told_old.add(self.path)
            absent = sum(not each.certain for each in found)
            gaps = f"; {absent} files are not there: all their values are NaN, or they were lost"
            print(
                f"note: store {self.path} is from before checksums, damage may go unnoticed"
                f"{gaps if absent else ''}",
                file=sys.stderr,
            )
        return found

    def _column(self, name: str) -> np.ndarray:
        """One variable of the runs the spec on disk speaks of; a kill during an extension can
        leave arrays longer than that."""
        stored_runs = self.grid.points * self.attributes["spec"]["parameters"]["seeds"]
        try:
            column = np.asarray(self.arrays[name][:stored_runs])
            if len(column) < stored_runs:
                raise ValueError("is too short")
            return column
        except OSError as error:
            raise RunError(f"cannot read store {self.path}: {error}") from error
        except Exception as error:
            self.check_whole()  # says exactly what is wrong
            raise RunError(f"store {self.path} is damaged ({name}: {error})") from error

    def _refuse_other_spec(self, attributes: Mapping[str, Any]) -> None:
        found = differences(attributes["spec"], self.study, self.dtype)
        if found:
            more = f" (and {len(found) - 3} more differences)" if len(found) > 3 else ""
            raise UsageError(
                f"store {self.path} {'; '.join(found[:3])}{more}; use --overwrite or another --out"
            )

    # Writing

    def begin(self, batch: int = 1) -> None:
        """Lock the store, then create it, for batches of so many runs, or extend it by the seeds
        it does not have."""
        self._locked(lambda: self._prepare(batch))

    def tidy(self) -> None:
        """Remove what a kill after the last cell has left beside the store."""
        if not self.scratch.exists():
            return
        with contextlib.suppress(OSError, Busy):  # (only to be read; another process extends it)
            self._lock.acquire()
            try:
                if self._column("done").all():
                    shutil.rmtree(self.scratch, ignore_errors=True)
            finally:
                self._lock.release()

    def repair(self) -> int:
        """Keep what is whole; how many cells are to be computed again."""

        def mended() -> int:
            self._group = self.arrays.open(self.path, "r+")
            return mend(self.arrays, self.arrays.damage())

        try:
            return int(self._locked(mended))
        finally:
            self.close()

    def _locked(self, action: Callable[[], Any]) -> Any:
        with self._failures():
            self._lock.acquire()
            try:
                return action()
            except BaseException:
                self._lock.release()
                raise

    def _prepare(self, batch: int) -> None:
        clear(self._lock.guarded)
        # look again: it may have changed before we had the lock
        attributes = examine(self.path, self._replace)
        if attributes is None or self._replace:
            make(self._lock.guarded, lambda path: self._describe(path, batch), self.scratch)
            self._group = self.arrays.open(self.path, "r+")
            self._replace = False
            return
        self._refuse_other_spec(attributes)
        for litter in self.path.rglob("*.partial") if isinstance(self.path, Path) else ():
            litter.unlink()
        self._group = self.arrays.open(self.path, "r+")
        mend(self.arrays, self.check_whole())  # what is left holds no finished cell
        stored = self._column("key")[: len(self.grid)]
        if not np.array_equal(stored, self.grid.keys[: len(stored)]):
            raise UsageError(
                f"store {self.path} was drawn with other keys than {self.study.name} gives now; "
                "use --overwrite or another --out"
            )
        if attributes["spec"]["parameters"]["seeds"] < self.grid.seeds:
            self._extend()

    def _describe(self, path: Place, batch: int) -> None:
        group = self.arrays.open(path, "w")
        self.arrays.create(batch)
        group.attrs.put(self._attributes())

    def _attributes(self) -> dict[str, Any]:
        told = {"spec": self.spec, "scale": self.scale, "provenance": {}, "choices": {}}
        return {
            MARK: 1,
            **({"id": secrets.token_hex(8)} if isinstance(self.path, Remote) else {}),
            "spec_hash": spec_hash(self.spec, self.study.renamed),
            **told,
            "hash": hash_of(told),
            # as xarray spells it: what ``xr.open_zarr`` shall take for coordinates
            "coordinates": " ".join((*self.arrays.coordinates, "run_seconds", "done")),
        }

    def _extend(self) -> None:
        """Lengthen every array, then say so: killed in between, it is simply done again."""
        self.arrays.extend()
        self.remember(spec=self.spec, spec_hash=spec_hash(self.spec, self.study.renamed))

    def remember(self, **values: Any) -> None:
        """Write attributes (provenance, choices of the runner) beside the results."""
        assert self._group is not None
        with self._failures():
            self._lock.check()
            self._check_there()
            told = {**self.attributes, **values}
            # (all in one write: ``update`` has one per value, the first without the hash)
            self._group.attrs.put({**told, "hash": hash_of(told)})
            if isinstance(self.path, Path):
                flush_all([self.path / "zarr.json", self.path])

    def write(self, runs: np.ndarray, outputs: Mapping[str, np.ndarray], seconds: float) -> None:
        """Store a batch: ``outputs`` have shape (run, ...). ``done`` comes last."""
        shapes = self.shapes
        for name, values in outputs.items():
            if name not in shapes:
                raise RunError(f"{self.study.name} gave an output {name!r} it does not declare")
            if values.shape != (len(runs), *shapes[name]):
                raise RunError(
                    f"{self.study.name} gave {name!r} with shape {values.shape}, "
                    f"declared is {(len(runs), *shapes[name])}"
                )
        for name in shapes:
            if name not in outputs:
                raise RunError(f"{self.study.name} did not give its output {name!r}")
        with self._failures():
            columns = {name: np.asarray(each, dtype=self.dtype) for name, each in outputs.items()}
            columns["run_seconds"] = np.full(len(runs), seconds / len(runs))
            self._lock.check()
            self._check_there()
            self.arrays.put(runs, columns)
            self._lock.check()
            self._check_there()
            self.arrays.put(runs, {"done": np.ones(len(runs), dtype=bool)})

    def _check_there(self) -> None:
        """Of a folder that was moved or unplugged Zarr would read that nothing is done, and write
        into a new one."""
        if isinstance(self.path, Path) and not (self.path / "zarr.json").exists():
            raise WentAway(f"store {self.path} is no longer there; what was finished is kept in it")

    def close(self) -> None:
        self._lock.release()

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # (a right or a bucket that is missing does not come back by itself)
            away = isinstance(error, Unreachable) and error.errno == errno.EIO
            raise (WentAway if away else RunError)(
                f"cannot write to store {self.path}: {error.strerror or error}; "
                "what was finished is kept"
            ) from error


def open_store(path: Place | str, find: Find[Any]) -> Store:
    """Open a store for reading, with the experiment it was made of; ``find`` knows it by name."""
    path = as_place(path, "store")
    attributes = examine(path, named="path")
    if attributes is None:
        raise UsageError(f"no store at {path}")
    spec: Spec = attributes["spec"]
    try:
        study = experiment_of(spec, find)
    except (UsageError, TypeError) as error:  # (or a parameter that has to be given is not)
        raise UsageError(f"store {path}: {error}") from error
    return Store(path, study, attributes["scale"], spec["dtype"])
