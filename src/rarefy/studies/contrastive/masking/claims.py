"""Verdicts of ``contrast-masking``: Q1, our own question."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_difference
from rarefy.studies.contrastive.masking.experiment import MaskingExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.reading import Naming

QUANTITIES = {
    "best": "largest cosine of a neuron with a rare feature",
    "aligned": "neurons with cosine at least 0.3 to a rare feature",
}


def figure_alpha(experiment: MaskingExperiment) -> float:
    """The share that decides: the middle one, about one neuron for each rare feature."""
    return experiment.alpha[len(experiment.alpha) // 2]


def gain(at: xr.Dataset, first: str, second: str, quantity: str = "best") -> np.ndarray:
    """First minus second mask at the last step, mean over eps_min, paired by seed: (seed,)."""
    end = at[quantity].isel(read=-1).sel(group="minority")
    return (end.sel(mask=first) - end.sel(mask=second)).mean("eps_min").values


def verdicts(experiment: MaskingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    named = Naming(experiment, scale, after=f", {experiment.setting}")
    alpha, bias = figure_alpha(experiment), experiment.bias_scale[-1]
    here = results.sel(alpha=alpha, bias_scale=bias)
    how = (
        f"at step {experiment.reads[-1]}, masked from step {experiment.start} on, {alpha:.2g} of "
        "the neurons; mean over eps_min; same network and samples"
    )

    def judged(claim: str, what: str, values: np.ndarray) -> Verdict:
        return judge_difference(named(claim, what), values, "positive", note=how)

    best, found = QUANTITIES["best"], []
    for number, other in enumerate(("none", "smallest", "random"), start=1):
        what = f"{best}: rare neurons masked minus {other}"
        found.append(judged(f"Q1.{number}", what, gain(here, "rare", other)))
    for quantity, words in QUANTITIES.items():
        for mask in ("smallest", "random"):
            what = f"{words}: {mask} neurons masked minus none"
            found.append(judged("", what, gain(here, mask, "none", quantity)))
    many = f"{QUANTITIES['aligned']}: rare neurons masked minus none"
    found.append(judged("Q1", many, gain(here, "rare", "none", "aligned")))
    others = {f"alpha={v:.2g}": {"alpha": v} for v in experiment.alpha if v != alpha}
    others |= {bias_name(v): {"bias_scale": v} for v in experiment.bias_scale if v != bias}
    for words, change in others.items():
        at = results.sel({"alpha": alpha, "bias_scale": bias} | change)
        what = f"{words}: {best}, rare neurons masked minus none"
        found.append(judged("Q1", what, gain(at, "rare", "none")))
    falls = here["fall"].sel(read=experiment.start, mask="rare").mean("eps_min")
    more = (falls.sel(contains="contains") - falls.sel(contains="lacks")).values
    what = "fall of the positive logit when rare neurons are masked: samples with a rare feature "
    return [*found, judged("", f"{what}minus others", more)]
