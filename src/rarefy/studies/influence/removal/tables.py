"""Accuracies after leaving samples out, as numbers and words: every way beside random removal."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.picture import Table
from rarefy.measure.estimates import mean_interval
from rarefy.studies.influence.removal.experiment import RemovalExperiment

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
    """The shares left out, rising."""
    return np.sort(results["fraction"].values.astype(np.float64))


def about_draws(experiment: RemovalExperiment) -> str:
    """What intervals are about where seeds draw parts of one set; empty where they do not."""
    if experiment.subsample == 1:
        return ""
    return (
        f"seeds draw {100 * experiment.subsample:g} % of the same samples and share the test set: "
        "intervals are about that draw alone"
    )


def tables(experiment: RemovalExperiment, results: xr.Dataset) -> list[Table]:
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
        if about := about_draws(experiment):
            caption += f" {about.capitalize()}."
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
