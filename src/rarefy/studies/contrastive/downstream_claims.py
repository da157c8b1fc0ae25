"""A downstream figure, judged as published and with one choice changed at a time."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.trends import spearman_trend
from rarefy.studies.contrastive.downstream import DownstreamExperiment
from rarefy.studies.contrastive.weakest import Direction, judge_weakest
from rarefy.studies.contrastive.words import bias_name, middle_sigma
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every


def judged_reads(experiment: DownstreamExperiment) -> list[int]:
    """Every read of a trained network: the paper does not say how long it trained."""
    return [read for read in experiment.reads if read > 0] or [experiment.reads[-1]]


class Figure:
    """A quantity with a trend in eps_min, at the noise level where the trend is weakest.

    ``ideal`` is the same quantity of an ideal encoder on the same test pairs (it has no ``read``):
    a trend that it has too comes from the test pairs, not from learning; the note says which.
    """

    def __init__(
        self,
        experiment: DownstreamExperiment,
        scale: str,
        what: str,
        direction: Direction,
        ideal: xr.DataArray,
        note: str = "",
    ) -> None:
        self.experiment, self.scale, self.what = experiment, scale, what
        self.direction, self.ideal, self.note = direction, ideal, note
        self.biased = float(max(experiment.bias_scale))

    def verdicts(self, claim: str, values: xr.DataArray) -> list[Verdict]:
        """The figure with the paper's bias and test pairs as in training, then every other choice.
        ``values``: dimensions bias_scale, sigma, eps_min, seed, read and test_frequencies."""
        experiment, shown = self.experiment, self.experiment.figure_read
        changes = [("", self.biased, shown, "as trained")]
        if self.biased and 0 in experiment.bias_scale:
            changes.append(("no bias: ", 0.0, shown, "as trained"))
            changes.append(("no bias, balanced test pairs: ", 0.0, shown, "balanced"))
        changes.append(("balanced test pairs: ", self.biased, shown, "balanced"))
        for read in judged_reads(experiment):
            if read != shown:
                changes.append((f"step {read}: ", self.biased, read, "as trained"))
        return [
            self.judged(claim if before else f"{claim}.1", before, values, bias, read, test)
            for before, bias, read, test in changes
        ]

    def judged(
        self,
        claim: str,
        before: str,
        values: xr.DataArray,
        bias: float | None = None,
        read: int | None = None,
        test: str = "as trained",
    ) -> Verdict:
        """One verdict; without bias and read those of the figure."""
        bias = self.biased if bias is None else bias
        read = self.experiment.figure_read if read is None else read
        here = values.sel(bias_scale=bias, test_frequencies=test)
        cases = {f"sigma={sigma:g}": at for (sigma,), at in every(here.sel(read=read), "sigma")}
        name = Naming(self.experiment, self.scale, before)
        where = f"test {test}, step {read}, {bias_name(bias)}, {self.experiment.setting}"
        ideal = self.ideal.sel(bias_scale=bias, test_frequencies=test)
        controls = f"a perfect encoder: rho {_rho(ideal)}"
        if 0 in here["read"].values:
            controls += f", the untrained network: rho {_rho(here.sel(read=0))}"
        identity = name(claim, f"{self.what}, {where}")
        return judge_weakest(identity, cases, self.direction, joined(self.note, controls))


def _rho(values: xr.DataArray) -> str:
    values = values.sel(sigma=middle_sigma(values))
    rho = spearman_trend(values["eps_min"].values, by_seed(values), permutations=0).rho
    return f"{rho:.2f}" if np.isfinite(rho) else "undefined"
