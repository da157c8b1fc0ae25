"""Similarity of positive test pairs against eps_min (000 Fig. 4)."""

from __future__ import annotations

from typing import ClassVar

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.picture import Picture, Table
from rarefy.studies.contrastive.downstream import (
    TEST_FREQUENCIES,
)
from rarefy.studies.contrastive.downstream_charts import (
    against_eps,
    by_read,
    ends_table,
    gaps,
    middle,
    over_time,
)
from rarefy.studies.contrastive.downstream_claims import Quantity, trend_verdicts
from rarefy.studies.contrastive.similarity.experiment import (
    COSINE,
    LATENTS,
    PURE,
    SimilarityExperiment,
    _drowned,
    over_defined,
)


class ContrastSimilarity(SimilarityExperiment, Study):
    """Mean cosine similarity of positive test pairs against eps_min."""

    name: ClassVar[str] = "contrast-similarity"
    title: ClassVar[str] = "How alike positive test pairs are, and how much of it the data decide"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 4"
    claims: ClassVar[tuple[str, ...]] = ("C11",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "The mean cosine similarity of positive test pairs grows with the frequency eps_min of the "
        "rare features, at every noise level (000 Fig. 4); it is taken as a sign that the rare "
        "features are learned better. The paper does not say with which frequencies the test pairs "
        "are drawn. If they are those of training, eps_min changes the test set too: fewer pairs "
        "show no feature at all. Both readings are measured here, with an untrained network and a "
        "perfect encoder as controls."
    )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        undefined = "a pair with a zero embedding counts as 0"
        quantities = []
        for test in TEST_FREQUENCIES:
            here = results.sel(test_frequencies=test)
            similarity, latents = here["similarity"], here["latents"]
            quantities += [
                Quantity(f"mean cosine, test {test}", similarity, latents, undefined),
                Quantity(
                    f"mean cosine minus the perfect encoder's, test {test}",
                    similarity - latents,
                    note=f"both on the same pairs of a run; {undefined}",
                ),
            ]
            biased = here.sel(bias_scale=here["bias_scale"] > 0)  # others have no zero embeddings
            quantities.append(
                Quantity(
                    f"mean cosine over pairs that have an embedding, test {test}",
                    over_defined(biased),
                    note="which pairs these are depends on the network",
                    beside=("share of pairs left out", biased["undefined"]),
                )
            )
        rare = results["by_group"].sel(test_frequencies="balanced", group="minority")
        quantities.append(
            Quantity("pairs with minority features only, test balanced", rare, note=undefined)
        )
        return trend_verdicts(self, scale, "C11", quantities, "increasing")

    def picture(self, results: xr.Dataset) -> list[Picture]:
        similarity, latents = results["similarity"], results["latents"]

        def figure(test: str, title: str, caption: str) -> Picture:
            here, ideal = (v.sel(test_frequencies=test) for v in (similarity, latents))
            panels = against_eps(self, here, (LATENTS, ideal), COSINE)
            return Picture(test.replace(" ", "-"), title, caption, panels)

        rare = results["by_group"].sel(test_frequencies="balanced", group="minority")
        as_trained, balanced = (gaps(similarity.sel(test_frequencies=t)) for t in TEST_FREQUENCIES)
        reads = ", ".join(str(read) for read in self.reads)
        return [
            figure(
                "as trained",
                "Positive-pair similarity, test pairs with the frequencies of training (Fig. 4)",
                f"After {self.figure_read} steps, mean over {results.sizes['seed']} runs with 95 % "
                "intervals; one colour a noise-to-signal ratio NSR = sigma^2 d1. The dashed black "
                "line compares the latents themselves, whatever the noise: it rises because with "
                "frequent features fewer pairs are empty, and no encoder can make an empty pair "
                "alike. A rise that is parallel to it, or that the untrained network (grey) shows "
                "too, says nothing about learning. With the paper's bias an empty embedding has "
                "cosine 0, so that the share of empty ones moves the mean too (see the table).",
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
                "What the mean hides: these pairs are alike only if the network has learned "
                f"minority features. At sigma={middle(rare):g}. "
                f"{_drowned(rare)}Without a bias training makes them all alike in the end, the "
                "sooner the more frequent they were; with the paper's bias their embedding is "
                "exactly zero until minority features pass the threshold.",
                by_read(rare, "mean cosine, minority-only pairs"),
            ),
            Picture(
                "over-time",
                "Similarity over training",
                "Smallest eps_min solid, largest dashed; one colour a test set. Dashed minus solid "
                f"is the figure's trend; at steps {reads} it is, with test pairs as in training: "
                f"{as_trained}; with balanced pairs: {balanced}. Pairs as in training have a gap "
                "before the first step, made by the data alone.",
                over_time(similarity, COSINE),
            ),
        ]

    def tables(self, results: xr.Dataset) -> list[Table]:
        title = "Positive-pair similarity at both ends of eps_min, with controls"
        ideal = [(LATENTS, results["latents"]), (PURE, results["pure_encoder"])]
        empty = ("share of pairs with a zero embedding", results["undefined"])
        caption = (
            "A pair with a zero embedding counts as 0: a share that falls by 0.05 raises the mean "
            "by about as much, without any pair becoming more alike."
        )
        return [ends_table("controls", results["similarity"], ideal, title, empty, caption)]
