"""How a budget of kept weights is spread over layers: evenly, ERK, or as given."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

from rarefy.core.errors import UsageError, bad_value

Keep = float | int
"""A share in (0, 1], or a count."""


def check_keep(keep: Keep, argument: str = "keep") -> None:
    """A float is a share, an int a count. (1 is a count, 1.0 everything.)"""
    if isinstance(keep, bool) or not isinstance(keep, (int, float)):
        raise bad_value(argument, keep, "must be a share in (0, 1] or a whole count")
    if isinstance(keep, float) and not 0 < keep <= 1:
        raise bad_value(argument, keep, "a share must lie in (0, 1]")
    if isinstance(keep, int) and keep < 1:
        raise bad_value(argument, keep, "a count must be at least 1")


def layer_keeps(
    shapes: Mapping[str, tuple[int, ...]], keep: Keep, distribution: str | Mapping[str, Keep]
) -> dict[str, Keep]:
    """What each layer keeps. ``shapes``: (out, in, *kernel) of every layer by name; a mapping has
    patterns of names, and ``keep`` for all layers that none matches (the first that does counts).
    """
    check_keep(keep)
    if isinstance(distribution, Mapping):
        return _given(shapes, keep, distribution)
    if distribution == "uniform":
        return dict.fromkeys(shapes, keep)
    if distribution == "erk":
        if not isinstance(keep, float):
            raise bad_value("keep", keep, "distribution='erk' spreads a share, not a count")
        return dict(erdos_renyi_kernel(shapes, keep))
    raise bad_value("distribution", distribution, "must be 'uniform', 'erk' or {pattern: keep}")


def erdos_renyi_kernel(shapes: Mapping[str, tuple[int, ...]], keep: float) -> dict[str, float]:
    """ERK (Evci et al. 2020, Sec. 3): a layer's share is proportional to the sum of its dimensions
    over their product, so that large layers are pruned more; layers whose share would pass 1 stay
    whole, and the others make up for it. All together keep ``keep`` of the weights."""
    size = {name: _product(shape) for name, shape in shapes.items()}
    odds = {name: sum(shape) / size[name] for name, shape in shapes.items()}
    whole: set[str] = set()
    while True:
        rest = [name for name in shapes if name not in whole]
        budget = keep * sum(size.values()) - sum(size[name] for name in whole)
        scale = budget / sum(odds[name] * size[name] for name in rest) if rest else 0.0
        full = {name for name in rest if scale * odds[name] >= 1}
        if not full:
            return {name: 1.0 if name in whole else scale * odds[name] for name in shapes}
        whole |= full


def _given(
    shapes: Mapping[str, tuple[int, ...]], keep: Keep, given: Mapping[str, Keep]
) -> dict[str, Keep]:
    for pattern, value in given.items():
        check_keep(value, f"distribution[{pattern!r}]")
        if not any(_matches(name, pattern) for name in shapes):
            names = ", ".join(shapes)
            raise UsageError(f"distribution: pattern {pattern!r} matches none of {names}")
    return {
        name: next((value for pattern, value in given.items() if _matches(name, pattern)), keep)
        for name in shapes
    }


def _matches(name: str, pattern: str) -> bool:
    layer = name.rpartition(".")[0]
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(layer, pattern)


def _product(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
