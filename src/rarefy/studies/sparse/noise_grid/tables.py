"""Tables of S9 and S10: ours beside the published ones, and which differences could be chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.picture import Table
from rarefy.measure.estimates import mean_band, mean_interval
from rarefy.studies.sparse.advice import advice_table
from rarefy.studies.sparse.pairs import (
    LEVEL,
    NONE,
    Comparison,
    comparisons,
    number,
    said,
    yes_no,
)
from rarefy.studies.sparse.published import Published, published
from rarefy.studies.sparse.readings import BANDS, PLACES, Paired, band_of, placed, readings
from rarefy.tools.sparse_experiment import SparseTraining


class Part(NamedTuple):
    """One reading of the paper with noise in one place."""

    name: str
    """for a table's name"""
    words: str
    place: str
    paired: Paired


def tables(experiment: SparseTraining, results: xr.Dataset) -> list[Table]:
    paper, data = published(experiment), experiment.data
    parts = list(_parts(results))
    return [
        *(_matrix(data, part) for part in parts),
        *(_beside(paper, data, part) for part in parts),
        *_summary(paper, data, parts),
        *_which(paper, data, parts),
        *advice_table(results, with_noise=True),
    ]


def _parts(results: xr.Dataset) -> Iterator[Part]:
    """Those with something to show."""
    for count, (words, part) in enumerate(readings(results)):
        for place, where in PLACES.items():
            paired = placed(part, place)
            if len(paired.levels) and paired.thinned:
                said_ = f"{words}, {where}" if words else where
                yield Part(f"{place}-{count}" if words else place, said_, place, paired)


def _provenance(paper: Published, data: str) -> str:
    if data == paper.data:
        return f"Published: {paper.name}, one training a cell as far as the paper says."
    return (
        f"The numbers of {paper.name} are for {paper.data} and are not put beside those for {data}."
    )


def _matrix(data: str, part: Part) -> Table:
    paired, rows = part.paired, []
    found = {(each.level, each.keep): each for each in comparisons(paired)}
    for place, level in enumerate(paired.levels):
        dense = paired.dense[:, place]
        row = [f"{level:g}", number(mean_interval(dense).mean) + _dagger(dense)]
        row += [_cell(found[float(level), keep]) for keep in paired.thinned]
        rows.append(row)
    known = [each for each in found.values() if each.apart is not None]
    apart = sum(bool(each.apart) for each in known)
    caption = (
        "Accuracy in per cent, in brackets its difference from dense in points with half of the "
        f"paired 95 % interval. A star: 0 is outside, as in {apart} of {len(known)} (by chance "
        f"alone {(1 - LEVEL) * len(known):.1f}). A dagger: one seed."
    )
    columns = ["noise std", "dense", *(f"keep {keep:g}" for keep in paired.thinned)]
    title = f"Accuracy on {data}, {part.words}"
    return Table(f"matrix-{part.name}", title, caption, columns, rows)


def _cell(each: Comparison) -> str:
    mean = each.difference
    if not np.isfinite(mean.mean):
        return NONE
    half = f" ±{mean.high - mean.mean:.2f}" if mean.n > 1 else "†"
    return f"{each.dense + mean.mean:.2f} ({mean.mean:+.2f}{half}){'*' if each.apart else ''}"


def _dagger(samples: NDArray[np.float64]) -> str:
    return "†" if np.isfinite(samples).sum() == 1 else ""


