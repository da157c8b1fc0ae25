"""Tables of ``granularity-detectors``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import mean_interval
from rarefy.studies.granularity._common import LABELS, seeds_in_words, shown
from rarefy.studies.granularity._detectors_judging import (
    Readings,
    estimate,
    expected_sets,
)
from rarefy.theory.conditions import COLUMNS, table_rows
from rarefy.theory.granularity_conditions import parameter_choices, smallest_log_dimension

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_detectors import GranularityDetectors


def detectors_tables(study: GranularityDetectors, results: xr.Dataset) -> list[Table]:
    return [_sensitivity(study, results), _sets(study, results), _choices(study)]


def _sensitivity(study: GranularityDetectors, results: xr.Dataset) -> Table:
    rows = []
    for variation in results["variation"].values:
        read = Readings(study, results, str(variation))
        k = study.main
        row: list[object] = [str(variation)]
        for labels in LABELS:
            row += [
                shown(read.growth_ratio(study.first, labels, k)),
                _ratio(read.response_ratio(study.steps, labels, k)),
                shown(read.end("subclass_response", labels, k)),
                shown(read.share("detector", "subclass", labels, k)[:, -1]),
                shown(read.share("able", "subclass", labels, k)[:, -1]),
            ]
        rows.append(row)
    columns = ["variation"]
    for labels in LABELS:
        columns += [
            f"{labels}: growth ratio at the start",
            f"{labels}: final ratio of responses",
            f"{labels}: final response to a subclass feature",
            f"{labels}: of it, detectors",
            f"{labels}: of it, all of S",
        ]
    return Table(
        "sensitivity",
        "What changes when the setting does",
        f"With {study.main} subclasses a side; one thing is changed at a time. Ratios are those of "
        "the feature a side shares to a subclass's feature; the last two columns of each kind are "
        "shares of the response to a subclass feature. Means with 95 % intervals over "
        f"{seeds_in_words(results)}.",
        columns,
        rows,
    )


def _ratio(samples: np.ndarray) -> str:
    found = estimate(samples)
    if not np.isfinite(found.mean):
        return "not run"
    if not np.isfinite(found.low):
        return f"{found.mean:.3f}"
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _sets(study: GranularityDetectors, results: xr.Dataset) -> Table:
    read = Readings(study, results)
    printed, wide = expected_sets(study, True), expected_sets(study, False)
    rows = []
    for k in read.subclasses:
        words = 2 + 2 * k
        sizes = {
            "printed": printed.detectors,
            "detector": study.neurons * wide.detector_among(words),
            "able": wide.able,
        }
        row: list[object] = [k]
        for name, size in sizes.items():
            row.append(f"{mean_interval(read.of(f'{name}_size', 'fine', k)).mean:.3g} ({size:.3g})")
        lacking = mean_interval(read.of("lacking", "fine", k)).mean
        rows.append([*row, f"{lacking:.3g} ({wide.none(words):.3g})"])
    return Table(
        "sets",
        "How many neurons of an output begin as detectors of a feature",
        "Measured, and in brackets expected by exact Gaussian probability (004 App. C, G.1). S* to "
        "the letter: exclusive in the whole dictionary of d words. Detectors: surely open on the "
        "feature, and on no other that occurs, whatever strengths and noise do. S: perhaps open. "
        "Last: features of an output without any detector.",
        ("k", "S* to the letter", "detectors", "S", "share without a detector"),
        rows,
    )


def _choices(study: GranularityDetectors) -> Table:
    rows: list[list[object]] = []
    for labels in LABELS:
        found = parameter_choices(
            labels=labels,
            d=study.d,
            subclasses=study.main,
            patches=study.patches,
            feature_patches=study.feature_patches,
            spread=study.spread,
            sigma=study.sigma,
            distractors=study.distractors,
            distraction=(study.distraction, study.distraction),
            strong=study.strong,
            neurons=study.neurons,
            threshold=study.threshold,
            sigma_0=study.sigma_0,
            lr=study.lr,
            batch=study.batch,
        )
        rows += [[labels, *row] for row in table_rows(found) if [labels, *row] not in rows]
    return Table(
        "premises",
        "How far the setting is from what the theorems assume",
        f"004 App. B.3 (m: App. C, G) with {study.main} subclasses a side; polylog(d) is read as "
        "log(d) and every constant as 1. Lines 4 and 10 together need log(d) of at least "
        f"{smallest_log_dimension():.0f}: no computer reaches that, so what is judged is whether a "
        "finite network already behaves as the theorems say.",
        ("labels", *COLUMNS),
        _both(rows),
    )


def _both(rows: list[list[object]]) -> list[list[object]]:
    """Lines that are the same for both kinds of labels once."""
    found: dict[tuple[object, ...], list[object]] = {}
    for row in rows:
        rest = tuple(row[1:])
        found[rest] = ["both", *rest] if rest in found else list(row)
    return list(found.values())
