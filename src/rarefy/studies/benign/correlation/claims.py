"""Verdicts of ``benign-correlation``: the maps of Fig. 3 (B6), and Theorem 1 on them, statements
2(a) (B3), 2(b) (B4) and 3 (B5)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    bootstrap_interval,
    judge_bound,
    judge_equal,
    judge_trend,
    spearman_trend,
)
from rarefy.studies.benign.constants import READ, Constants, small_loss
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment
from rarefy.studies.benign.correlation.theory import Prediction, least_error, tail_errors

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


def correlation_verdicts(
    study: CorrelationExperiment, results: xr.Dataset, scale: str
) -> list[Verdict]:
    found: list[Verdict] = []
    for schedule in results["schedule"].values:
        judge = _Judge(study, results.sel(schedule=schedule), scale, str(schedule))
        for law in results["law"].values:
            found += judge.figure(str(law))
        found += judge.laws_alike()
        found += judge.theorem()
    return found


class _Judge:
    """The verdicts about one training."""

    def __init__(
        self, study: CorrelationExperiment, results: xr.Dataset, scale: str, schedule: str
    ) -> None:
        self.study, self.scale, self.schedule = study, scale, schedule
        order = ("law", "seed", "strength", "gamma")
        self.results = results.transpose(*order, "edge").sortby(["strength", "gamma"])
        self.strength = self.results["strength"].values.astype(float)
        self.gamma = self.results["gamma"].values.astype(float)
        self.accuracy = 1 - self.results["test_error"]
        self.weak = f"|u|={self.strength[0]:g}"

    def identity(self, claim: str, what: str) -> Identity:
        return (
            claim,
            self.study.name,
            self.scale,
            f"{self.study.setting}, {self.schedule}: {what}",
        )

    # -------------------------------------------------------------------------------- Fig. 3, B6

    def figure(self, law: str) -> list[Verdict]:
        accuracy = self.accuracy.sel(law=law).values  # (seed, strength, gamma)
        best = 1 - least_error(self.study, self.gamma, law)
        low, high = self.gamma[0], self.gamma[-1]
        return [
            judge_bound(
                self.identity(
                    "B6", f"{law}, accuracy short of the best by noise, Gamma={high:g} {self.weak}"
                ),
                best[-1] - accuracy[:, 0, -1],
                NEAR,
                "at_most",
                note=f"accuracy {accuracy[:, 0, -1].mean():.4f}, best {best[-1]:.4f}, "
                f"chance {1 / self.study.classes:.2f}",
            ),
            judge_trend(
                self.identity("B6", f"{law}, accuracy rises with Gamma at {self.weak}"),
                spearman_trend(self.gamma, accuracy[:, 0], within_rows=True),
                "increasing",
                note=f"from {accuracy[:, 0, 0].mean():.3f} to {accuracy[:, 0, -1].mean():.3f}",
            ),
            judge_trend(
                self.identity("B6", f"{law}, accuracy rises with |u| at Gamma={low:g}"),
                spearman_trend(self.strength, accuracy[:, :, 0], within_rows=True),
                "increasing",
                note=f"from {accuracy[:, 0, 0].mean():.3f} to {accuracy[:, -1, 0].mean():.3f}",
            ),
            self._nowhere_falling(law, accuracy),
        ]

    def _nowhere_falling(self, law: str, accuracy: np.ndarray) -> Verdict:
        """Gamma from its smallest to its largest value, at the |u| where that helps least."""
        gain = accuracy[:, :, -1] - accuracy[:, :, 0]
        worst = int(gain.mean(axis=0).argmin())
        least = bootstrap_interval(gain, lambda drawn: float(drawn.mean(axis=0).min()))
        certain = "a certain fall, but " if least.high < 0 else ""
        return judge_bound(
            self.identity(
                "B6",
                f"{law}, least gain over |u| from Gamma={self.gamma[0]:g} to {self.gamma[-1]:g}",
            ),
            least,
            -NO_FALL,
            "at_least",
            note=f"at |u|={self.strength[worst]:g}: from {accuracy[:, worst, 0].mean():.4f} to "
            f"{accuracy[:, worst, -1].mean():.4f}; {certain}{NO_FALL:g} less counts as none",
        )

    def laws_alike(self) -> list[Verdict]:
        """Fig. 3a against 3b: the paper shows one picture for both laws."""
        laws = [str(law) for law in self.results["law"].values]
        if "gaussian" not in laws:
            return []
        found = []
        for law in laws:
            if law == "gaussian":
                continue
            gain = (self.accuracy.sel(law=law) - self.accuracy.sel(law="gaussian")).values
            cells = gain.mean(axis=0)
            row, column = np.unravel_index(np.nanargmax(np.abs(cells)), cells.shape)
            place = f"at |u|={self.strength[row]:g} Gamma={self.gamma[column]:g}"
            found += [
                judge_equal(
                    self.identity("B6", f"{law} minus gaussian, mean over the map"),
                    gain.mean(axis=(1, 2)),
                    0.0,
                    ALIKE,
                    note=f"largest {cells[row, column]:+.3f} {place}",
                ),
                judge_bound(
                    self.identity("B6", f"{law} minus gaussian, largest of any cell"),
                    bootstrap_interval(
                        gain, lambda drawn: float(np.nanmax(np.abs(drawn.mean(axis=0))))
                    ),
                    NEAR,
                    "at_most",
                    note=f"{cells[row, column]:+.3f} {place}; a mean over the map would hide it; "
                    f"{NEAR:g} can be made out in a heat map",
                ),
            ]
        return found

    # ----------------------------------------------------------------------- Theorem 1, B3, B4, B5

    def theorem(self) -> list[Verdict]:
        """Where the training loss is at most epsilon: elsewhere Theorem 1 says nothing."""
        if "gaussian" not in self.results["law"].values:
            note = "needs gaussian among the laws"
            return [
                judge_bound(self.identity(claim, "Theorem 1"), [], MOST, "at_least", note=note)
                for claim in ("B3", "B4", "B5")
            ]
        here = self.results.sel(law="gaussian")
        loss = here["train_loss"].values
        tail = tail_errors(here["stratum_error"]).transpose(*here["train_loss"].dims, "edge")
        far = tail["edge"].values > 0
        lengths, fitted = tail["edge"].values[far], loss <= self.epsilon
        tails = np.where(fitted[..., None], tail.values[..., far], np.nan)
        return [
            *self._tail(tails[:, 0], lengths, self._premise(loss[:, 0])),
            *self._regimes(here["test_error"].values, tails, lengths, loss),
        ]

    @property
    def epsilon(self) -> float:
        return small_loss(self.study)

    def _premise(self, loss: np.ndarray) -> str:
        """Why Theorem 1 says nothing about cells with such training losses, if that is so."""
        if (loss <= self.epsilon).any():
            return ""
        least = f"{loss[np.isfinite(loss)].min():.3g}" if np.isfinite(loss).any() else "unknown"
        return f"premise not met: training loss {least} or more, not at most {self.epsilon:g}"

    def _tail(self, tails: np.ndarray, lengths: np.ndarray, missing: str) -> list[Verdict]:
        """2(b) at the smallest |u|. tails: (seed, gamma, length), NaN if not fitted."""
        large = self.gamma >= READ.tail
        error = tails[:, large]
        with np.errstate(divide="ignore"):
            constant = -np.log(error / (self.study.classes - 1))
        constant = constant / (self.gamma[large][:, None] * lengths**2)
        # too few errors to tell from none: any constant would do
        seen = np.where(error >= resolution(self.study)[1], constant, np.nan)
        cells = int(np.isfinite(seen).any(axis=0).sum())
        usable = np.isfinite(seen).any(axis=(1, 2)) & (cells >= CELLS)
        note = missing or f"errors enough to tell from none in {cells} cells (Gamma, L): too few"
        if usable.any():
            row, column = np.unravel_index(
                np.nanargmin(np.where(np.isnan(seen), np.inf, seen).min(axis=0)), seen.shape[1:]
            )
            note = (
                f"least at Gamma={self.gamma[large][row]:g} L={lengths[column]:g}, error there "
                f"{_mean(error, 0)[row, column]:.2g}; {cells} of "
                f"{seen[0].size} cells (Gamma, L) have errors enough; c_2 is free, 1/4 is our "
                "reading"
            )
        at = f"at {self.weak}"
        by_length, by_gamma = _mean(error, 1), _mean(tails, 2)
        return [
            judge_bound(
                self.identity(
                    "B4",
                    "largest c_2 with error given |z|>=L at most (K-1)exp(-c_2 L^2 Gamma), "
                    f"{at} and Gamma>={READ.tail:g}",
                ),
                np.array([np.nanmin(each) for each in seen[usable]]),
                READ.c_2,
                "at_least",
                note=note,
            ),
            judge_trend(
                self.identity(
                    "B4", f"error given |z|>=L falls with L, {at}, mean over Gamma>={READ.tail:g}"
                ),
                spearman_trend(lengths, by_length, within_rows=True),
                "decreasing",
                note=missing or _ends(by_length),
            ),
            judge_trend(
                self.identity("B4", f"error given |z|>=L falls with Gamma, {at}, mean over L"),
                spearman_trend(self.gamma, by_gamma, within_rows=True),
                "decreasing",
                note=missing or _ends(by_gamma),
            ),
        ]

    def _regimes(
        self, error: np.ndarray, tails: np.ndarray, lengths: np.ndarray, loss: np.ndarray
    ) -> list[Verdict]:
        """Share of each regime's cells that behave as Theorem 1 says; a seed is one sample."""
        prediction = Prediction.of(self.study, self.strength, self.gamma)
        regime = prediction.regime()
        obeys = behaves(prediction, error, tails, lengths, resolution(self.study))
        said = {
            "features": (
                "B3",
                f"2(a), error on all data, where |S||u|^4/|A_k^T A_j|_F^2 >= {READ.features:g}",
            ),
            "tail": (
                "B4",
                f"2(b), error given |z|>=L at every L, where only Gamma >= {READ.tail:g}",
            ),
            "harmful": (
                "B5",
                f"3, error at least {prediction.harmful_error():.3g}, where both ratios are at "
                f"most {READ.harmful:g}",
            ),
        }
        found = []
        for name, (claim, words) in said.items():
            there = regime == name
            among = there & (loss <= self.epsilon)
            note = f"{there.sum()} cells a seed; the constants are free, these are our reading"
            if not there.any():
                note = "premise not met: no cell of the grid lies there"
            elif not among.any():
                note = self._premise(loss[:, there])
            shares = [
                hit[which].mean()
                for hit, which in zip(obeys[name], among, strict=True)
                if which.any()
            ]
            found.append(
                judge_bound(
                    self.identity(claim, f"share of cells that obey Theorem 1, {words}"),
                    np.array(shares),
                    MOST,
                    "at_least",
                    note=note,
                )
            )
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
