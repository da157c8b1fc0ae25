"""How imbalance changes what neurons align with (000 Fig. 2-3, Theorem 3.1, eq. 89)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Cells, Context, Output, Verdict
from rarefy.core.errors import bad_value
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.estimates import loglog_slope, mean_band, spearman_trend
from rarefy.measure.neurons import aligned_counts, carried, dominant, lucky, ordinary
from rarefy.measure.statistics import (
    judge_bound,
    judge_slope,
    judge_trend,
    judge_upper_exponent,
)
from rarefy.studies._contrastive import GROUPS, ContrastiveStudy, group_means
from rarefy.theory.contrastive import lucky_count_order, set_size_order
from rarefy.train.descent import State

BIAS_NAMES = {0.0: "no bias", 1.0: "paper's bias"}
OMEGA = 0.25
"""Constants hidden in an Omega(.) are read as 1/4, in an O(.) as 4, fixed before looking."""


@dataclass(frozen=True, kw_only=True)
class ContrastAlignment(ContrastiveStudy):
    """Alignment of neurons with majority and minority features against eps_min."""

    name: ClassVar[str] = "contrast-alignment"
    title: ClassVar[str] = "Rarer features are carried by fewer, weaker, less pure neurons"
    paper_says: ClassVar[str] = (
        "When some features are rarer (eps_min below 1), fewer neurons align with them and the best "
        "alignment is weaker (000 Fig. 2-3). At convergence the weight on a feature scales as "
        "eps_j/eps_max (12)-(13), the summed squared weight as its square (89), the number of "
        "features a neuron mixes is at most of order d^(1-(eps_min/eps_max)^2) (14), and at least of "
        "order m d^(-(eps_max/eps_min)^2) neurons are pure in each feature (Theorem 3.1)."
    )
    claims: ClassVar[tuple[str, ...]] = ("C6", "C7", "C8", "C10", "C15")
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "sigma", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma", "eps_min")
    headline: ClassVar[bool] = True
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 3,
            "eps_min": (0.3, 1.0),
            "sigma": (0.03,),
            "d1": 60,
            "steps": 40,
            "reads": (0, 20, 40),
            "figure_read": 40,
            "batch": 32,
        },
        "quick": {
            "seeds": 6,
            "eps_min": (0.1, 0.4, 0.7, 1.0),
            "sigma": (0.03,),
            "steps": 100,
            "reads": (25, 50, 100),
        },
        "paper": {},
        "large": {
            "seeds": 20,
            "eps_min": (0.3, 0.5, 0.7, 0.8, 0.9, 1.0),
            "sigma": (0.02,),
            "majority": 32,
            "minority": 32,
            "d1": 1024,
            "neurons": 2048,
            "batch": 256,
            "activation": 0.04,
            "steps": 800,
            "reads": (100, 200, 400, 800),
            "figure_read": 400,
        },
    }

    eps_min: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """frequency of the minority features"""
    sigma: tuple[float, ...] = (0.01, 0.03, 0.05)
    """noise std; the noise-to-signal ratio is sigma^2 d1"""
    bias_scale: tuple[float, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    reads: tuple[int, ...] = (25, 50, 100, 200, 400)
    """steps at which alignment is read"""
    figure_read: int = 100
    """step at which Fig. 2-3 are read; the claims about convergence are read at the last step"""

    def check(self) -> None:
        super().check()
        for value in self.bias_scale:
            if not value >= 0:
                raise bad_value("bias_scale", value, "must be at least 0")
        if not self.reads or max(self.reads) > self.steps or min(self.reads) < 0:
            raise bad_value("reads", self.reads, f"steps between 0 and steps={self.steps}")
        if self.figure_read not in self.reads:
            raise bad_value("figure_read", self.figure_read, f"must be one of reads={self.reads}")

    @property
    def setting(self) -> str:
        return f"d={self.d} m={self.neurons}"

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("aligned", by_group, "neurons with cosine at least 0.3, mean over features"),
            Output("best", by_group, "largest cosine of any neuron, mean over features"),
            Output("pure", by_group, "neurons pure in a feature (operational set), mean"),
            Output("energy", by_group, "sum over neurons of <w,M_j>^2, mean over features"),
            Output("weight", by_group, "|<w_i,M_j>|, mean over i in the paper's set M_j"),
            Output("top_weight", by_group, "largest |<w_i,M_j>| of any neuron, mean over features"),
            Output(
                "mixed", ("read",), "features that carry a tenth of a neuron's squared norm, mean"
            ),
            Output("initial_set", (), "size of the paper's N_i, mean over neurons"),
            Output("lucky", ("group",), "size of the paper's M*_j, mean over features"),
            Output(
                "lucky_kept", ("read",), "share of the paper's lucky neurons that are pure in it"
            ),
            Output("loss", ("read",), "contrastive loss of the last batch", "nats"),
            Output("t1", (), "step T1 of (34); -1: not reached", "steps"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads), "group": np.array(GROUPS)}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        eps_min = cells.column("eps_min", context)
        experiment = self.setup(
            cells,
            context,
            eps_min=eps_min,
            sigma=cells.column("sigma", context),
            bias_scale=cells.column("bias_scale", context),
        )
        atoms, majority = experiment.data.dictionary, self.majority
        start = projections(experiment.weights, atoms)
        member = ordinary(start, eps_min)  # eps_max = 1, so eps_min is the ratio
        fortunate = lucky(start, eps_min)

        def means(values: torch.Tensor) -> torch.Tensor:
            return group_means(values, majority)

        def cosines(state: State) -> torch.Tensor:
            return squared_cosines(state.parameters["weights"], atoms)

        def along(state: State) -> torch.Tensor:
            return projections(state.parameters["weights"], atoms).abs()

        def weight(state: State) -> torch.Tensor:
            size = member.sum(dim=1).clamp(min=1)
            return means((along(state) * member).sum(dim=1) / size)

        def kept(state: State) -> torch.Tensor:
            stayed = (dominant(cosines(state)) & fortunate).sum(dim=(1, 2))
            return stayed / fortunate.sum(dim=(1, 2))  # 0/0 is NaN: no lucky neuron

        trajectory = experiment.train(
            context,
            {
                "aligned": lambda s: means(aligned_counts(cosines(s)).to(context.dtype)),
                "best": lambda s: means(cosines(s).amax(dim=1).sqrt()),
                "pure": lambda s: means(dominant(cosines(s)).sum(dim=1).to(context.dtype)),
                "energy": lambda s: means(along(s).square().sum(dim=1)),
                "weight": weight,
                "top_weight": lambda s: means(along(s).amax(dim=1)),
                "mixed": lambda s: carried(cosines(s)).sum(dim=2).to(context.dtype).mean(dim=1),
                "lucky_kept": kept,
                "loss": lambda s: s.loss,
            },
            self.reads,
        )
        found = {name: value.cpu().numpy() for name, value in trajectory.records.items()}
        found["initial_set"] = member.sum(dim=2).to(context.dtype).mean(dim=1).cpu().numpy()
        found["lucky"] = means(fortunate.sum(dim=1).to(context.dtype)).cpu().numpy()
        found["t1"] = experiment.bias.t1.cpu().numpy()
        found["nonfinite_step"] = trajectory.nonfinite_step.cpu().numpy()
        return found

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        found: list[Verdict] = []
        eps = results["eps_min"].values
        for scale_of_bias in results["bias_scale"].values:
            bias = _bias_name(scale_of_bias)
            here = results.sel(bias_scale=scale_of_bias)
            for sigma in results["sigma"].values:
                at = here.sel(sigma=sigma, read=self.figure_read, group="minority")
                for name, what in (
                    ("aligned", "neurons with cosine >= 0.3"),
                    ("best", "best cosine"),
                ):
                    found.append(
                        judge_trend(
                            self._identity("C10", scale, f"{what}, {bias}, sigma={sigma:g}"),
                            spearman_trend(eps, _rows(at[name])),
                            "increasing",
                            note=f"read at step {self.figure_read}, mean over {self.minority} features",
                        )
                    )
            last = here.isel(sigma=0, read=-1)
            found += self._at_convergence(last, scale, bias, eps)
        return found

    def _at_convergence(
        self, last: xr.Dataset, scale: str, bias: str, eps: np.ndarray
    ) -> list[Verdict]:
        sigma, step = float(last["sigma"]), int(last["read"])
        where = f"{bias}, sigma={sigma:g}"
        note = f"read at step {step}; minority over majority in the same run"

        def ratio(name: str) -> np.ndarray:
            values = last[name]
            return _rows(values.sel(group="minority") / values.sel(group="majority"))

        pure = _rows(last["pure"].sel(group="minority"))
        sizes = {
            "a tenth of the norm": _rows(last["mixed"]),
            "(26) at start": _rows(last["initial_set"]),
        }
        found = [
            judge_slope(
                self._identity("C6", scale, f"mean over M_j, {where}"),
                loglog_slope(eps, ratio("weight")),
                predicted=1.0,
                tolerance=0.25,
                note=note,
            ),
            judge_slope(
                self._identity("C6", scale, f"best neuron, {where}"),
                loglog_slope(eps, ratio("top_weight")),
                predicted=1.0,
                tolerance=0.25,
                note=note,
            ),
            judge_slope(
                self._identity("C15", scale, where),
                loglog_slope(eps, ratio("energy")),
                predicted=2.0,
                tolerance=0.5,
                note=note,
            ),
            judge_trend(
                self._identity("C8", scale, f"pure neurons grow with eps_min, {where}"),
                spearman_trend(eps, pure),
                "increasing",
                note=f"operational set, read at step {step}",
            ),
        ]
        # where the bound is below one neuron it promises nothing
        bound = lucky_count_order(self.neurons, self.d, eps)
        told = np.flatnonzero(bound >= 1)
        margin = pure[:, told] / bound[told]
        tightest = int(margin.mean(axis=0).argmin()) if len(told) else 0
        found.append(
            judge_bound(
                self._identity("C8", scale, f"count over m d^-(1/r^2), {where}"),
                margin[:, tightest] if len(told) else np.empty(0),
                OMEGA,
                "at_least",
                note=f"operational set; eps_min={eps[told][tightest]:g}, where the margin is smallest"
                if len(told)
                else "the bound is below one neuron at every eps_min",
            )
        )
        for name, size in sizes.items():
            found.append(
                judge_trend(
                    self._identity("C7", scale, f"N_i by {name}, {where}"),
                    spearman_trend(eps, size),
                    "decreasing",
                    note=f"read at step {step}" if "start" not in name else "before training",
                )
            )
            found.append(
                judge_upper_exponent(
                    self._identity("C7", scale, f"N_i by {name}, growth, {where}"),
                    loglog_slope(set_size_order(self.d, eps), size),
                    bound=1.0,
                    note="log size against log d^(1-(eps_min/eps_max)^2)",
                )
            )
        return found

    def _identity(self, claim: str, scale: str, what: str) -> tuple[str, str, str, str]:
        return (claim, self.name, scale, f"{what}, {self.setting}")

    def picture(self, results: xr.Dataset) -> list[Picture]:
        eps = results["eps_min"].values
        panels = []
        for name, label in (("aligned", "neurons with cosine >= 0.3"), ("best", "largest cosine")):
            for scale_of_bias in results["bias_scale"].values:
                at = results.sel(bias_scale=scale_of_bias, read=self.figure_read)
                curves = []
                for sigma in results["sigma"].values:
                    band = mean_band(_rows(at[name].sel(sigma=sigma, group="minority")))
                    nsr = sigma**2 * self.d1
                    curves.append(
                        Curve(
                            f"NSR {nsr:.2g}", eps, band.mean, band.low, band.high, f"NSR {nsr:.2g}"
                        )
                    )
                panels.append(
                    Lines(
                        curves,
                        "frequency of the minority features, eps_min",
                        f"{label} (mean over minority features)",
                        title=_bias_name(scale_of_bias),
                    )
                )
        figure = Picture(
            "alignment",
            "Minority alignment grows with eps_min (Fig. 2-3)",
            f"Read at step {self.figure_read}; bands are 95 % intervals of the mean over "
            f"{results.sizes['seed']} runs. The paper's figures have one curve a noise-to-signal ratio "
            "NSR = sigma^2 d1.",
            panels,
        )
        return [figure, self._over_time(results), self._scaling(results)]

    def _over_time(self, results: xr.Dataset) -> Picture:
        panels = []
        sigma = results["sigma"].values[0]
        for scale_of_bias in results["bias_scale"].values:
            at = results.sel(bias_scale=scale_of_bias, sigma=sigma)
            curves = []
            for group in GROUPS:
                for eps, style in (
                    (at["eps_min"].values[0], "solid"),
                    (at["eps_min"].values[-1], "dashed"),
                ):
                    band = mean_band(
                        at["best"].sel(group=group, eps_min=eps).transpose("seed", "read").values
                    )
                    curves.append(
                        Curve(
                            f"{group}, eps_min={eps:g}",
                            results["read"].values,
                            band.mean,
                            band.low,
                            band.high,
                            group,
                            style,
                        )
                    )
            panels.append(
                Lines(
                    curves,
                    "training step",
                    "largest cosine (mean over features)",
                    title=_bias_name(scale_of_bias),
                    x_log=True,
                )
            )
        return Picture(
            "over-time",
            "The same quantity over time",
            "Without a bias the minority features only come later; with the paper's bias the gap stays. "
            "A figure read at one step says as much about the training budget as about imbalance.",
            panels,
        )

    def _scaling(self, results: xr.Dataset) -> Picture:
        last = results.isel(sigma=0, read=-1)
        eps = results["eps_min"].values
        panels = []
        for name, exponent, label in (
            ("top_weight", 1, "largest weight on a feature, minority / majority"),
            ("energy", 2, "sum of squared weights, minority / majority"),
        ):
            curves = []
            for scale_of_bias in results["bias_scale"].values:
                values = last[name].sel(bias_scale=scale_of_bias)
                band = mean_band(_rows(values.sel(group="minority") / values.sel(group="majority")))
                text = _bias_name(scale_of_bias)
                curves.append(Curve(text, eps, band.mean, band.low, band.high, text))
            curves.append(
                Curve(f"slope {exponent}", eps, eps**exponent, role="theory", style="dashed")
            )
            panels.append(Lines(curves, "eps_min / eps_max", label, x_log=True, y_log=True))
        return Picture(
            "scaling",
            "Weight on a feature against its frequency (13), (89)",
            f"Read at the last step, {int(last['read'])}, at sigma={float(last['sigma']):g}. The dashed "
            "line has the predicted slope, not a fitted height.",
            panels,
        )


def _rows(values: xr.DataArray) -> np.ndarray:
    """(seed, eps_min) array of one quantity."""
    return values.transpose("seed", "eps_min").values


def _bias_name(scale: float) -> str:
    return BIAS_NAMES.get(float(scale), f"{scale:g} x paper's bias")