def _beside(paper: Published, data: str, part: Part) -> Table:
    rows = []
    for each in comparisons(part.paired):
        theirs = paper.difference(data, each.level, each.keep)
        rows.append(
            (
                f"{each.level:g}",
                f"{each.keep:g}",
                number(each.dense),
                number(paper.at(data, each.level, 1.0)),
                said(each.difference),
                each.difference.n,
                number(theirs, "+.2f"),
                yes_no(each.apart),
                yes_no(each.apart_pooled),
                number(each.lone_half),
                yes_no(each.published_apart(theirs)),
            )
        )
    caption = (
        f"{_provenance(paper, data)} Differences from dense in points; "
        "ours with a paired 95 % interval over n seeds (a dagger: one seed). Apart from 0 by its "
        "own interval; or with the spread of differences pooled over the noise levels of its band, "
        "which also serves cells with one seed but takes levels of one seed for independent. The "
        "paper does not say whether its pairs share a seed: a published difference counts as apart "
        "from 0 if it is larger than chance moves that between one pruned and one dense training "
        "of ours, in pairs or independent, whichever moves more."
    )
    columns = (
        *("noise std", "keep", "dense, %", "published dense, %", "difference", "n"),
        *("published difference", "ours apart from 0", "the same, pooled"),
        *("chance moves one by", "theirs apart from 0"),
    )
    title = f"Ours beside the published, {part.words}"
    return Table(f"beside-{part.name}", title, caption, columns, rows)


def _summary(paper: Published, data: str, parts: list[Part]) -> list[Table]:
    rows = []
    for part in parts:
        found = comparisons(part.paired)
        for band in BANDS:
            for keep in part.paired.thinned:
                here = [each for each in found if each.keep == keep and band_of(each.level) == band]
                if not here:
                    continue
                theirs = [
                    each.published_apart(paper.difference(data, each.level, keep)) for each in here
                ]
                rows.append(
                    (
                        part.words,
                        band,
                        f"{keep:g}",
                        _counted([each.apart for each in here]),
                        _counted([each.apart_pooled for each in here]),
                        _counted(theirs),
                        f"{(1 - LEVEL) * len(here):.1f}",
                    )
                )
    if not rows:
        return []
    caption = (
        "How many cells of a band and keep have a difference from dense that is not chance at "
        "95 %, and how many would if pruning did nothing. Cells of a band share seeds, so that "
        "they come out alike more often than independent ones. " + _provenance(paper, data)
    )
    columns = (
        "noise in", "band", "keep", "ours apart from 0", "the same, pooled", "theirs", "by chance",
    )  # fmt: skip
    return [Table("apart", "Which differences are not chance", caption, columns, rows)]


def _counted(values: list[bool | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known)} of {len(known)}" if known else NONE


def _which(paper: Published, data: str, parts: list[Part]) -> list[Table]:
    """Dense networks alone: where the noise is in the paper, if it is anywhere here."""
    if data != paper.data or not parts:
        return []
    every = sorted({float(level) for part in parts for level in part.paired.levels})
    dense = [
        dict(zip(part.paired.levels.tolist(), mean_band(part.paired.dense).mean, strict=True))
        for part in parts
    ]
    rows = [
        (
            f"{level:g}",
            number(paper.at(data, level, 1.0)),
            *(number(float(column.get(level, np.nan))) for column in dense),
        )
        for level in every
    ]
    for band in BANDS:
        levels = [level for level in every if band_of(level) == band]
        far = [_distance(paper, column, levels) for column in dense]
        if np.isfinite(far).any():
            rows.append((f"distance, {band}", NONE, *(number(each) for each in far)))
    caption = (
        "Accuracy of the dense network in per cent, which pruning has no part in. Distance: root "
        "mean square over the levels of a band, in points. Network, epochs and unit of the noise "
        "are ours, so that the nearest column is a hint and not a proof."
    )
    columns = ("noise std", paper.name, *(part.words for part in parts))
    return [Table("which", "Which reading is the paper's?", caption, columns, rows)]


def _distance(paper: Published, dense: dict[float, float], levels: list[float]) -> float:
    apart = np.array(
        [dense.get(level, np.nan) - paper.at(paper.data, level, 1.0) for level in levels],
        dtype=np.float64,
    )
    apart = apart[np.isfinite(apart)]
    return float(np.sqrt((apart**2).mean())) if len(apart) else float("nan")
