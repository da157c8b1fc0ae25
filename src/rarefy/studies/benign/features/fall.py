"""How fast the error falls with x = |S_k|^2 |u_k|^4/(|S_j| |A_k^T A_j|_F^2) (003 Theorem 1, 2(a)).

For equal classes x = |S| |u|^4/|A_k^T A_j|_F^2, and the theorem says error <= (K - 1) exp(-c_1 x)
for x >= C_1 (judged from each of ``FITTED_FROM`` on). Four readings: the constant c_1 does not fade
along x; -log(error) grows with x at least linearly; the squared separation does, which a factor in
front of the exponential cannot disturb, in |S| and in |u|; and errors are a function of x.
"""

from __future__ import annotations

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.separation import (
    Array,
    Mask,
    error_of,
    exponents,
    least_error,
    mean_error,
    separation,
    spread_about,
)
from rarefy.measure.statistics import BIG_O, OMEGA, bootstrap_interval, judge_bound
from rarefy.studies.benign.features.map import FITTED_FROM, FeatureMap
from rarefy.studies.kit.reading import Naming

SHORT = 0.1
"""Part of an exponent by which a fit over a decade or two may fall short of "at least"; less than
the quarter granted to exponents elsewhere, because x is exact here."""
SAID = "separation: lead, in standard deviations, of the right one of K normal scores that err so"
FEWEST = 4
"""Cells under which no law is fitted."""
FEWEST_FOR_A_CUBIC = 8
"""Cells under which nothing is said of what a cubic, with its four coefficients, leaves."""


def fall_verdicts(here: FeatureMap, scale: str) -> list[Verdict]:
    """The four readings, from each start on."""
    found: list[Verdict] = []
    for least in FITTED_FROM:
        setting = f"{here.setting}: "
        named = Naming(here.study, scale, setting, f", from x = {least:g} on")
        cells = here.measured(least)
        why = _unfit(here, cells, least)
        if why:
            what = named("B3", "-log(error) at least linear in x")
            found.append(judge_bound(what, np.empty(0), 1.0, "at_least", note=why))
        else:
            found.append(_constant(here, cells, least, named))
            found += [*_exponents(here, cells, named), _collapse(here, cells, named)]
    return found


def beyond(here: FeatureMap, cells: Mask) -> tuple[int, int, float]:
    """Cells with a larger x than those that were fitted, in most of which no error was seen; errors
    seen in them; and errors that -log(error) = a x^p expects, fitted to the others."""
    x, error = here.ratio, np.minimum(here.mean_error(), 1 - 1e-9)  # log 0 of an error of 1
    power, level = np.polyfit(np.log(x[cells]), np.log(-np.log(error[cells])), 1)
    far = x > x[cells].max()
    tested = here.study.test_samples * len(here.error)
    expected = tested * float(np.exp(-np.exp(level) * x[far] ** power).sum())
    seen = round(here.study.test_samples * float(np.nansum(here.error[:, far])))
    return int(far.sum()), seen, expected


def lawful_exponent(here: FeatureMap, cells: Mask) -> float:
    """Exponent of -log(error) in x, over the same cells, of normal scores whose squared separation
    is proportional to x: what a law that obeys the bound shows over so short a range."""
    x, error = here.ratio[cells], here.mean_error()[cells]
    slope = float(np.median(separation(error, here.classes) ** 2 / x))
    law = error_of(np.sqrt(slope * x), here.classes)
    return float(np.polyfit(np.log(x), np.log(-np.log(law)), 1)[0])


def rate(here: FeatureMap, error: Array) -> Array:
    """-log(error)/x."""
    return np.asarray(-np.log(error) / here.ratio)


def _unfit(here: FeatureMap, cells: Mask, least: float) -> str:
    """Why nothing can be said, or nothing."""
    region = here.ratio >= least
    if not region.any():
        return f"premise not met: x is below {least:g} on the whole grid"
    if not here.overfits(region):
        loss, error = here.train_loss[:, region], here.error[:, region].mean(axis=0)
        return (
            f"premise not met: the median training loss where x >= {least:g} is "
            f"{np.nanmedian(loss):.3g}; the error there is {error.min():.3g} to "
            f"{error.max():.3g} at x up to {here.ratio.max():.3g}"
        )
    if cells.sum() < FEWEST or len(set(here.ratio[cells])) < FEWEST:
        return f"{cells.sum()} cells with x >= {least:g} have an error that can be counted: too few"
    return ""


