"""The picture and the table of ``contrast-beyond``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.studies.contrastive.beyond.claims import described
from rarefy.studies.contrastive.beyond.experiment import BeyondExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every

STYLES = {"fixed": "solid", "trained": "dashed"}


def pictures(experiment: BeyondExperiment, results: xr.Dataset) -> list[Picture]:
    shown = results.sel(alpha=0.0, group="minority", read=list(experiment.judged_reads()))
    panels = []
    for (read, bias), here in every(shown, "read", "bias_scale"):
        curves = [
            curve_along(described(how, rate), at["best"], "eps_min", f"share {rate:g}", STYLES[how])
            for (how, rate), at in every(here, "attention", "share")
        ]
        labels = ("minority frequency, eps_min", "largest cosine, rare features")
        panels.append(Lines(curves, *labels, title=f"step {read}, {bias_name(bias)}"))
    title = "Alignment with rare features when two assumptions are dropped"
    caption = (
        "Not pruned, 95 % intervals. Solid: attention fixed at the identity; dashed: trained. A "
        "companion is a frequent feature whose presence decides that of the rare one too (always, "
        "half of the time, or never). A curve that rises early and not late says that rare "
        "features come later, not that they are lost."
    )
    return [Picture("alignment", title, caption, panels)]


def tables(experiment: BeyondExperiment, results: xr.Dataset) -> list[Table]:
    last, eps = experiment.reads[-1], float(results["eps_min"][0])
    rows: list[list[object]] = []
    mean = results.sel(eps_min=eps, read=last, group="minority").mean("seed")
    for (bias, attention, share, alpha), at in every(
        mean, "bias_scale", "attention", "share", "alpha"
    ):
        numbers = (f"{float(at[name]):.3g}" for name in ("best", "energy", "pure"))
        setting = [bias_name(bias), described(attention, share), f"{float(alpha):g}"]
        rows.append([*setting, *numbers, f"{float(at['on_itself']):.2f}"])
    quantities = ("largest cosine", "energy", "pure neurons", "attention on itself")
    title = f"Rare features at step {last}, eps_min = {eps:g}"
    caption = (
        f"Mean over {results.sizes['seed']} runs. Attention on itself: 1/{experiment.tokens} is "
        "the plain mean over tokens, 1 no mixing at all."
    )
    return [Table("beyond", title, caption, ["bias", "setting", "alpha", *quantities], rows)]
