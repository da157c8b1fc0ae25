"""Pictures and the table of ``contrast-similarity``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Picture, Table
from rarefy.studies.contrastive import downstream_charts as shared
from rarefy.studies.contrastive.downstream import TEST_FREQUENCIES
from rarefy.studies.contrastive.similarity.experiment import SimilarityExperiment
from rarefy.studies.contrastive.words import middle_sigma

LATENTS = "perfect encoder"
PURE = "one neuron a feature"
COSINE = "mean cosine of positive pairs"


def _drowned(rare: xr.DataArray) -> str:
    """Where the first read of a trained network, without a bias, is below the untrained one."""
    reads = [int(read) for read in rare["read"].values if read > 0]
    if 0 not in rare["bias_scale"].values or 0 not in rare["read"].values or not reads:
        return ""
    mean = rare.sel(bias_scale=0, sigma=middle_sigma(rare)).mean("seed")
    below = mean["eps_min"].values[(mean.sel(read=reads[0]) < mean.sel(read=0)).values]
    if not len(below):
        return ""
    return (
        f"Without a bias, at step {reads[0]}, they are less alike than in the untrained network "
        f"for eps_min up to {below.max():g}: there the majority's directions drown them. "
    )


def pictures(experiment: SimilarityExperiment, results: xr.Dataset) -> list[Picture]:
    similarity, latents = results["similarity"], results["latents"]

    def figure(test: str, title: str, caption: str) -> Picture:
        here, ideal = (v.sel(test_frequencies=test) for v in (similarity, latents))
        panels = shared.against_eps(experiment, here, (LATENTS, ideal), COSINE)
        return Picture(test.replace(" ", "-"), title, caption, panels)

    rare = results["by_group"].sel(test_frequencies="balanced", group="minority")
    as_trained, balanced = (
        shared.gaps(similarity.sel(test_frequencies=t)) for t in TEST_FREQUENCIES
    )
    reads = ", ".join(str(read) for read in experiment.reads)
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
            "that the share of empty ones moves the mean too (see the table).",
        ),
        figure(
            "balanced",
            "The same networks on balanced test pairs",
            "Every feature is frequent in the test pairs, whatever eps_min was in training, so "
            "that the black line is flat and what is left of the trend was learned. Without a "
            "bias only the rarest features are still missing at this step. With the paper's "
            "bias a rise comes from fewer empty embeddings: pairs that have an embedding do "
            "not become more alike (see the table and the verdicts).",
        ),
        Picture(
            "minority-only",
            "Pairs that show nothing but minority features, balanced test pairs",
            "What the mean hides: these pairs are alike only if the network has learned minority "
            f"features. At sigma={middle_sigma(rare):g}. {_drowned(rare)}Without a bias training "
            "makes them all alike in the end, the sooner the more frequent they were; with the "
            "paper's bias their embedding is exactly zero until minority features pass the "
            "threshold.",
            shared.by_read(rare, "mean cosine, minority-only pairs"),
        ),
        Picture(
            "over-time",
            "Similarity over training",
            "Smallest eps_min solid, largest dashed; one colour a test set. Dashed minus solid "
            f"is the figure's trend; at steps {reads} it is, with test pairs as in training: "
            f"{as_trained}; with balanced pairs: {balanced}. Pairs as in training have a gap "
            "before the first step, made by the data alone.",
            shared.over_time(similarity, COSINE),
        ),
    ]


def tables(experiment: SimilarityExperiment, results: xr.Dataset) -> list[Table]:
    title = "Positive-pair similarity at both ends of eps_min, with controls"
    ideal = [(LATENTS, results["latents"]), (PURE, results["pure_encoder"])]
    empty = ("share of pairs with a zero embedding", results["undefined"])
    caption = (
        "A pair with a zero embedding counts as 0: a share that falls by 0.05 raises the mean "
        "by about as much, without any pair becoming more alike."
    )
    return [shared.ends_table(results["similarity"], ideal, title, empty, caption)]
