"""Pictures and the table of ``contrast-cascade``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.studies.contrastive.cascade.claims import begin_name
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.slices import curve_along, every

Curves = Callable[[xr.Dataset], list[Curve]]
Meetings = Sequence[tuple[float, str]]


def pictures(experiment: CascadeExperiment, results: xr.Dataset) -> list[Picture]:
    return [_trajectories(experiment, results), _added(experiment, results)]


def _places(results: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Every begin and bias: a title, and what was measured there."""
    for (begin, bias), here in every(results, "begin", "bias_scale"):
        yield f"{begin_name(begin)}, {bias_name(bias)}", here


def _levels(
    experiment: CascadeExperiment, values: xr.DataArray, after: str = "", style: str = "solid"
) -> list[Curve]:
    """A curve per level; the most frequent and the rarest have the colours of majority and
    minority."""
    known = {experiment.levels[0]: "majority", experiment.levels[-1]: "minority"}
    return [
        curve_along(f"eps {level:g}{after}", at, "read", known.get(float(level), "middle"), style)
        for (level,), at in every(values, "level")
    ]


def _panels(
    results: xr.Dataset, curves: Curves, y_label: str, meetings: Meetings, y_log: bool = False
) -> list[Lines]:
    """One per place; ``meetings``: pruned shares whose median first meeting is marked, in words."""
    return [
        Lines(
            curves(here),
            "steps since pruning began",
            y_label,
            title=title,
            x_log=True,
            marks=[
                (wait, text)
                for share, text in meetings
                if (wait := _median_wait(here.sel(alpha=share))) > 0
            ],
            y_log=y_log,
        )
        for title, here in _places(results)
    ]


def _median_wait(at: xr.Dataset) -> float:
    """Median over runs, NaN when half of them or more have not met."""
    met = at["met"].isel(meeting=0).values
    wait = float(np.median(np.where(met < 0, np.inf, met)))
    return wait if np.isfinite(wait) else np.nan


def _trajectories(experiment: CascadeExperiment, results: xr.Dataset) -> Picture:
    alpha = experiment.figure_alpha

    def curves(here: xr.Dataset) -> list[Curve]:
        pruned, unpruned = (here["strength"].sel(alpha=share) for share in (alpha, 0.0))
        return [
            *_levels(experiment, pruned, ", pruned"),
            *_levels(experiment, unpruned, ", unpruned", "dashed"),
        ]

    strength = "strength of a feature (mean over its level)"
    meetings = [(alpha, "meet, pruned"), (0.0, "meet, unpruned")]
    panels = _panels(results, curves, strength, meetings, y_log=True)
    return Picture(
        "trajectories",
        f"Strength of each frequency level with {alpha:.0%} of the neurons pruned, and without",
        "Strength is the root mean square weight of a feature's share of the neurons. Solid: the "
        f"smallest {alpha:.0%} of the neurons are left out of the forward pass; dashed: the same "
        f"runs without pruning. Means over {results.sizes['seed']} runs with 95 % intervals; "
        "vertical lines: median step at which the rarest level is within 5 % of the next. In the "
        "theorem's state the rarer levels rise without pruning too, so that the middle one may "
        "reach the most frequent before the rarest reaches it (the table has both times). Trained "
        "from random weights, the levels either are level already (no bias) or pruning does next "
        "to nothing to them (paper's bias: solid and dashed lines coincide).",
        panels,
    )


def _added(experiment: CascadeExperiment, results: xr.Dataset) -> Picture:
    alpha = experiment.figure_alpha

    def curves(here: xr.Dataset) -> list[Curve]:
        pruned, unpruned = (here["strength"].sel(alpha=share) for share in (alpha, 0.0))
        return _levels(experiment, xr.apply_ufunc(np.log, pruned / unpruned))

    what, meetings = "log of strength, pruned over unpruned", [(alpha, "rarest meets next")]
    panels = _panels(results, curves, what, meetings)
    return Picture(
        "added",
        "What pruning itself adds to each level",
        f"Logarithm of the strength with {alpha:.0%} pruned over that of the unpruned twin, which "
        "sees the same samples; 0 means no effect. The claimed cascade is the rarest level rising "
        "alone up to the vertical line and the next one, not the most frequent, joining it there. "
        "From the theorem's state only the first half is seen: at the line pruning begins to add "
        "to all levels alike, to the most frequent at least as much as to the next (the verdicts "
        "compare the two run by run), since ordinary training has brought them close together by "
        "then. Afterwards kept and pruned neurons go on outgrowing "
        "each other: without a bias this need not end, with it neurons soon cease to be pure.",
        panels,
    )


def tables(experiment: CascadeExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for title, here in _places(results):
        for (alpha,), at in every(here, "alpha"):
            cells = [_spelled(met.values) for _, met in every(at["met"], "meeting")]
            purity = at["purity"].isel(read=-1).mean("seed")
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
    waits = np.quantile(np.where(met < 0, np.inf, met), [0.25, 0.5, 0.75], method="nearest")
    low, middle, high = (f"{wait:.0f}" if np.isfinite(wait) else "never" for wait in waits)
    return middle if low == high else f"{middle} ({low}-{high})"
