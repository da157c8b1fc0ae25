"""Pictures and the table of controls for downstream quantities."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Table
from rarefy.studies.contrastive.downstream import TEST_FREQUENCIES, DownstreamExperiment
from rarefy.studies.contrastive.words import bias_name, middle_sigma
from rarefy.studies.kit.slices import curve_along, every

Reference = tuple[str, xr.DataArray]
"""Label and values; those of an ideal encoder have no ``read``."""
TEST_NAMES = {"as trained": "test pairs as in training", "balanced": "balanced test pairs"}
EPS = "minority frequency in training, eps_min"


def against_eps(
    experiment: DownstreamExperiment,
    values: xr.DataArray,
    reference: Reference,
    y_label: str,
    y_log: bool = False,
) -> list[Lines]:
    """One panel per bias: the trained network at every noise level, the untrained one and an ideal
    encoder at the middle level. ``values`` are those of one test set."""
    noise = middle_sigma(values)
    beside = [(*reference, "theory")]
    if 0 in experiment.reads:
        beside.insert(0, ("untrained", values.sel(read=0), "baseline"))

    def nsr(sigma: float) -> str:
        return f"NSR {np.float64(sigma) ** 2 * experiment.d1:.2g}"

    def curves(here: xr.DataArray) -> list[Curve]:
        at = {"bias_scale": here["bias_scale"].item(), "sigma": noise}
        of = f", {nsr(noise)}" if values.sizes["sigma"] > 1 else ""
        return [
            *(
                curve_along(nsr(sigma), trained, "eps_min", nsr(sigma))
                for (sigma,), trained in every(here.sel(read=experiment.figure_read), "sigma")
            ),
            *(
                curve_along(f"{label}{of}", control.sel(at), "eps_min", role, "dashed")
                for label, control, role in beside
            ),
        ]

    return [
        Lines(curves(here), EPS, y_label, bias_name(bias), y_log=y_log)
        for (bias,), here in every(values, "bias_scale")
    ]


def ends_table(
    values: xr.DataArray, ideal: Reference, title: str, beside: Reference, caption: str
) -> Table:
    """The quantity at both ends of the eps_min axis, with another one ``beside`` it: every read,
    then the ideal encoder, for which the other one has no meaning."""
    low, high = values["eps_min"].values[[0, -1]]
    noise = middle_sigma(values)
    other_label, other = beside
    ends = (f"eps_min={low:g}", f"eps_min={high:g}")
    table: list[list[object]] = []
    for bias in values["bias_scale"].values:
        for test in TEST_FREQUENCIES:
            at = {"bias_scale": bias, "sigma": noise, "test_frequencies": test}
            words = [bias_name(bias), TEST_NAMES[test]]
            for read in values["read"].values:
                who = "untrained" if read == 0 else f"step {read}"
                first, last, _ = _ends(other.sel(at).sel(read=read))
                row = _ends(values.sel(at).sel(read=read))
                table.append([*words, who, *row, f"{first} to {last}"])
            table.append([*words, ideal[0], *_ends(ideal[1].sel(at)), ""])
    return Table(
        "controls",
        title,
        f"Means over {values.sizes['seed']} runs at sigma={noise:g}. A change from one end to the "
        "other that the untrained network or an ideal encoder shows too is made by the test "
        f"pairs, not by learning. {caption}",
        ["bias", "test pairs", "network", *ends, "change", other_label],
        table,
    )


def _ends(values: xr.DataArray) -> list[str]:
    """Mean at the first and the last eps_min, and the change between them."""
    mean = values.mean("seed")
    first, last = (float(mean.isel(eps_min=place)) for place in (0, -1))
    return [f"{first:.4g}", f"{last:.4g}", f"{last - first:+.2g}"]
