"""Does Fig. 2-3's trend survive the hyper-parameters the paper leaves out? (000 Fig. 2-3)"""

from __future__ import annotations

from typing import ClassVar

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import banded
from rarefy.measure.statistics import judge_trend
from rarefy.measure.trends import spearman_trend
from rarefy.studies.contrastive.sensitivity.experiment import (
    VARIATIONS,
    SensitivityExperiment,
    _spelled,
)
from rarefy.studies.contrastive.words import bias_name


class ContrastSensitivity(SensitivityExperiment, Study):
    """One hyper-parameter changed at a time, the trend in eps_min read at several steps."""

    name: ClassVar[str] = "contrast-sensitivity"
    title: ClassVar[str] = "Minority alignment against eps_min under other hyper-parameters"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 2-3"
    claims: ClassVar[tuple[str, ...]] = ("C10",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "000 shows that minority alignment grows with eps_min (Fig. 2-3) and refers to its code "
        "for learning rate, temperature, batch size, tokens, activation probability and the step "
        "at which the figures are read. Here each is varied alone around the values that "
        "contrast-alignment uses."
    )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        eps = results["eps_min"].values
        found = []
        for bias in results["bias_scale"].values:
            for variation in results["variation"].values:
                at = results["best"].sel(bias_scale=bias, variation=variation, read=self.reads[-2])
                found.append(
                    judge_trend(
                        (
                            "C10",
                            self.name,
                            scale,
                            f"best cosine, {VARIATIONS[int(variation)][0]}, {bias_name(bias)}",
                        ),
                        spearman_trend(eps, at.transpose("seed", "eps_min").values),
                        "increasing",
                        note=f"read at step {self.reads[-2]}",
                    )
                )
        return found

    def picture(self, results: xr.Dataset) -> list[Picture]:
        eps = results["eps_min"].values
        panels = []
        for bias in results["bias_scale"].values:
            curves = []
            for read in self.reads:
                rows = results["best"].sel(bias_scale=bias, variation=self.variation[0], read=read)
                sample = rows.transpose("seed", "eps_min").values
                curves.append(banded(f"step {read}", eps, sample, f"step {read}"))
            panels.append(
                Lines(
                    curves,
                    "minority frequency, eps_min",
                    "largest cosine (mean over minority features)",
                    title=bias_name(bias),
                )
            )
        return [
            Picture(
                "read",
                "The step at which the figure is read",
                "Hyper-parameters as chosen; 95 % intervals. What is a trend early is flat late "
                "when there is no bias.",
                panels,
            )
        ]

    def tables(self, results: xr.Dataset) -> list[Table]:
        low, high = float(results["eps_min"].min()), float(results["eps_min"].max())
        columns = ["changed", "bias"]
        columns += [f"step {read}: eps_min {e:g}" for read in self.reads for e in (low, high)]
        rows: list[list[object]] = []
        for variation in results["variation"].values:
            for bias in results["bias_scale"].values:
                mean = results["best"].sel(variation=variation, bias_scale=bias).mean("seed")
                numbers = [
                    _spelled(float(mean.sel(read=read, eps_min=e)))
                    for read in self.reads
                    for e in (low, high)
                ]
                rows.append([VARIATIONS[int(variation)][0], bias_name(bias), *numbers])
        return [
            Table(
                "sensitivity",
                "Largest minority cosine, one hyper-parameter changed at a time",
                f"Mean over {results.sizes['seed']} runs. As chosen: lr 0.5 (about 6 steps to "
                "T1), tau 1, batch 64, 2 tokens that both show a feature, activation 0.3 (2.7 "
                "features a sample when balanced), weight decay 0.001, sigma_0 0.001 (flat "
                "logits at the start).",
                columns,
                rows,
            )
        ]
