"""Two assumptions dropped: attention that is trained, and features that come together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Lines, Picture, Table
from rarefy.data.sparse_coding import Companions
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.curves import mean_curve
from rarefy.measure.neurons import dominant
from rarefy.measure.statistics import judge_difference, judge_trend
from rarefy.measure.trends import spearman_trend
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies._apart import simulate_apart
from rarefy.studies.contrastive._checks import check_alphas, check_choices, check_reads
from rarefy.studies.contrastive._contrastive import GROUPS, ImbalancedStudy, group_means
from rarefy.studies.contrastive._words import bias_name, rows
from rarefy.train.descent import State
from rarefy.train.neuron_pruning import NeuronPruning

ATTENTION = ("fixed", "trained")


@dataclass(frozen=True, kw_only=True)
class ContrastBeyond(ImbalancedStudy):
    """Imbalance and pruning when W_Q, W_K are trained and when a rare feature has a companion."""

    name: ClassVar[str] = "contrast-beyond"
    title: ClassVar[str] = "Trained attention, and rare features that come with a frequent one"
    paper_says: ClassVar[str] = (
        "000 starts from W_Q = W_K = identity and analyses them as fixed, and lets features appear "
        "independently of each other. Neither holds for real networks and data. Here both "
        "assumptions are dropped, one at a time and together: does a rare feature still align "
        "with fewer, weaker neurons (Fig. 2-3), and does pruning give it more pure neurons "
        "(Theorem 3.2)?"
    )
    claims: ClassVar[tuple[str, ...]] = ("C10", "P3")
    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "attention", "share", "alpha", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "eps_min": (0.3, 1.0),
            "share": (0.0, 1.0),
            "alpha": (0.0, 0.2),
            "bias_scale": (0.0,),
            "d1": 24,
            "batch": 16,
            "steps": 20,
            "reads": (10, 20),
        },
        "quick": {
            "seeds": 4,
            "eps_min": (0.2, 1.0),
            "share": (0.0, 1.0),
            "alpha": (0.0, 0.2),
            "bias_scale": (0.0,),
            "d1": 48,
            "steps": 100,
            "reads": (25, 100),
        },
        "paper": {},
    }

    seeds: int = 30
    eps_min: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    """frequency of the minority features"""
    attention: tuple[str, ...] = ATTENTION
    """fixed: W_Q = W_K = identity; trained: they start there and follow the gradient, undecayed"""
    share: tuple[float, ...] = (0.0, 0.5, 1.0)
    """chance that a rare feature's presence is decided together with its companion's"""
    alpha: tuple[float, ...] = (0.0, 0.2)
    """share of the neurons, the smallest, that are left out; 0: no pruning"""
    bias_scale: tuple[float, ...] = (0.0, 0.5)
    """bias at T1 in units of the paper's; at 1 it silences all neurons once features show on some
    tokens only, since attention dilutes them"""
    spread: str = "subset"
    """tokens that show a present feature; on a random subset of them attention has a choice"""
    sigma: float = 0.03
    """noise std"""
    d1: int = 100
    """dimension of a token; W_Q and W_K have its square"""
    reads: tuple[int, ...] = (25, 100, 400)
    """steps at which alignment is read"""

    def check(self) -> None:
        super().check()
        check_alphas(self.alpha, self.neurons)
        check_choices("attention", self.attention, ATTENTION)
        for value in self.share:
            if not 0 <= value <= 1:
                raise bad_value("share", value, "must be in [0, 1]: it is a chance")
        check_reads(self.reads, self.steps)

    def judged_reads(self) -> tuple[int, ...]:
        """The middle read, where Fig. 2-3 are read elsewhere, and the last."""
        return tuple(dict.fromkeys((self.reads[len(self.reads) // 2], self.reads[-1])))

    def companions(self) -> tuple[int, ...]:
        """Majority features have none; the k-th minority feature has the k-th majority one."""
        rare = (k % self.majority for k in range(self.minority))
        return (*range(self.majority), *rare)

    def cost(self) -> Cost:
        trained = 24 * self.d1**2 if "trained" in self.attention else 0
        return Cost(3 * self.bytes_per_cell() + 8 * trained, self.steps)

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("best", by_group, "largest cosine of any neuron, mean over features"),
            Output("energy", by_group, "sum over neurons of <w,M_j>^2, mean over features"),
            Output("pure", by_group, "neurons pure in a feature (operational set), mean"),
            Output("on_itself", ("read",), "attention of a token on itself, mean over samples"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads), "group": np.array(GROUPS)}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return simulate_apart(cells, "attention", lambda how, part: self._runs(how, part, context))

    def _runs(self, attention: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        eps_min = cells.column("eps_min", context)
        one = torch.ones_like(eps_min)
        codes = rule_codes(["dense"] * len(cells), context.device)
        start = torch.zeros(len(cells), dtype=torch.int64, device=context.device)
        experiment = self.setup(
            cells,
            context,
            eps=self.eps(eps_min),
            sigma=self.sigma * one,
            bias_scale=cells.column("bias_scale", context),
            pruning=NeuronPruning(cells.column("alpha", context), start, codes, self.neurons),
            companions=Companions(self.companions(), cells.column("share", context)),
            train_attention=attention == "trained",
        )
        atoms = experiment.data.dictionary
        probe = experiment.data.sample(experiment.draws.spawn("attention"), self.batch, 0).x

        def means(values: torch.Tensor) -> torch.Tensor:
            return group_means(values.to(context.dtype), self.majority)

        def cosines(state: State) -> torch.Tensor:
            return squared_cosines(state.parameters["weights"], atoms)

        def on_itself(state: State) -> torch.Tensor:
            weights = experiment.problem.attention_of(state.parameters).weights(probe)
            return torch.diagonal(weights, dim1=2, dim2=3).mean(dim=(1, 2))

        trajectory = experiment.train(
            context,
            {
                "best": lambda s: means(cosines(s).amax(dim=1).sqrt()),
                "energy": lambda s: means(
                    projections(s.parameters["weights"], atoms).square().sum(dim=1)
                ),
                "pure": lambda s: means(dominant(cosines(s)).sum(dim=1)),
                "on_itself": on_itself,
            },
            self.reads,
        )
        found = {name: value.cpu().numpy() for name, value in trajectory.records.items()}
        found["nonfinite_step"] = trajectory.nonfinite_step.cpu().numpy()
        return found

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
                        curves.append(mean_curve(label, eps, sample, f"share {share:g}", style))
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


def described(attention: object, share: object) -> str:
    together = {0.0: "independent", 1.0: "always with companion"}
    text = together.get(float(share), f"companion {float(share):g}")  # type: ignore[arg-type]
    return f"attention {attention}, {text}"
