"""Which class is scored by which route, and what is in memory at one time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import bad_value
from rarefy.measure.influence.mahalanobis import DIRECTIONS, FULL_WIDTH, SAMPLE

FLOAT, SINGLE = 8, 4
_TILE = 384
"""Rows of a tile of inner products where a class is kept in memory: small, so that little is done
twice on the diagonal and there are tiles enough for all cores."""
_SEGMENT_VALUES = 1 << 19
"""Of the rows of a class that are worked on at a time, which then stay in the cache."""
_WINDOW_BYTES = 1 << 29
"""Of the features that are gone through before the next window: they stay in the page cache."""
CLASSES_PER_CORE = 2
"""By their scatter matrices, of features in memory. Cores that are done with a small class then
have another."""
RESULTS = 9
"""Numbers that are kept for each sample: q, r, norm, Mahalanobis, the four terms, its place."""


@dataclass(frozen=True)
class GramStep:
    """One class whose inner products are formed in tiles of ``tile`` rows."""

    label: int
    tile: int
    kept: bool
    """Its rows stay in memory; else every tile is read when it is needed."""


@dataclass(frozen=True)
class CovarianceStep:
    """Some classes whose scatter matrices are in memory together; the data are read twice, in
    windows of so many rows."""

    labels: tuple[int, ...]
    window: int


@dataclass(frozen=True)
class Plan:
    """``steps`` in order; at most ``segment`` rows of a class are made float64 at a time."""

    steps: tuple[GramStep | CovarianceStep, ...]
    segment: int
    directions: int
    """For the Mahalanobis distance; 0: all."""
    sample: int
    """Rows from which the directions are found."""
    memory: int
    """Bytes at the peak."""

    def flops(
        self, step: GramStep | CovarianceStep, counts: NDArray[np.int64], width: int
    ) -> float:
        """Of one step: symmetric and triangular products counted as half."""
        if isinstance(step, GramStep):
            count = int(counts[step.label])
            score = count * width * (count + step.tile)
            return float(score + self._distance_flops(count, width, twice=True))
        return float(
            sum(
                2 * int(counts[label]) * width**2 + self._distance_flops(int(counts[label]), width)
                for label in step.labels
            )
        )

    def _distance_flops(self, count: int, width: int, twice: bool = False) -> int:
        """Of the Mahalanobis distance of a class; ``twice``: without its scatter matrix."""
        inside = self.directions or width
        flops = count * inside**2 * (1 + twice) + inside**3
        if self.directions:
            flops += 2 * count * width * inside + (not twice) * 2 * width**2 * inside
        return flops

    def routes(self, classes: int) -> tuple[str, ...]:
        """Of each class "covariance" or "gram", "" for an empty one."""
        words = [""] * classes
        for step in self.steps:
            labels = (step.label,) if isinstance(step, GramStep) else step.labels
            for label in labels:
                words[label] = "gram" if isinstance(step, GramStep) else "covariance"
        return tuple(words)


def make_plan(
    counts: NDArray[np.int64],
    width: int,
    itemsize: int,
    memory: int,
    chunk: int | None = None,
    cores: int = 1,
    mapped: bool = False,
) -> Plan:
    """``chunk``: rows of a class at a time (and of a tile), None: what is fast. ``cores``: pieces
    of work that are done at once. ``mapped``: every group of classes reads the whole file, so there
    shall be few of them; in memory each finds its own rows, and few classes at a time will do."""
    if chunk is not None and chunk < 1:
        raise bad_value("chunk", chunk, "must be at least 1")
    if memory < 1:
        raise bad_value("memory", memory, "must be at least 1")

    def try_with(memory: int) -> Plan:
        together = len(counts) if mapped else CLASSES_PER_CORE * cores
        plan = _plan(counts, width, itemsize, memory, chunk, cores, together)
        while plan.memory > memory and plan.segment > 1:  # what is fast does not fit
            plan = _plan(counts, width, itemsize, memory, chunk, cores, together, plan.segment // 2)
        return plan

    plan = try_with(memory)
    if plan.memory <= memory:
        return plan
    enough = memory
    while try_with(enough).memory > enough:
        enough *= 2
    what = f"{int(counts.sum())} samples of width {width}"
    raise bad_value("memory", memory, f"is too little for {what}; {enough} would do")


def _plan(
    counts: NDArray[np.int64],
    width: int,
    itemsize: int,
    memory: int,
    chunk: int | None,
    cores: int,
    together: int,
    most: int = 8192,
) -> Plan:
    """What would be done; its memory may be more than there is. ``most``: rows of a segment."""
    samples = int(counts.sum())
    fixed = FLOAT * (samples * RESULTS + len(counts) * width)
    row = cores * width * (itemsize + 3 * FLOAT)  # as given, float64, a copy for a product, a spare
    free = memory - fixed
    directions, sample = _directions(width, free)
    free -= FLOAT * width * directions
    room = max(free, 0) // 4
    fast = max(_SEGMENT_VALUES // width, 512)
    segment = min(chunk or fast, most, max(1, room // row))
    free -= segment * row
    inside = directions or width
    # while a covariance is factored: on a CPU in place, with strips beside it; on a GPU with copies
    free -= FLOAT * max(6, 2 * cores) * inside**2
    grams: list[GramStep] = []
    groups: list[CovarianceStep] = []
    per_class = FLOAT * (width**2 + 4 * width) + SINGLE * inside**2
    group: list[int] = []
    peak = FLOAT * sample * width  # before the first step
    for label, count in enumerate(counts.tolist()):
        if count == 0:
            continue
        if count < 2 * width or per_class > free:
            step, used = _gram_step(label, count, width, inside, itemsize, free, chunk, cores)
            grams.append(step)
            peak = max(peak, used)
        elif len(group) == together or (len(group) + 1) * per_class > free:
            groups.append(_covariance_step(group, counts, segment, width * itemsize))
            group = [label]
        else:
            group.append(label)
        peak = max(peak, len(group) * per_class)
    if group:
        groups.append(_covariance_step(group, counts, segment, width * itemsize))
    return Plan((*grams, *groups), segment, directions, sample, memory - free + peak)


def _directions(width: int, free: int) -> tuple[int, int]:
    """How many leading directions, and from how many rows: fewer where memory is short."""
    if width <= FULL_WIDTH:
        return 0, 0
    sample = min(SAMPLE, max(2, free // (4 * FLOAT * width)))
    return max(1, min(DIRECTIONS, sample // 2, free // (8 * FLOAT * width))), sample


def _covariance_step(
    group: list[int], counts: NDArray[np.int64], segment: int, row_bytes: int
) -> CovarianceStep:
    """A window has about a segment of each class."""
    samples, mine = int(counts.sum()), int(counts[group].sum())
    window = min(segment * len(group) * samples // mine, _WINDOW_BYTES // row_bytes)
    return CovarianceStep(tuple(group), max(1, window))


def _gram_step(
    label: int,
    count: int,
    width: int,
    inside: int,
    itemsize: int,
    free: int,
    chunk: int | None,
    cores: int,
) -> tuple[GramStep, int]:
    """The step and its bytes. q and r, the class's spread for the Mahalanobis distance, rows."""
    base = FLOAT * (4 * count + inside**2 + (inside < width) * count * inside)
    tile = min(chunk or _TILE, count)
    used = base + itemsize * count * width + FLOAT * 2 * cores * tile**2
    if itemsize < FLOAT:
        used += FLOAT * (cores + 1) * tile * width
    if used <= free:
        return GramStep(label, tile, kept=True), used
    # cores + 1 tiles of rows and the tiles of products: a t^2 + b t within what is left
    left, a, b = max(free - base, 0) / FLOAT, 2 * cores, (cores + 1) * width
    fits = int((b * b + 4 * a * left) ** 0.5 - b) // (2 * a)
    tile = max(1, min(tile if chunk else count, fits))
    return GramStep(label, tile, kept=False), base + FLOAT * int(a * tile**2 + b * tile)
