"""How many images each class has, by rank: the head first, the tail last.

``rho`` is the imbalance, head over tail. A count is rounded down, and is at least 1: where n_max is
below rho the tail has single images, and the true imbalance is n_max.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index

from rarefy.core.errors import bad_value

HEADS = ("full", "sdclr")
"""The two data sets that are both called CIFAR-LT, by how many images the head has. ``full``: all
that the smallest class has (5000 of CIFAR-10, 500 of CIFAR-100; Cao et al. 2019, and most others).
``sdclr``: the same without the tenth of every class that is held out for validation (4500 and 450;
the files of SDCLR, Jiang et al. 2021). ``rarefy.tools.longtail.sets`` makes both."""


def exponential(n_max: int, rho: float, classes: int) -> tuple[int, ...]:
    """n_i = int(n_max rho^(-i / (classes - 1))), as Cao et al. (2019) have it."""
    _check(n_max, rho, classes)
    # as a power of rho in floating point, because the public sets were made so
    return _at_least_one(n_max * rho ** (-rank / max(classes - 1, 1)) for rank in range(classes))


def step(n_max: int, rho: float, classes: int, tail_share: float = 0.5) -> tuple[int, ...]:
    """n_max in each head class, n_max / rho in each tail class.

    tail_share: share of the classes that are tail, rounded (a half to the head's favour); at least
    one class is head and, of two or more, at least one is tail.
    """
    _check(n_max, rho, classes)
    if not 0 < tail_share < 1:
        raise bad_value("tail_share", tail_share, "must be between 0 and 1")
    if classes == 1:
        return (int(n_max),)
    # the small number: as a float 0.07 * 50 is a little above 3.5
    tails = min(max(math.ceil(tail_share * classes - 0.5 - 1e-9), 1), classes - 1)
    return _at_least_one([n_max] * (classes - tails) + [n_max / rho] * tails)


def pareto(n_max: int, rho: float, classes: int, power: float = 6.0) -> tuple[int, ...]:
    """Quantiles of a Pareto law (Lomax: from 0 on), stretched to run from n_max / rho to n_max.

    With u = (rank + 1) / classes, n = n_min + (n_max - n_min) (u^(-1/power) - 1) /
    (classes^(1/power) - 1). A few large classes and a long flat tail; a smaller power makes it
    steeper. ImageNet-LT was drawn from a Pareto law of power 6 (Liu et al. 2019): n_max 1280, rho
    256 and 1000 classes give 121 thousand images here, 116 thousand there.
    """
    _check(n_max, rho, classes)
    if not 0.1 <= power <= 1e6:  # beyond, floats overflow or differences vanish
        raise bad_value("power", power, "must be from 0.1 to 1e6")
    if classes == 1:
        return (int(n_max),)
    least = n_max / rho
    # expm1: a large power makes all of these differences small
    heights = [math.expm1(math.log(classes / (rank + 1)) / power) for rank in range(classes)]
    return _at_least_one(least + (n_max - least) * (height / heights[0]) for height in heights)


def balanced(total: int, classes: int) -> tuple[int, ...]:
    """The same number of each class, together ``total`` or a little less."""
    parts = whole("classes", classes, 1)
    return (whole("total", total, parts) // parts,) * parts


def given(counts: Iterable[int]) -> tuple[int, ...]:
    """Any counts, once they are checked: whole numbers from 1 on that do not rise."""
    found = tuple(whole(f"counts[{rank}]", count, 1) for rank, count in enumerate(counts))
    if not found:
        raise bad_value("counts", found, "at least one class is needed")
    for rank, (before, after) in enumerate(zip(found, found[1:], strict=False)):
        if after > before:
            raise bad_value(
                f"counts[{rank + 1}]",
                after,
                f"must be at most {before}, the one before: head first",
            )
    return found


def whole(what: str, value: object, least: int) -> int:
    """The value as an int (it may be numpy's), or an error that names it."""
    try:
        found = least - 1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        found = least - 1
    if found < least:
        raise bad_value(what, value, f"must be a whole number, at least {least}")
    return found


def _check(n_max: int, rho: float, classes: int) -> None:
    whole("n_max", n_max, 1)
    whole("classes", classes, 1)
    if not (math.isfinite(rho) and rho >= 1):
        raise bad_value("rho", rho, "must be a number, at least 1 (head over tail)")


def _at_least_one(sizes: Iterable[float]) -> tuple[int, ...]:
    return tuple(max(1, int(size)) for size in sizes)