def _range(here: FeatureMap, cells: Mask) -> str:
    """Where the laws were read, for a note."""
    x, error = here.ratio[cells], here.mean_error()[cells]
    tested = here.study.test_samples * len(here.error)
    return (
        f"x = |S| |u|^4/|A_k^T A_j|_F^2; {cells.sum()} cells, x {x.min():.3g} to "
        f"{x.max():.3g}, error {error.max():.2g} to {error.min():.2g} (floor "
        f"{least_error(tested):.2g})"
    )


def _constant(here: FeatureMap, cells: Mask, least: float, named: Naming) -> Verdict:
    """-log(error)/x over the lowest octave of x against that over the highest."""
    x = here.ratio
    first, last = cells & (x <= 2 * x[cells].min()), cells & (x >= x[cells].max() / 2)

    def fading(error: Array) -> float:
        found = rate(here, mean_error(error, here.study.test_samples))
        return float(found[first].mean() / found[last].mean())

    found = rate(here, here.mean_error())
    note = (
        f"-log(error)/x is {found[first].mean():.3g} in the lowest and "
        f"{found[last].mean():.3g} in the highest octave; (K - 1) exp(-c_1 x) is above all "
        f"errors that can be counted with c_1 = {here.largest_constant(least):.3g}; "
        f"{_range(here, cells)}"
    )
    return judge_bound(
        named("B3", "factor by which -log(error)/x fades along x"),
        bootstrap_interval(here.error, fading),
        BIG_O,
        "at_most",
        note=note,
    )


def _exponents(here: FeatureMap, cells: Mask, named: Naming) -> list[Verdict]:
    log_x = np.log(here.ratio)
    log_size = np.broadcast_to(np.log(here.size)[:, None], log_x.shape)
    log_strength = np.broadcast_to(np.log(here.strength), log_x.shape)
    far, seen, expected = beyond(here, cells)
    outside = (
        "normal scores with a squared separation proportional to x, which obey the bound, "
        f"would give {lawful_exponent(here, cells):.2g} on the same cells; in {far} cells of "
        f"larger x {seen} errors were seen, the fit expects {expected:.3g}"
    )
    told = (here.classes, here.study.test_samples)
    (plain,) = exponents(here.error, cells, "log", *told, log_x)
    in_size, in_strength = exponents(here.error, cells, "separation", *told, log_size, log_strength)
    squared = "exponent of the squared separation in"
    return [
        judge_bound(
            named("B3", what),
            found,
            claimed * (1 - short),
            "at_least",
            note=joined(
                f"claimed at least {claimed:g}" + (f", {short:.0%} less allowed" if short else ""),
                note,
            ),
        )
        for what, found, claimed, short, note in (
            ("exponent of -log(error) in x", plain, 1.0, 0.0, outside),
            (f"{squared} |S|", in_size, 1.0, SHORT, SAID),
            (f"{squared} |u|", in_strength, 4.0, SHORT, SAID),
        )
    ]


def _collapse(here: FeatureMap, cells: Mask, named: Naming) -> Verdict:
    """Whether x is what errors depend on: the spread of separations about a smooth function of
    x, over that about one of |u| alone."""
    log_x = np.log(here.ratio[cells])
    log_strength = np.log(np.broadcast_to(here.strength, here.ratio.shape)[cells])
    what = named("B3", "errors collapse onto x: spread about x over spread about |u|")
    if len(here.size) < 2 or cells.sum() < FEWEST_FOR_A_CUBIC:
        why = f"{cells.sum()} cells: too few for a cubic"
        why = why if len(here.size) > 1 else "one class size: nothing to collapse"
        return judge_bound(what, np.empty(0), OMEGA, "at_most", note=why)

    def about(error: Array) -> tuple[float, float]:
        found = separation(mean_error(error, here.study.test_samples)[cells], here.classes)
        return spread_about(found, log_x), spread_about(found, log_strength)

    in_x, in_strength = about(here.error)
    return judge_bound(
        what,
        bootstrap_interval(here.error, lambda error: float(np.divide(*about(error)))),
        OMEGA,
        "at_most",
        note=f"{cells.sum()} cells; root mean square of separations about a cubic in log x "
        f"{in_x:.3g}, in log |u| {in_strength:.3g}",
    )
