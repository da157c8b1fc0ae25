"""Verdicts of ``contrast-beyond``: C10 and P3 with an assumption dropped, or two."""

from __future__ import annotations

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.studies.contrastive.beyond.experiment import BeyondExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.reading import Reading, differs, judge_all, rises
from rarefy.studies.kit.slices import every


def described(attention: str, share: float) -> str:
    together = {0.0: "independent", 1.0: "always with companion"}
    return f"attention {attention}, {together.get(float(share), f'companion {share:g}')}"


def verdicts(experiment: BeyondExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    pruned, last = float(max(experiment.alpha)), experiment.reads[-1]
    eps = results["eps_min"].values
    rarer = eps[eps < 1] if (eps < 1).any() else eps

    def gain(at: xr.Dataset) -> xr.DataArray:
        pure = at["pure"].sel(eps_min=rarer)
        return (pure.sel(alpha=pruned) - pure.sel(alpha=0.0)).mean("eps_min")

    readings, note = [], f"pruned minus not, step {last}, mean over eps_min < 1"
    for (bias, attention, share), _ in every(results, "bias_scale", "attention", "share"):
        where = f"{described(attention, share)}, {bias_name(bias)}, {{setting}}"
        at = {"bias_scale": bias, "attention": attention, "share": share, "group": "minority"}
        pure = f"pure neurons, alpha={pruned:g}, {where}"
        readings += [
            Reading(
                "C10",
                f"best cosine, step {{read}}, {where}",
                "best",
                rises("eps_min"),
                each={"read": experiment.judged_reads()},
                at={**at, "alpha": 0.0},
            ),
            Reading("P3", pure, gain, differs("positive"), at={**at, "read": last}, note=note),
        ]
    return judge_all(experiment, results, scale, readings)
