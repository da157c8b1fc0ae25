"""Verdicts of ``contrast-init``: C9, the bounds of Lemma B.2 (000) and Lemma C.1 (001).

A bound is about large d and about every ratio: its constant is judged at the largest d and the
ratio where it is least favourable, O(.) and Omega(.) read as 4 and 1/4. Whether quantity over order
goes on growing or falling in d, its *shape*, is a reading of its own.
"""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import xarray as xr
from scipy import special

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.init import exact as law
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.contrastive.words import elsewhere
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, judge_worst, worst_of
from rarefy.theory import initial_sets as theory

TOLERANCE = 0.05
"""How far a count may be from its exact expectation, relatively; fixed before looking."""
LEAST_CASES = 400
"""Expected cases in all networks together from which a count is compared: 5 % standard error."""
SHAPE = 0.05
"""Slope in d still taken as none: less than that of a factor sqrt(log d), 0.14 over d = 9..256."""


def verdicts(experiment: InitExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    name = Naming(experiment, scale, after=f", {experiment.setting}")
    upper = (_upper(experiment, results, bound, name) for bound in law.upper_bounds(experiment))
    found = [
        *_lower(experiment, results, name),
        *chain.from_iterable(upper),
        *_norms(experiment, results, name),
        *(_as_computed(experiment, results, quantity, name) for quantity in ("ordinary", "lucky")),
    ]
    return elsewhere(found, scale)


def _lower(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """Xi_1 of (31), at the ratios where it promises at least one neuron."""
    features = sorted(experiment.d)
    last = features[-1]
    told = [r for r in experiment.ratio if law.lucky_order(experiment, last, r) >= 1]
    over = {r: law.lucky_over(experiment, results, r, features) for r in told}
    cases = {f"ratio {r:g}": values[:, -1] for r, values in over.items()}
    factor = math.sqrt(math.log(last))  # the proof has it in (238) and drops it in (239)
    note, constant = f"d={last}; Omega read as {st.OMEGA:g}", "mean |M*_j| over Xi_1 (31)"
    if told:
        beyond = law.exact_over(experiment, law.FAR, min(told))
        note += f"; exactly {beyond:.3g} at d={law.FAR}, ratio {min(told):g}"
    else:
        note += "; Xi_1 is below one neuron everywhere"
    first = name("C9.1", f"{constant} at the largest d")
    found = [judge_worst(first, cases, st.OMEGA, "at_least", note)]
    if told:
        even, restored = f"balanced: {constant}", f"{constant} with the 1/sqrt(log d) of (238)"
        most = over[max(told)][:, -1]
        raised = {case: factor * values for case, values in cases.items()}
        slopes = {r: _turned(st.loglog_slope(np.array(features), v)) for r, v in over.items()}
        shape = name("C9", "shape: slope in d of Xi_1 (31) over mean |M*_j|")
        found += [
            st.judge_bound(name("C9", even), most, st.OMEGA, "at_least"),
            judge_worst(name("C9", restored), raised, st.OMEGA, "at_least"),
            _steepest(shape, slopes),
        ]
    return found


def _turned(slope: st.Slope) -> st.Slope:
    """A lower bound has the right shape when order over count does not grow."""
    return st.Slope(-slope.value, -slope.high, -slope.low, slope.n_samples, slope.n_points)


def _steepest(identity: st.Identity, slopes: dict[float, st.Slope], note: str = "") -> Verdict:
    low, high = [slope.low for slope in slopes.values()], [slope.high for slope in slopes.values()]
    ratio = list(slopes)[worst_of(low, high, ceiling=SHAPE)]
    said = joined(f"at ratio {ratio:g}, the least favourable", note)
    return st.judge_upper_exponent(identity, slopes[ratio], 0.0, SHAPE, note=said)


def _upper(
    experiment: InitExperiment, results: xr.Dataset, bound: law.Upper, name: Naming
) -> list[Verdict]:
    features = np.array(sorted(experiment.d))
    over = {r: bound.over(experiment, results, r) for r in experiment.ratio}
    cases = {f"ratio {r:g}": values[:, -1] for r, values in over.items()}
    note = joined(f"d={features[-1]}; O(.) read as {st.BIG_O:g}", bound.note)
    identity = name(bound.constant, f"{bound.what} at the largest d")
    found = [judge_worst(identity, cases, st.BIG_O, "at_most", note)]
    if bound.shape is not None:
        slopes = {r: st.loglog_slope(features, values) for r, values in over.items()}
        shape = name(bound.shape, f"shape: slope in d of {bound.what}")
        found.append(_steepest(shape, slopes, bound.note))
    return found


def _norms(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """(29), (30). The norms do not know the ratio: any one will do."""
    at = results.isel(ratio=0)
    found = []
    for quantity, what in (("norm", "|w|^2 (29)"), ("feature_norm", "|M M^T w|^2 (30)")):
        cases = {}
        for d in experiment.d:
            least, most = (at[f"{quantity}_{end}"].sel(d=d).values for end in ("least", "most"))
            order = theory.norm_order(d, experiment.d1 if quantity == "norm" else d)
            cases[f"d={d}"] = np.maximum(1 - least, most - 1) / order
        identity = name("C9", f"{what} over its mean, largest |. - 1| over log d/sqrt(dimension)")
        note = f"polylog read as log d, O(.) as {st.BIG_O:g}"
        found.append(judge_worst(identity, cases, st.BIG_O, "at_most", note))
    return found


def _as_computed(
    experiment: InitExperiment, results: xr.Dataset, quantity: str, name: Naming
) -> Verdict:
    """Counts over their exact means, by the worst of all d and ratios: a check of ours. A case with
    an expected interval wider than the tolerance can tell that the law is wrong, not that it is
    right: it cannot keep the verdict from holding."""
    symbol = {"ordinary": "|M_j|", "lucky": "|M*_j|"}[quantity]
    identity = name("", f"{symbol} over its exact mean")
    cases, errors = {}, []
    for d in experiment.d:
        for ratio in experiment.ratio:
            mean = law.expected(experiment, quantity, d, ratio)
            seen = results.sizes["seed"] * experiment.networks(d) * d * mean
            if seen >= LEAST_CASES:
                counted = results[quantity].sel(d=d, ratio=ratio)
                cases[f"d={d}, ratio {ratio:g}"] = by_seed(counted) / mean
                errors.append(seen**-0.5)
    if not cases:
        note = f"fewer than {LEAST_CASES} cases expected everywhere"
        return st.judge_equal(identity, [], 1.0, TOLERANCE, note=note)
    level = corrected_level(len(cases))
    found = [st.mean_interval(values, level) for values in cases.values()]
    precise = 2 * special.ndtri((1 + level) / 2) * np.array(errors) <= TOLERANCE
    low, high = ([interval[place] for interval in found] for place in (1, 2))
    worst = worst_of(low, high, 1 - TOLERANCE, 1 + TOLERANCE, precise.tolist())
    note = f"at {list(cases)[worst]}, the worst of {len(cases)}"
    return st.judge_equal(identity, found[worst], 1.0, TOLERANCE, note=note)
