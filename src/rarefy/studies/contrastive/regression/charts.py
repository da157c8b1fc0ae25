"""Pictures of ``contrast-regression``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture
from rarefy.studies.contrastive import downstream_charts as shared
from rarefy.studies.contrastive.regression.experiment import RegressionExperiment

PURE = "one neuron a feature"


def pictures(experiment: RegressionExperiment, results: xr.Dataset) -> list[Picture]:
    def figure(test: str, title: str, caption: str) -> Picture:
        here, ideal = (results[n].sel(test_frequencies=test) for n in ("mse", "pure_encoder"))
        panels = shared.against_eps(experiment, here, (PURE, ideal), "test MSE", y_log=True)
        return Picture(test.replace(" ", "-"), title, caption, panels)

    return [
        figure(
            "as trained",
            "Regression error, downstream data with the frequencies of training (Fig. 5)",
            f"After {experiment.figure_read} steps, mean over {results.sizes['seed']} runs with 95 "
            "% intervals; one colour a noise-to-signal ratio NSR = sigma^2 d1. Black: an encoder "
            "of one neuron a feature, the noise floor; grey: the untrained network; both at one "
            "NSR only. With the paper's bias the error rises with eps_min, against the claim: rare "
            "features are mostly lost, and a lost feature costs more the more often it appears.",
        ),
        figure(
            "balanced",
            "The same networks, balanced downstream data",
            "The target has the same variance for every eps_min, so that the trend is that of "
            "the representation. With the paper's bias the error falls with eps_min only "
            "slowly, and the untrained network (grey) is better at every eps_min, because "
            "random neurons without thresholds keep something of every feature.",
        ),
    ]
