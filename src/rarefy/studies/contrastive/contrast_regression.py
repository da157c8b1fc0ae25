"""Test error of a linear regression head against eps_min (000 Fig. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output, Verdict
from rarefy.core.picture import Picture, Table
from rarefy.measure.downstream import ErrorMoments, HeadMoments, along, check_head
from rarefy.studies.contrastive._contrastive import group_means
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

PURE = "one neuron a feature"


@dataclass(frozen=True, kw_only=True)
class ContrastRegression(DownstreamStudy):
    """Test error of a linear head on the learned representation against eps_min."""

    name: ClassVar[str] = "contrast-regression"
    title: ClassVar[str] = "How well a linear head reads the features off the representation"
    paper_says: ClassVar[str] = (
        "A linear regression head is trained on the representations of 1000 pairs and tested on "
        "5000; its mean squared error falls as the frequency eps_min of the rare features grows "
        "(000 Fig. 5). The paper does not give the target: here it is a random linear function "
        "(a unit vector drawn for each run) of the latent summed over tokens. Nor does it give the "
        "frequencies downstream: if they are those of training, the variance of the target grows "
        "with eps_min, which pushes the error up. Both readings are measured here, with an "
        "untrained network and an encoder of one neuron a feature as controls."
    )
    claims: ClassVar[tuple[str, ...]] = ("C12",)
    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "sigma", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma", "eps_min")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**FIGURE_TINY, "sigma": (0.05,), "head_pairs": 100},
        "quick": {**FIGURE_QUICK, "sigma": (0.05,)},
        "paper": {},
    }

    sigma: tuple[float, ...] = (0.03, 0.05, 0.075)
    """noise std; the noise-to-signal ratio is sigma^2 d1"""
    head_pairs: int = 1000
    """pairs on which the head is trained, with the frequencies of the test pairs; both members of
    a pair are samples, here and in the test"""
    ridge: float = 0.0
    """ridge term of the head in units of a neuron's variance; 0: least squares"""

    @property
    def drawn_pairs(self) -> tuple[int, ...]:
        return (self.head_pairs, self.test_pairs) * len(TEST_FREQUENCIES)

    def check(self) -> None:
        super().check()
        # the pure encoder has a neuron a feature and gets a head too
        check_head(self.head_pairs, max(self.neurons, self.d), self.ridge, "head_pairs")

    def outputs(self) -> tuple[Output, ...]:
        each, test = ("read", "test_frequencies"), ("test_frequencies",)
        return (
            Output("mse", each, "mean squared test error of the head"),
            Output("unexplained", each, "test error over the target's variance, 1 - R^2"),
            Output("by_group", (*each, "group"), "the same for the latents of one group"),
            Output("variance", test, "variance of the target"),
            Output("pure_encoder", test, "test error with one neuron a feature and no bias"),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        encoders = self.trained(cells, context, cells.column("sigma", context))
        direction = encoders.experiment.draws.spawn("target").normal("target", (self.d,))
        unit = direction / torch.linalg.vector_norm(direction, dim=1, keepdim=True)
        return self.collected(
            encoders,
            [self._tested(encoders, frequencies, unit) for frequencies in TEST_FREQUENCIES],
        )

    def _tested(self, encoders: Encoders, frequencies: str, unit: Tensor) -> dict[str, Tensor]:
        """Every latent is regressed; the head of <unit, latents> follows by linearity."""
        trained, pure = HeadMoments(), HeadMoments()
        for pairs in encoders.pairs("head", self.head_pairs, frequencies):
            f, f_pure, latents = encoders.samples(pairs)
            trained.add(f, latents[:, None])
            pure.add(f_pure, latents)
        head, pure_head = trained.solve(self.ridge), pure.solve(self.ridge)
        found, reference = ErrorMoments(), ErrorMoments()
        for pairs in encoders.pairs("test", self.test_pairs, frequencies):
            f, f_pure, latents = encoders.samples(pairs)
            found.add(head.predict(f), latents[:, None])
            reference.add(pure_head.predict(f_pure), latents)
        mse, variance = along(found.error, unit[:, None]), along(found.covariance, unit[:, None])
        squared, spread = (
            group_means(moments.diagonal(dim1=-2, dim2=-1), self.majority)
            for moments in (found.error, found.covariance)
        )
        return {
            "mse": mse,
            "unexplained": mse / variance,
            "by_group": squared / spread,
            "variance": variance[:, 0],
            "pure_encoder": along(reference.error, unit),
        }

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
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
        return trend_verdicts(self, scale, "C12", quantities, "decreasing")

    def picture(self, results: xr.Dataset) -> list[Picture]:
        mse, pure = results["mse"], results["pure_encoder"]

        def figure(test: str, title: str, caption: str) -> Picture:
            here, ideal = (v.sel(test_frequencies=test) for v in (mse, pure))
            panels = against_eps(self, here, (PURE, ideal), "test MSE", y_log=True)
            return Picture(test.replace(" ", "-"), title, caption, panels)

        rare = results["by_group"].sel(test_frequencies="balanced", group="minority")
        as_trained, balanced = (gaps(mse.sel(test_frequencies=t), True) for t in TEST_FREQUENCIES)
        reads = ", ".join(str(read) for read in self.reads)
        return [
            figure(
                "as trained",
                "Regression error, downstream data with the frequencies of training (Fig. 5)",
                f"After {self.figure_read} steps, mean over {results.sizes['seed']} runs with 95 % "
                "intervals; one colour a noise-to-signal ratio NSR = sigma^2 d1. Black: an encoder "
                "of one neuron a feature, the noise floor; grey: the untrained network; both at "
                f"one NSR only.{_above_floor(self, results)} With the paper's bias the error rises "
                "with eps_min, against the claim: rare features are mostly lost, and a lost "
                "feature costs more the more often it appears.",
            ),
            figure(
                "balanced",
                "The same networks, balanced downstream data",
                "The target has the same variance for every eps_min, so that the trend is that of "
                "the representation. With the paper's bias the error falls with eps_min only "
                "slowly, and the untrained network (grey) is better at every eps_min, because "
                "random neurons without thresholds keep something of every feature.",
            ),
            Picture(
                "minority",
                "Share of the minority features' variance that is not explained",
                f"Balanced downstream data, at sigma={middle(rare):g}; 1: nothing can be read off, "
                "0: all. One curve a training step, the untrained network dashed.",
                by_read(rare, "1 - R^2 of minority latents", y_log=True),
            ),
            Picture(
                "over-time",
                "Regression error over training",
                "Smallest eps_min solid, largest dashed; one colour a downstream distribution. The "
                "figure's trend is a solid line above its dashed one. Without a bias it holds "
                "while the rare features are being learned, then goes and reverses. Error at "
                f"the largest eps_min over that at the smallest, at steps {reads}: data as in "
                f"training: {as_trained}; balanced: {balanced}.",
                over_time(mse, "test MSE", y_log=True),
            ),
        ]

    def tables(self, results: xr.Dataset) -> list[Table]:
        title = "Regression error at both ends of eps_min, with controls"
        ideal = [(PURE, results["pure_encoder"])]
        above = (f"over {PURE}, mean of runs", results["mse"] / results["pure_encoder"])
        caption = "Last column: each run's error over that of one neuron a feature on its pairs."
        return [ends_table("controls", results["mse"], ideal, title, above, caption)]


def logarithm(values: xr.DataArray) -> xr.DataArray:
    """Errors differ by factors: their logarithms are averaged."""
    return values.copy(data=np.log(values.values))


def _above_floor(study: ContrastRegression, results: xr.Dataset) -> str:
    """How far the networks without a bias are above the floor of their own noise level."""
    if 0 not in results["bias_scale"].values:
        return ""
    here = results.sel(bias_scale=0, test_frequencies="as trained")
    ratio = logarithm(here["mse"].sel(read=study.figure_read) / here["pure_encoder"]).mean("seed")
    low, high = (float(np.exp(end)) for end in (ratio.min(), ratio.max()))
    return (
        " Without a bias the error comes near the floor of its own noise level as the rare "
        f"features are learned: {low:.2f} to {high:.2f} times it, over all points shown."
    )
