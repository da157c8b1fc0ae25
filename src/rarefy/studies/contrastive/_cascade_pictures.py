"""Pictures and the table of ``contrast-cascade``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive._cascade_verdicts import begin_name
from rarefy.studies.contrastive._words import bias_name

if TYPE_CHECKING:
    from rarefy.studies.contrastive.contrast_cascade import ContrastCascade


def cascade_pictures(study: ContrastCascade, results: xr.Dataset) -> list[Picture]:
    return [
        _trajectories(study, results),
        _added(study, results),
        _composition(study, results),
    ]


def _places(results: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Every begin and bias: a title, and what was measured there."""
    for begin in results["begin"].values:
        for scale_of_bias in results["bias_scale"].values:
            title = f"{begin_name(begin)}, {bias_name(scale_of_bias)}"
            yield title, results.sel(begin=begin, bias_scale=scale_of_bias)


def _level_name(value: float) -> str:
    return f"eps {value:g}"


def _role(study: ContrastCascade, value: float) -> str:
    """The most frequent and the rarest level have the colours of majority and minority."""
    known = {study.levels[0]: "majority", study.levels[-1]: "minority"}
    return known.get(float(value), "middle")


def _sample(values: xr.DataArray, level: float) -> np.ndarray:
    return values.sel(level=level).transpose("seed", "read").values


def _median_wait(at: xr.Dataset, meeting: object) -> float:
    """Median over runs, NaN when half of them or more have not met."""
    met = at["met"].sel(meeting=meeting).values
    wait = float(np.median(np.where(met < 0, np.inf, met)))
    return wait if np.isfinite(wait) else np.nan


def _trajectories(study: ContrastCascade, results: xr.Dataset) -> Picture:
    alpha, panels = study.figure_alpha, []
    for title, here in _places(results):
        curves = []
        for share, style in ((alpha, "solid"), (0.0, "dashed")):
            at = here.sel(alpha=share)
            for level in results["level"].values:
                label = f"{_level_name(level)}, {'pruned' if share else 'unpruned'}"
                sample = _sample(at["strength"], level)
                role = _role(study, level)
                curves.append(mean_curve(label, at["read"].values, sample, role, style))
        first = results["meeting"].values[0]
        marks = [
            (_median_wait(here.sel(alpha=share), first), text)
            for share, text in ((alpha, "meet, pruned"), (0.0, "meet, unpruned"))
        ]
        panels.append(
            Lines(
                curves,
                "steps since pruning began",
                "strength of a feature (mean over its level)",
                title=title,
                x_log=True,
                y_log=True,
                marks=[(x, text) for x, text in marks if x > 0],
            )
        )
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


def _added(study: ContrastCascade, results: xr.Dataset) -> Picture:
    alpha, panels = study.figure_alpha, []
    for title, here in _places(results):
        strength = here["strength"]
        added = xr.apply_ufunc(np.log, strength.sel(alpha=alpha) / strength.sel(alpha=0.0))
        curves = [
            mean_curve(
                _level_name(level),
                here["read"].values,
                _sample(added, level),
                _role(study, level),
            )
            for level in results["level"].values
        ]
        meet = _median_wait(here.sel(alpha=alpha), results["meeting"].values[0])
        panels.append(
            Lines(
                curves,
                "steps since pruning began",
                "log of strength, pruned over unpruned",
                title=title,
                x_log=True,
                marks=[(meet, "rarest meets next")] if meet > 0 else (),
            )
        )
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


def _composition(study: ContrastCascade, results: xr.Dataset) -> Picture:
    alpha, panels = study.figure_alpha, []
    for title, here in _places(results):
        at = here.sel(alpha=alpha)
        curves = [
            mean_curve(
                _level_name(level),
                at["read"].values,
                _sample(at["pruned"], level),
                _role(study, level),
            )
            for level in results["level"].values
        ]
        meet = _median_wait(at, results["meeting"].values[0])
        panels.append(
            Lines(
                curves,
                "steps since pruning began",
                "share of the pruned neurons",
                title=title,
                x_log=True,
                marks=[(meet, "rarest meets next")] if meet > 0 else (),
            )
        )
    return Picture(
        "composition",
        f"Whose neurons are pruned ({alpha:.0%} of all)",
        "A neuron is counted under the frequency of its strongest feature. The claim needs the "
        "rarest level at 1 up to the vertical line and the two rarest, no others, after it; "
        f"neurons drawn at random would give each level {1 / len(study.levels):.2f} where it has "
        "as many as the others. From the theorem's state the two rarest have more of them than at "
        "random, but the most frequent is pruned as well. In runs trained "
        "from random weights the smallest neurons are not the rarest feature's: with the paper's "
        "bias they are silent ones that no feature moves, without it all neurons are mixtures.",
        panels,
    )


def meeting_table(study: ContrastCascade, results: xr.Dataset) -> Table:
    rows: list[list[object]] = []
    for title, here in _places(results):
        for alpha in results["alpha"].values:
            at = here.sel(alpha=alpha)
            cells = [_spelled(at["met"].sel(meeting=m).values) for m in results["meeting"].values]
            purity = at["purity"].isel(read=-1).mean("seed")
            rows.append([title, f"{alpha:g}", *cells, f"{float(purity):.2f}"])
    return Table(
        "meetings",
        "Steps of pruning until a level comes within 5 % of the next",
        f"Median over {results.sizes['seed']} runs, in brackets the quartiles; 0: met before "
        f"pruning began; never: not within {study.horizon} steps. Each row's runs see the same "
        "samples as those of the row with alpha 0 above it. Purity: squared cosine of a neuron "
        f"with its strongest feature, mean over neurons, at step {study.reads[-1]}.",
        ["begin and bias", "alpha", *map(str, results["meeting"].values), "purity"],
        rows,
    )


def _spelled(met: np.ndarray) -> str:
    low, middle, high = np.quantile(
        np.where(met < 0, np.inf, met), [0.25, 0.5, 0.75], method="nearest"
    )
    words = [f"{value:.0f}" if np.isfinite(value) else "never" for value in (low, middle, high)]
    return words[1] if words[0] == words[2] else f"{words[1]} ({words[0]}-{words[2]})"
