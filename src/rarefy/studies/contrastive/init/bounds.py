"""C9 of ``contrast-init``, the bounds: O(.) and Omega(.) of Lemma B.2 (000) and C.1 (001).

A bound with a hidden constant says two things, judged apart: the *shape*, that quantity over order
does not grow (upper) or fall (lower) in d, by its log-log slope; and the *constant*, read as
BIG_O or OMEGA, at the largest d, because a bound is about large d. The counts end at a few hundred
features, where a quotient may still move the other way, so the shape is judged on the exact law at
``MANY`` features too.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.init import exact as law
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.theory import initial_sets as theory

SHAPE = 0.05
"""Slope in d still taken as none: less than that of a factor sqrt(log d), by which (238) and (239)
differ (0.14 over d = 9..256, 0.06 over d = 1024..8192), so that dropping it can be told. A log
factor is no power of d: a slope of 0.05 to 0.1 is a bound that is off by such a factor."""
RANGE = f"d={law.MANY[0]}..{law.MANY[-1]}"


def bound_verdicts(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    found = [_upper(experiment, results, bound, name) for bound in law.upper_bounds(experiment)]
    return [*chain.from_iterable(found), *_lower_bounds(experiment, results, name)]


def _computed(value: float) -> st.Slope:
    """A slope of the exact law: no spread; n is the number of d."""
    return st.Slope(value, value, value, len(law.MANY), len(law.MANY))


def _shape(identity: st.Identity, slope: st.Slope, *note: str) -> Verdict:
    return st.judge_upper_exponent(identity, slope, 0.0, SHAPE, note=joined(*note))


def _upper(
    experiment: InitExperiment, results: xr.Dataset, bound: law.Upper, name: Naming
) -> list[Verdict]:
    ratios = list(experiment.ratio) if bound.by_ratio else [experiment.ratio[0]]
    features = np.array(sorted(experiment.d))
    level = corrected_level(len(ratios))
    over = [law.counted_over(experiment, results, bound, r) for r in ratios]
    exact = [[bound.exact(experiment, d, r) for d in law.MANY] for r in ratios]

    def where(place: int, fine: list[bool]) -> str:
        if not bound.by_ratio:
            return "the ratio plays no part"
        note = f"at ratio {ratios[place]:g}, the least favourable"
        held = [f"{ratio:g}" for ratio, good in zip(ratios, fine, strict=True) if good]
        spelled = f"ratios {', '.join(held)}" if held else "no ratio"
        return note if all(fine) else f"{note}; as claimed for {spelled}"

    slopes = [st.loglog_slope(features, y, level) for y in over]
    worst = worst_of([s.low for s in slopes], [s.high for s in slopes], ceiling=SHAPE)
    beyond = [law.exact_slope(values) for values in exact]
    steep = name("C9", f"slope in d of {bound.symbol}{bound.over.rstrip(',')}")
    there = where(worst, [s.value <= SHAPE for s in slopes])
    ends = [st.mean_interval(y[:, -1], level) for y in over]
    at_end = worst_of([e.low for e in ends], [e.high for e in ends], ceiling=st.BIG_O)
    large = name("C9", f"{bound.symbol}{bound.over} at the largest d")
    note = joined(
        f"O(.) read as {st.BIG_O:g}; d={features[-1]}",
        where(at_end, [e.mean <= st.BIG_O for e in ends]),
        f"exact {bound.name} over the order: {exact[at_end][-1]:.3g} at d={law.MANY[-1]}",
    )
    far = worst_of(beyond, beyond, ceiling=SHAPE)
    only = "" if not bound.known else "the largest is at least its mean, judged here"
    farther = name("C9", f"slope in d of {bound.name}{bound.over} exact law at {RANGE}")
    least = where(far, [slope <= SHAPE for slope in beyond])
    reached = f"{exact[far][0]:.3g} at d={law.MANY[0]}, {exact[far][-1]:.3g} at d={law.MANY[-1]}"
    return [
        _shape(steep, slopes[worst], there, bound.note),
        st.judge_bound(large, ends[at_end], st.BIG_O, "at_most", note=note),
        _shape(farther, _computed(beyond[far]), "computed, not counted", only, least, reached),
    ]


def _lower_bounds(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """Xi_1 of (31), ratio by ratio, where it promises at least one neuron."""
    found = []
    for place, ratio in enumerate(experiment.ratio):
        every = {d: law.lucky_order(experiment, d, ratio) for d in sorted(experiment.d)}
        order = {d: value for d, value in every.items() if value >= 1}
        told = list(order)
        if not told:
            continue
        over = law.lucky_over(experiment, results, ratio, told)
        # the proof has a factor 1/sqrt(log d) in (238) and drops it in (239)
        for symbol, power in (("Xi_1 (31)", 0.0), ("Xi_1/sqrt(log d) (238)", 0.5)):
            factor = np.log(told) ** power
            found += _lower(experiment, symbol, power, told, over * factor, ratio, name)
        found.append(_promise(experiment, results, order, place, name))
    if not found:
        note = "Xi_1 is below one neuron everywhere"
        nowhere = name("C9", "mean |M*_j| over Xi_1 (31) at the largest d")
        found.append(st.judge_bound(nowhere, np.empty(0), st.OMEGA, "at_least", note=note))
    return found


def _lower(
    experiment: InitExperiment,
    symbol: str,
    power: float,
    told: list[int],
    over: np.ndarray,
    ratio: float,
    name: Naming,
) -> list[Verdict]:
    """over: (seed, d), mean |M*_j| over the order."""
    exact = [law.exact_over(experiment, d, ratio, power) for d in law.MANY]
    last, at = told[-1], f"ratio {ratio:g}"
    counted = st.loglog_slope(np.array(told), over)
    # a lower bound holds when order over count does not grow
    turned = st.Slope(
        -counted.value, -counted.high, -counted.low, counted.n_samples, counted.n_points
    )
    inverse = f"slope in d of {symbol} over mean |M*_j|"
    reached = f"{exact[0]:.3g} at d={law.MANY[0]}, {exact[-1]:.3g} at d={law.MANY[-1]}"
    seen = (
        f"counted at d={told[0]}..{last}: |M*_j| over the order is "
        f"{over[:, 0].mean():.3g} and {over[:, -1].mean():.3g}"
    )
    largest = name("C9", f"mean |M*_j| over {symbol} at the largest d, {at}")
    note = f"Omega read as {st.OMEGA:g}; d={last}; {_why(experiment, last, ratio)}"
    farther = name("C9", f"{inverse}, {at}, exact law at {RANGE}")
    told_by = f"computed, not counted: |M*_j| over the order is {reached}"
    beyond, why = _computed(-law.exact_slope(exact)), _why(experiment, law.MANY[-1], ratio)
    return [
        _shape(name("C9", f"{inverse}, {at}"), turned, seen, f"exact law beyond: {reached}"),
        st.judge_bound(largest, over[:, -1], st.OMEGA, "at_least", note=note),
        _shape(farther, beyond, told_by, why),
    ]


def _promise(
    experiment: InitExperiment,
    results: xr.Dataset,
    order: dict[int, float],
    place: int,
    name: Naming,
) -> Verdict:
    """A lucky neuron for every feature, where the bound's own mean would be enough for that.

    A mean of one neuron per feature leaves a third of the features without any: the bound promises
    full coverage only where OMEGA Xi_1 lucky neurons per feature, drawn at random, cover them all
    with high probability (about where OMEGA Xi_1 >= log(d/(1 - CHANCE))).
    """
    ratio = experiment.ratio[place]

    def covers(d: int) -> bool:
        m = experiment.neurons(d)
        return theory.coverage_probability(st.OMEGA * order[d] / m, d, m) >= law.CHANCE

    promised, last = [d for d in order if covers(d)], max(order)
    identity = name("C9", f"every feature has a lucky neuron, ratio {ratio:g}")
    if not promised:
        note = (
            f"not promised at any d: {st.OMEGA:g} Xi_1 lucky neurons a feature, "
            f"{st.OMEGA * order[last]:.3g} at d={last}, would not cover all features either"
        )
        return st.judge_bound(identity, np.empty(0), law.CHANCE, "at_least", note=note)
    d = promised[-1]
    m = experiment.neurons(d)
    note = (
        f"share of networks at d={d}, m={m}, the largest d at which {st.OMEGA:g} Xi_1="
        f"{st.OMEGA * order[d]:.3g} lucky neurons a feature would cover all features; exact chance "
        f"{law.coverage(experiment, d, ratio):.3g}; needed for {law.CHANCE:.0%}: "
        f"m={law.width_needed(experiment, d, ratio):.4g}"
    )
    covered = law.rows(results["all_covered"], d)[:, place]
    return st.judge_bound(identity, covered, law.CHANCE, "at_least", note=note)


def _why(experiment: InitExperiment, d: int, ratio: float) -> str:
    steps = theory.proof_steps(d, ratio, experiment.gamma)
    return (
        f"exactly, P(share high) is {steps.high / steps.high_order:.2g} of d^(-c_1/2), and P(all "
        f"others low) is {steps.others:.2g} where (238) takes 1"
    )
