"""Tables 1 and 2 of 002: accuracies in per cent, one training per cell as far as the paper says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rarefy.tools.sparse_experiment import SparseTraining

NOISE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
KEEP = (1.0, 0.8, 0.5, 0.3, 0.1)


@dataclass(frozen=True)
class Published:
    """Accuracy in per cent, rows ``NOISE``, columns ``KEEP`` (the first is dense)."""

    name: str
    claim: str
    data: str
    accuracy: np.ndarray

    def at(self, data: str, level: float, keep: float) -> float:
        """NaN where the paper has none, or has it for other images."""
        row, column = (
            np.flatnonzero(np.isclose(known, value))
            for known, value in ((NOISE, level), (KEEP, keep))
        )
        if data != self.data or not len(row) or not len(column):
            return float("nan")
        return float(self.accuracy[row[0], column[0]])

    def difference(self, data: str, level: float, keep: float) -> float:
        """From dense, in points."""
        return self.at(data, level, keep) - self.at(data, level, 1.0)


CNN_ON_CIFAR100 = Published(
    "002 Table 1",
    "S9",
    "cifar100",
    np.array(
        [
            [66.84, 67.62, 67.64, 67.38, 66.73],
            [63.96, 64.81, 64.56, 64.49, 63.97],
            [57.38, 58.47, 58.23, 57.96, 56.62],
            [51.93, 52.47, 52.74, 52.64, 51.48],
            [47.41, 48.89, 48.53, 48.30, 45.82],
            [44.16, 45.33, 45.19, 44.36, 43.32],
            [14.98, 15.14, 15.21, 15.38, 16.05],
            [13.43, 14.00, 13.88, 13.22, 14.24],
            [11.83, 11.45, 11.88, 11.18, 11.59],
            [10.91, 11.07, 10.85, 11.45, 11.47],
            [10.44, 10.41, 10.00, 10.35, 10.20],
            [9.43, 9.23, 9.41, 9.25, 9.02],
        ]
    ),
)

TRANSFORMER_ON_MNIST = Published(
    "002 Table 2",
    "S10",
    "mnist",
    np.array(
        [
            [98.16, 98.19, 98.21, 98.15, 97.19],
            [98.17, 98.21, 98.14, 98.19, 96.97],
            [98.46, 98.49, 98.44, 98.35, 97.55],
            [98.56, 98.57, 98.57, 98.40, 97.39],
            [98.52, 98.60, 98.55, 98.42, 97.37],
            [98.43, 98.46, 98.40, 98.40, 96.85],
            [93.08, 93.32, 93.26, 92.23, 88.28],
            [90.49, 90.82, 90.53, 89.47, 83.96],
            [88.74, 88.70, 88.63, 87.24, 82.21],
            [85.58, 85.57, 85.55, 84.72, 77.76],
            [84.65, 84.52, 84.10, 82.50, 76.85],
            [82.32, 82.06, 81.94, 80.70, 76.91],
        ]
    ),
)

TABLES = {"sparse-cifar100-noise": CNN_ON_CIFAR100, "sparse-vit-mnist": TRANSFORMER_ON_MNIST}


def published(experiment: SparseTraining) -> Published:
    """The table that an experiment repeats."""
    return TABLES[experiment.name]
