"""Tables of ``regimes-at-scale``: from which d on each theorem's shape is seen, exponents with
intervals, the boundaries, what the search saved, and what the papers assume."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import Slope
from rarefy.studies.kit.arrays import texts
from rarefy.studies.scale.questions import question_of
from rarefy.studies.scale.regimes.claims import statements_by_d
from rarefy.studies.scale.regimes.conditions import feature_conditions, signal_conditions
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.rows import Boundaries, laid_out, words_of
from rarefy.studies.scale.regimes.statement import Statement

NAMES = {"signal": "n SNR^2/T", "feature": "x", "tail": "Gamma", "side": "Gamma"}


def tables(experiment: RegimesExperiment, results: xr.Dataset) -> list[Table]:
    results = laid_out(results)
    by_d = statements_by_d(experiment, results)
    found = [_seen_from(results, by_d), _exponents(results, by_d), _boundaries(results)]
    found += [make(experiment, results) for make in (_fitted, _saving, _conditions)]
    return [table for table in found if table.rows]


def _first_seen(d: np.ndarray, seen: Sequence[bool]) -> float:
    """The smallest d from which on, there and at every larger one, something is seen; NaN where it
    is not at the largest."""
    missed = np.flatnonzero(~np.asarray(seen, dtype=bool))
    start = int(missed[-1]) + 1 if missed.size else 0
    return float(d[start]) if start < len(d) else float("nan")


def _heads(results: xr.Dataset) -> list[str]:
    return [f"d={float(d):g}" for d in results["d"].values]


def _seen_from(results: xr.Dataset, by_d: list[list[Statement]]) -> Table:
    d, rows = results["d"].values, []
    for each in by_d:
        start = _first_seen(d, [one.agrees for one in each])
        values = [f"{one.value:.3g}" + ("" if one.agrees else " (no)") for one in each]
        found = f"{start:g}" if start > d[0] else "all"
        words = "not at the largest" if np.isnan(start) else found
        rows.append([each[0].claim, each[0].what, each[0].requirement, *values, words])
    return Table(
        "seen-from",
        "The dimension from which on each theorem's shape is seen",
        "For every part of a theorem the share of rows in which it holds, or an exponent, at each "
        "d; (no): not what the theorem asks for, or more than a tenth of the rows have no boundary "
        "in the range or a training loss that is still large. Last column: the smallest d from "
        "which on it is seen at this and every larger d. Point estimates; verdicts have "
        "the intervals.",
        ("claim", "what", "asked for", *_heads(results), "seen from d"),
        rows,
    )


def _exponents(results: xr.Dataset, by_d: list[list[Statement]]) -> Table:
    rows = [
        [one.claim, one.what, one.requirement, *map(_shown, (one, *others))]
        for one, *others in by_d
        if isinstance(one.estimate, Slope)
    ]
    return Table(
        "exponents",
        "Exponents with their intervals",
        f"Mean over {results.sizes['seed']} seeds and 95 % bootstrap interval; rows whose boundary "
        "is out of the range are counted at its end.",
        ("claim", "exponent", "asked for", *_heads(results)),
        rows,
    )


def _shown(one: Statement) -> str:
    if not np.isfinite(one.value):
        return "none"
    low, high = one.estimate.low, one.estimate.high
    return f"{one.value:.2f}" + (f" [{low:.2f}, {high:.2f}]" if np.isfinite(low + high) else "")


def _boundaries(results: xr.Dataset) -> Table:
    rows = []
    for word in texts(results, "question"):
        cells = []
        for d in results["d"].values:
            found = Boundaries(results.sel(d=d), [word])
            counts = zip(found.beyond, ("above", "below"), strict=False)
            lost = ", ".join(f"{count} {where}" for count, where in counts if count)
            middle = 10 ** float(found.place.median())
            cells.append(f"{middle:.3g}" + (f" ({lost})" if lost else ""))
        rows.append([word, NAMES[question_of(word).path], *cells])
    first = results["outside"].isel(question=0, d=0).size
    return Table(
        "boundaries",
        "Where the outcome turns",
        f"Median over {first} rows (sizes, classes and seeds) of what the road is measured in, and "
        "how many rows have their boundary above or below the road's ends, where they are counted. "
        "The number behind a question: the share of chance to which test loss (signal) or error "
        "(feature) falls, or L.",
        ("question", "in", *_heads(results)),
        rows,
    )


def _fitted(study: RegimesExperiment, results: xr.Dataset) -> Table:
    rows, first = [], [word for path in NAMES for word in words_of(results, path)[:1]]
    for word, place in product(first, texts(results, "place")):
        shares = []
        for d in results["d"].values:
            loss = results["train_loss"].sel(question=word, place=place, d=d).values
            known = loss[np.isfinite(loss)]
            share = f"{float((known <= study.epsilon).mean()):.3g}" if known.size else ""
            shares.append(share or "no boundary")
        rows.append([word, place, *shares])
    return Table(
        "fitted",
        "Share of runs whose training loss is small",
        f"Training loss at most {study.epsilon:g} after {study.steps} updates or fewer, at both "
        "ends of the road and at the boundary. The theorems speak of networks that fit their "
        "samples: where few do, a boundary is that of the training budget too.",
        ("question", "place", *_heads(results)),
        rows,
    )


def _saving(study: RegimesExperiment, results: xr.Dataset) -> Table:
    rows, total = [], np.zeros(3)
    for paths in (("signal",), ("feature",), ("tail", "side")):
        words = words_of(results, *paths)
        if not words:
            continue
        here = results.sel(question=words)
        count = here["outside"].size
        # on a grid one network answers all questions of its world; a search trains for each
        used, grid = float(here["runs"].sum()), float(here["grid"].sel(question=words[0]).sum())
        spent = np.array([used, (2.0 * study.audits + 1) * count, grid])
        rows.append([" and ".join(paths), count, *_saved(*spent), _agreement(here)])
        total += spent
    rows.append(["together", results["outside"].size, *_saved(*total), _agreement(results)])
    return Table(
        "saving",
        "What the adaptive search saved",
        f"{total[0]:,.0f} trainings found the boundaries that a full grid of the same precision, "
        f"{study.precision:g} decades, takes {total[2]:,.0f} for: {total[2] / total[0]:.1f} times "
        f"fewer, or {total[2] / (total[0] + total[1]):.1f} times with the {total[1]:,.0f} audits "
        "and looks: runs away from the boundary that ask whether the outcome turns only once, and "
        "one at it. Every question is searched by itself, while on a grid one network would answer "
        "all questions of its road.",
        ("road", "rows", "trainings", "audits, looks", "full grid", "saving", "audits that agree"),
        rows,
    )


def _saved(used: float, checks: float, grid: float) -> list[str]:
    return [f"{used:,.0f}", f"{checks:,.0f}", f"{grid:,.0f}", f"{grid / used:.1f} times"]


def _agreement(here: xr.Dataset) -> str:
    agree = here["agree"].values
    known = agree[np.isfinite(agree)]
    return f"{known.mean():.4f} of those of {known.size} rows" if known.size else "none"


def _conditions(study: RegimesExperiment, results: xr.Dataset) -> Table:
    rows = []
    for paper, lines in (("002", signal_conditions), ("003", feature_conditions)):
        by_d = [lines(study, int(d)) for d in results["d"].values]
        for line in zip(*by_d, strict=True):
            short = ["holds" if each.holds else f"{each.ratio:.2g} times" for each in line]
            rows.append([paper, line[0].name, line[0].formula, *short])
    return Table(
        "conditions",
        "How far each dimension is from what the papers assume",
        "002 Condition 4.1 and 003 Condition 1 (Gamma = 1), each line at the size, number of "
        "classes and end of the road that miss it most: holds, or by what factor it is missed. "
        "delta = 0.1, constants read as 1, that of O in 002's learning rate as 4.",
        ("paper", "condition", "asks for", *_heads(results)),
        rows,
    )
