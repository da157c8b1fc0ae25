"""Put a store right that was damaged: keep what is whole, compute the rest again."""

from __future__ import annotations

import numpy as np

from rarefy.sweep.arrays import Arrays
from rarefy.sweep.chunks import Damage


def mend(arrays: Arrays, found: list[Damage]) -> int:
    """Make again what follows from the spec, remove what cannot be read, and set finished cells of
    which something was lost to not done; how many these are. Stopped half-way, the rest is still
    known to be damaged.

    The other cells of their batch are computed again too: a cell's last bits can depend on what it
    is computed with. Cells of one batch have the same ``run_seconds``, to the last digit.
    """
    for each in found:
        if each.is_description:
            (arrays.path / each.file).unlink(missing_ok=True)
            arrays.add(each.array)  # its chunks are still there
    if any(each.is_description for each in found):
        found = arrays.damage()
    found = [each for each in found if each.certain]
    for each in found:
        (arrays.path / each.file).unlink(missing_ok=True)
    if {each.array for each in found} & arrays.coordinates.keys():
        arrays.write_coordinates()
    cells = [each.cells for each in found if len(each.cells)]
    if not cells:
        return 0
    lost = np.unique(np.concatenate(cells))
    seconds, done = (np.asarray(arrays[name][:]) for name in ("run_seconds", "done"))
    again = done & np.isin(seconds, seconds[lost][seconds[lost] > 0])
    again[lost] = True
    arrays.put(np.flatnonzero(again), {"done": np.zeros(again.sum(), dtype=bool)})
    return int(again.sum())
