"""Random numbers that the readings of a study share: to draw them takes ten times as long as to
use them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

Drawn = TypeVar("Drawn")
_last: dict[str, tuple[Hashable, Any, Any]] = {}


def drawn_once(
    kind: str, about: Hashable, seed: int, draw: Callable[[np.random.Generator], Drawn]
) -> tuple[Drawn, np.random.Generator]:
    """What ``draw`` gives, and the generator after it. The last of each ``kind`` is remembered:
    ``about`` says, with the seed, what it depends on."""
    generator, key = np.random.default_rng(seed), (about, seed)
    known, found, state = _last.get(kind, (None, None, None))
    if known != key:
        found = draw(generator)
        state = generator.bit_generator.state
        _last[kind] = key, found, state
    generator.bit_generator.state = state
    return found, generator
