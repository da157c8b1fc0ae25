"""Count, mean and scatter of every class, in float64, from rows in any order (Chan, Golub and
LeVeque 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import RunError, bad_value
from rarefy.core.reading import quietly
from rarefy.core.writing import write_whole
from rarefy.measure.influence.core_pool import CorePool, cores
from rarefy.measure.influence.products import add_scatter, symmetric
from rarefy.measure.influence.rows import MEMORY, Rows

_AT_ONCE = 1024
"""Rows made float64 at a time."""


class ClassStatistics:
    """``counts`` (class,), ``means`` (class, d) and ``scatter(k)`` = sum of (x - mean)(x - mean)^T,
    (d, d), of the rows added so far. Takes 8 d^2 bytes per class.

    A mean is kept as a row of its class (the first one met) and an offset from it: the difference
    to a row is then exact to the last places also where all values are near 1e6.
    """

    def __init__(self, classes: int, width: int, device: torch.device | str = "cpu") -> None:
        if classes < 1:
            raise bad_value("classes", classes, "must be at least 1")
        if width < 1:
            raise bad_value("width", width, "must be at least 1")
        self.classes, self.width, self.device = classes, width, torch.device(device)
        self.counts: NDArray[np.int64] = np.zeros(classes, dtype=np.int64)
        self.pivots = self._zeros(classes, width)
        self.offsets = self._zeros(classes, width)
        self.scatters = self._zeros(classes, width, width)
        """Upper triangles; what is below the diagonal has no meaning."""

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    @property
    def means(self) -> NDArray[np.float64]:
        """(class, d); NaN for a class without rows."""
        means: NDArray[np.float64] = (self.pivots + self.offsets).cpu().numpy()
        means[self.counts == 0] = np.nan
        return means

    def scatter(self, label: int) -> NDArray[np.float64]:
        """(d, d), whole: a copy."""
        whole: NDArray[np.float64] = symmetric(self.scatters[label]).cpu().numpy()
        return whole

    def centred(self, label: int, rows: Tensor) -> Tensor:
        """Rows minus the class mean, in place; float64 on this device."""
        return rows.sub_(self.pivots[label]).sub_(self.offsets[label])

    def add_class(self, label: int, rows: Tensor) -> None:
        """Rows of one class, (m, d), float64 on this device; they are overwritten."""
        if len(rows) == 0:
            return
        before = int(self.counts[label])
        if before == 0:
            self.pivots[label] = rows[0]
        rows.sub_(self.pivots[label])
        mean = rows.mean(dim=0)
        rows.sub_(mean)
        add_scatter(self.scatters[label], rows)
        step, after = mean.sub_(self.offsets[label]), before + len(rows)
        if before > 0:
            weight = before * len(rows) / after
            add_scatter(self.scatters[label], (step * weight**0.5)[None])
        self.offsets[label] += step * (len(rows) / after)
        self.counts[label] = after

    def add(
        self,
        rows: Rows,
        labels: Sequence[int],
        pool: CorePool,
        first: int = 0,
        last: int | None = None,
        at_once: int = _AT_ONCE,
    ) -> None:
        """Rows [first, last) of the classes ``labels``, which these statistics are of in this
        order; others are passed over. Each core takes a class, a few rows at a time."""

        def add(place: int) -> None:
            indices = rows.of_class(labels[place], first, last)
            for start in range(0, len(indices), at_once):
                self.add_class(place, rows.borrow(indices[start : start + at_once], self.device))

        pool.map(add, range(len(labels)))
        if not bool(torch.isfinite(self.offsets).all()):
            rows.complain_of_nonfinite()

    # ------------------------------------------------------------------------------------- on disk

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "counts": self.counts,
            "pivots": self.pivots.cpu().numpy(),
            "offsets": self.offsets.cpu().numpy(),
            "scatters": self.scatters.cpu().numpy(),
        }

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], path: Path, device: torch.device | str = "cpu"
    ) -> ClassStatistics:
        try:
            classes, width = arrays["pivots"].shape
            made = cls(classes, width, device)
            made.counts = arrays["counts"].astype(np.int64).reshape(classes)
            for name in ("pivots", "offsets", "scatters"):
                stored = torch.from_numpy(arrays[name].astype(np.float64, copy=False))
                # not copied: there may be no room for two
                setattr(made, name, stored.to(device).reshape(getattr(made, name).shape))
        except (KeyError, ValueError, RuntimeError, TypeError) as error:
            raise RunError(f"{path} does not hold class statistics: {error}") from error
        return made


def gather_statistics(
    features: NDArray[Any],
    labels: NDArray[Any],
    classes: int,
    *,
    device: torch.device | str = "cpu",
    memory: int = MEMORY,
) -> ClassStatistics:
    """Statistics of all classes of a data set, which is read once. ``memory``: bytes they may take
    (``score_classes`` needs less: it can go over the classes in groups)."""
    rows = Rows(features, labels, classes)
    at_once = cores(torch.device(device)) * _AT_ONCE
    need = 8 * rows.width * (rows.width * classes + 3 * at_once)
    if need > memory:
        what = f"{classes} classes of width {rows.width}"
        raise bad_value("memory", memory, f"must be at least {need} for {what}")
    made = ClassStatistics(classes, rows.width, device)
    window = _AT_ONCE * classes
    with CorePool(made.device, classes) as pool:
        for start in range(0, len(rows), window):
            made.add(rows, range(classes), pool, start, start + window)
    return made


def covariance_overlaps(
    statistics: ClassStatistics, ddof: int = 1, scale: float = 1.0
) -> NDArray[np.float64]:
    """tr(Sigma_i Sigma_j) = |A_i^T A_j|_F^2 between all classes (003 Fig. 6): (class, class), with
    Sigma = A A^T the sample covariance. NaN for a class with too few rows to have one."""
    if ddof not in (0, 1):
        raise bad_value("ddof", ddof, "must be 0 or 1")
    total = torch.zeros(statistics.classes, statistics.classes, dtype=torch.float64)
    total = total.to(statistics.device)
    for row in range(statistics.width):  # off the diagonal every entry stands for two
        strip = statistics.scatters[:, row, row:].clone()
        strip[:, 1:] *= 2**0.5
        total.addmm_(strip, strip.T)
    divisor = statistics.counts.astype(np.float64) - ddof
    divisor[divisor <= 0] = np.nan
    overlaps: NDArray[np.float64] = total.cpu().numpy() / np.outer(divisor, divisor) * scale**4
    return overlaps


# ------------------------------------------------------------------------------------- npz, atomic


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    def save(partial: Path) -> None:
        with partial.open("wb") as file:  # (given a name, NumPy would change it)
            np.savez(file, **arrays)  # type: ignore[arg-type]

    write_whole(path, save)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a file; nothing in it is run."""
    try:
        # opened here: of a damaged file numpy would forget to close it
        with quietly(), path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # bytes can fail to be a zip file of arrays in many ways
        raise RunError(f"cannot read {path}: {' '.join(str(error).split())[:120]}") from error
