"""The table of ``regimes-at-scale``: from which d on each theorem's shape is seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.scale.regimes.claims import statements_by_d
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.rows import laid_out
from rarefy.studies.scale.regimes.statement import Statement


def tables(experiment: RegimesExperiment, results: xr.Dataset) -> list[Table]:
    return [_seen_from(laid_out(results), statements_by_d(experiment, results))]


def _first_seen(d: np.ndarray, seen: Sequence[bool]) -> float:
    """The smallest d from which on, there and at every larger one, something is seen; NaN where it
    is not at the largest."""
    missed = np.flatnonzero(~np.asarray(seen, dtype=bool))
    start = int(missed[-1]) + 1 if missed.size else 0
    return float(d[start]) if start < len(d) else float("nan")


def _seen_from(results: xr.Dataset, by_d: list[list[Statement]]) -> Table:
    d, rows = results["d"].values, []
    for each in by_d:
        start = _first_seen(d, [one.agrees for one in each])
        values = [f"{one.value:.3g}" + ("" if one.agrees else " (no)") for one in each]
        found = f"{start:g}" if start > d[0] else "all"
        words = "not at the largest" if np.isnan(start) else found
        rows.append([each[0].claim, each[0].what, each[0].requirement, *values, words])
    return Table(
        "seen-from",
        "The dimension from which on each theorem's shape is seen",
        "For every part of a theorem the share of rows in which it holds, or an exponent, at each "
        "d; (no): not what the theorem asks for, or more than a tenth of the rows have no boundary "
        "in the range or a training loss that is still large. Last column: the smallest d from "
        "which on it is seen at this and every larger d. Point estimates; verdicts have "
        "the intervals.",
        ("claim", "what", "asked for", *(f"d={float(value):g}" for value in d), "seen from d"),
        rows,
    )
