"""Verdicts, pictures and tables about which images a score puts first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.statistics import judge_difference
from rarefy.studies.influence.drawn_sets import resampled_band, resampled_interval
from rarefy.studies.influence.out_of_fold import CLASSIFIERS

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.studies.influence.gallery.experiment import GalleryExperiment


INFLUENCE, RANDOM, ISOLATION = "influence", "random", "isolation"
RIVALS = ("distance", "norm")
POINTS = 100.0
WORDS = {
    INFLUENCE: "influence score",
    "shared": "its part shared with others",
    "distance": "distance to class mean",
    "mahalanobis": "Mahalanobis distance in class",
    "norm": "norm",
    RANDOM: "at random",
}


def share_of(results: xr.Dataset, name: str) -> float:
    return float(results["share"].sel(data=name).mean())


def by_decile(
    results: xr.Dataset, output: str, name: str, classifier: str, signal: str
) -> NDArray[np.float64]:
    """(seed, decile)"""
    part = results[output].sel(data=name, signal=signal)
    part = part if output == ISOLATION else part.sel(classifier=classifier)
    return np.asarray(part.transpose("seed", "decile").values, dtype=np.float64)


def gap(results: xr.Dataset, name: str, asked: str, signal: str) -> NDArray[np.float64]:
    """The highest tenth less the lowest: (seed,), points of error or per cent of isolation."""
    output = ISOLATION if asked == ISOLATION else "error"
    found = by_decile(results, output, name, asked, signal)
    return POINTS * (found[:, -1] - found[:, 0])


def gallery_verdicts(study: GalleryExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """B11: the highest tenth of each class is harder than the lowest, and lonelier. Further,
    whether the score does more than plainer ones; 003 does not say so, but would be of no use
    otherwise."""
    found = []
    for name in results["data"].values.tolist():
        share = share_of(results, name)
        for asked in (*CLASSIFIERS, ISOLATION):
            lonely = asked == ISOLATION
            where = f"{name}: high scores are " + (
                "farther from their class's others" if lonely else f"harder for {asked}"
            )
            note = "per cent of isolation" if lonely else "points of error"
            own = gap(results, name, asked, INFLUENCE)
            cases = [(where, own, f"{note}: highest tenth less lowest")]
            cases += [
                (
                    f"{where}, by more than with the {WORDS[rival]}",
                    own - gap(results, name, asked, rival),
                    f"{note}: highest tenth less lowest, less that of the plainer score",
                )
                for rival in RIVALS
            ]
            for what, values, words in cases:
                interval = resampled_interval(values, share)
                identity = ("B11", study.name, scale, what)
                found.append(judge_difference(identity, interval, "positive", note=words))
    return found


SHOWN = {
    "error": (
        "per cent wrong",
        "Mistakes by tenth of the class",
        "Images sorted within their class by a score, lowest tenth first, and how often "
        "classifiers trained without them are wrong. A score that puts hard images first rises to "
        "the right; one that knows nothing is flat. Bands: 95 %, allowing for what draws share.",
    ),
    "loss": (
        "mean loss",
        "Loss by tenth of the class",
        "The same with losses: -log probability of the label, or the share of nearest neighbours "
        "(of other folds) that have another label.",
    ),
    ISOLATION: (
        "isolation (class mean 1)",
        "Isolation by tenth of the class",
        "The same with the mean distance to the ten nearest images of the class. A score that puts "
        "rare images first rises to the right.",
    ),
}


def gallery_pictures(results: xr.Dataset) -> list[Picture]:
    found = []
    for output, (unit, title, caption) in SHOWN.items():
        panels = [
            Lines(
                _curves(results, output, name, classifier),
                "tenth of the class",
                unit,
                name if output == ISOLATION else f"{name}, {classifier}",
            )
            for name in results["data"].values.tolist()
            for classifier in (CLASSIFIERS[:1] if output == ISOLATION else CLASSIFIERS)
        ]
        found.append(Picture(output, title, caption, panels))
    return found


def _curves(results: xr.Dataset, output: str, name: str, classifier: str) -> list[Curve]:
    found = []
    tenths = results["decile"].values.astype(np.float64)
    for signal in results["signal"].values.tolist():
        values = by_decile(results, output, name, classifier, signal)
        values = values * (POINTS if output == "error" else 1.0)
        band = resampled_band(values, share_of(results, name))
        role = "noise" if signal == RANDOM else signal
        style = "solid" if signal == INFLUENCE else "dashed"
        found.append(Curve(WORDS[signal], tenths, band.mean, band.low, band.high, role, style))
    return found


def gallery_tables(results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for name in results["data"].values.tolist():
        for asked in (*CLASSIFIERS, ISOLATION):
            output = ISOLATION if asked == ISOLATION else "error"
            for signal in results["signal"].values.tolist():
                values = POINTS * by_decile(results, output, name, asked, signal)
                apart = resampled_interval(
                    gap(results, name, asked, signal), share_of(results, name)
                )
                told = "–"
                if output == "error":
                    part = results["mistakes"].sel(data=name, classifier=asked, signal=signal)
                    told = f"{float(part.mean()):.3f}"
                rows.append(
                    [
                        name,
                        asked,
                        WORDS[signal],
                        f"{values[:, 0].mean():.2f}",
                        f"{values[:, -1].mean():.2f}",
                        f"{apart.mean:+.2f} [{apart.low:.2f}, {apart.high:.2f}]",
                        told,
                        apart.n,
                    ]
                )
    heads = ["data", "asked", "sorted by", "lowest tenth", "highest tenth", "difference"]
    found = Table(
        "tenths",
        "Per cent misclassified, and isolation in per cent",
        "Sorted within classes. AUROC: chance that an image misclassified by a classifier that has "
        "not seen it ranks above another one; 0.5 knows nothing. Intervals allow for what the "
        "draws share.",
        [*heads, "AUROC", "n"],
        rows,
    )
    return [found, _confounders(results)]


def _confounders(results: xr.Dataset) -> Table:
    names = results["data"].values.tolist()
    rows: list[list[object]] = []
    for other in results["compared"].values.tolist():
        row: list[object] = [WORDS.get(other, other)]
        for name in names:
            values = results["alike"].sel(data=name, compared=other).values
            found = resampled_interval(values, share_of(results, name))
            row.append(f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]")
        rows.append(row)
    caption = (
        "Spearman's rho between the influence score and other numbers of the same image, mean over "
        "classes. Near 1: the plainer number sorts a class almost alike."
    )
    return Table("confounders", "What the score goes along with", caption, ["with", *names], rows)
