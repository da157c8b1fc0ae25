"""How fast the error falls with x = |S_k|^2 |u_k|^4/(|S_j| |A_k^T A_j|_F^2) (003 Theorem 1, 2(a)).

For equal classes x = |S| |u|^4/|A_k^T A_j|_F^2, and the theorem says error <= (K - 1) exp(-c_1 x)
for x >= C_1 (here ``FITTED_FROM``). Four readings: the constant c_1 does not fade along x;
-log(error) grows with x at least linearly; the squared separation does, which a factor in front of
the exponential cannot disturb, in |S| and in |u|; and errors are a function of x.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Interval,
    bootstrap_interval,
    judge_bound,
)
from rarefy.studies.benign._constants import READ
from rarefy.studies.benign._features_map import FITTED_FROM, FeatureMap
from rarefy.studies.benign._features_separation import (
    Array,
    Mask,
    error_of,
    exponents,
    least_error,
    mean_error,
    separation,
    spread_about,
)

SHORT = 0.1
"""Part of an exponent by which a fit over a decade or two may fall short of "at least"; less than
the quarter granted to exponents elsewhere, because x is exact here."""
SAID = "separation: lead, in standard deviations, of the right one of K normal scores that err so"
FEWEST = 4
"""Cells under which no law is fitted."""


def fall_verdicts(here: FeatureMap) -> list[Verdict]:
    cells = here.measured()
    why = _unfit(here, cells)
    if why:
        what = here.identity("B3", "-log(error) at least linear in x")
        return [judge_bound(what, np.empty(0), 1.0, "at_least", note=why)]
    return [_constant(here, cells), *_exponents(here, cells), _collapse(here, cells)]


def _unfit(here: FeatureMap, cells: Mask) -> str:
    """Why nothing can be said, or nothing."""
    region = here.ratio >= FITTED_FROM
    if not region.any():
        return "premise not met: x is below 1 on the whole grid"
    if not here.overfits(region):
        loss, error = here.train_loss[:, region], here.error[:, region].mean(axis=0)
        return (
            f"premise not met: the median training loss where x >= 1 is {np.nanmedian(loss):.3g}; "
            f"the error there is {error.min():.3g} to {error.max():.3g} at x up to "
            f"{here.ratio.max():.3g}"
        )
    if cells.sum() < FEWEST or len(set(here.ratio[cells])) < FEWEST:
        return f"{cells.sum()} cells with x >= 1 have an error that can be counted: too few"
    return ""


def _range(here: FeatureMap, cells: Mask) -> str:
    """Where the laws were read, for a note."""
    x, error = here.ratio[cells], here.mean_error()[cells]
    tested = here.study.test_samples * len(here.error)
    return (
        f"x = |S| |u|^4/|A_k^T A_j|_F^2; {cells.sum()} cells, x {x.min():.3g} to {x.max():.3g}, "
        f"error {error.max():.2g} to {error.min():.2g} (floor {least_error(tested):.2g})"
    )


def _from_c_1(here: FeatureMap, value: Callable[[Mask], float]) -> str:
    """What the cells with x >= C_1 alone would give, for a note; nothing where they are few."""
    cells = here.measured(READ.features)
    if cells.sum() < 2 * FEWEST or len(set(here.ratio[cells])) < FEWEST:
        return ""
    return f"; {value(cells):.2g} over the {cells.sum()} cells with x >= {READ.features:g}"


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


# ------------------------------------------------------------------------------- the four readings


def rate(here: FeatureMap, error: Array) -> Array:
    """-log(error)/x."""
    return np.asarray(-np.log(error) / here.ratio)


def _constant(here: FeatureMap, cells: Mask) -> Verdict:
    """-log(error)/x over the lowest octave of x against that over the highest."""
    x = here.ratio
    first, last = cells & (x <= 2 * x[cells].min()), cells & (x >= x[cells].max() / 2)

    def fading(error: Array) -> float:
        found = rate(here, mean_error(error, here.study.test_samples))
        return float(found[first].mean() / found[last].mean())

    found = rate(here, here.mean_error())
    note = (
        f"-log(error)/x is {found[first].mean():.3g} in the lowest and {found[last].mean():.3g} in "
        "the highest octave; (K - 1) exp(-c_1 x) is above all errors that can be counted with "
        f"c_1 = {here.largest_constant():.3g}; {_range(here, cells)}"
    )
    return judge_bound(
        here.identity("B3", "factor by which -log(error)/x fades along x"),
        bootstrap_interval(here.error, fading),
        BIG_O,
        "at_most",
        note=note,
    )


def lawful_exponent(here: FeatureMap, cells: Mask) -> float:
    """Exponent of -log(error) in x, over the same cells, of normal scores whose squared separation
    is proportional to x: what a law that obeys the bound shows over so short a range."""
    x, error = here.ratio[cells], here.mean_error()[cells]
    slope = float(np.median(separation(error, here.classes) ** 2 / x))
    law = error_of(np.sqrt(slope * x), here.classes)
    return float(np.polyfit(np.log(x), np.log(-np.log(law)), 1)[0])


def _exponents(here: FeatureMap, cells: Mask) -> list[Verdict]:
    log_x = np.log(here.ratio)
    log_size = np.broadcast_to(np.log(here.size)[:, None], log_x.shape)
    log_strength = np.broadcast_to(np.log(here.strength), log_x.shape)
    far, seen, expected = beyond(here, cells)
    outside = (
        f"normal scores with a squared separation proportional to x, which obey the bound, would "
        f"give {lawful_exponent(here, cells):.2g} on the same cells; in {far} cells of larger x "
        f"{seen} errors were seen, the fit expects {expected:.3g}"
    )

    def in_x(among: Mask) -> Interval:
        tested = here.study.test_samples
        return exponents(here.error, among, "log", here.classes, tested, log_x)[0]

    plain = in_x(cells)
    outside += _from_c_1(here, lambda among: in_x(among).mean)
    both = (here.error, cells)
    in_size, in_strength = exponents(
        *both, "separation", here.classes, here.study.test_samples, log_size, log_strength
    )
    return [
        _at_least(here, "exponent of -log(error) in x", plain, 1.0, 0.0, outside),
        _at_least(here, "exponent of the squared separation in |S|", in_size, 1.0, SHORT, SAID),
        _at_least(here, "exponent of the squared separation in |u|", in_strength, 4.0, SHORT, SAID),
    ]


def _at_least(
    here: FeatureMap, what: str, found: Interval, claimed: float, short: float, note: str
) -> Verdict:
    allowed = f"claimed at least {claimed:g}"
    allowed += f", {short:.0%} less allowed" if short else ""
    return judge_bound(
        here.identity("B3", what),
        found,
        claimed * (1 - short),
        "at_least",
        note=f"{allowed}; {note}" if note else allowed,
    )


def _collapse(here: FeatureMap, cells: Mask) -> Verdict:
    """Whether x is what errors depend on: the spread of separations about a smooth function of x,
    over that about one of |u| alone."""
    log_x = np.log(here.ratio)
    log_strength = np.log(np.broadcast_to(here.strength, here.ratio.shape))

    def about(error: Array, among: Mask = cells) -> tuple[float, float]:
        found = separation(mean_error(error, here.study.test_samples)[among], here.classes)
        return spread_about(found, log_x[among]), spread_about(found, log_strength[among])

    in_x, in_strength = about(here.error)
    note = (
        f"root mean square of separations about a cubic in log x {in_x:.3g}, in log |u| "
        f"{in_strength:.3g}"
        + _from_c_1(here, lambda among: float(np.divide(*about(here.error, among))))
    )
    if len(here.size) < 2:
        empty = Interval(np.nan, np.nan, np.nan, 0)
        note = "one class size: nothing to collapse"
        return judge_bound(_collapsed(here), empty, OMEGA, "at_most", note=note)
    found = bootstrap_interval(here.error, lambda error: float(np.divide(*about(error))))
    return judge_bound(_collapsed(here), found, OMEGA, "at_most", note=note)


def _collapsed(here: FeatureMap) -> tuple[str, str, str, str]:
    return here.identity("B3", "errors collapse onto x: spread about x over spread about |u|")
