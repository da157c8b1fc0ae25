"""Pictures of ``contrast-similarity``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture
from rarefy.studies.contrastive import downstream_charts as shared
from rarefy.studies.contrastive.similarity.experiment import SimilarityExperiment

LATENTS = "perfect encoder"


def pictures(experiment: SimilarityExperiment, results: xr.Dataset) -> list[Picture]:
    def figure(test: str, title: str, caption: str) -> Picture:
        here, ideal = (results[n].sel(test_frequencies=test) for n in ("similarity", "latents"))
        label = "mean cosine of positive pairs"
        panels = shared.against_eps(experiment, here, (LATENTS, ideal), label)
        return Picture(test.replace(" ", "-"), title, caption, panels)

    return [
        figure(
            "as trained",
            "Positive-pair similarity, test pairs with the frequencies of training (Fig. 4)",
            f"After {experiment.figure_read} steps, mean over {results.sizes['seed']} runs with 95 "
            "% intervals; one colour a noise-to-signal ratio NSR = sigma^2 d1. The dashed black "
            "line compares the latents themselves, whatever the noise: it rises because with "
            "frequent features fewer pairs are empty, and no encoder can make an empty pair alike. "
            "A rise that is parallel to it, or that the untrained network (grey) shows too, says "
            "nothing about learning. With the paper's bias an empty embedding has cosine 0, so "
            "that the share of empty ones moves the mean too.",
        ),
        figure(
            "balanced",
            "The same networks on balanced test pairs",
            "Every feature is frequent in the test pairs, whatever eps_min was in training, so "
            "that the black line is flat and what is left of the trend was learned.",
        ),
    ]
