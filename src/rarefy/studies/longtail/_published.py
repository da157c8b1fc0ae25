"""000 Table 2: linear probe accuracy and Delta_20, in per cent, without pruning and with."""

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

    @property
    def gain(self) -> float:
        return self.pruned - self.plain


TABLE_2 = (
    Row("cifar10", 1, 90.93, 91.52, 1.54, 1.28),
    Row("cifar10", 10, 79.25, 84.92, 3.42, 2.99),
    Row("cifar10", 50, 75.58, 83.60, 3.92, 3.35),
    Row("cifar10", 100, 74.24, 81.31, 5.69, 5.62),
    Row("cifar100", 10, 51.21, 56.33, 2.45, 1.37),
    Row("cifar100", 50, 49.32, 56.12, 4.95, 2.57),
    Row("cifar100", 100, 47.12, 54.93, 7.11, 4.38),
    Row("imagenet", 256, 63.21, 65.12, 8.47, 7.21),
)


def published(data: str, rho: float) -> Row | None:
    """The row of a set and an imbalance, if the table has one."""
    return next((row for row in TABLE_2 if (row.data, row.rho) == (data, rho)), None)
