"""docs/scoreboard.md: what the influence score finds and what finds it better, from the committed
results of the study influence-scoreboard. Every number and name on it is computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from pages import ROOT, beside_cleanlab
from pages.markdown import table
from rarefy.core.contracts import Study
from rarefy.measure.estimates import Interval
from rarefy.studies.api import read_results
from rarefy.studies.influence.scoreboard.claims import (
    CLOSE,
    KINDS,
    SCORE,
    interval_of,
    spoken,
    values_of,
    winners,
)
from rarefy.sweep.results import find_results
from rarefy.tools.influence.injections import Injection
from rarefy.tools.influence.signals import WORDS

STUDY = "influence-scoreboard"
SORTED = ("percentile", "influence", "own", "shared", "distance", "mahalanobis", "disagreement")
"""Columns of the tool's table that one would sort by; ``conflict`` is yes or no."""
POOR = 0.8
"""AUROC below which nobody would want to sort by a column."""

ABOUT = {
    "flips": "A share of the labels is wrong, any other class as likely as the next.",
    "paired-flips": "Classes in pairs: of the first, twice the share has the label of the second. "
    "Wrong labels are then a large part of one class and shape its mean and covariance.",
    "rare-modes": "Classes merged in pairs, all of the first and a few of the second. The few are "
    "right as they are labelled, and a kind of their own: what should be kept, not cleaned away.",
    "copies": "Some samples are there twice, the second time with another label. The tool's column "
    "`conflict` compares contents and finds every exact copy; nothing has to be sorted for these.",
    "near-copies": "The same, with noise of a tenth of the features' std on the copy, so that no "
    "content is the same.",
}


# ------------------------------------------------------------------------------------------ numbers


def _lists(results: xr.Dataset) -> tuple[list[str], list[str]]:
    return results["data"].values.tolist(), results["injection"].values.tolist()


def _mean(results: xr.Dataset, signal: str, injections: Sequence[str]) -> np.ndarray:
    """Mean AUROC of a signal, per data set and injection."""
    names, _ = _lists(results)
    return np.array(
        [
            values_of(results, "auroc", name, text, signal).mean()
            for text in injections
            for name in names
        ]
    )


def _number(found: Interval, digits: int) -> str:
    if found.n < 2:
        return f"{found.mean:.{digits}f}"
    return f"{found.mean:.{digits}f} ±{(found.high - found.low) / 2:.{digits}f}"


