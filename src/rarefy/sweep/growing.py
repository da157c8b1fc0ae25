"""A store begins with the cells that committed results of the study have, of whatever scale: only
new seeds and new values of axes are left to run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Experiment
from rarefy.core.place import Place
from rarefy.sweep.examine import examine
from rarefy.sweep.grid import grid_of
from rarefy.sweep.renames import with_names_of_today
from rarefy.sweep.results import read_description, read_results
from rarefy.sweep.spec import Spec, differences, spec_of
from rarefy.sweep.store import Store


def begin_with_results(
    study: Experiment, scale: str, dtype: str, folder: Place, path: Place
) -> int:
    """Where ``folder`` has results of this very study that differ at most in seeds and values of
    axes, and there is no store at ``path``: make one of the cells that both have. Gives how many
    (0: there was nothing to take). Where and when they were made stays in their provenance."""
    if examine(path) is not None:
        return 0
    store = Store(path, study, scale, dtype)
    wanted = {cell: place for place, cell in enumerate(_cells(study))}
    earlier: list[dict[str, Any]] = []
    taken = 0
    try:
        for dataset, theirs in _fitting(study, scale, dtype, folder):
            both = {here: wanted.pop(cell) for here, cell in enumerate(theirs) if cell in wanted}
            if not both:
                continue
            made = json.loads(dataset.attrs["provenance"])
            if not taken:
                store.begin()
                if "inputs" in made:
                    store.remember(inputs=made["inputs"])
            flat = dataset.transpose("seed", *study.axes, ...)
            outputs = {
                name: flat[name].values.reshape(len(theirs), *shape)[list(both)]
                for name, shape in store.shapes.items()
            }
            seconds = float(made.get("wall_seconds", 0)) * len(both) / len(theirs)
            store.write(np.array(list(both.values())), outputs, seconds)
            earlier += [made, *made.pop("earlier", [])]
            taken += len(both)
        if taken:
            earlier.sort(key=lambda made: str(made.get("date")), reverse=True)
            # (where nothing is left to run, the newest says how it was made)
            own = {} if wanted else earlier.pop(0)
            store.remember(provenance={**own, "earlier": earlier})
    finally:
        store.close()
    return taken


def _cells(study: Experiment) -> list[tuple[Any, ...]]:
    """What stands for each cell: its values and the key that it draws from."""
    grid = grid_of(study)
    columns = [grid.values[name].tolist() for name in ("seed", *study.axes)]
    return list(zip(*columns, grid.keys.tolist(), strict=True))


def _fitting(
    study: Experiment, scale: str, dtype: str, folder: Place
) -> Iterator[tuple[xr.Dataset, list[tuple[Any, ...]]]]:
    """Results and their cells, those of the same scale first."""
    axes = {name: spec_of(study, dtype)["parameters"][name] for name in study.axes}
    own = folder / f"{study.name}-{scale}.parquet"
    there: list[Place] = list(folder.glob(f"{study.name}-*.parquet"))
    for found in sorted(there, key=lambda one: one != own):
        if not found.with_suffix(".json").exists():
            continue
        spec: Spec = read_description(found.with_suffix(".json"))["spec"]
        if spec["study"] != study.name:  # (a name may begin another one)
            continue
        asked = {**with_names_of_today(study.renamed, spec["parameters"]), **axes}
        if differences({**spec, "parameters": asked}, study, dtype):
            continue
        stored, _, dataset = read_results(found, lambda name: type(study))
        yield dataset, _cells(stored)
