"""The picture and the table of ``contrast-cascade``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.studies.contrastive.cascade.claims import begin_name
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every


def pictures(experiment: CascadeExperiment, results: xr.Dataset) -> list[Picture]:
    alpha, panels = experiment.figure_alpha, []
    # the most frequent and the rarest have the colours of majority and minority
    roles = {experiment.levels[0]: "majority", experiment.levels[-1]: "minority"}
    for (begin, bias), here in every(results, "begin", "bias_scale"):
        pruned, twin = (here["strength"].sel(alpha=share) for share in (alpha, 0.0))
        curves = [
            curve_along(f"eps {level:g}", at, "read", roles.get(float(level), "middle"))
            for (level,), at in every(xr.apply_ufunc(np.log, pruned / twin), "level")
        ]
        met = here["met"].sel(alpha=alpha).isel(meeting=0)
        wait = float(xr.where(met < 0, np.inf, met).median())
        marks = [(wait, "rarest meets next")] if 0 < wait < np.inf else []
        labels = ("steps since pruning began", "log of strength, pruned over unpruned")
        title = f"{begin_name(begin)}, {bias_name(bias)}"
        panels.append(Lines(curves, *labels, title=title, x_log=True, marks=marks))
    caption = (
        f"Logarithm of the strength with {alpha:.0%} pruned over that of the unpruned twin, which "
        f"sees the same samples; 0 means no effect; means over {results.sizes['seed']} runs with "
        "95 % intervals. The claimed cascade is the rarest level rising alone up to the vertical "
        "line (the median meeting) and the next one, not the most frequent, joining it there. From "
        "the theorem's state only the first half is seen: at the line pruning begins to add to all "
        "levels, since ordinary training has brought them close together by then."
    )
    title = "What pruning itself adds to each level of frequency"
    return [Picture("added", title, caption, panels)]


def tables(experiment: CascadeExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for (begin, bias, alpha), at in every(results, "begin", "bias_scale", "alpha"):
        cells = [_spelled(met.values) for _, met in every(at["met"], "meeting")]
        purity = at["purity"].isel(read=-1).mean("seed")
        title = f"{begin_name(begin)}, {bias_name(bias)}"
        rows.append([title, f"{alpha:g}", *cells, f"{float(purity):.2f}"])
    heads = ["begin and bias", "alpha", *map(str, results["meeting"].values), "purity"]
    title = "Steps of pruning until a level comes within 5 % of the next"
    caption = (
        f"Median over {results.sizes['seed']} runs, in brackets the quartiles; 0: met before "
        f"pruning began; never: not within {experiment.horizon} steps. Each row's runs see the "
        "same samples as those of the row with alpha 0 above it. Purity: squared cosine of a "
        f"neuron with its strongest feature, mean over neurons, at step {experiment.reads[-1]}."
    )
    return [Table("meetings", title, caption, heads, rows)]


def _spelled(met: np.ndarray) -> str:
    met = met[np.isfinite(met)] if np.isfinite(met).any() else np.array([-1.0])
    waits = np.quantile(np.where(met < 0, np.inf, met), [0.25, 0.5, 0.75], method="nearest")
    low, middle, high = (f"{wait:.0f}" if np.isfinite(wait) else "never" for wait in waits)
    return middle if low == high else f"{middle} ({low}-{high})"
