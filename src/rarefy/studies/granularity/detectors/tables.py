"""Tables of ``granularity-detectors``."""

from __future__ import annotations

from itertools import product

import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import mean_interval
from rarefy.studies.granularity.charts import premise_table, setting_table
from rarefy.studies.granularity.detectors import theory
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.measured import OWN, Measured
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words, shown


def tables(experiment: DetectorsExperiment, results: xr.Dataset) -> list[Table]:
    widths = {labels: experiment.of(labels) for labels in LABELS}
    premises = premise_table(widths["fine"], experiment.main, ", widths of fine labels")
    return [_learnt(experiment, results), setting_table(experiment, **widths), premises]


def _learnt(study: DetectorsExperiment, results: xr.Dataset) -> Table:
    rows = []
    for variation in texts(results, "variation"):
        read = Measured(study, results, variation)
        many = read.subclasses if variation == AS_CHOSEN else [study.main]
        rows += [{"variation": variation, **_row(read, *at)} for at in product(LABELS, many)]
    return table(
        "detectors",
        "Detectors, phase 1, and what has been learnt",
        "S*: neurons per feature that begin open on it and on no other word of the dictionary, and "
        "in brackets their number by exact Gaussian probability (004 App. C, G.1). Phase 1 ends "
        "when the score of a sample's own output, from s* patches of each kind, reaches log(3/2) "
        "(Def. G.2); expected: with the rates of the first update and the expected S*. Growth "
        f"ratio: common over subclass detectors, after {study.steps} updates. Means with 95 % "
        f"intervals over {seeds_in_words(results)}.",
        rows,
    )


def _row(read: Measured, labels: str, k: int) -> dict[str, object]:
    size = mean_interval(read.of("printed_size", labels, k)).mean
    exact = theory.expected_size(read.experiment, labels)
    shares = {
        f"share of S*, {kind}, end": shown(read.share("printed", kind, labels, k)[:, -1])
        for kind in OWN
    }
    return {
        "labels": labels,
        "k": k,
        "S*": f"{size:.3g} ({exact:.3g})",
        "updates of phase 1": shown(read.stop_time(labels, k)),
        "expected": f"{theory.predicted_stop(read.experiment, labels, k):.3g}",
        "growth ratio": shown(read.growth_ratio(read.experiment.steps, labels, k)),
        "score at the end": shown(read.score(labels, k)[:, -1]),
        **shares,
    }
