"""Verdicts of ``contrast-regression``: C12."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.downstream import TEST_FREQUENCIES
from rarefy.studies.contrastive.downstream_claims import Quantity, trend_verdicts
from rarefy.studies.contrastive.regression.experiment import RegressionExperiment


def logarithm(values: xr.DataArray) -> xr.DataArray:
    """Errors differ by factors: their logarithms are averaged."""
    return values.copy(data=np.log(values.values))


def verdicts(experiment: RegressionExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    target = "target: a random linear function of the summed latent"
    pure, unexplained = results["pure_encoder"], results["unexplained"]
    quantities = []
    for test in TEST_FREQUENCIES:
        mse, ideal = (v.sel(test_frequencies=test) for v in (results["mse"], pure))
        over, same = logarithm(mse / ideal), f"{target}; both on the same pairs of a run"
        what = f"log of test MSE over that of one neuron a feature, test {test}"
        quantities += [
            Quantity(f"test MSE, test {test}", mse, ideal, target),
            Quantity(what, over, note=same),
        ]
    left, ratio = (
        values.sel(test_frequencies="as trained")
        for values in (unexplained, pure / results["variance"])
    )
    what = "test MSE over the target's variance, test as trained"
    quantities.append(Quantity(what, left, ratio, target))
    return trend_verdicts(experiment, scale, "C12", quantities, "decreasing")
