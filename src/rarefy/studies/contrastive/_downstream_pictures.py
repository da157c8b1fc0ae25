"""Pictures and the table of controls for downstream quantities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.contrastive._downstream import TEST_FREQUENCIES, DownstreamStudy
from rarefy.studies.contrastive._words import bias_name, rows

Reference = tuple[str, xr.DataArray]
"""Label and values without ``read``."""
TEST_NAMES = {"as trained": "test pairs as in training", "balanced": "balanced test pairs"}


def against_eps(
    study: DownstreamStudy,
    values: xr.DataArray,
    reference: Reference | None,
    y_label: str,
    y_log: bool = False,
) -> list[Lines]:
    """One panel a bias: the trained network at every noise level, the untrained one and an ideal
    encoder at the middle level. ``values`` are those of one test set."""
    eps, noise = values["eps_min"].values, middle(values)
    panels = []
    for bias in values["bias_scale"].values:
        here = values.sel(bias_scale=bias)
        curves: list[Curve] = []
        for sigma in values["sigma"].values:
            nsr = _nsr(study, sigma)
            sample = rows(here.sel(sigma=sigma, read=study.figure_read))
            curves.append(mean_curve(nsr, eps, sample, nsr))
        beside = [] if reference is None else [(*reference, "theory")]
        if 0 in study.reads:
            beside.insert(0, ("untrained", values.sel(read=0), "baseline"))
        for label, control, role in beside:
            sample = rows(control.sel(bias_scale=bias, sigma=noise))
            text = f"{label}, {_nsr(study, noise)}" if len(values["sigma"]) > 1 else label
            curves.append(mean_curve(text, eps, sample, role, "dashed"))
        title = bias_name(bias)
        panels.append(
            Lines(curves, "minority frequency in training, eps_min", y_label, title, y_log=y_log)
        )
    return panels


def over_time(values: xr.DataArray, y_label: str, y_log: bool = False) -> list[Lines]:
    """One panel a bias; colour: test set, style: smallest and largest eps_min."""
    panels = []
    ends = values["eps_min"].values[[0, -1]]
    for bias in values["bias_scale"].values:
        here = values.sel(bias_scale=bias, sigma=middle(values))
        curves = []
        for test in TEST_FREQUENCIES:
            for eps, style in zip(ends, ("solid", "dashed"), strict=True):
                sample = here.sel(test_frequencies=test, eps_min=eps).transpose("seed", "read")
                label = f"{test}, eps_min={eps:g}"
                curves.append(mean_curve(label, values["read"].values, sample.values, test, style))
        panels.append(Lines(curves, "training step", y_label, bias_name(bias), y_log=y_log))
    return panels


def by_read(values: xr.DataArray, y_label: str, y_log: bool = False) -> list[Lines]:
    """One panel a bias, one curve a read, at the middle noise level."""
    panels = []
    for bias in values["bias_scale"].values:
        here = values.sel(bias_scale=bias, sigma=middle(values))
        curves = []
        for read in values["read"].values:
            label = "untrained" if read == 0 else f"step {read}"
            role, style = ("baseline", "dashed") if read == 0 else (label, "solid")
            sample = rows(here.sel(read=read))
            curves.append(mean_curve(label, values["eps_min"].values, sample, role, style))
        x_label = "minority frequency in training, eps_min"
        panels.append(Lines(curves, x_label, y_label, bias_name(bias), y_log=y_log))
    return panels


def ends_table(
    name: str,
    values: xr.DataArray,
    references: Sequence[Reference],
    title: str,
    beside: tuple[str, xr.DataArray],
    caption: str,
) -> Table:
    """The quantity at both ends of the eps_min axis, with another one ``beside`` it: every read,
    then the ideal encoders, for which the other one has no meaning."""
    low, high = values["eps_min"].values[[0, -1]]
    noise = middle(values)
    other_label, other = beside
    table: list[list[object]] = []
    for bias in values["bias_scale"].values:
        for test in TEST_FREQUENCIES:
            at = {"bias_scale": bias, "sigma": noise, "test_frequencies": test}
            for read in values["read"].values:
                who = "untrained" if read == 0 else f"step {read}"
                row = _ends(values.sel(at).sel(read=read))
                first, last, _ = _ends(other.sel(at).sel(read=read))
                words = [bias_name(bias), TEST_NAMES[test], who]
                table.append([*words, *row, f"{first} to {last}"])
            for label, ideal in references:
                table.append([bias_name(bias), TEST_NAMES[test], label, *_ends(ideal.sel(at)), ""])
    return Table(
        name,
        title,
        f"Means over {values.sizes['seed']} runs at sigma={noise:g}. A change from one end to the "
        "other that the untrained network or an ideal encoder shows too is made by the test "
        f"pairs, not by learning. {caption}",
        [
            "bias",
            "test pairs",
            "network",
            f"eps_min={low:g}",
            f"eps_min={high:g}",
            "change",
            other_label,
        ],
        table,
    )


def _ends(values: xr.DataArray) -> list[str]:
    """Mean at the first and the last eps_min, and the change between them."""
    mean = values.mean("seed")
    first, last = (float(mean.isel(eps_min=place)) for place in (0, -1))
    return [f"{first:.4g}", f"{last:.4g}", f"{last - first:+.2g}"]


def gaps(values: xr.DataArray, relative: bool = False) -> str:
    """Mean at the largest eps_min minus (``relative``: over) that at the smallest, at every read,
    in words; ``values`` are those of one test set."""
    mean = values.sel(sigma=middle(values)).mean("seed")
    first, last = mean.isel(eps_min=0), mean.isel(eps_min=-1)
    gap = last / first if relative else last - first
    form = ".2f" if relative else "+.2g"
    return "; ".join(
        f"{bias_name(bias)} "
        + ", ".join(
            f"{float(gap.sel(bias_scale=bias, read=read)):{form}}" for read in gap["read"].values
        )
        for bias in gap["bias_scale"].values
    )


def middle(values: xr.DataArray) -> float:
    """The noise level shown where there is room for one."""
    levels = values["sigma"].values
    return float(levels[len(levels) // 2])


def _nsr(study: DownstreamStudy, sigma: float) -> str:
    return f"NSR {np.float64(sigma) ** 2 * study.d1:.2g}"
