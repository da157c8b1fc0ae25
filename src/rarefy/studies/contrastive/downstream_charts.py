"""Pictures of downstream quantities against eps_min, beside their controls."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines
from rarefy.studies.contrastive.downstream import DownstreamExperiment
from rarefy.studies.contrastive.words import bias_name, middle_sigma
from rarefy.studies.kit.slices import curve_along, every

Reference = tuple[str, xr.DataArray]
"""Label and values; those of an ideal encoder have no ``read``."""
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
