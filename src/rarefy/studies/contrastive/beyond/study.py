"""Two assumptions dropped: attention that is trained, and features that come together."""

from __future__ import annotations

from typing import ClassVar

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import banded
from rarefy.measure.statistics import judge_difference, judge_trend
from rarefy.measure.trends import spearman_trend
from rarefy.studies.contrastive.beyond.experiment import BeyondExperiment, described
from rarefy.studies.contrastive.words import bias_name, rows


class ContrastBeyond(BeyondExperiment, Study):
    """Imbalance and pruning when W_Q, W_K are trained and when a rare feature has a companion."""

    name: ClassVar[str] = "contrast-beyond"
    title: ClassVar[str] = "Trained attention, and rare features that come with a frequent one"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 2-3; Thm 3.2 end"
    claims: ClassVar[tuple[str, ...]] = ("C10", "P3")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "000 starts from W_Q = W_K = identity and analyses them as fixed, and lets features appear "
        "independently of each other. Neither holds for real networks and data. Here both "
        "assumptions are dropped, one at a time and together: does a rare feature still align "
        "with fewer, weaker neurons (Fig. 2-3), and does pruning give it more pure neurons "
        "(Theorem 3.2)?"
    )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        found = []
        pruned = float(max(self.alpha))
        eps = results["eps_min"].values
        rarer = eps[eps < 1] if (eps < 1).any() else eps
        for bias in results["bias_scale"].values:
            for attention in results["attention"].values:
                for share in results["share"].values:
                    here = results.sel(bias_scale=bias, attention=attention, share=share)
                    where = f"{described(attention, share)}, {bias_name(bias)}, {self.setting}"
                    for read in self.judged_reads():
                        best = here["best"].sel(alpha=0.0, read=read, group="minority")
                        found.append(
                            judge_trend(
                                ("C10", self.name, scale, f"best cosine, step {read}, {where}"),
                                spearman_trend(eps, rows(best)),
                                "increasing",
                            )
                        )
                    pure = here["pure"].sel(read=self.reads[-1], group="minority")
                    gain = (pure.sel(alpha=pruned) - pure.sel(alpha=0.0)).sel(eps_min=rarer)
                    found.append(
                        judge_difference(
                            ("P3", self.name, scale, f"pure neurons, alpha={pruned:g}, {where}"),
                            gain.mean("eps_min").values,
                            "positive",
                            note=f"pruned minus not, step {self.reads[-1]}, mean over eps_min < 1",
                        )
                    )
        return found

    def picture(self, results: xr.Dataset) -> list[Picture]:
        eps = results["eps_min"].values
        panels = []
        for read in self.judged_reads():
            for bias in results["bias_scale"].values:
                curves = []
                for attention in results["attention"].values:
                    for share in results["share"].values:
                        at = results["best"].sel(
                            bias_scale=bias, attention=attention, share=share, alpha=0.0, read=read
                        )
                        style = "solid" if attention == "fixed" else "dashed"
                        label = described(attention, share)
                        sample = rows(at.sel(group="minority"))
                        curves.append(banded(label, eps, sample, f"share {share:g}", style))
                panels.append(
                    Lines(
                        curves,
                        "minority frequency, eps_min",
                        "largest cosine, rare features",
                        title=f"step {read}, {bias_name(bias)}",
                    )
                )
        return [
            Picture(
                "alignment",
                "Alignment with rare features when two assumptions are dropped",
                "Not pruned, 95 % intervals. Solid: attention fixed at the identity; dashed: "
                "trained. A companion is a frequent feature whose presence decides that of the "
                "rare one too (always, half of the time, or never). A curve that rises early and "
                "not late says that rare features come later, not that they are lost.",
                panels,
            )
        ]

    def tables(self, results: xr.Dataset) -> list[Table]:
        table: list[list[object]] = []
        mean = results.mean("seed").sel(eps_min=float(results["eps_min"][0]))
        last = self.reads[-1]
        for bias in results["bias_scale"].values:
            for attention in results["attention"].values:
                for share in results["share"].values:
                    for alpha in results["alpha"].values:
                        at = mean.sel(
                            bias_scale=bias,
                            attention=attention,
                            share=share,
                            alpha=alpha,
                            read=last,
                        )
                        rare = at.sel(group="minority")
                        names = ("best", "energy", "pure")
                        table.append(
                            [
                                bias_name(bias),
                                described(attention, share),
                                f"{float(alpha):g}",
                                *(f"{float(rare[name]):.3g}" for name in names),
                                f"{float(at['on_itself']):.2f}",
                            ]
                        )
        return [
            Table(
                "beyond",
                f"Rare features at step {last}, eps_min = {float(results['eps_min'][0]):g}",
                f"Mean over {results.sizes['seed']} runs. Attention on itself: 1/{self.tokens} is "
                "the plain mean over tokens, 1 no mixing at all.",
                [
                    "bias",
                    "setting",
                    "alpha",
                    "largest cosine",
                    "energy",
                    "pure neurons",
                    "attention on itself",
                ],
                table,
            )
        ]
