"""Similarity of positive test pairs against eps_min (000 Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output, Verdict
from rarefy.core.picture import Picture, Table
from rarefy.measure.downstream import MaskedMean, pair_cosines
from rarefy.studies.contrastive._downstream import (
    FIGURE_QUICK,
    FIGURE_TINY,
    TEST_FREQUENCIES,
    DownstreamStudy,
    Encoders,
)
from rarefy.studies.contrastive._downstream_pictures import (
    against_eps,
    by_read,
    ends_table,
    gaps,
    middle,
    over_time,
)
from rarefy.studies.contrastive._downstream_verdicts import Quantity, trend_verdicts

LATENTS = "perfect encoder"
PURE = "one neuron a feature"
COSINE = "mean cosine of positive pairs"


@dataclass(frozen=True, kw_only=True)
class ContrastSimilarity(DownstreamStudy):
    """Mean cosine similarity of positive test pairs against eps_min."""

    name: ClassVar[str] = "contrast-similarity"
    title: ClassVar[str] = "How alike positive test pairs are, and how much of it the data decide"
    paper_says: ClassVar[str] = (
        "The mean cosine similarity of positive test pairs grows with the frequency eps_min of the "
        "rare features, at every noise level (000 Fig. 4); it is taken as a sign that the rare "
        "features are learned better. The paper does not say with which frequencies the test pairs "
        "are drawn. If they are those of training, eps_min changes the test set too: fewer pairs "
        "show no feature at all. Both readings are measured here, with an untrained network and a "
        "perfect encoder as controls."
    )
    claims: ClassVar[tuple[str, ...]] = ("C11",)
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "sigma", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma", "eps_min")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**FIGURE_TINY, "sigma": (0.075,)},
        "quick": {**FIGURE_QUICK, "sigma": (0.075,)},
        "paper": {},
    }

    sigma: tuple[float, ...] = (0.05, 0.075, 0.1)
    """noise std; the noise-to-signal ratio is sigma^2 d1"""

    def outputs(self) -> tuple[Output, ...]:
        each = ("read", "test_frequencies")
        return (
            Output("similarity", each, "mean cosine of positive pairs; 0 where it is undefined"),
            Output("undefined", each, "share of pairs with an embedding that is exactly zero"),
            Output("by_group", (*each, "group"), "mean cosine of pairs with this group only"),
            Output(
                "latents", ("test_frequencies",), "mean cosine of the latents: a perfect encoder"
            ),
            Output(
                "pure_encoder",
                ("test_frequencies",),
                "mean cosine with one neuron a feature and no bias",
            ),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        encoders = self.trained(cells, context, cells.column("sigma", context))
        return self.collected(
            encoders, [self._tested(encoders, frequencies) for frequencies in TEST_FREQUENCIES]
        )

    def _tested(self, encoders: Encoders, frequencies: str) -> dict[str, Tensor]:
        similarity, undefined, latents, pure_encoder = (MaskedMean() for _ in range(4))
        only = (MaskedMean(), MaskedMean())
        for pairs in encoders.pairs("test", self.test_pairs, frequencies):
            f, pure = encoders.embed(pairs)
            cosine, defined = pair_cosines(f[:, 0], f[:, 1])
            similarity.add(cosine)
            undefined.add(~defined)
            present = pairs.present()[:, None]
            majority, minority = (
                part.any(dim=3) for part in present.split([self.majority, self.minority], dim=3)
            )
            for mean, chosen in zip(
                only, (majority & ~minority, minority & ~majority), strict=True
            ):
                mean.add(cosine, chosen)
            summed = pairs.latents.sum(dim=3)
            latents.add(pair_cosines(summed[:, 0], summed[:, 1])[0])
            pure_encoder.add(pair_cosines(pure[:, 0], pure[:, 1])[0])
        return {
            "similarity": similarity.value,
            "undefined": undefined.value,
            "by_group": torch.stack([mean.value for mean in only], dim=2),
            "latents": latents.value,
            "pure_encoder": pure_encoder.value,
        }

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


def over_defined(results: xr.Dataset) -> xr.DataArray:
    """Mean cosine over the pairs that have one; ``similarity`` counts the others as 0. NaN where
    no pair has one."""
    defined = 1 - results["undefined"]
    return (results["similarity"] / defined).where(defined > 0)


def _drowned(rare: xr.DataArray) -> str:
    """Where the first read of a trained network, without a bias, is below the untrained one."""
    reads = [int(read) for read in rare["read"].values if read > 0]
    if 0 not in rare["bias_scale"].values or 0 not in rare["read"].values or not reads:
        return ""
    mean = rare.sel(bias_scale=0, sigma=middle(rare)).mean("seed")
    below = mean["eps_min"].values[(mean.sel(read=reads[0]) < mean.sel(read=0)).values]
    if not len(below):
        return ""
    return (
        f"Without a bias, at step {reads[0]}, they are less alike than in the untrained network "
        f"for eps_min up to {below.max():g}: there the majority's directions drown them. "
    )
