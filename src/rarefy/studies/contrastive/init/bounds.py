"""C9 of ``contrast-init``, the bounds: O(.) and Omega(.) of Lemma B.2 (000) and C.1 (001).

A bound with a hidden constant says two things, judged apart: the *shape*, that quantity over order
does not grow (upper) or fall (lower) in d, by its log-log slope; and the *constant*, read as
BIG_O or OMEGA, at the largest d, because a bound is about large d. The counts end at a few hundred
features, where a quotient may still move the other way, so the shape is judged on the exact law at
``MANY`` features too.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Slope,
    judge_bound,
    judge_upper_exponent,
    loglog_slope,
    mean_interval,
)
from rarefy.studies.contrastive.init.exact import (
    CHANCE,
    MANY,
    Upper,
    counted_over,
    coverage,
    exact_over,
    exact_slope,
    lucky_order,
    lucky_over,
    rows,
    upper_bounds,
    width_needed,
)
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.theory import initial_sets as theory

SHAPE = 0.05
"""Slope in d still taken as none: less than that of a factor sqrt(log d), by which (238) and (239)
differ (0.14 over d = 9..256, 0.06 over d = 1024..8192), so that dropping it can be told. A log
factor is no power of d: a slope of 0.05 to 0.1 is a bound that is off by such a factor."""
RANGE = f"d={MANY[0]}..{MANY[-1]}"


def bound_verdicts(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    found = [
        v for bound in upper_bounds(experiment) for v in _upper(experiment, results, bound, name)
    ]
    return found + _lower_bounds(experiment, results, name)


def _computed(value: float) -> Slope:
    """A slope of the exact law: no spread; n is the number of d."""
    return Slope(value, value, value, len(MANY), len(MANY))


# ------------------------------------------------------------------------------------ upper bounds


def _upper(
    experiment: InitExperiment, results: xr.Dataset, bound: Upper, name: Naming
) -> list[Verdict]:
    ratios = list(experiment.ratio) if bound.by_ratio else [experiment.ratio[0]]
    features = np.array(sorted(experiment.d))
    level = corrected_level(len(ratios))
    over = [counted_over(experiment, results, bound, r) for r in ratios]
    exact = [[bound.exact(experiment, d, r) for d in MANY] for r in ratios]

    def where(place: int, fine: list[bool]) -> str:
        if not bound.by_ratio:
            return "the ratio plays no part"
        note = f"at ratio {ratios[place]:g}, the least favourable"
        held = [f"{ratio:g}" for ratio, good in zip(ratios, fine, strict=True) if good]
        spelled = f"ratios {', '.join(held)}" if held else "no ratio"
        return note if all(fine) else f"{note}; as claimed for {spelled}"

    slopes = [loglog_slope(features, y, level) for y in over]
    worst = worst_of([s.low for s in slopes], [s.high for s in slopes], ceiling=SHAPE)
    beyond = [exact_slope(values) for values in exact]
    shape = judge_upper_exponent(
        name("C9", f"slope in d of {bound.symbol}{bound.over.rstrip(',')}"),
        slopes[worst],
        0.0,
        SHAPE,
        note=joined(where(worst, [s.value <= SHAPE for s in slopes]), bound.note),
    )
    ends = [mean_interval(y[:, -1], level) for y in over]
    at_end = worst_of([e.low for e in ends], [e.high for e in ends], ceiling=BIG_O)
    constant = judge_bound(
        name("C9", f"{bound.symbol}{bound.over} at the largest d"),
        ends[at_end],
        BIG_O,
        "at_most",
        note=joined(
            f"O(.) read as {BIG_O:g}; d={features[-1]}",
            where(at_end, [e.mean <= BIG_O for e in ends]),
            f"exact {bound.name} over the order: {exact[at_end][-1]:.3g} at d={MANY[-1]}",
        ),
    )
    far = worst_of(beyond, beyond, ceiling=SHAPE)
    only = "" if not bound.known else "the largest is at least its mean, judged here"
    law = judge_upper_exponent(
        name("C9", f"slope in d of {bound.name}{bound.over} exact law at {RANGE}"),
        _computed(beyond[far]),
        0.0,
        SHAPE,
        note=joined(
            "computed, not counted",
            only,
            where(far, [slope <= SHAPE for slope in beyond]),
            f"{exact[far][0]:.3g} at d={MANY[0]}, {exact[far][-1]:.3g} at d={MANY[-1]}",
        ),
    )
    return [shape, constant, law]


# ------------------------------------------------------------------------------------ lower bounds


def _lower_bounds(experiment: InitExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    """Xi_1 of (31), ratio by ratio, where it promises at least one neuron."""
    found = []
    for place, ratio in enumerate(experiment.ratio):
        order = {d: lucky_order(experiment, d, ratio) for d in experiment.d}
        told = [d for d in sorted(experiment.d) if order[d] >= 1]
        if not told:
            continue
        over = lucky_over(experiment, results, ratio, told)
        # the proof has a factor 1/sqrt(log d) in (238) and drops it in (239)
        for symbol, power in (("Xi_1 (31)", 0.0), ("Xi_1/sqrt(log d) (238)", 0.5)):
            factor = np.log(told) ** power
            found += _lower(experiment, symbol, power, told, over * factor, ratio, name)
        found.append(_promise(experiment, results, told, order, place, name))
    if not found:
        note = "Xi_1 is below one neuron everywhere"
        nowhere = name("C9", "mean |M*_j| over Xi_1 (31) at the largest d")
        found.append(judge_bound(nowhere, np.empty(0), OMEGA, "at_least", note=note))
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
    exact = [exact_over(experiment, d, ratio, power) for d in MANY]
    last, at = told[-1], f"ratio {ratio:g}"
    counted = loglog_slope(np.array(told), over)
    # a lower bound holds when order over count does not grow
    turned = Slope(-counted.value, -counted.high, -counted.low, counted.n_samples, counted.n_points)
    inverse = f"slope in d of {symbol} over mean |M*_j|"
    reached = f"{exact[0]:.3g} at d={MANY[0]}, {exact[-1]:.3g} at d={MANY[-1]}"
    return [
        judge_upper_exponent(
            name("C9", f"{inverse}, {at}"),
            turned,
            0.0,
            SHAPE,
            note=f"counted at d={told[0]}..{last}: |M*_j| over the order is "
            f"{over[:, 0].mean():.3g} and {over[:, -1].mean():.3g}; exact law beyond: {reached}",
        ),
        judge_bound(
            name("C9", f"mean |M*_j| over {symbol} at the largest d, {at}"),
            over[:, -1],
            OMEGA,
            "at_least",
            note=f"Omega read as {OMEGA:g}; d={last}; {_why(experiment, last, ratio)}",
        ),
        judge_upper_exponent(
            name("C9", f"{inverse}, {at}, exact law at {RANGE}"),
            _computed(-exact_slope(exact)),
            0.0,
            SHAPE,
            note=f"computed, not counted: |M*_j| over the order is {reached}; "
            + _why(experiment, MANY[-1], ratio),
        ),
    ]


def _promise(
    experiment: InitExperiment,
    results: xr.Dataset,
    told: list[int],
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
        return theory.coverage_probability(OMEGA * order[d] / m, d, m) >= CHANCE

    promised = [d for d in told if covers(d)]
    identity = name("C9", f"every feature has a lucky neuron, ratio {ratio:g}")
    if not promised:
        note = (
            f"not promised at any d: {OMEGA:g} Xi_1 lucky neurons a feature, "
            f"{OMEGA * order[told[-1]]:.3g} at d={told[-1]}, would not cover all features either"
        )
        return judge_bound(identity, np.empty(0), CHANCE, "at_least", note=note)
    d = promised[-1]
    m = experiment.neurons(d)
    exact = coverage(experiment, d, ratio)
    return judge_bound(
        identity,
        rows(results["all_covered"], d)[:, place],
        CHANCE,
        "at_least",
        note=f"share of networks at d={d}, m={m}, the largest d at which {OMEGA:g} Xi_1="
        f"{OMEGA * order[d]:.3g} lucky neurons a feature would cover all features; exact chance "
        f"{exact:.3g}; needed for {CHANCE:.0%}: m={width_needed(experiment, d, ratio):.4g}",
    )


def _why(experiment: InitExperiment, d: int, ratio: float) -> str:
    steps = theory.proof_steps(d, ratio, experiment.gamma)
    return (
        f"exactly, P(share high) is {steps.high / steps.high_order:.2g} of d^(-c_1/2), and P(all "
        f"others low) is {steps.others:.2g} where (238) takes 1"
    )
