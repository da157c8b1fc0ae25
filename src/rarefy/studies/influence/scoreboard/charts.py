"""What finds injected samples: maps of AUROC, tables of AUROC and recall."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import HeatMap, Picture, Table
from rarefy.measure.estimates import finite_mean
from rarefy.studies.influence.scoreboard.claims import CLOSE, spoken, values_of, winners
from rarefy.studies.influence.scoreboard.experiment import ScoreboardExperiment
from rarefy.tools.influence.signals import WORDS


def pictures(experiment: ScoreboardExperiment, results: xr.Dataset) -> list[Picture]:
    """One map per injection: signals by data sets."""
    signals, names = (results[dim].values.tolist() for dim in ("signal", "data"))
    panels = []
    for text in results["injection"].values.tolist():
        part = results["auroc"].sel(injection=text).mean("seed").transpose("signal", "data")
        values = part.values.astype(np.float64)
        notes = [(*place, f"{value:.2f}") for place, value in np.ndenumerate(values)]
        panels.append(
            HeatMap(values, names, signals, "data", "sorted by", "AUROC", spoken(text), notes)
        )
    caption = (
        "Chance that an injected sample ranks above another, sorted by the signal on the left; 0.5 "
        "knows nothing, below 0.5 the lowest should be looked at first."
    )
    return [Picture("auroc", "What finds injected samples: AUROC", caption, panels)]


def tables(experiment: ScoreboardExperiment, results: xr.Dataset) -> list[Table]:
    """One per data set: AUROC and recall of every signal for every injection."""
    injections = results["injection"].values.tolist()
    found = []
    for name in results["data"].values.tolist():
        rows: list[list[object]] = []
        best = {text: winners(results, name, text) for text in injections}
        for signal in results["signal"].values.tolist():
            row: list[object] = [WORDS[signal]]
            for text in injections:
                mark = " *" if signal in best[text] else ""
                told = [
                    finite_mean(values_of(results, output, name, text, signal))
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
