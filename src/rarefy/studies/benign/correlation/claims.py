"""Verdicts of ``benign-correlation``: the maps of Fig. 3 (B6), and Theorem 1 on them, statements
2(a) (B3), 2(b) (B4) and 3 (B5)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.benign.constants import READ, Constants, small_loss
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment
from rarefy.studies.benign.correlation.theory import Prediction, least_error, tail_errors
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming

NEAR = 0.05
"""Accuracy short of the best possible that still is "near-optimal": what a reader can make out in
a heat map's colours. Like the others fixed before this study ran, a first look being known."""
NO_FALL = 0.01
"""A fall of accuracy too small for a heat map's colours, a fifth of ``NEAR``. Near an accuracy of 1
test samples could tell it from none: the note says when the fall is certain."""
ALIKE = 0.02
"""Mean difference between two laws' maps up to which they count as the same."""
CELLS = 3
"""Fewest cells (Gamma, L) with errors enough that carry a constant."""
MOST = 0.9
"""Share of cells that makes "the regime is" true: boundaries are blurred by chance."""


def verdicts(study: CorrelationExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    ordered = results.sortby(["strength", "gamma"])
    for schedule in texts(results, "schedule"):
        here = ordered.sel(schedule=schedule)
        named = Naming(study, scale, f"{study.setting}, {schedule}: ")
        for law in texts(results, "law"):
            found += _figure(study, here.sel(law=law), law, named)
        found += _laws_alike(here, named)
        found += _theorem(study, here, named)
    return found


def _accuracy(results: xr.Dataset) -> np.ndarray:
    """(seed, strength, gamma), in the precision of the results."""
    return np.asarray(1 - results["test_error"].transpose("seed", "strength", "gamma").values)


def _figure(
    study: CorrelationExperiment, results: xr.Dataset, law: str, named: Naming
) -> list[Verdict]:
    strength, gamma = results["strength"].values, results["gamma"].values
    accuracy, weak = _accuracy(results), f"|u|={strength[0]:g}"
    best = 1 - least_error(study, gamma, law)
    means = accuracy.mean(axis=0)
    # Gamma from its smallest to its largest value, at the |u| where that helps least
    gain = accuracy[:, :, -1] - accuracy[:, :, 0]
    worst = int(gain.mean(axis=0).argmin())
    least = st.bootstrap_interval(gain, lambda drawn: float(drawn.mean(axis=0).min()))
    certain = "a certain fall, but " if least.high < 0 else ""
    return [
        st.judge_bound(
            named("B6", f"{law}, accuracy short of the best by noise, Gamma={gamma[-1]:g} {weak}"),
            best[-1] - accuracy[:, 0, -1],
            NEAR,
            "at_most",
            note=f"accuracy {means[0, -1]:.4f}, best {best[-1]:.4f}, "
            f"chance {1 / study.classes:.2f}",
        ),
        st.judge_trend(
            named("B6", f"{law}, accuracy rises with Gamma at {weak}"),
            st.spearman_trend(gamma, accuracy[:, 0], within_rows=True),
            "increasing",
            note=f"from {means[0, 0]:.3f} to {means[0, -1]:.3f}",
        ),
        st.judge_trend(
            named("B6", f"{law}, accuracy rises with |u| at Gamma={gamma[0]:g}"),
            st.spearman_trend(strength, accuracy[:, :, 0], within_rows=True),
            "increasing",
            note=f"from {means[0, 0]:.3f} to {means[-1, 0]:.3f}",
        ),
        st.judge_bound(
            named("B6", f"{law}, least gain over |u| from Gamma={gamma[0]:g} to {gamma[-1]:g}"),
            least,
            -NO_FALL,
            "at_least",
            note=f"at |u|={strength[worst]:g}: from {means[worst, 0]:.4f} to "
            f"{means[worst, -1]:.4f}; {certain}{NO_FALL:g} less counts as none",
        ),
    ]


def _laws_alike(results: xr.Dataset, named: Naming) -> list[Verdict]:
    """Fig. 3a against 3b: the paper shows one picture for both laws."""
    laws = texts(results, "law")
    found: list[Verdict] = []
    for law in laws if "gaussian" in laws else ():
        if law == "gaussian":
            continue
        gain = _accuracy(results.sel(law=law)) - _accuracy(results.sel(law="gaussian"))
        cells = gain.mean(axis=0)
        at = np.unravel_index(np.nanargmax(np.abs(cells)), cells.shape)
        strength, gamma = results["strength"].values[at[0]], results["gamma"].values[at[1]]
        largest = f"{cells[at]:+.3f} at |u|={strength:g} Gamma={gamma:g}"
        found += [
            st.judge_equal(
                named("B6", f"{law} minus gaussian, mean over the map"),
                gain.mean(axis=(1, 2)),
                0.0,
                ALIKE,
                note=f"largest {largest}",
            ),
            st.judge_bound(
                named("B6", f"{law} minus gaussian, largest of any cell"),
                st.bootstrap_interval(
                    gain, lambda drawn: float(np.nanmax(np.abs(drawn.mean(axis=0))))
                ),
                NEAR,
                "at_most",
                note=f"{largest}; a mean over the map would hide it; {NEAR:g} can be made out in "
                "a heat map",
            ),
        ]
    return found


def _theorem(study: CorrelationExperiment, results: xr.Dataset, named: Naming) -> list[Verdict]:
    """Where the training loss is at most epsilon: elsewhere Theorem 1 says nothing."""
    if "gaussian" not in results["law"].values:
        note = "needs gaussian among the laws"
        return [
            st.judge_bound(named(claim, "Theorem 1"), [], MOST, "at_least", note=note)
            for claim in ("B3", "B4", "B5")
        ]
    here = results.sel(law="gaussian")
    loss = by_seed(here["train_loss"], "strength", "gamma")
    tail = tail_errors(here["stratum_error"])
    far = tail["edge"].values > 0
    tails = by_seed(tail, "strength", "gamma", "edge")[..., far]
    tails = np.where((loss <= small_loss(study))[..., None], tails, np.nan)
    here = here.assign_coords(length=("length", tail["edge"].values[far]))
    return [*_tail(study, here, tails, loss, named), *_regimes(study, here, tails, loss, named)]


def _premise(study: CorrelationExperiment, loss: np.ndarray) -> str:
    """Why Theorem 1 says nothing about cells with such training losses, if that is so."""
    if (loss <= small_loss(study)).any():
        return ""
    least = f"{loss[np.isfinite(loss)].min():.3g}" if np.isfinite(loss).any() else "unknown"
    return f"premise not met: training loss {least} or more, not at most {small_loss(study):g}"


def _tail(
    study: CorrelationExperiment,
    results: xr.Dataset,
    tails: np.ndarray,
    loss: np.ndarray,
    named: Naming,
) -> list[Verdict]:
    """2(b) at the smallest |u|. tails: (seed, strength, gamma, length), NaN if not fitted."""
    gamma, lengths = results["gamma"].values, results["length"].values
    missing, at = _premise(study, loss[:, 0]), f"at |u|={results['strength'].values[0]:g}"
    large, tails = gamma >= READ.tail, tails[:, 0]
    error = tails[:, large]
    with np.errstate(divide="ignore"):
        constant = -np.log(error / (study.classes - 1))
    constant = constant / (gamma[large][:, None] * lengths**2)
    # too few errors to tell from none: any constant would do
    seen = np.where(error >= resolution(study)[1], constant, np.nan)
    cells = int(np.isfinite(seen).any(axis=0).sum())
    usable = np.isfinite(seen).any(axis=(1, 2)) & (cells >= CELLS)
    note = missing or f"errors enough to tell from none in {cells} cells (Gamma, L): too few"
    if usable.any():
        row, column = np.unravel_index(
            np.nanargmin(np.where(np.isnan(seen), np.inf, seen).min(axis=0)), seen.shape[1:]
        )
        note = (
            f"least at Gamma={gamma[large][row]:g} L={lengths[column]:g}, error there "
            f"{_mean(error, 0)[row, column]:.2g}; {cells} of {seen[0].size} cells (Gamma, L) have "
            "errors enough; c_2 is free, 1/4 is our reading"
        )
    return [
        st.judge_bound(
            named(
                "B4",
                "largest c_2 with error given |z|>=L at most (K-1)exp(-c_2 L^2 Gamma), "
                f"{at} and Gamma>={READ.tail:g}",
            ),
            np.array([np.nanmin(each) for each in seen[usable]]),
            READ.c_2,
            "at_least",
            note=note,
        ),
        *(
            st.judge_trend(
                named("B4", f"error given |z|>=L falls with {what}"),
                st.spearman_trend(axis, values, within_rows=True),
                "decreasing",
                note=missing or _ends(values),
            )
            for what, axis, values in (
                (f"L, {at}, mean over Gamma>={READ.tail:g}", lengths, _mean(error, 1)),
                (f"Gamma, {at}, mean over L", gamma, _mean(tails, 2)),
            )
        ),
    ]


def _regimes(
    study: CorrelationExperiment,
    results: xr.Dataset,
    tails: np.ndarray,
    loss: np.ndarray,
    named: Naming,
) -> list[Verdict]:
    """Share of each regime's cells that behave as Theorem 1 says; a seed is one sample."""
    prediction = Prediction.of(study, results["strength"].values, results["gamma"].values)
    regime, error = prediction.regime(), by_seed(results["test_error"], "strength", "gamma")
    obeys = behaves(prediction, error, tails, results["length"].values, resolution(study))
    features = f"where |S||u|^4/|A_k^T A_j|_F^2 >= {READ.features:g}"
    tail = f"where only Gamma >= {READ.tail:g}"
    harmful = f"where both ratios are at most {READ.harmful:g}"
    found = []
    for name, claim, words in (
        ("features", "B3", f"2(a), error on all data, {features}"),
        ("tail", "B4", f"2(b), error given |z|>=L at every L, {tail}"),
        ("harmful", "B5", f"3, error at least {prediction.harmful_error():.3g}, {harmful}"),
    ):
        there = regime == name
        among = there & (loss <= small_loss(study))
        note = f"{there.sum()} cells a seed; the constants are free, these are our reading"
        if not there.any():
            note = "premise not met: no cell of the grid lies there"
        elif not among.any():
            note = _premise(study, loss[:, there])
        pairs = zip(obeys[name], among, strict=True)
        shares = np.array([hit[which].mean() for hit, which in pairs if which.any()])
        what = named(claim, f"share of cells that obey Theorem 1, {words}")
        found.append(st.judge_bound(what, shares, MOST, "at_least", note=note))
    return found


def resolution(study: CorrelationExperiment) -> tuple[float, float]:
    """Errors that so many test samples, of all data and of a stratum, cannot tell from 0."""
    strata = len(study.edges) + 1
    return 3 / study.test_samples, 3 * strata / study.tail_samples


def behaves(
    prediction: Prediction,
    error: np.ndarray,
    tails: np.ndarray,
    lengths: np.ndarray,
    unseen: tuple[float, float],
    constants: Constants = READ,
) -> dict[str, np.ndarray]:
    """Whether each cell, (seed, strength, gamma), does what the regime of that name asks. An error
    that cannot be told from 0 is below any bound."""
    feature = np.maximum(prediction.feature_bound(constants), unseen[0])
    tail = np.maximum(prediction.tail_bound(lengths, constants), unseen[1])
    return {
        "features": error <= feature,
        "tail": (tails <= tail).all(axis=-1),
        "harmful": error >= prediction.harmful_error(constants),
    }


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is there; NaN where nothing is."""
    there = np.isfinite(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _ends(error: np.ndarray) -> str:
    """The first and the last mean over seeds, in words."""
    means = _mean(error, 0)
    known = means[np.isfinite(means)]
    return f"from {known[0]:.3g} to {known[-1]:.3g}" if len(known) else ""
