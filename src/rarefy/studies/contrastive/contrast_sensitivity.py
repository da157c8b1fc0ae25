"""Does Fig. 2-3's trend survive the hyper-parameters the paper leaves out? (000 Fig. 2-3)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Study, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import judge_trend
from rarefy.measure.trends import spearman_trend
from rarefy.studies._apart import simulate_apart
from rarefy.studies.contrastive._words import bias_name
from rarefy.studies.contrastive.contrast_alignment import ContrastAlignment

VARIATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("as chosen", {}),
    ("lr 0.1", {"lr": 0.1}),
    ("lr 1", {"lr": 1.0}),
    ("tau 0.5", {"tau": 0.5}),
    ("tau 2", {"tau": 2.0}),
    ("tau 2, loss times tau", {"tau": 2.0, "loss_form": "times-tau"}),
    ("batch 16", {"batch": 16}),
    ("batch 256", {"batch": 256}),
    ("1 token", {"tokens": 1}),
    ("4 tokens", {"tokens": 4}),
    ("feature on one of 2 tokens", {"spread": "one"}),
    ("activation 0.1", {"activation": 0.1}),
    ("activation 0.5", {"activation": 0.5}),
    ("weight decay 0", {"weight_decay": 0.0}),
    ("weight decay 0.01", {"weight_decay": 0.01}),
    ("sigma_0 0.01", {"sigma_0": 0.01}),
    ("96 neurons", {"neurons": 96}),
    ("bias grows to the end", {"bias_until": "end"}),
)


@dataclass(frozen=True, kw_only=True)
class ContrastSensitivity(Study):
    """One hyper-parameter changed at a time, the trend in eps_min read at several steps."""

    name: ClassVar[str] = "contrast-sensitivity"
    title: ClassVar[str] = "Minority alignment against eps_min under other hyper-parameters"
    lab: ClassVar[str] = "contrastive"
    paper_says: ClassVar[str] = (
        "000 shows that minority alignment grows with eps_min (Fig. 2-3) and refers to its code "
        "for learning rate, temperature, batch size, tokens, activation probability and the step "
        "at which the figures are read. Here each is varied alone around the values that "
        "contrast-alignment uses."
    )
    claims: ClassVar[tuple[str, ...]] = ("C10",)
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "variation", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("variation", "eps_min")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "eps_min": (0.3, 1.0),
            "variation": (0, 2, 10),
            "d1": 60,
            "reads": (10, 20),
        },
        "quick": {
            "seeds": 6,
            "eps_min": (0.2, 1.0),
            "variation": (0, 1, 6, 10),
            "reads": (25, 100),
        },
        "paper": {},
    }

    seeds: int = 30
    eps_min: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    """frequency of the minority features"""
    variation: tuple[int, ...] = tuple(range(len(VARIATIONS)))
    """what is changed, by its number in the table of variations"""
    bias_scale: tuple[float, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's; 0: no bias"""
    sigma: float = 0.03
    """noise std"""
    d1: int = 500
    """dimension of a token"""
    reads: tuple[int, ...] = (25, 100, 400)
    """steps at which alignment is read"""

    def check(self) -> None:
        super().check()
        if len(self.reads) < 2:
            raise bad_value("reads", self.reads, "at least two; the last but one is judged")
        for value in self.variation:
            if value not in range(len(VARIATIONS)):
                raise bad_value("variation", value, f"must be in 0..{len(VARIATIONS) - 1}")
        for value in self.variation:
            self.varied(value)

    def varied(self, variation: int) -> ContrastAlignment:
        """The alignment study with one thing changed."""
        study = ContrastAlignment.at(
            "paper",
            eps_min=self.eps_min,
            sigma=(self.sigma,),
            bias_scale=self.bias_scale,
            d1=self.d1,
            reads=self.reads,
            figure_read=self.reads[-1],
            steps=max(self.reads),
            **VARIATIONS[int(variation)][1],
        )
        assert isinstance(study, ContrastAlignment)
        return study

    @property
    def setting(self) -> str:
        return "d=9 m=24"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("aligned", ("read",), "minority: neurons with cosine at least 0.3, mean"),
            Output("best", ("read",), "minority: largest cosine of any neuron, mean"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads)}

    def cost(self) -> Cost:
        largest = max(self.varied(v).cost().bytes_per_cell for v in self.variation)
        return Cost(largest, max(self.reads))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return simulate_apart(cells, "variation", lambda v, part: self._runs(int(v), part, context))

    def _runs(self, variation: int, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        values = {**cells.values, "sigma": np.full(len(cells), self.sigma)}
        found = self.varied(variation).simulate(Cells(values, cells.keys), context)
        minority = {name: found[name][:, :, 1] for name in ("aligned", "best")}
        return {**minority, "nonfinite_step": found["nonfinite_step"]}

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
                curves.append(mean_curve(f"step {read}", eps, sample, f"step {read}"))
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


def _spelled(mean: float) -> str:
    return f"{mean:.2f}" if np.isfinite(mean) else "diverged"
