"""Verdicts of ``contrast-similarity``: C11."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.downstream_claims import Figure
from rarefy.studies.contrastive.similarity.experiment import SimilarityExperiment


def over_defined(results: xr.Dataset) -> xr.DataArray:
    """Mean cosine over the pairs that have one; ``similarity`` counts the others as 0. NaN where
    no pair has one."""
    defined = 1 - results["undefined"]
    return (results["similarity"] / defined).where(defined > 0)


def verdicts(experiment: SimilarityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    similarity, latents = results["similarity"], results["latents"]
    note = "a pair with a zero embedding counts as 0"
    figure = Figure(experiment, scale, "mean cosine", "increasing", latents, note)
    some = "pairs that have an embedding: "
    gap = "less the perfect encoder's: "
    return [
        *figure.verdicts("C11", similarity),
        figure.judged("C11", some, over_defined(results)),
        figure.judged("", gap, similarity - latents),
    ]
