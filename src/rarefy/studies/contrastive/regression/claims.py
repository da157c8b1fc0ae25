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
        quantities += [
            Quantity(f"test MSE, test {test}", mse, ideal, target),
            Quantity(
                f"log of test MSE over that of one neuron a feature, test {test}",
                logarithm(mse / ideal),
                note=f"{target}; both on the same pairs of a run",
            ),
        ]
    ratio = (pure / results["variance"]).sel(test_frequencies="as trained")
    quantities.append(
        Quantity(
            "test MSE over the target's variance, test as trained",
            unexplained.sel(test_frequencies="as trained"),
            ratio,
            target,
        )
    )
    return trend_verdicts(experiment, scale, "C12", quantities, "decreasing")
