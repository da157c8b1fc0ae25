"""Pictures and the table of ``contrast-regression``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Picture, Table
from rarefy.studies.contrastive import downstream_charts as shared
from rarefy.studies.contrastive.downstream import TEST_FREQUENCIES
from rarefy.studies.contrastive.regression.claims import logarithm
from rarefy.studies.contrastive.regression.experiment import RegressionExperiment
from rarefy.studies.contrastive.words import middle_sigma

PURE = "one neuron a feature"


def _above_floor(experiment: RegressionExperiment, results: xr.Dataset) -> str:
    """How far the networks without a bias are above the floor of their own noise level."""
    if 0 not in results["bias_scale"].values:
        return ""
    here = results.sel(bias_scale=0, test_frequencies="as trained")
    ratio = here["mse"].sel(read=experiment.figure_read) / here["pure_encoder"]
    ratio = logarithm(ratio).mean("seed")
    low, high = (float(np.exp(end)) for end in (ratio.min(), ratio.max()))
    return (
        " Without a bias the error comes near the floor of its own noise level as the rare "
        f"features are learned: {low:.2f} to {high:.2f} times it, over all points shown."
    )


def pictures(experiment: RegressionExperiment, results: xr.Dataset) -> list[Picture]:
    mse, pure = results["mse"], results["pure_encoder"]

    def figure(test: str, title: str, caption: str) -> Picture:
        here, ideal = (v.sel(test_frequencies=test) for v in (mse, pure))
        panels = shared.against_eps(experiment, here, (PURE, ideal), "test MSE", y_log=True)
        return Picture(test.replace(" ", "-"), title, caption, panels)

    rare = results["by_group"].sel(test_frequencies="balanced", group="minority")
    as_trained, balanced = (
        shared.gaps(mse.sel(test_frequencies=t), True) for t in TEST_FREQUENCIES
    )
    reads = ", ".join(str(read) for read in experiment.reads)
    return [
        figure(
            "as trained",
            "Regression error, downstream data with the frequencies of training (Fig. 5)",
            f"After {experiment.figure_read} steps, mean over {results.sizes['seed']} runs with 95 "
            "% intervals; one colour a noise-to-signal ratio NSR = sigma^2 d1. Black: an encoder "
            "of one neuron a feature, the noise floor; grey: the untrained network; both at one "
            f"NSR only.{_above_floor(experiment, results)} With the paper's bias the error rises "
            "with eps_min, against the claim: rare features are mostly lost, and a lost feature "
            "costs more the more often it appears.",
        ),
        figure(
            "balanced",
            "The same networks, balanced downstream data",
            "The target has the same variance for every eps_min, so that the trend is that of "
            "the representation. With the paper's bias the error falls with eps_min only "
            "slowly, and the untrained network (grey) is better at every eps_min, because "
            "random neurons without thresholds keep something of every feature.",
        ),
        Picture(
            "minority",
            "Share of the minority features' variance that is not explained",
            f"Balanced downstream data, at sigma={middle_sigma(rare):g}; 1: nothing can be read "
            "off, 0: all. One curve a training step, the untrained network dashed.",
            shared.by_read(rare, "1 - R^2 of minority latents", y_log=True),
        ),
        Picture(
            "over-time",
            "Regression error over training",
            "Smallest eps_min solid, largest dashed; one colour a downstream distribution. The "
            "figure's trend is a solid line above its dashed one. Without a bias it holds "
            "while the rare features are being learned, then goes and reverses. Error at "
            f"the largest eps_min over that at the smallest, at steps {reads}: data as in "
            f"training: {as_trained}; balanced: {balanced}.",
            shared.over_time(mse, "test MSE", y_log=True),
        ),
    ]


def tables(experiment: RegressionExperiment, results: xr.Dataset) -> list[Table]:
    title = "Regression error at both ends of eps_min, with controls"
    ideal = [(PURE, results["pure_encoder"])]
    above = (f"over {PURE}, mean of runs", results["mse"] / results["pure_encoder"])
    caption = "Last column: each run's error over that of one neuron a feature on its pairs."
    return [shared.ends_table(results["mse"], ideal, title, above, caption)]
