"""Verdicts, pictures and tables about what finds injected samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.picture import HeatMap, Picture, Table
from rarefy.measure.estimates import Interval
from rarefy.measure.statistics import judge_difference
from rarefy.studies.influence.drawn_sets import resampled_interval
from rarefy.studies.influence.scoreboard.experiment import ScoreboardExperiment
from rarefy.studies.influence.signals import WORDS
from rarefy.tools.influence.injections import Injection

if TYPE_CHECKING:
    import xarray as xr


SCORE, RIVAL = "percentile", "distance"
"""What the tool sorts by, and the plainest thing that knows the label too."""
KINDS = {
    "flips": "labels flipped at random",
    "paired-flips": "labels flipped between two classes",
    "rare-modes": "rare modes",
    "copies": "copies with another label",
    "near-copies": "near copies with another label",
}
CLOSE = 0.01
"""AUROCs that are so much apart at most are as good as equal."""


def spoken(text: str) -> str:
    injection = Injection.parse(text)
    return f"{KINDS[injection.kind]}, {100 * injection.share:g} %"


def values_of(
    results: xr.Dataset, output: str, name: str, injection: str, signal: str
) -> NDArray[np.float64]:
    """One number a seed."""
    part = results[output].sel(data=name, injection=injection, signal=signal)
    return np.asarray(part.values, dtype=np.float64)


def interval_of(
    results: xr.Dataset, output: str, name: str, injection: str, signal: str
) -> Interval:
    share = float(results["share"].sel(data=name, injection=injection).mean())
    return resampled_interval(values_of(results, output, name, injection, signal), share)


def winners(results: xr.Dataset, name: str, injection: str) -> list[str]:
    """The signal with the highest mean AUROC, and those as good as it, best first."""
    found = {
        signal: float(values_of(results, "auroc", name, injection, signal).mean())
        for signal in results["signal"].values.tolist()
    }
    ordered = sorted(found, key=lambda signal: -found[signal])
    return [signal for signal in ordered if found[signal] >= found[ordered[0]] - CLOSE]


def scoreboard_verdicts(
    study: ScoreboardExperiment, results: xr.Dataset, scale: str
) -> list[Verdict]:
    """B11: samples that are atypical of their class because they were made so, rare modes, rank
    above others; further, they do so by more than with the distance to the class mean. Of wrong
    labels and copies 003 says nothing: they are shown, not judged."""
    found = []
    for name in results["data"].values.tolist():
        for text in results["injection"].values.tolist():
            if Injection.parse(text).kind != "rare-modes":
                continue
            own = values_of(results, "auroc", name, text, SCORE)
            rival = values_of(results, "auroc", name, text, RIVAL)
            for what, values in (
                ("found better than at random", own - 0.5),
                ("found better than by the distance to the class mean", own - rival),
            ):
                found.append(_judged(study, results, scale, name, text, what, values))
    return found or [
        judge_difference(("B11", study.name, scale, "no rare modes"), np.zeros(0), "positive")
    ]


def _judged(
    study: ScoreboardExperiment,
    results: xr.Dataset,
    scale: str,
    name: str,
    text: str,
    what: str,
    values: NDArray[np.float64],
) -> Verdict:
    share = float(results["share"].sel(data=name, injection=text).mean())
    best = winners(results, name, text)[0]
    reached = values_of(results, "auroc", name, text, best).mean()
    own = values_of(results, "auroc", name, text, SCORE).mean()
    note = f"difference of AUROC; score {own:.3f}, best {best} {reached:.3f}"
    identity = ("B11", study.name, scale, f"{name}, {spoken(text)}: {what}")
    return judge_difference(identity, resampled_interval(values, share), "positive", note=note)


def scoreboard_pictures(results: xr.Dataset) -> list[Picture]:
    """One map an injection: signals by data sets."""
    found = []
    signals, names = (results[dim].values.tolist() for dim in ("signal", "data"))
    for output, words, caption in (
        (
            "auroc",
            "AUROC",
            "Chance that an injected sample ranks above another, sorted by the signal on the left; "
            "0.5 knows nothing, below 0.5 the lowest should be looked at first.",
        ),
        (
            "recall",
            "recall",
            "Share of the injected samples that are found by looking at as many samples as were "
            "injected, those with the highest signal.",
        ),
    ):
        panels = []
        for text in results["injection"].values.tolist():
            part = results[output].sel(injection=text).mean("seed").transpose("signal", "data")
            values = part.values.astype(np.float64)
            notes = [
                (row, column, f"{values[row, column]:.2f}")
                for row in range(len(signals))
                for column in range(len(names))
            ]
            panels.append(
                HeatMap(values, names, signals, "data", "sorted by", words, spoken(text), notes)
            )
        title = f"What finds injected samples: {words}"
        found.append(Picture(output, title, caption, panels))
    return found


def scoreboard_tables(results: xr.Dataset) -> list[Table]:
    """One a data set: AUROC and recall of every signal for every injection."""
    injections = results["injection"].values.tolist()
    found = []
    for name in results["data"].values.tolist():
        rows: list[list[object]] = []
        for signal in results["signal"].values.tolist():
            row: list[object] = [WORDS[signal]]
            for text in injections:
                mark = " *" if signal in winners(results, name, text) else ""
                told = [
                    values_of(results, output, name, text, signal).mean()
                    for output in ("auroc", "recall")
                ]
                row.append(f"{told[0]:.3f} / {told[1]:.2f}{mark}")
            rows.append(row)
        counts = results[["injected", "asked"]].sel(data=name).mean("seed")
        amounts: list[object] = ["samples put in, of"]
        for text in injections:
            here = counts.sel(injection=text)
            amounts.append(f"{float(here['injected']):.0f}, {float(here['asked']):.0f}")
        rows.append(amounts)
        caption = (
            f"AUROC / recall, means over {results.sizes['seed']} draws; *: the highest AUROC, or "
            f"within {CLOSE:g} of it."
        )
        heads = ["sorted by", *injections]
        found.append(Table(f"found-{name}", f"{name}: what finds what", caption, heads, rows))
    return found
