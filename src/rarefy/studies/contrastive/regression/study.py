"""Test error of a linear regression head against eps_min (000 Fig. 5)."""

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
from rarefy.studies.contrastive.regression.experiment import (
    PURE,
    RegressionExperiment,
    _above_floor,
    logarithm,
)


class ContrastRegression(RegressionExperiment, Study):
    """Test error of a linear head on the learned representation against eps_min."""

    name: ClassVar[str] = "contrast-regression"
    title: ClassVar[str] = "How well a linear head reads the features off the representation"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 5"
    claims: ClassVar[tuple[str, ...]] = ("C12",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "A linear regression head is trained on the representations of 1000 pairs and tested on "
        "5000; its mean squared error falls as the frequency eps_min of the rare features grows "
        "(000 Fig. 5). The paper does not give the target: here it is a random linear function "
        "(a unit vector drawn for each run) of the latent summed over tokens. Nor does it give the "
        "frequencies downstream: if they are those of training, the variance of the target grows "
        "with eps_min, which pushes the error up. Both readings are measured here, with an "
        "untrained network and an encoder of one neuron a feature as controls."
    )

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
