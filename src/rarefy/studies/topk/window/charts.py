"""Picture and table of ``topk-window``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import texts
from rarefy.studies.topk.phase.experiment import READS_AS
from rarefy.studies.topk.phase.regions import at_end, axes_of
from rarefy.studies.topk.phase.tables import conditions
from rarefy.studies.topk.window.claims import spoken_of
from rarefy.studies.topk.window.experiment import WindowExperiment


def pictures(experiment: WindowExperiment, results: xr.Dataset) -> list[Picture]:
    sigma, keep = axes_of(results)
    panels = []
    for place, (value, window, few) in enumerate(
        zip(sigma, *spoken_of(experiment, sigma, keep), strict=True)
    ):
        curves = [
            mean_curve(
                READS_AS[reading], keep, at_end(results, "test_loss", reading)[:, place], reading
            )
            for reading in texts(results, "reading")
        ]
        marks = [(float(keep[window].min()), "window")] if window.any() else []
        marks += [(float(keep[window].max()), "")] if window.any() else []
        marks += [(float(keep[few].max()), "too few up to here")] if few.any() else []
        title = f"sigma_p = {value:.3g}, SNR = {experiment.mu / value / experiment.d**0.5:.3g}"
        panels.append(
            Lines(curves, "kept coordinates K", "test loss", title, x_log=True, marks=marks)
        )
    return [
        Picture(
            "window",
            "Test loss over kept coordinates where the theorems speak",
            f"{experiment.setting}, {results.sizes['seed']} seeds, {experiment.steps} updates, 95 "
            f"% bands; log T = {np.log(experiment.classes):.2f} is guessing; the last K is dense "
            "training. Left the noise level with SNR = 1/n and Theorem 4.4's window, right the "
            "one at which Theorem 4.5 says how many coordinates are too few.",
            panels,
        )
    ]


def tables(experiment: WindowExperiment, results: xr.Dataset) -> list[Table]:
    return [conditions(experiment, float(results["sigma"].min()))]
