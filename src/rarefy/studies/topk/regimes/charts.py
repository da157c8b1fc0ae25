"""Pictures of ``topk-regimes``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.chart import heat_map
from rarefy.studies.topk.regimes.boundary import HALF, of_chance
from rarefy.studies.topk.regimes.experiment import RegimesExperiment
from rarefy.theory.topk import noise_threshold_order, signal_threshold_order
from rarefy.theory.unpruned_limit import limit_boundary, limit_test_loss

LABELS = {"snr": "SNR = mu/(sigma_p sqrt(d))", "samples": "training samples n"}


def pictures(experiment: RegimesExperiment, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["snr", "samples", "classes", "d"])
    makers = (_phase, _loss_and_error, _ratio)
    return [make(experiment, ordered) for make in makers]


def _reached(at: xr.Dataset) -> tuple[float, float]:
    """What the closed form is told: training loss, and share of filters that respond to noise."""
    return float(at["train_loss"].mean()), float(at["noise_active"].mean())


def _middle(results: xr.Dataset, *axes: str) -> xr.Dataset:
    return results.isel({axis: results.sizes[axis] // 2 for axis in axes})


def _loglog(curves: list[Curve], x_label: str, y_label: str, title: str) -> Lines:
    return Lines(curves, x_label, y_label, title, x_log=True, y_log=True)


def _by_d(values: xr.DataArray, x: str) -> list[Curve]:
    """A curve per dimension; values: (d, x, seed)."""
    return [
        mean_curve(f"d = {float(d):g}", values[x].values, by_seed(values.sel(d=d), x))
        for d in values["d"].values
    ]


def _phase(experiment: RegimesExperiment, results: xr.Dataset) -> Picture:
    at = results.isel(d=-1, read=-1)
    loss = of_chance(at, "test_loss")
    snr, n = results["snr"].values, results["samples"].values
    fine = np.geomspace(n.min(), n.max(), 50)
    panels = []
    for classes in results["classes"].values.tolist():
        closed = limit_boundary(fine, classes, *_reached(at.sel(classes=classes)))
        signal = signal_threshold_order(classes, fine)
        curves = [
            Curve("1/n (Theorem 4.3)", noise_threshold_order(fine), fine, style="dotted"),
            Curve("T n^(-1/4) (Theorem 4.2)", signal, fine, style="dashed"),
            Curve("half of log T, closed form", closed, fine, role="theory"),
        ]
        panels.append(
            heat_map(
                loss.sel(classes=classes),
                "snr",
                "samples",
                LABELS,
                "test loss / log T",
                f"T = {classes}",
                curves=[_inside(curve, snr) for curve in curves],
                levels=(HALF,),
            )
        )
    return Picture(
        "phase",
        "Between the two theorems: the test loss over SNR and training samples",
        f"Test loss in units of log T after {experiment.steps} steps, d = "
        f"{float(results['d'].values[-1]):g}, mean of {results.sizes['seed']} runs. Left of the "
        "dotted line Theorem 4.3 promises noise, right of the dashed line Theorem 4.2 promises "
        "signal; the level line is the measured boundary, half of log T, beside its closed form.",
        panels,
    )


def _inside(curve: Curve, snr: np.ndarray) -> Curve:
    """The part of a curve that lies on the map."""
    there = (curve.x >= snr.min()) & (curve.x <= snr.max())
    return replace(curve, x=curve.x[there], y=curve.y[there])


def _loss_and_error(experiment: RegimesExperiment, results: xr.Dataset) -> Picture:
    at = _middle(results, "samples", "classes").isel(read=-1)
    n, classes = int(at["samples"]), int(at["classes"])
    snr, last = results["snr"].values, at.isel(d=-1)
    fine = np.geomspace(snr.min(), snr.max(), 200)
    reached = np.interp(np.log(fine), np.log(snr), last["train_loss"].mean("seed").values)
    active = float(last["noise_active"].mean())
    limit = limit_test_loss(n * fine**2 / classes, classes, reached, active) / np.log(classes)
    closed = Curve("closed form, endless d", fine, limit, role="theory")
    marks = [(1 / n, "1/n"), (float(signal_threshold_order(classes, float(n))), "T n^(-1/4)")]
    panels = [
        Lines(
            [*_by_d(of_chance(at, what), "snr"), *lines],
            LABELS["snr"],
            label,
            label,
            x_log=True,
            marks=marks,
        )
        for what, label, lines in (
            ("test_loss", "test loss / log T", [closed]),
            ("test_error", "test error / guessing", []),
        )
    ]
    return Picture(
        "loss-and-error",
        "Test loss and test error from one regime to the other",
        f"Test loss and test error in units of guessing over the SNR, n = {n}, T = {classes}, "
        f"{experiment.steps} steps, mean and 95 % interval of {results.sizes['seed']} runs. In "
        "high dimension fresh noise hardly moves the scores, so that a little signal can give the "
        "right answer while the loss is still that of guessing: compare the two at the smallest "
        "SNR.",
        panels,
    )


def _ratio(experiment: RegimesExperiment, results: xr.Dataset) -> Picture:
    panels = []
    for d in results["d"].values:
        at = results.sel(d=d).isel(read=-1)
        order = at["samples"] * at["snr"] ** 2 / at["classes"]
        ratio = (at["gamma"] / at["rho"]).mean("seed")
        curves = []
        for classes in results["classes"].values:
            x, y = (
                values.sel(classes=classes).transpose("samples", "snr").values.ravel()
                for values in (order, ratio)
            )
            place = np.argsort(x)
            curves.append(Curve(f"T = {classes}", x[place], y[place], style="points"))
        line = np.array([float(order.min()), float(order.max())])
        curves.append(Curve("gamma/rho = n SNR^2/T", line, line, role="theory", style="dashed"))
        panels.append(_loglog(curves, "n SNR^2/T", "gamma/rho", f"d = {float(d):g}"))
    return Picture(
        "ratio",
        "Signal over noise coefficients against n SNR^2/T",
        "Mean gamma over mean rho of filters that began on the positive side, after "
        f"{experiment.steps} steps; each point an n and an SNR, mean of "
        f"{results.sizes['seed']} runs.",
        panels,
    )
