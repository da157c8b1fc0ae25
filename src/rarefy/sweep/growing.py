"""More seeds for committed results: a store begins with the cells that they have."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from rarefy.core.contracts import Experiment
from rarefy.sweep.examine import examine
from rarefy.sweep.results import read_results
from rarefy.sweep.spec import differences
from rarefy.sweep.store import Store


def begin_with_results(study: Experiment, scale: str, dtype: str, folder: Path, path: Path) -> int:
    """Where ``folder`` has results of this very study and scale with fewer seeds, and there is no
    store at ``path``: make one of them, so that only new seeds are left to run. Gives how many
    cells it has (0: there was nothing to take). Where and when they were made stays in their
    provenance."""
    found = folder / f"{study.name}-{scale}.parquet"
    if not found.exists() or not found.with_suffix(".json").exists() or examine(path) is not None:
        return 0
    stored, _, dataset = read_results(found, lambda name: type(study))
    spec = {"study": stored.name, "version": stored.version, "dtype": dataset.attrs["dtype"]}
    spec["parameters"] = json.loads(dataset.attrs["parameters"])
    if stored.seeds >= study.seeds or differences(spec, study, dtype):
        return 0
    store = Store(path, dataclasses.replace(study, seeds=stored.seeds), scale, dtype)
    made = json.loads(dataset.attrs["provenance"])
    store.begin()
    try:
        flat = dataset.transpose("seed", *study.axes, ...)
        cells = len(store.grid)
        outputs = {
            name: flat[name].values.reshape(cells, *shape) for name, shape in store.shapes.items()
        }
        if "inputs" in made:
            store.remember(inputs=made["inputs"])
        earlier = made.pop("earlier", [])
        store.remember(provenance={"earlier": [made, *earlier]})
        store.write(np.arange(cells), outputs, float(made.get("wall_seconds", 0)))
    finally:
        store.close()
    return cells
