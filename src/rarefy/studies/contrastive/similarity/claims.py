"""Verdicts of ``contrast-similarity``: C11."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.downstream import TEST_FREQUENCIES
from rarefy.studies.contrastive.downstream_claims import Quantity, trend_verdicts
from rarefy.studies.contrastive.similarity.experiment import SimilarityExperiment


def over_defined(results: xr.Dataset) -> xr.DataArray:
    """Mean cosine over the pairs that have one; ``similarity`` counts the others as 0. NaN where
    no pair has one."""
    defined = 1 - results["undefined"]
    return (results["similarity"] / defined).where(defined > 0)


def verdicts(experiment: SimilarityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    undefined = "a pair with a zero embedding counts as 0"
    quantities = []
    for test in TEST_FREQUENCIES:
        here = results.sel(test_frequencies=test)
        similarity, latents = here["similarity"], here["latents"]
        minus = f"mean cosine minus the perfect encoder's, test {test}"
        same = f"both on the same pairs of a run; {undefined}"
        biased = here.sel(bias_scale=here["bias_scale"] > 0)  # others have no zero embeddings
        some = f"mean cosine over pairs that have an embedding, test {test}"
        which = "which pairs these are depends on the network"
        left = ("share of pairs left out", biased["undefined"])
        quantities += [
            Quantity(f"mean cosine, test {test}", similarity, latents, undefined),
            Quantity(minus, similarity - latents, note=same),
            Quantity(some, over_defined(biased), note=which, beside=left),
        ]
    rare = results["by_group"].sel(test_frequencies="balanced", group="minority")
    only = "pairs with minority features only, test balanced"
    quantities.append(Quantity(only, rare, note=undefined))
    return trend_verdicts(experiment, scale, "C11", quantities, "increasing")
