"""Verdicts of ``topk-window``: Theorem 4.4 (S4) at SNR <= 1/n and Theorem 4.5 (S5), constants of
windows and thresholds read as 1.

The paper's algorithm (Sec. 3) sets weights to zero and goes on with the descent, ReLU'(0) = 1:
``revive``, the primary reading. The others are the same question under another choice.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.regions import Mask
from rarefy.studies.kit.arrays import known, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.phase.experiment import PRIMARY, READS_AS
from rarefy.studies.topk.phase.regions import FITTED, Numbers, at_end, axes_of
from rarefy.studies.topk.phase.tables import premises
from rarefy.studies.topk.window.experiment import WindowExperiment
from rarefy.theory import topk

MOST = 0.9
"""1 - delta: the theorems hold with that probability, and leave delta open."""


def spoken_of(experiment: WindowExperiment, sigma: Numbers, keep: Numbers) -> tuple[Mask, Mask]:
    """Cells (sigma, keep) of which Theorem 4.4 and Theorem 4.5 speak."""
    n, d, classes = experiment.samples, experiment.d, experiment.classes
    mu = np.full_like(sigma, experiment.mu)
    ratio = topk.snr(mu, sigma, d)
    low = topk.window_lower_order(d, mu, sigma, power=2)
    high = topk.window_upper_order(classes, np.full_like(sigma, n), mu, sigma)
    quiet = ratio <= topk.noise_threshold_order(n)
    window = (keep >= low[:, None]) & (keep <= high[:, None]) & quiet[:, None]
    return window, keep[None, :] <= topk.too_few(d, mu, sigma)[:, None]


def verdicts(experiment: WindowExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    window, few = spoken_of(experiment, *axes_of(results))
    for reading in texts(results, "reading"):
        named = Naming(experiment, scale, f"{READS_AS[reading]}: ", f", {experiment.setting}")
        test, train = (at_end(results, name, reading) for name in ("test_loss", "train_loss"))
        found += _rescue(named, experiment, results, reading, window, test, train)
        found += _too_few(named, experiment, reading, few, test, train)
    return found


def _roles(claim: str, reading: str) -> tuple[str, str]:
    """Ids of the two readings of a claim."""
    return (f"{claim}.1", f"{claim}.2") if reading == PRIMARY else (claim, claim)


def _rescue(
    named: Naming,
    experiment: WindowExperiment,
    results: xr.Dataset,
    reading: str,
    window: Mask,
    test: Numbers,
    train: Numbers,
) -> list[Verdict]:
    """Theorem 4.4. Its O(T epsilon) is read as Theorem 4.2's 8 e^4 T L_S, whose proof it shares."""
    rows, columns = np.nonzero(window)
    dense = np.flatnonzero(results["keep"].values == experiment.d)
    if not len(rows) or not len(dense):
        columns = dense = rows = np.empty(0, dtype=int)
    inside, fitted = test[:, rows, columns], train[:, rows, columns]
    whole = test[:, rows, np.broadcast_to(dense[:1], rows.shape)]
    classes, n = experiment.classes, experiment.samples
    chance = topk.chance_loss(classes)
    ceiling = topk.signal_test_loss_ceiling(fitted, classes, n)
    missed = premises(experiment, float(results["sigma"].min()))[0]
    why, loose, note = "", "", ""
    if len(rows):
        kept = np.unique(results["keep"].values[columns]).tolist()
        pooled = (inside, whole, fitted, inside / fitted)
        means = [st.mean_interval(values).mean for values in pooled]
        note = (
            f"K = {', '.join(map(str, kept))}; test loss {means[0]:.3g}, dense {means[1]:.3g}, "
            f"guessing {chance:.3g}, training loss {means[2]:.2g}; "
            f"test loss over T L_S {means[3] / classes:.3g}; Condition 4.1's d, "
            f"as printed, is missed {missed.ratio:.2g} times"
        )
        loose = "8 e^4 T L_S is not below log T" if (ceiling >= chance).any() else ""
    else:
        why = loose = "no cell has SNR <= 1/n and K in the window, or none is dense"
    at_most, below = _roles("S4", reading)
    what = "K in the window at SNR = 1/n, test loss"

    def share(claim: str, said: str, limit: Numbers) -> Verdict:
        shares = st.finite_mean(known(inside <= limit, inside, limit), 1)
        return st.judge_bound(
            named(claim, f"{what} at most {said}, share"), shares, MOST, "at_least", note=note
        )

    gap = st.finite_mean(inside - whole, 1)
    name = named(below, f"{what} minus that of dense training")
    found = [
        undecided(share(at_most, "8 e^4 T L_S", ceiling), loose),
        undecided(st.judge_difference(name, gap, "negative", note=note), why),
    ]
    if reading == PRIMARY:
        strict = share("S4", f"{st.BIG_O:g} T L_S", st.BIG_O * classes * fitted)
        found.append(undecided(strict, why))
    return found


def _too_few(
    named: Naming,
    experiment: WindowExperiment,
    reading: str,
    few: Mask,
    test: Numbers,
    train: Numbers,
) -> list[Verdict]:
    """Theorem 4.5. That loss may be there at any K: the note says so."""
    floor = st.OMEGA * topk.chance_loss(experiment.classes)
    why = "" if few.any() else "no K of the grid is under Theorem 4.5's bound"
    others = ~few & few.any(axis=1, keepdims=True)
    large, fitted = known(test >= floor, test), known(train < FITTED, train)[:, few]
    alike = st.finite_mean(large[:, others], None)
    loss = large[:, few]
    note = (
        f"K up to d (1 - sqrt(1 - exp(-2 mu^2/(pi sigma_p^2)))) - sqrt(d log 10); test loss "
        f"{st.finite_mean(test[:, few], None):.3g}; of the other K, dense among them, {alike:.0%} "
        "have it too"
        if few.any()
        else ""
    )
    order, small = _roles("S5", reading)
    found = [
        st.judge_bound(
            named(order, "K under Theorem 4.5's bound, test loss at least log(T)/4, share"),
            st.finite_mean(loss, 1),
            MOST,
            "at_least",
            note=note,
        ),
        st.judge_bound(
            named(small, f"K under Theorem 4.5's bound, training loss under {FITTED:g}, share"),
            st.finite_mean(fitted, 1),
            MOST,
            "at_least",
        ),
    ]
    return [undecided(one, why) for one in found]
