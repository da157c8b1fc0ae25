"""When masks are chosen anew, and how much is kept then. Steps are updates of the optimiser.

constant(every=k)               anew every k updates, always as many
periodic(every, begin, end)     the same from update ``begin`` to ``end``; then the support stays
one_shot(at)                    dense until update ``at``, then one mask for good
gradual(begin, end, every)      from everything to ``keep`` by a cubic (Zhu and Gupta 2017)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class Schedule:
    """Masks are chosen after ``begin``, ``begin + every``, ... updates, for the last time at
    ``end`` (None: never the last). Before ``begin`` everything is kept. ``cubic``: how much is kept
    falls from everything at ``begin`` to ``keep`` at ``end``."""

    every: int = 1
    begin: int = 0
    end: int | None = None
    cubic: bool = False

    def __post_init__(self) -> None:
        if self.every < 1:
            raise bad_value("every", self.every, "must be at least 1 update")
        if self.begin < 0:
            raise bad_value("begin", self.begin, "must be at least 0")
        if self.end is not None and self.end < self.begin:
            raise bad_value("end", self.end, f"must not be before begin={self.begin}")
        if self.cubic and (self.end is None or self.end == self.begin):
            raise bad_value("end", self.end, f"a gradual schedule needs an end after {self.begin}")

    def due(self, step: int) -> bool:
        """Whether masks are chosen after so many updates."""
        if step < self.begin or (self.end is not None and step > self.end):
            return False
        return (step - self.begin) % self.every == 0 or step == self.end

    def over(self, step: int) -> bool:
        """Whether masks stay what they are from now on."""
        return self.end is not None and step >= self.end

    def share(self, step: int) -> float:
        """How far the way from everything (1) to ``keep`` (0) still is."""
        if step < self.begin:
            return 1.0
        if not self.cubic or self.end is None or step >= self.end:
            return 0.0
        return (1 - (step - self.begin) / (self.end - self.begin)) ** 3

    def frozen_at(self, step: int) -> Schedule:
        """The same until ``step``, from where on the support stays what it is."""
        if self.end is not None and self.end <= step:
            return self
        if step < self.begin:
            raise bad_value("freeze_at", step, f"must not be before begin={self.begin}")
        if self.cubic:
            raise bad_value(
                "freeze_at", step, f"a gradual schedule ends at {self.end}: freeze then"
            )
        return replace(self, end=step)


def constant(every: int = 1) -> Schedule:
    """Masks anew every so many updates, always as many weights.

    Arguments:
        every: updates between two choices.

    Returns:
        A schedule, for ``rarefy.Pruner(schedule=...)``.

    Example:
        >>> schedule = rarefy.pruning.constant(every=5)
        >>> [step for step in range(12) if schedule.due(step)]
        [0, 5, 10]
    """
    return Schedule(every)


def periodic(every: int, begin: int = 0, end: int | None = None) -> Schedule:
    """The same in a part of the training: dense before it, and after it the support stays.

    Arguments:
        every: updates between two choices.
        begin, end: the first and the last update at which masks are chosen.

    Returns:
        A schedule, for ``rarefy.Pruner(schedule=...)``.

    Example:
        >>> schedule = rarefy.pruning.periodic(every=2, begin=4, end=8)
        >>> [step for step in range(12) if schedule.due(step)]
        [4, 6, 8]
    """
    return Schedule(every, begin, end)


def one_shot(at: int = 0) -> Schedule:
    """Dense until an update, then one mask for good.

    Arguments:
        at: the update.

    Returns:
        A schedule, for ``rarefy.Pruner(schedule=...)``.

    Example:
        >>> schedule = rarefy.pruning.one_shot(at=10)
        >>> [step for step in range(12) if schedule.due(step)]
        [10]
    """
    return Schedule(1, at, at)


def gradual(begin: int, end: int, every: int = 1) -> Schedule:
    """From everything to ``keep`` by a cubic (Zhu and Gupta 2017).

    keep(t) = keep + (1 - keep) (1 - (t - begin)/(end - begin))^3.

    Arguments:
        begin, end: updates at which it begins to fall, and has fallen.
        every: updates between two choices.

    Returns:
        A schedule, for ``rarefy.Pruner(schedule=...)``.

    Example:
        >>> schedule = rarefy.pruning.gradual(begin=2, end=10, every=4)
        >>> [step for step in range(12) if schedule.due(step)]
        [2, 6, 10]
    """
    return Schedule(every, begin, end, cubic=True)
