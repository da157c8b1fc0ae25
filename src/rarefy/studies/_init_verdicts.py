"""Verdicts of ``contrast-init``: C9, the counts against their exact laws and against the bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import mean_band
from rarefy.measure.statistics import BIG_O, OMEGA, Identity, judge_bound, judge_equal
from rarefy.theory import initial_sets as theory

if TYPE_CHECKING:
    from rarefy.studies.contrast_init import ContrastInit

TOLERANCE = 0.05
"""How far a count may be from its exact expectation, relatively; fixed before looking."""
LEAST_CASES = 400
"""Expected cases in all networks together from which a ratio is compared: 5 % standard error."""
CHANCE = 0.95
"""How "with high probability" is read."""
Namer = Callable[[str], Identity]


def rows(values: xr.DataArray, d: int) -> np.ndarray:
    """(seed, ratio) array of one quantity at one d."""
    return values.sel(d=d).transpose("seed", "ratio").values


def init_verdicts(study: ContrastInit, results: xr.Dataset, scale: str) -> list[Verdict]:
    def name(what: str) -> Identity:
        return ("C9", study.name, scale, f"{what}, {study.setting}")

    return [
        *_exact_counts(study, results, name),
        *_exact_coverage(study, results, name),
        *_upper_bounds(study, results, name),
        *_lower_bounds(study, results, name),
        *_norms(study, results, name),
    ]


# ------------------------------------------------------------------------------- against exact laws


def expected(study: ContrastInit, quantity: str, d: int, ratio: float) -> float:
    """What a count is on average, exactly."""
    m, gamma = study.neurons(d), study.gamma
    if quantity == "carried_most":
        return theory.expected_largest_set(d, ratio, m, gamma)
    chance = {
        "ordinary": theory.ordinary_probability,
        "lucky": theory.lucky_probability,
        "shared": theory.shared_probability,
    }[quantity]
    return m * chance(d, ratio, gamma)


def _exact_counts(study: ContrastInit, results: xr.Dataset, name: Namer) -> list[Verdict]:
    found = []
    for quantity, symbol in (
        ("ordinary", "|M_j|"),
        ("lucky", "|M*_j|"),
        ("shared", "|M_j and M_j'|"),
        ("carried_most", "largest |N_i|"),
    ):
        for d in study.d:
            # how often a network counts: a set a feature, a pair of sets a pair of features
            sets = {"shared": d * (d - 1) / 2, "carried_most": math.inf}.get(quantity, d)
            networks = results.sizes["seed"] * study.networks(d)
            exact = np.array([expected(study, quantity, d, r) for r in study.ratio])
            told = np.flatnonzero(networks * sets * exact >= LEAST_CASES)
            over = rows(results[quantity], d)[:, told] / exact[told]
            identity = name(f"{symbol} over its exact mean, d={d} m={study.neurons(d)}")
            if not len(told):
                note = f"fewer than {LEAST_CASES} cases expected at every ratio"
                found.append(judge_equal(identity, np.empty(0), 1.0, TOLERANCE, note=note))
                continue
            note = f"mean over ratios {_listed(study, told)}; {_most_off(over)}"
            found.append(judge_equal(identity, over.mean(axis=1), 1.0, TOLERANCE, note=note))
    return found


def _listed(study: ContrastInit, told: np.ndarray) -> str:
    return ", ".join(f"{study.ratio[i]:g}" for i in told)


def _most_off(over: np.ndarray) -> str:
    """How far the worst single ratio is away, in standard errors."""
    band = mean_band(over)
    error = over.std(axis=0, ddof=1) / math.sqrt(len(over)) if len(over) > 1 else np.zeros(1)
    if not (error > 0).any():
        return "no spread"
    off = np.abs(band.mean - 1)[error > 0] / error[error > 0]
    return f"the worst of them is {off.max():.1f} standard errors off"


def _exact_coverage(study: ContrastInit, results: xr.Dataset, name: Namer) -> list[Verdict]:
    """P(every feature has a lucky neuron), where it is neither certain nor impossible."""
    found = []
    what = "networks whose features all have a lucky neuron, share minus exact"
    for d in study.d:
        exact = np.array(
            [
                theory.coverage_probability(_lucky(study, d, r), d, study.neurons(d))
                for r in study.ratio
            ]
        )
        told = np.flatnonzero((exact >= 0.01) & (exact <= 0.99))
        if len(told):
            off = (rows(results["all_covered"], d)[:, told] - exact[told]).mean(axis=1)
            chances = ", ".join(f"{study.ratio[i]:g} ({exact[i]:.2f})" for i in told)
            identity = name(f"{what}, d={d} m={study.neurons(d)}")
            note = f"mean over ratios (exact chance): {chances}"
            found.append(judge_equal(identity, off, 0.0, TOLERANCE, note=note))
    if not found:
        note = "the exact chance is below 1 % or above 99 % everywhere"
        found.append(judge_equal(name(what), np.empty(0), 0.0, TOLERANCE, note=note))
    return found


# ---------------------------------------------------------------------------------- against bounds


def _upper_bounds(study: ContrastInit, results: xr.Dataset, name: Namer) -> list[Verdict]:
    ratio = np.array(study.ratio)
    one = np.ones(len(ratio))
    bounds: list[tuple[str, str, Callable[[int], np.ndarray], str]] = [
        (
            "ordinary_most",
            "largest |M_j| over Xi_2 (31)",
            lambda d: theory.xi_2_order(study.neurons(d), d, ratio, study.gamma),
            "",
        ),
        (
            "carried_most",
            "largest |N_i| over d^(1-r^2), 000 Lemma B.2 (d)",
            lambda d: theory.set_size_order(d, ratio, study.gamma),
            "",
        ),
        (
            "carried_most",
            "largest |N_i|, O(1) in 001 Lemma C.1 (f)",
            lambda d: one,
            "its mean alone is d p_2, about d^(1-r^2), which no constant bounds when r < 1",
        ),
        (
            "shared_most",
            "largest |M_j and M_j'| over log d, 001 (23)",
            lambda d: theory.shared_order(d) * one,
            "its mean is about d^(C_m-2r^2), a power of d unless r^2 >= C_m/2",
        ),
        (
            "near_zero_most",
            "largest |Lambda_i| over d/log d, 001 (22)",
            lambda d: theory.near_zero_order(d) * one,
            "polylog read as log d",
        ),
        (
            "strong_most",
            "most features above sigma_0 log^(1/4) d over 2^-sqrt(log d) d, 001 (24)",
            lambda d: theory.strong_order(d) * one,
            "Omega read as 1",
        ),
    ]
    found = []
    for quantity, what, order, note in bounds:
        over = np.stack([rows(results[quantity], d) / order(d) for d in study.d], axis=1)
        mean = over.mean(axis=0)  # (d, ratio)
        at_d, at_ratio = np.unravel_index(mean.argmax(), mean.shape)
        within = (mean <= BIG_O).all(axis=0)
        where = f"at d={study.d[at_d]} ratio={ratio[at_ratio]:g}, where it is largest"
        if not within.all():
            where += f"; within {BIG_O:g} at every d for {_ratios(ratio[within])}"
        found.append(
            judge_bound(
                name(what),
                over[:, at_d, at_ratio],
                BIG_O,
                "at_most",
                note="; ".join(part for part in (f"O(.) read as {BIG_O:g}", note, where) if part),
            )
        )
    return found


def _ratios(values: np.ndarray) -> str:
    return "ratios " + ", ".join(f"{v:g}" for v in values) if len(values) else "no ratio"


def _lower_bounds(study: ContrastInit, results: xr.Dataset, name: Namer) -> list[Verdict]:
    """Xi_1 of (31), ratio by ratio, where it promises at least one neuron."""
    found = []
    for place, ratio in enumerate(study.ratio):
        order = {
            d: float(theory.xi_1_order(study.neurons(d), d, ratio, study.gamma)) for d in study.d
        }
        told = [d for d in study.d if order[d] >= 1]
        if not told:
            continue
        counts = {d: rows(results["lucky"], d)[:, place] for d in told}
        # the proof has a factor 1/sqrt(log d) in (238) and drops it in (239)
        for what, factor in (
            ("mean |M*_j| over Xi_1 (31)", dict.fromkeys(told, 1.0)),
            ("mean |M*_j| over Xi_1/sqrt(log d) (238)", {d: math.log(d) ** -0.5 for d in told}),
        ):
            over = {d: counts[d] / (order[d] * factor[d]) for d in told}
            worst = min(told, key=lambda d, over=over: over[d].mean())  # type: ignore[misc]
            found.append(
                judge_bound(
                    name(f"{what}, ratio {ratio:g}"),
                    over[worst],
                    OMEGA,
                    "at_least",
                    note=f"Omega read as {OMEGA:g}; at d={worst}, where it is smallest; "
                    + _why(study, worst, ratio),
                )
            )
        promised = [d for d in told if OMEGA * order[d] >= 1]
        if not promised:
            continue
        covered = {d: rows(results["all_covered"], d)[:, place] for d in promised}
        worst = min(promised, key=lambda d: (covered[d].mean(), d))
        found.append(
            judge_bound(
                name(f"every feature has a lucky neuron, ratio {ratio:g}"),
                covered[worst],
                CHANCE,
                "at_least",
                note=f"where {OMEGA:g} Xi_1 is at least one neuron; share of networks at "
                f"d={worst}, m={study.neurons(worst)}, Xi_1={order[worst]:.3g}; "
                f"needed for {CHANCE:.0%}: m={width_needed(study, worst, ratio):.4g}",
            )
        )
    if not found:
        note = "Xi_1 is below one neuron everywhere"
        nowhere = name("mean |M*_j| over Xi_1 (31)")
        found.append(judge_bound(nowhere, np.empty(0), OMEGA, "at_least", note=note))
    return found


def _why(study: ContrastInit, d: int, ratio: float) -> str:
    steps = theory.proof_steps(d, ratio, study.gamma)
    return (
        f"exactly, P(share high) is {steps.high / steps.high_order:.2g} of d^(-c_1/2), and P(all "
        f"others low) is {steps.others:.2g} where (238) takes 1"
    )


def _lucky(study: ContrastInit, d: int, ratio: float) -> float:
    return theory.lucky_probability(d, ratio, study.gamma)


def width_needed(study: ContrastInit, d: int, ratio: float) -> float:
    """Neurons with which every feature has a lucky one with high probability."""
    return theory.minimum_width(_lucky(study, d, ratio), d, CHANCE)


# ------------------------------------------------------------------------------------------- norms


def _norms(study: ContrastInit, results: xr.Dataset, name: Namer) -> list[Verdict]:
    """(29), (30). The norms do not know the ratio: any one will do."""
    at = results.isel(ratio=0)
    found = []
    for quantity, symbol, number in (
        ("norm", "|w|^2/(sigma_0^2 d1)", "(29)"),
        ("feature_norm", "|M M^T w|^2/(sigma_0^2 d)", "(30)"),
    ):
        least, most, inside = (
            at[f"{quantity}_{which}"].transpose("seed", "d").values
            for which in ("least", "most", "inside")
        )
        dimension = [study.d1 if quantity == "norm" else d for d in study.d]
        order = np.array(
            [theory.norm_order(d, size) for d, size in zip(study.d, dimension, strict=True)]
        )
        off = np.maximum(1 - least, most - 1) / order
        worst = int(off.mean(axis=0).argmax())
        d = study.d[worst]
        chance = theory.norms_within(dimension[worst], BIG_O * order[worst], study.neurons(d))
        width = BIG_O * order[worst]
        empty = "; that is more than 1, so the lower end says nothing" if width >= 1 else ""
        found.append(
            judge_bound(
                name(f"largest |{symbol} - 1| over log d/sqrt(dimension) {number}"),
                off[:, worst],
                BIG_O,
                "at_most",
                note=f"polylog read as log d, O(.) as {BIG_O:g}: within {width:.2g}{empty}; at "
                f"d={d}, where it is largest; exact chance that all {study.neurons(d)} neurons "
                f"of a network keep it: {chance:.4g}",
            )
        )
        worst = int(np.abs(inside.mean(axis=0) - 0.95).argmax())
        found.append(
            judge_equal(
                name(f"share of neurons in the exact 95 % interval of {symbol}"),
                inside[:, worst],
                0.95,
                0.01,
                note=f"chi-square law; at d={study.d[worst]}, where it is most off",
            )
        )
    return found
