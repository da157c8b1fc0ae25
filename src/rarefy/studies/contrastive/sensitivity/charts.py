"""The picture of ``contrast-sensitivity``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture
from rarefy.studies.contrastive.sensitivity.claims import by_kind
from rarefy.studies.contrastive.sensitivity.experiment import SensitivityExperiment
from rarefy.studies.kit.slices import curve_along

EPS = "minority frequency, eps_min"


def pictures(experiment: SensitivityExperiment, results: xr.Dataset) -> list[Picture]:
    read = experiment.reads[-2]
    best = results["best"].sel(read=read)
    panels = []
    for kind, changes in by_kind(results):
        curves = [curve_along(c, best.sel(variation=c), "eps_min", c) for c in changes]
        panels.append(Lines(curves, EPS, "largest cosine (mean over minority features)", kind))
    title = "Fig. 3 with one thing changed at a time"
    caption = (
        f"Step {read}, the paper's bias; 95 % intervals over {results.sizes['seed']} runs. The "
        "last two kinds drop an assumption of the analysis, the others change what it leaves open. "
        "Otherwise: lr 0.5 (about 6 steps to T1), tau 1, batch 64, 2 tokens that both show a "
        "feature, activation 0.3 (2.7 features per sample when balanced), weight decay and sigma_0 "
        "0.001."
    )
    return [Picture("changes", title, caption, panels)]
