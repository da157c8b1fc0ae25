"""What finds injected samples: maps and tables of AUROC and recall."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import HeatMap, Picture, Table
from rarefy.studies.influence.scoreboard.claims import CLOSE, spoken, values_of, winners
from rarefy.studies.influence.scoreboard.experiment import ScoreboardExperiment
from rarefy.tools.influence.signals import WORDS


def pictures(experiment: ScoreboardExperiment, results: xr.Dataset) -> list[Picture]:
    """One map per injection: signals by data sets."""
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


def tables(experiment: ScoreboardExperiment, results: xr.Dataset) -> list[Table]:
    """One per data set: AUROC and recall of every signal for every injection."""
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
