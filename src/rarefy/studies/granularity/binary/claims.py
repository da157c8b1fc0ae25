"""Few pre-training classes, made hierarchies: no gain; a probe that loses."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import mean_interval
from rarefy.studies.granularity.images import claims as shared
from rarefy.studies.granularity.images.claims import Asked
from rarefy.studies.granularity.images.numbers import KINDS, best_of, of_kind, share_of_error
from rarefy.studies.kit.premise import undecided
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import GIVEN, TARGET

MADE = ("kmeans-within", "random-within")


def verdicts(experiment: GranularityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    asked = Asked(experiment, results, scale)
    other = asked.at("")  # (their primaries are in another study)
    few = _few(asked) if of_kind(results, GIVEN) else []
    found = [*shared.one_pass(other), *few, *shared.length(other), *shared.probe(asked)]
    return [*found, *_made(asked.at("classes"))]


def _few(asked: Asked) -> list[Verdict]:
    """G16: the coarsest level above the target gains nothing, where a finer one does."""
    results = asked.results
    few, *finer = of_kind(results, GIVEN)
    retrained = asked.error(TARGET)
    verdict = asked.no_gain(
        "G16.1", f"re-training less the coarsest level ({few})", retrained, asked.error(few)
    )
    if not finer:
        return [undecided(verdict, "no finer level was run")]
    best, which = best_of(results, finer)
    gain = mean_interval(share_of_error(results, retrained - best))
    # where nothing helps there is nothing to vanish
    why = f"{which} gains {gain.mean:.1f} % of the error, not certainly more than 0"
    return [undecided(verdict, "" if gain.low > 0 else why)]


def _made(asked: Asked) -> list[Verdict]:
    """G16: classes cut finer by clusters (as in Table 6), or random ids, gain nothing."""
    found = []
    for kind, claim in zip(MADE, ("G16.2", "G16"), strict=True):
        if labels := of_kind(asked.results, kind):
            best, which = best_of(asked.results, labels)
            what = f"re-training less {KINDS[kind]}"
            found.append(asked.no_gain(claim, what, asked.error(TARGET), best, which))
    return found
