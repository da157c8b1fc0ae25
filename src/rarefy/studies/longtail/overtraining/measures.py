"""What is read of features on the way: each measure by its name, (seed, look), and two looks that
are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr

from rarefy.measure.order_pairs import FEWEST
from rarefy.measure.statistics import Interval, finite_mean, mean_interval
from rarefy.tools.longtail.readings import LONG_TAIL, PERCENT

EARLY = 0.4
"""Share of the training after which the first of the two looks is taken: fixed, because the best of
many looks is the best by luck too. (The one long training known before was at its best there.)"""


class Measure(NamedTuple):
    """What it is called, its unit, and how it is taken from the results of one method."""

    words: str
    unit: str
    take: Callable[[xr.Dataset], xr.DataArray]

    @property
    def label(self) -> str:
        return f"{self.words}, {self.unit}" if self.unit else self.words


def _known(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
    return lambda at: PERCENT * at["retrieval"].sel(known=name)


def _drawn(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
    # (below 0: nothing can be read)
    return lambda at: PERCENT * at["augmentation"].sel(drawn=name).clip(min=0)


MEASURES = {
    "knn": Measure("neighbours right", "%", lambda at: PERCENT * at["unseen_knn"].mean("rank")),
    "class": Measure("variance between classes", "%", lambda at: PERCENT * at["class_share"]),
    "trained": Measure("own view found, trained images", "%", _known("trained")),
    "unseen": Measure("own view found, unseen images", "%", _known("unseen")),
    "memorised": Measure(
        "learnt by heart",
        "points",
        lambda at: _known("trained")(at) - _known("unseen")(at),
    ),
    "crop": Measure("crop read from a view", "% of its variance", _drawn("crop")),
    "colour": Measure("colours read from a view", "% of their variance", _drawn("colour")),
    "rank": Measure("effective rank", "", lambda at: at["effective_rank"]),
    "alignment": Measure("distance of views", "", lambda at: at["unseen_alignment"]),
    "uniformity": Measure("uniformity", "", lambda at: at["unseen_uniformity"]),
    "held-out": Measure(
        "neighbours of held-out images right", "%", lambda at: PERCENT * at["watched_knn"]
    ),
}
TABLED = tuple(name for name in MEASURES if name != "held-out")


def of_method(results: xr.Dataset, method: str) -> xr.Dataset:
    """Of the long-tailed images, at the largest imbalance."""
    return results.sel(images=LONG_TAIL, rho=results["rho"].max(), algorithm=method, drop=True)


def seen(results: xr.Dataset, method: str, name: str) -> np.ndarray:
    """A measure on the way: (seed, look)."""
    taken = MEASURES[name].take(of_method(results, method))
    return np.asarray(taken.transpose("seed", "watched_epoch").values)


def early_look(results: xr.Dataset) -> int:
    """Which look is the first of the two that are compared (the second is the last)."""
    epochs = results["watched_epoch"].values
    return int(np.abs(epochs - EARLY * epochs[-1]).argmin())


def change(results: xr.Dataset, method: str, name: str) -> np.ndarray:
    """The last look less the early one, order by order: (seed,)."""
    values = seen(results, method, name)
    return np.asarray(values[:, -1] - values[:, early_look(results)])


def two_looks(results: xr.Dataset, method: str, name: str) -> tuple[float, float, Interval]:
    """Means at the early and at the last look, of orders that have both, and the change."""
    values = seen(results, method, name)[:, [early_look(results), -1]]
    values = values[np.isfinite(values).all(axis=1)]
    early, late = finite_mean(values)
    return float(early), float(late), mean_interval(values[:, 1] - values[:, 0])


def shown(found: Interval) -> str:
    """A difference, and its 95 % interval from three orders on."""
    ends = f" [{found.low:+.2f}, {found.high:+.2f}]" if found.n >= FEWEST else ""
    return f"{found.mean:+.2f}{ends}" if found.n else "-"
