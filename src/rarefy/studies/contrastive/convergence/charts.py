"""Pictures and the table of ``contrast-convergence``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.studies.contrastive.convergence.claims import primary_point, tau_name
from rarefy.studies.contrastive.convergence.experiment import ConvergenceExperiment
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.contrastive.words import spelled_slope
from rarefy.studies.kit.slices import curve_along, every
from rarefy.theory.contrastive import coefficient_scale, feature_energy_scale


def pictures(experiment: ConvergenceExperiment, results: xr.Dataset) -> list[Picture]:
    return [_over_d(experiment, results), _scaling(experiment, results)]


def _over_d(experiment: ConvergenceExperiment, results: xr.Dataset) -> Picture:
    last = results.sel(read=experiment.reads[-1])
    loss, inside = [], []
    for (power,), here in every(last, "tau_power"):
        name = tau_name(power)
        loss.append(curve_along(name, here["loss"].mean("eps_min"), "d", name))
        rare = here["inside"].sel(group="minority").mean("eps_min")
        inside.append(curve_along(name, rare, "d", name))
    floor = results["floor"].mean(["eps_min", "tau_power"])
    loss.append(curve_along("perfect encoder", floor, "d", "theory", "dashed"))
    labels = ("mean loss since T3 (nats)", "share of weights in the range (13)")
    panels = [
        Lines(curves, "features, d", label, x_log=True)
        for curves, label in zip((loss, inside), labels, strict=True)
    ]
    return Picture(
        "over-d",
        "Theorem 3.1 over the number of features",
        f"Up to step d^{experiment.reads[-1]:g}/eta, mean over eps_min and "
        f"{results.sizes['seed']} runs each, with the paper's bias. Left: (11) says that the loss "
        "goes to 0 as d grows; dashed: what twins in a batch leave to a perfect encoder. Right: "
        "(13) says that every weight on a feature of N_i is in its range.",
        panels,
    )


def _scaling(experiment: ConvergenceExperiment, results: xr.Dataset) -> Picture:
    point = primary_point(experiment)
    at = results.sel(tau_power=point["tau_power"], read=point["read"])
    eps, panels = results["eps_min"].values, []
    for name, predicted, power, label in (
        ("weight", coefficient_scale, 1, "weight on a feature of N_i, rare / frequent"),
        ("energy", feature_energy_scale, 2, "squared weights over M_j, rare / frequent"),
    ):
        curves = []
        for (d,), here in every(at[name], "d"):
            mean = here.mean("seed")
            ratio = mean.sel(group="minority") / mean.sel(group="majority")
            curves.append(Curve(f"d={d}", eps, ratio.values, role=f"d {d}"))
        theory = Curve(f"slope {power}", eps, predicted(eps), role="theory", style="dashed")
        panels.append(Lines([*curves, theory], "eps_min / eps_max", label, x_log=True, y_log=True))
    return Picture(
        "scaling",
        "Weight on a feature against its frequency (13), (89)",
        f"{tau_name(point['tau_power'])}, step d^{point['read']:g}/eta; ratios of means over "
        f"{results.sizes['seed']} runs. The dashed line has the predicted slope through 1.",
        panels,
    )


def tables(experiment: ConvergenceExperiment, results: xr.Dataset) -> list[Table]:
    last, rows = results.sel(read=experiment.reads[-1]), []
    for (power, d), here in every(last, "tau_power", "d"):
        inside, above = (float(here[n].sel(group="minority").mean()) for n in ("inside", "above"))
        exponents = [spelled_slope(exponent_in_eps(here[n])) for n in ("weight", "energy")]
        shares = [f"{inside:.3f}", f"{above:.3f}"]
        loss = f"{float(here['loss'].mean()):.3f} / {float(here['floor'].mean()):.3f}"
        rows.append([tau_name(power), int(d), loss, *shares, *exponents])
    heads = ["tau", "d", "loss / floor", "in range", "above", "weight exponent", "energy exponent"]
    title = "Loss, range and exponents at every temperature and size"
    caption = (
        f"At step d^{experiment.reads[-1]:g}/eta. Predicted: loss to 0 (11), all weights in the "
        "range (13), exponents 1 and 2 in eps_min/eps_max (13), (89). Slopes with 95 % intervals."
    )
    return [Table("convergence", title, caption, heads, rows)]
