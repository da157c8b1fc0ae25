"""Numbers that several cells of a run share: computed by the first, read by the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rarefy.core.reading import quietly
from rarefy.core.rng import key
from rarefy.core.writing import replacing

Numbers = dict[str, np.ndarray]


def hash_of(*parts: object) -> str:
    """A file name for anything with a stable ``repr``."""
    return f"{key(*parts) & (2**64 - 1):016x}"


def cached_npz(
    path: Path, compute: Callable[[], Numbers], advance: Callable[[float], None], steps: float
) -> Numbers:
    """What ``compute`` gives, from ``path`` if it is there; ``steps`` of progress are then told to
    ``advance``. Two processes may both compute it: the file is replaced as a whole."""
    try:
        with quietly(), open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            found = dict(stored)
    except Exception:  # it is not there, or bytes fail to be a file of arrays in one of many ways
        found = compute()
        with replacing(path) as partial, open(partial, "wb") as target:
            np.savez(target, **found)  # type: ignore[arg-type]
        return found
    advance(steps)
    return found
