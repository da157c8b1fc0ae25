"""000 Table 2: linear probe accuracy and Delta_20, in per cent, without pruning and with, as they
stand there: with a spread where one is given (of what, and of how many runs, is not said)."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One row of the table."""

    data: str
    rho: float
    plain: float
    pruned: float
    plain_delta: float
    pruned_delta: float
    spreads: tuple[float, float, float, float] | None = None
    """Of the four numbers, in their order."""

    def shown(self, delta: bool = False) -> str:
        """Without and with pruning, as printed."""
        first = 2 if delta else 0
        pair = (self.plain_delta, self.pruned_delta) if delta else (self.plain, self.pruned)
        words = [
            f"{value:.2f}" + (f" ± {self.spreads[first + place]:.2f}" if self.spreads else "")
            for place, value in enumerate(pair)
        ]
        return " → ".join(words)

    @property
    def gain(self) -> float:
        return round(self.pruned - self.plain, 2)

    @property
    def delta_gain(self) -> float:
        return round(self.pruned_delta - self.plain_delta, 2)


TABLE_2 = (
    Row("cifar10", 1, 90.93, 91.52, 1.54, 1.28),
    Row("cifar10", 10, 79.25, 84.92, 3.42, 2.99, (1.03, 0.67, 1.02, 0.92)),
    Row("cifar10", 50, 75.58, 83.60, 3.92, 3.35, (0.84, 1.02, 1.21, 0.76)),
    Row("cifar10", 100, 74.24, 81.31, 5.69, 5.62, (0.82, 0.94, 1.35, 0.99)),
    Row("cifar100", 10, 51.21, 56.33, 2.45, 1.37, (1.21, 1.51, 0.57, 0.46)),
    Row("cifar100", 50, 49.32, 56.12, 4.95, 2.57, (0.45, 0.32, 1.02, 0.92)),
    Row("cifar100", 100, 47.12, 54.93, 7.11, 4.38, (0.51, 0.50, 0.45, 0.22)),
    Row("imagenet", 256, 63.21, 65.12, 8.47, 7.21),
)


def published(data: str, rho: float) -> Row | None:
    """The row of a set and an imbalance, if the table has one."""
    return next((row for row in TABLE_2 if (row.data, row.rho) == (data, rho)), None)
