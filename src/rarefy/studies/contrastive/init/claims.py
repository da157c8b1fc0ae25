"""Verdicts of ``contrast-init``: C9, the counts and norms against their exact laws.

The bounds are in ``bounds``. A verdict over several ratios is decided by the worst of them,
with intervals corrected for their number: an error at one ratio does not vanish in a mean.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from scipy import stats

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, Identity, judge_bound, judge_equal, mean_interval
from rarefy.studies.contrastive.init.bounds import bound_verdicts
from rarefy.studies.contrastive.init.exact import coverage, expected, rows
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.theory import initial_sets as theory

TOLERANCE = 0.05
"""How far a count may be from its exact expectation, relatively; fixed before looking."""
LEAST_CASES = 400
"""Expected cases in all networks together from which a ratio is compared: 5 % standard error."""


def verdicts(experiment: InitExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    name = Naming(experiment, scale, after=f", {experiment.setting}")
    return [
        *_exact_sets(experiment, results, name),
        *_projections(experiment, results, name),
        *_exact_coverage(experiment, results, name),
        *bound_verdicts(experiment, results, name),
        *_norms(experiment, results, name),
    ]


def _judge_worst(
    identity: Identity,
    samples: np.ndarray,
    axis: str,
    labels: list[str],
    predicted: float,
    tolerance: float,
    standard_error: np.ndarray | None = None,
    note: str = "",
) -> Verdict:
    """All columns of samples (seed, case) are as predicted, decided by the worst.

    A case whose expected ``standard_error`` leaves an interval wider than the tolerance can tell
    that the law is wrong, but not that it is right: it cannot keep the verdict from holding.
    """
    level = corrected_level(len(labels))
    found = [mean_interval(samples[:, case], level) for case in range(len(labels))]
    precise = None
    if standard_error is not None:
        precise = list(2 * stats.norm.ppf((1 + level) / 2) * standard_error <= tolerance)
    low, high = ([interval[place] for interval in found] for place in (1, 2))
    worst = worst_of(low, high, predicted - tolerance, predicted + tolerance, precise)
    text = f"at {axis}={labels[worst]}, the worst of {', '.join(labels)}"
    if len(labels) > 1:
        text += f"; interval of {level:.2%}"
    if precise is not None and any(precise) and not all(precise):
        rare = [
            f"{label} ({interval.mean:.3g})"
            for label, interval, sure in zip(labels, found, precise, strict=True)
            if not sure
        ]
        text += f"; too few cases to be sure, judged only if clearly off: {', '.join(rare)}"
    note = joined(text, note)
    return judge_equal(identity, found[worst], predicted, tolerance, note=note)


def _exact_sets(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    found = []
    for quantity, symbol in (
        ("ordinary", "|M_j|"),
        ("lucky", "|M*_j|"),
        ("shared", "|M_j and M_j'|"),
        ("carried_most", "largest |N_i|"),
    ):
        for d in experiment.d:
            # how often a network counts: one set per feature, one pair of sets per pair of features
            sets = {"shared": d * (d - 1) / 2, "carried_most": math.inf}.get(quantity, d)
            networks = results.sizes["seed"] * experiment.networks(d)
            exact = np.array([expected(experiment, quantity, d, r) for r in experiment.ratio])
            cases = networks * sets * exact
            told = np.flatnonzero(cases >= LEAST_CASES)
            identity = name("C9", f"{symbol} over its exact mean, d={d} m={experiment.neurons(d)}")
            if not len(told):
                note = f"fewer than {LEAST_CASES} cases expected at every ratio"
                found.append(judge_equal(identity, np.empty(0), 1.0, TOLERANCE, note=note))
                continue
            over = rows(results[quantity], d)[:, told] / exact[told]
            labels = [f"{experiment.ratio[i]:g}" for i in told]
            error = cases[told] ** -0.5
            found.append(_judge_worst(identity, over, "ratio", labels, 1.0, TOLERANCE, error))
    return found


def _projections(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """Projections near 0 and far from it: counts that do not know the ratio, any one will do."""
    found = []
    for quantity, symbol in (
        ("near_zero", "|Lambda_i|, 001 (21),"),
        ("near_zero_most", "largest |Lambda_i|"),
        ("strong", "number of features above sigma_0 log^(1/4) d"),
        ("strong_most", "most features above sigma_0 log^(1/4) d"),
    ):
        exact = [expected(experiment, quantity, d, experiment.ratio[0]) for d in experiment.d]
        over = by_seed(results[quantity].isel(ratio=0), "d") / exact
        labels = [str(d) for d in experiment.d]
        identity = name("C9", f"{symbol} over its exact mean")
        found.append(_judge_worst(identity, over, "d", labels, 1.0, TOLERANCE))
    return found


def _exact_coverage(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """P(every feature has a lucky neuron), where it is neither certain nor impossible."""
    found = []
    what = "networks whose features all have a lucky neuron, share minus exact"
    for d in experiment.d:
        m = experiment.neurons(d)
        exact = np.array([coverage(experiment, d, ratio) for ratio in experiment.ratio])
        told = np.flatnonzero((exact >= 0.01) & (exact <= 0.99))
        if len(told):
            chance = exact[told]
            off = rows(results["all_covered"], d)[:, told] - chance
            labels = [f"{experiment.ratio[i]:g} (exact {exact[i]:.2f})" for i in told]
            networks = results.sizes["seed"] * experiment.networks(d)
            error = np.sqrt(chance * (1 - chance) / networks)
            identity = name("C9", f"{what}, d={d} m={m}")
            found.append(_judge_worst(identity, off, "ratio", labels, 0.0, TOLERANCE, error))
    if not found:
        note = "the exact chance is below 1 % or above 99 % everywhere"
        found.append(judge_equal(name("C9", what), np.empty(0), 0.0, TOLERANCE, note=note))
    return found


def _norms(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """(29), (30). The norms do not know the ratio: any one will do."""
    at = results.isel(ratio=0)
    found = []
    for quantity, symbol, number in (
        ("norm", "|w|^2/(sigma_0^2 d1)", "(29)"),
        ("feature_norm", "|M M^T w|^2/(sigma_0^2 d)", "(30)"),
    ):
        least, most, inside = (
            by_seed(at[f"{quantity}_{which}"], "d") for which in ("least", "most", "inside")
        )
        dimension = [experiment.d1 if quantity == "norm" else d for d in experiment.d]
        order = np.array(list(map(theory.norm_order, experiment.d, dimension)))
        off = np.maximum(1 - least, most - 1) / order
        worst = int(off.mean(axis=0).argmax())
        d, width = experiment.d[worst], BIG_O * order[worst]
        m = experiment.neurons(d)
        chance = theory.norms_within(dimension[worst], width, m)
        empty = "; that is more than 1, so the lower end says nothing" if width >= 1 else ""
        largest = name("C9", f"largest |{symbol} - 1| over log d/sqrt(dimension) {number}")
        note = (
            f"polylog read as log d, O(.) as {BIG_O:g}: within {width:.2g}{empty}; at d={d}, where "
            f"it is largest; exact chance that all {m} neurons of a network keep it: {chance:.4g}"
        )
        share = name("C9", f"share of neurons in the exact 95 % interval of {symbol}")
        labels = [str(d) for d in experiment.d]
        found += [
            judge_bound(largest, off[:, worst], BIG_O, "at_most", note=note),
            _judge_worst(share, inside, "d", labels, 0.95, 0.01, note="chi-square law"),
        ]
    return found
