"""Verdicts of ``contrast-regression``: C12."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.downstream_claims import Figure
from rarefy.studies.contrastive.regression.experiment import RegressionExperiment
from rarefy.studies.kit.premise import undecided


def verdicts(experiment: RegressionExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    note = "target: a random linear function of the summed latent"
    pure = results["pure_encoder"]
    figure = Figure(experiment, scale, "test MSE", "decreasing", pure, note)
    share = "over the target's variance: "
    unknown = "the paper does not say what is regressed"
    return [
        *(
            undecided(verdict, unknown if verdict.role == "primary" else "")
            for verdict in figure.verdicts("C12", results["mse"])
        ),
        figure.judged("C12", share, results["unexplained"]),
    ]