def _kinds(injections: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in injections:
        found.setdefault(Injection.parse(text).kind, []).append(text)
    return found


def _best_column(results: xr.Dataset, injections: Sequence[str]) -> str:
    """The column with the highest mean AUROC over data sets and injections."""
    return max(SORTED, key=lambda signal: float(_mean(results, signal, injections).mean()))


# ------------------------------------------------------------------------------------------- pieces


def _where_it_loses(results: xr.Dataset) -> str:
    names, injections = _lists(results)
    asked = [(name, text) for text in injections for name in names]
    won = [
        (name, text)
        for name, text in asked
        if SCORE in winners(results, name, text) or "influence" in winners(results, name, text)
    ]
    behind = [
        (values_of(results, "auroc", name, text, SCORE).mean(), name, text)
        for name, text in asked
        if (name, text) not in won
    ]
    parts = [
        f"Sorted by the influence score, {len(won) or 'none'} of {len(asked)} searches for "
        f"injected samples {'comes' if len(won) == 1 else 'come'} out best (or within {CLOSE:g} "
        f"AUROC of it); in {len(behind)} another column finds more."
    ]
    if behind:
        score, name, text = min(behind)
        best = winners(results, name, text)[0]
        reached = values_of(results, "auroc", name, text, best).mean()
        parts.append(
            f"At worst: {spoken(text)}, in {name}, AUROC {score:.2f} where sorting by `{best}` "
            f"reaches {reached:.2f}."
        )
    flips = _kinds(injections).get("flips")
    if flips:
        best = _best_column(results, flips)
        told = (
            "For wrong labels use the label check (below), or of the columns that need no training "
            f"`{best}` (mean AUROC {_mean(results, best, flips).mean():.2f}, "
            f"the score's {_mean(results, SCORE, flips).mean():.2f})"
        )
        of_score = best in (SCORE, "influence")
        parts.append(
            f"{told}." if of_score else f"{told}: **the score is no detector of label errors.**"
        )
    if won:
        listed = "; ".join(f"{spoken(text)} in {name}" for name, text in won)
        parts.append(f"Where it comes out best: {listed}.")
    return " ".join(parts)


def _recommendation(results: xr.Dataset) -> str:
    rows = []
    for text in _lists(results)[1]:
        best = _best_column(results, [text])
        reached, own = (_mean(results, signal, [text]) for signal in (best, SCORE))
        advice = f"`{best}`"
        if Injection.parse(text).kind == "copies":
            advice = f"the yes or no of `conflict`; to sort by, `{best}`"
        rows.append(
            [
                spoken(text),
                advice,
                f"{reached.mean():.3f} ({reached.min():.3f})",
                f"{own.mean():.3f} ({own.min():.3f})",
            ]
        )
    heads = ["to find", "sort by, highest first", "its AUROC", "influence percentile's"]
    return table(heads, rows)


def _poor(results: xr.Dataset) -> list[str]:
    """Where no column is good at anything that has to be sorted for."""
    names, injections = _lists(results)
    levels = {
        name: max(
            values_of(results, "auroc", name, text, signal).mean()
            for text in injections
            for signal in SORTED
        )
        for name in names
    }
    listed = ", ".join(f"{name} ({level:.2f})" for name, level in levels.items() if level < POOR)
    if not listed:
        return []
    return [
        f"In {listed} none of these columns reaches an AUROC of {POOR:g}: distances between raw "
        "pixels mean little there. Scores can be taken of an embedding instead (`embedding=`); "
        "that has not been measured here."
    ]


def _section(results: xr.Dataset, kind: str, injections: Sequence[str]) -> str:
    names, _ = _lists(results)
    searches = [(text, name) for text in injections for name in names]
    rows = []
    for signal in results["signal"].values.tolist():
        row = [WORDS[signal]]
        for text, name in searches:
            auroc = _number(interval_of(results, "auroc", name, text, signal), 3)
            recall = _number(interval_of(results, "recall", name, text, signal), 2)
            shown = f"**{auroc}**" if signal in winners(results, name, text) else auroc
            row.append(f"{shown} / {recall}")
        rows.append(row)
    counts = results[["injected", "asked"]].mean("seed")
    amounts = ["injected, of"]
    for text, name in searches:
        here = counts.sel(data=name, injection=text)
        amounts.append(f"{float(here['injected']):.0f}, {float(here['asked']):.0f}")
    heads = [
        "sorted by",
        *(f"{name}, {100 * Injection.parse(text).share:g} %" for text, name in searches),
    ]
    title = KINDS[kind][0].upper() + KINDS[kind][1:]
    parts = [f"## {title}", ABOUT[kind], table(heads, [*rows, amounts])]
    turned = _better_turned(results, injections)
    if turned:
        listed = ", ".join(f"{WORDS[signal]} ({1 - level:.3f})" for signal, level in turned.items())
        parts.append(f"From the other end, lowest first, the best of all (AUROC): {listed}.")
    return "\n\n".join(parts)


def _better_turned(results: xr.Dataset, injections: Sequence[str]) -> dict[str, float]:
    """Signals that are better than every other if the lowest are looked at first."""
    means = {
        signal: float(_mean(results, signal, injections).mean())
        for signal in results["signal"].values.tolist()
    }
    return {
        signal: level for signal, level in means.items() if 1 - level > max(means.values()) - CLOSE
    }


# ----------------------------------------------------------------------------------------- the page


def page(study: Study, scale: str, results: xr.Dataset) -> str:
    names, injections = _lists(results)
    shares = {name: float(results["share"].sel(data=name).mean()) for name in names}
    drawn = ", ".join(
        f"all of {name}" if share == 1 else f"{100 * share:.0f} % of {name}"
        for name, share in shares.items()
    )
    made = json.loads(results.attrs["provenance"])
    how = (
        f"Made from the results of `rarefy run {STUDY} --scale {scale}` "
        f"({str(made.get('date', ''))[:10]}): raw pixels in [0, 1], training parts ({drawn}, every "
        f"class alike), n = {results.sizes['seed']} draws of samples and injections. AUROC: chance "
        "that an injected sample ranks above another; 0.5 knows nothing, below 0.5 the lowest "
        "should be looked at first. Recall: share of the injected samples among as many as were "
        "injected, the highest. ±: half a 95 % interval, which allows for the samples that draws "
        "of a part share; where all of a set was used it is about the injection alone. In bold: "
        f"the highest AUROC and those within {CLOSE:g} of it."
    )
    parts = [
        "<!-- made by docs/make.py from results/; do not edit -->",
        "# What the influence score finds, and what finds it better",
        _where_it_loses(results),
        "## Which column to sort by",
        "Mean AUROC over data sets, in brackets the lowest. Columns of the table that "
        "`rarefy influence` writes that need no model and no training.",
        _recommendation(results),
        "The score says how far a sample stretches its class along directions in which the class "
        "varies anyway. It is there to look at a class's extremes and to ask what removing them "
        "does, not to clean labels. A rare mode and a wrong label look alike to all of these; the "
        "column `triage` puts score, neighbours and label check together.",
        *_poor(results),
        beside_cleanlab.section(ROOT / "benchmarks" / "results"),
        *(_section(results, kind, mine) for kind, mine in _kinds(injections).items()),
        "## How this was measured",
        how,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def newest(folder: Path) -> tuple[Study, str, xr.Dataset]:
    """The committed results of the study, those of the paper scale first."""
    found = [path for path in find_results(folder) if path.stem.startswith(f"{STUDY}-")]
    if not found:
        raise SystemExit(
            f"no results of {STUDY} in {folder}; make them with "
            f"rarefy run {STUDY} --scale paper --results {folder}"
        )
    return read_results(found[0])
