"""Verdicts, pictures and tables of removal: every curve beside random removal, seed by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.estimates import mean_band, mean_interval
from rarefy.measure.statistics import judge_difference
from rarefy.studies.influence.removal.experiment import RemovalExperiment
from rarefy.tools.influence.removal import LOGISTIC

if TYPE_CHECKING:
    import xarray as xr


POINTS = 100.0
HIGH, LOW, RANDOM = "high", "low", "random"
ASKED = {
    "test_accuracy": "all test samples",
    "tail_accuracy": "the tail of the test set",
    "far_accuracy": "those farthest from the class mean",
}
"""The tail is chosen by the score under test, the last by a plainer one."""
PLACES = {"class": "same share of every class", "all": "sorted over the whole set"}
WORDS = {
    HIGH: "highest influence",
    LOW: "lowest influence",
    RANDOM: "at random",
    "distance": "farthest from class mean",
    "mahalanobis": "largest Mahalanobis distance",
    "norm": "largest norm",
    "disagreement": "neighbours disagree most",
}


def spoken(by: str) -> str:
    if by in WORDS:
        return WORDS[by]
    return f"lowest by {by.removesuffix('-low')}"


def accuracies(results: xr.Dataset, asked: str, within: str, by: str) -> NDArray[np.float64]:
    """Per cent, (seed, fraction), fractions rising from 0."""
    part = results[asked].sel(within=within, by=by).sortby("fraction")
    return POINTS * np.asarray(part.transpose("seed", "fraction").values, dtype=np.float64)


def removed(results: xr.Dataset) -> NDArray[np.float64]:
    return np.sort(results["fraction"].values.astype(np.float64))


def removal_verdicts(study: RemovalExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """B13: leaving out low scores leaves more accuracy than leaving out high ones. On average over
    the fractions, and at each."""
    found = []
    there = set(results["by"].values.tolist())
    fractions = removed(results)
    for within in results["within"].values.tolist():
        for asked, words in ASKED.items():
            named = f"{study.setting}, {PLACES[within]}, {words}"
            samples = np.full((results.sizes["seed"], len(fractions)), np.nan)
            if {HIGH, LOW} <= there:
                low, high = (accuracies(results, asked, within, by) for by in (LOW, HIGH))
                samples = low - high
            note = "points: accuracy without low scores less that without high ones"
            if study.subsample < 1:
                note += f"; {_about(study)}"
            cases = [("mean over fractions", samples[:, fractions > 0].mean(axis=1))]
            cases += [
                (f"{fraction:g} left out", samples[:, place])
                for place, fraction in enumerate(fractions)
                if fraction > 0
            ]
            for what, values in cases:
                identity = ("B13", study.name, scale, f"{named}: {what}")
                found.append(judge_difference(identity, values, "positive", note=note))
    return found


def _about(study: RemovalExperiment) -> str:
    return (
        f"seeds draw {100 * study.subsample:g} % of the same samples and share the test set: "
        "intervals are about that draw alone"
    )


def removal_pictures(study: RemovalExperiment, results: xr.Dataset) -> list[Picture]:
    fractions = removed(results)
    panels = []
    for within in results["within"].values.tolist():
        for asked, words in ASKED.items():
            curves = []
            for by in results["by"].values.tolist():
                band = mean_band(accuracies(results, asked, within, by))
                curves.append(
                    Curve(
                        spoken(by),
                        fractions,
                        band.mean,
                        band.low,
                        band.high,
                        "noise" if by == RANDOM else by,
                        "solid" if by in (HIGH, LOW) else "dashed",
                    )
                )
            title = f"{words.capitalize()}; {PLACES[within]}"
            panels.append(Lines(curves, "share left out", "per cent right", title))
    trained = "logistic regression" if study.network == LOGISTIC else study.network
    caption = (
        f"{trained} on {study.data}, trained on what is left; mean and 95 % interval over up to "
        f"{study.seeds} seeds. 003 Fig. 7 says that the curve without high scores falls more than "
        "that without low ones. Where it falls no more than at random, the score has found nothing "
        f"that training needs. The tail: the {100 * study.tail_share:g} % of each class's test "
        "samples with the highest held-out scores."
    )
    if study.subsample < 1:
        caption += f" {_about(study).capitalize()}."
    return [Picture("removed", "Accuracy after leaving samples out", caption, panels)]


def removal_tables(study: RemovalExperiment, results: xr.Dataset) -> list[Table]:
    fractions = removed(results)
    places = results["within"].values.tolist()
    found = []
    for within in places:
        rows: list[list[object]] = []
        for asked, words in ASKED.items():
            for by in results["by"].values.tolist():
                mine = accuracies(results, asked, within, by)
                cells = [
                    _cell(results, mine, asked, within, by, place)
                    for place in range(len(fractions))
                ]
                rows.append([words, spoken(by), *cells, int(np.isfinite(mine[:, 0]).sum())])
        heads = ["asked on", "left out", *(f"{fraction:g}" for fraction in fractions), "n"]
        caption = (
            "Per cent right by share left out; in brackets the difference from random removal, "
            "seed by seed, ± half its 95 % interval; *: that interval is all on one side of 0."
        )
        if study.subsample < 1:
            caption += f" {_about(study).capitalize()}."
        title = f"Accuracy after leaving samples out, {PLACES[within]}"
        found.append(Table(f"removed-{within}", title, caption, heads, rows))
    return [*found, *([_shares(results, fractions)] if "all" in places else [])]


def _cell(
    results: xr.Dataset, mine: NDArray[np.float64], asked: str, within: str, by: str, place: int
) -> str:
    text = _number(mean_interval(mine[:, place]).mean)
    if place and by != RANDOM and RANDOM in results["by"].values:
        other = accuracies(results, asked, within, RANDOM)[:, place]
        text += f" ({_signed(mine[:, place] - other)})"
    return text


def _shares(results: xr.Dataset, fractions: NDArray[np.float64]) -> Table:
    rows = []
    for by in results["by"].values.tolist():
        part = results["smallest"].sel(within="all", by=by).sortby("fraction").mean("seed")
        rows.append([spoken(by), *(f"{100 * one:.0f}" for one in part.values)])
    heads = ["left out", *(f"{fraction:g}" for fraction in fractions)]
    caption = (
        "Per cent of its training samples that the class with the largest loss has left, by share "
        "left out of the whole set. Scores are not comparable between classes: some lose far more "
        "than others, and accuracy falls for that reason too."
    )
    return Table("shares", "How unequally classes are thinned", caption, heads, rows)


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "–"


def _signed(samples: NDArray[np.float64]) -> str:
    found = mean_interval(samples)
    if not np.isfinite(found.mean):
        return "–"
    if found.n < 2:
        return f"{found.mean:+.2f}"
    mark = "*" if found.low > 0 or found.high < 0 else ""
    return f"{found.mean:+.2f} ±{(found.high - found.low) / 2:.2f}{mark}"
