"""Tables of ``granularity-detectors``."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import mean_band, mean_interval
from rarefy.studies.granularity.charts import PATCHES_AND_RATE, premise_table, setting_table
from rarefy.studies.granularity.detectors import theory
from rarefy.studies.granularity.detectors.end_claims import GAINS
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.judging import estimate
from rarefy.studies.granularity.detectors.measured import Measured
from rarefy.studies.granularity.detectors.set_claims import SILENT
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.tables import table
from rarefy.studies.kit.words import seeds_in_words, shown


def tables(experiment: DetectorsExperiment, results: xr.Dataset) -> list[Table]:
    found = [make(experiment, results) for make in (_sensitivity, _sets, _phases, _silence)]
    return [*found, setting_table(experiment), premise_table(experiment, experiment.main)]


def _sensitivity(study: DetectorsExperiment, results: xr.Dataset) -> Table:
    def values(read: Measured, labels: str) -> dict[str, str]:
        shares = (read.share(name, "subclass", labels, k)[:, -1] for name in ("detector", "able"))
        return {
            "growth ratio at the start": shown(read.growth_ratio(study.first, labels, k)),
            "final ratio of responses": _ratio(read.response_ratio(study.steps, labels, k)),
            "final response to a subclass feature": shown(read.end("subclass_response", labels, k)),
            **dict(zip(("of it, detectors", "of it, all of S"), map(shown, shares), strict=True)),
        }

    k, rows = study.main, []
    for variation in texts(results, "variation"):
        row, read = {"variation": variation}, Measured(study, results, variation)
        for labels in LABELS:
            row |= {f"{labels}: {name}": value for name, value in values(read, labels).items()}
        rows.append(row)
    rate = f" {PATCHES_AND_RATE}" if "patches x2" in study.variation else ""
    return table(
        "sensitivity",
        "What changes when the setting does",
        f"With {study.main} subclasses a side; one thing is changed at a time.{rate} Ratios are "
        "those of the feature a side shares to a subclass's feature; the last two columns of each "
        "kind are shares of the response to a subclass feature. Means with 95 % intervals over "
        f"{seeds_in_words(results)}.",
        rows,
    )


def _ratio(samples: np.ndarray) -> str:
    found = estimate(samples)
    if not np.isfinite(found.mean):
        return "not run"
    if not np.isfinite(found.low):
        return f"{found.mean:.3f}"
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _sets(study: DetectorsExperiment, results: xr.Dataset) -> Table:
    read = Measured(study, results)
    printed, wide = theory.expected_sets(study), theory.expected_sets(study, False)
    rows = []
    for k in read.subclasses:
        sizes = {f"{name}_size": size for name, size in theory.expected_sizes(study, k).items()}
        values = (
            f"{mean_interval(read.of(name, 'fine', k)).mean:.3g} ({expected:.3g})"
            for name, expected in {**sizes, "lacking": wide.none(2 + 2 * k)}.items()
        )
        rows.append([k, *values])
    return Table(
        "sets",
        "How many neurons of an output begin as detectors of a feature",
        "Measured, and in brackets expected by exact Gaussian probability (004 App. C, G.1). S* to "
        "the letter: exclusive in the whole dictionary of d words. Detectors: surely open on the "
        "feature, and on no other that occurs, whatever strengths and noise do. S: perhaps open. "
        "Last: features of an output without any detector. The paper has no neuron open on more "
        f"than a few words and none beyond sqrt(10 log d) along one (28)-(30): here a neuron is "
        f"open on {printed.words:.2g} words in the mean, and the chance that some neuron of an "
        f"output is open on more than 4 is {printed.many_words():.2g}, that one is too long "
        f"{printed.too_long():.2g}.",
        ("k", "S* to the letter", "detectors", "S", "share without a detector"),
        rows,
    )


def _phases(study: DetectorsExperiment, results: xr.Dataset) -> Table:
    read = Measured(study, results)
    rows = []
    for labels, k in product(LABELS, read.subclasses):
        score = read.score(labels, k)
        row = {
            "labels": labels,
            "k": k,
            "score at the start": shown(score[:, 0]),
            "updates until log(3/2)": shown(read.stop_time(labels, k)),
            "expected": f"{theory.predicted_stop(study, labels, k):.3g}",
            "score at the end": shown(score[:, -1]),
        }
        for words, printed in GAINS.items():
            late = read.late_growth(k, printed)
            said = shown(late) if len(late) else "loss never small"
            row[f"late growth over (98), C {words}"] = "" if labels == "fine" else said
        rows.append(row)
    return table(
        "phases",
        "How long phase 1 lasts, and how scores grow late",
        "The score is what an output gets from the s* common and s* subclass patches of a sample "
        f"of its own. Phase 1 ends when it reaches log(3/2) with fine labels (004 Def. G.2) and "
        f"1/d = {1 / study.d:.2g} with coarse ones (Def. D.1); updates until log(3/2) are given "
        "for both, measured and as they follow from the rates at the first step and the number of "
        "detectors expected. Last: with coarse labels the score should grow late as "
        "log(C t + constant) (98); how far it grew over what that gives, with the C that follows "
        "from the update and with the one printed in Lemma E.4. Means with 95 % intervals over "
        f"{seeds_in_words(results)}.",
        rows,
    )


def _silence(study: DetectorsExperiment, results: xr.Dataset) -> Table:
    rows = []
    for variation in texts(results, "variation"):
        read = Measured(study, results, variation)
        many = read.subclasses if variation == AS_CHOSEN else [study.main]
        rows += [{"variation": variation, **_silent(read, *at)} for at in product(LABELS, many)]
    return table(
        "silence",
        "Who answers where nobody should",
        "004 Theorem F.1 and G.1: a neuron outside S(v) never opens on v, none opens on noise, "
        "and answers to features of others never rise. The first two columns count such neurons "
        "over the size of S, at the read where they are most in the mean. Then what an output "
        "answers to one patch of another's feature at the start, how much of that is left at the "
        "end, and its answer to one patch of noise at the end. Means, some with 95 % intervals, "
        f"over {seeds_in_words(results)}.",
        rows,
    )


def _silent(read: Measured, labels: str, k: int) -> dict[str, object]:
    woken, noise = (np.max(mean_band(read.strangers(name, labels, k)).mean) for name in SILENT)
    others = read.of("other_response", labels, k)
    answer = mean_interval(read.of("noise_answer", labels, k)[:, -1]).mean
    return {
        "labels": labels,
        "k": k,
        "open outside S, over S": f"{woken:.3g}",
        "open on noise, over S": f"{noise:.3g}",
        "others' features, start": shown(others[:, 0]),
        "others' features, end over start": _ratio(others[:, [-1, 0]]),
        "noise, end": f"{answer:.2g}",
    }
