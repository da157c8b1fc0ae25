"""The picture and the table of ``contrast-masking``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.estimates import mean_interval
from rarefy.studies.contrastive.masking.claims import figure_alpha
from rarefy.studies.contrastive.masking.experiment import MaskingExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every

NAMES = {
    "none": "nothing masked",
    "smallest": "smallest masked",
    "random": "random ones masked",
    "rare": "rare features' masked",
}


def pictures(experiment: MaskingExperiment, results: xr.Dataset) -> list[Picture]:
    alpha, panels = figure_alpha(experiment), []
    here = results["best"].sel(alpha=alpha, group="minority")
    for (bias, eps), at in every(here, "bias_scale", "eps_min"):
        curves = [
            curve_along(NAMES[str(mask)], one, "read", str(mask), "solid" if n else "dashed")
            for n, ((mask,), one) in enumerate(every(at, "mask"))
        ]
        title = f"eps_min = {eps:g}, {bias_name(bias)}"
        marks = [(float(experiment.start), "masked from here")]
        labels = ("training step", "largest cosine with a rare feature")
        panels.append(Lines(curves, *labels, title=title, marks=marks))
    caption = (
        f"Networks trained alike up to step {experiment.start}; then {alpha:.0%} of the neurons "
        "are left out of the forward pass and all are updated (Algorithm 1). Algorithm 1 leaves "
        "out the smallest. Were these the wrong ones, the line of the rare features' own neurons, "
        f"which only an oracle knows, would rise above the dashed one. {results.sizes['seed']} "
        "runs a line, 95 % intervals."
    )
    return [Picture("masks", "Rare features after masking three kinds of neurons", caption, panels)]


def tables(experiment: MaskingExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    end, start = results.isel(read=-1), results.sel(read=experiment.start)
    for (bias, alpha, mask), at in every(end.mean("eps_min"), "bias_scale", "alpha", "mask"):
        place = {"bias_scale": bias, "alpha": alpha, "mask": mask}
        first = start.sel(place).mean(["seed", "eps_min"])
        found = [
            mean_interval(at[name].sel(group=group).values)
            for name in ("best", "aligned")
            for group in ("minority", "majority")
        ]
        falls = [f"{float(first['fall'].sel(contains=k)):.2g}" for k in ("contains", "lacks")]
        hit = f"{float(first['hit']):.2f}" if mask != "none" else "-"
        spelled = (f"{one.mean:.3f} ± {one.high - one.mean:.3f}" for one in found)
        rows.append([bias_name(bias), f"{alpha:.2g}", str(mask), *spelled, hit, *falls])
    caption = (
        f"At step {experiment.reads[-1]}, mean over eps_min and {results.sizes['seed']} seeds with "
        f"95 % intervals. Hit: share of the masked neurons whose strongest feature is rare; fall: "
        f"how far the mask lowers the positive logit; both at step {experiment.start}."
    )
    cosines = ("best cosine, rare", "frequent", "aligned neurons, rare", "frequent")
    heads = ["bias", "alpha", "mask", *cosines, "hit", "fall, rare samples", "fall, others"]
    return [Table("masks", "What each mask leaves behind", caption, heads, rows)]
