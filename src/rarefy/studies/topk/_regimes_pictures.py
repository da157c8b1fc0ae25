"""Pictures of ``topk-regimes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.topk._regimes_boundary import boundary, of_chance
from rarefy.studies.topk._regimes_limit import limit_boundary, limit_test_loss
from rarefy.theory.topk import noise_threshold_order, signal_threshold_order

if TYPE_CHECKING:
    from rarefy.studies.topk.topk_regimes import TopKRegimes

SNR = "SNR = mu/(sigma_p sqrt(d))"


def regimes_pictures(study: TopKRegimes, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["snr", "samples", "classes", "d"])
    return [
        _phase(study, ordered),
        _boundary(study, ordered),
        _loss_and_error(study, ordered),
        _ratio(study, ordered),
        _ratio_in_time(study, ordered),
    ]


def _reached(at: xr.Dataset) -> tuple[float, float]:
    """What the closed form is told: training loss, and share of filters that respond to noise."""
    return float(at["train_loss"].mean()), float(at["noise_active"].mean())


def _middle(values: np.ndarray) -> int:
    return len(values) // 2


def _phase(study: TopKRegimes, results: xr.Dataset) -> Picture:
    at = results.isel(d=-1, read=-1)
    loss = of_chance(at, "test_loss").mean("seed")
    snr, n = results["snr"].values, results["samples"].values
    fine = np.geomspace(n.min(), n.max(), 50)
    panels = []
    for classes in results["classes"].values:
        reached, active = _reached(at.sel(classes=classes))
        curves = [
            Curve("1/n (Theorem 4.3)", noise_threshold_order(fine), fine, style="dotted"),
            Curve(
                "T n^(-1/4) (Theorem 4.2)",
                signal_threshold_order(int(classes), fine),
                fine,
                style="dashed",
            ),
            Curve(
                "half of log T, closed form",
                limit_boundary(fine, classes, reached, active),
                fine,
                role="theory",
            ),
        ]
        panels.append(
            HeatMap(
                loss.sel(classes=classes).transpose("samples", "snr").values,
                snr.tolist(),
                n.tolist(),
                SNR,
                "training samples n",
                "test loss / log T",
                title=f"T = {classes}",
                curves=[_inside(curve, snr) for curve in curves],
                levels=(0.5,),
            )
        )
    return Picture(
        "phase",
        "Between the two theorems: the test loss over SNR and training samples",
        f"Test loss in units of log T after {study.steps} steps, d = "
        f"{float(results['d'].values[-1]):g}, mean of {results.sizes['seed']} runs. Left of the "
        "dotted line Theorem 4.3 promises noise, right of the dashed line Theorem 4.2 promises "
        "signal; the level line is the measured boundary, half of log T, beside its closed form.",
        panels,
    )


def _inside(curve: Curve, snr: np.ndarray) -> Curve:
    """The part of a curve that lies on the map."""
    there = (curve.x >= snr.min()) & (curve.x <= snr.max())
    return Curve(curve.label, curve.x[there], curve.y[there], role=curve.role, style=curve.style)


def _boundary(study: TopKRegimes, results: xr.Dataset) -> Picture:
    at = results.isel(read=-1)
    n = results["samples"].values
    fine = np.geomspace(n.min(), n.max(), 50)
    classes = int(results["classes"].values[_middle(results["classes"].values)])
    by_loss, by_error = boundary(at, "test_loss"), boundary(at, "test_error")
    reached, active = _reached(at.sel(classes=classes).isel(d=-1))
    panels = []
    theory = [
        Curve("1/n", fine, noise_threshold_order(fine), style="dotted"),
        Curve("T n^(-1/4)", fine, signal_threshold_order(classes, fine), style="dashed"),
        Curve("closed form", fine, limit_boundary(fine, classes, reached, active), role="theory"),
    ]
    for what, where, lines in (
        ("test loss, half of log T", by_loss, theory),
        ("test error, half of guessing's", by_error, theory[:2]),
    ):
        curves = [
            mean_curve(
                f"d = {float(d):g}",
                n,
                where.sel(d=d, classes=classes).transpose("seed", "samples").values,
            )
            for d in results["d"].values
        ]
        panels.append(
            Lines(
                [*curves, *lines],
                "training samples n",
                "SNR at the boundary",
                title=what,
                x_log=True,
                y_log=True,
            )
        )
    return Picture(
        "boundary",
        "Where the regimes meet: the boundary over training samples and dimension",
        f"SNR at which the test loss is half of log T (left) and at which the test error is half "
        f"of guessing's (right), T = {classes}, {study.steps} steps, mean and 95 % interval of "
        f"{results.sizes['seed']} runs. No point: the boundary lies below the smallest SNR. Dotted "
        "and dashed: the thresholds of Theorems 4.3 and 4.2 with constants 1.",
        panels,
    )


def _loss_and_error(study: TopKRegimes, results: xr.Dataset) -> Picture:
    at_n, at_classes = _middle(results["samples"].values), _middle(results["classes"].values)
    at = results.isel(samples=at_n, classes=at_classes, read=-1)
    n, classes = int(at["samples"]), int(at["classes"])
    snr = results["snr"].values
    fine = np.geomspace(snr.min(), snr.max(), 200)
    reached = np.interp(np.log(fine), np.log(snr), at["train_loss"].isel(d=-1).mean("seed").values)
    active = float(at["noise_active"].isel(d=-1).mean())
    limit = limit_test_loss(n * fine**2 / classes, classes, reached, active) / np.log(classes)
    marks = [(1 / n, "1/n"), (float(signal_threshold_order(classes, float(n))), "T n^(-1/4)")]
    panels = []
    for what, label in (
        ("test_loss", "test loss / log T"),
        ("test_error", "test error / guessing"),
    ):
        values = of_chance(at, what)
        curves = [
            mean_curve(f"d = {float(d):g}", snr, values.sel(d=d).transpose("seed", "snr").values)
            for d in results["d"].values
        ]
        if what == "test_loss":
            curves.append(Curve("closed form, endless d", fine, limit, role="theory"))
        panels.append(Lines(curves, SNR, label, title=label, x_log=True, marks=marks))
    return Picture(
        "loss-and-error",
        "Test loss and test error from one regime to the other",
        f"Test loss and test error in units of guessing over the SNR, n = {n}, T = {classes}, "
        f"{study.steps} steps, mean and 95 % interval of {results.sizes['seed']} runs. In high "
        "dimension fresh noise hardly moves the scores, so that a little signal can give the right "
        "answer while the loss is still that of guessing: compare the two at the smallest SNR.",
        panels,
    )


def _ratio(study: TopKRegimes, results: xr.Dataset) -> Picture:
    panels = []
    for d in results["d"].values:
        at = results.sel(d=d).isel(read=-1)
        order = at["samples"] * at["snr"] ** 2 / at["classes"]
        ratio = (at["gamma"] / at["rho"]).mean("seed")
        curves = []
        for classes in results["classes"].values:
            x = order.sel(classes=classes).transpose("samples", "snr").values.ravel()
            y = ratio.sel(classes=classes).transpose("samples", "snr").values.ravel()
            place = np.argsort(x)
            curves.append(Curve(f"T = {classes}", x[place], y[place], style="points"))
        line = np.array([float(order.min()), float(order.max())])
        curves.append(Curve("gamma/rho = n SNR^2/T", line, line, role="theory", style="dashed"))
        panels.append(
            Lines(curves, "n SNR^2/T", "gamma/rho", f"d = {float(d):g}", x_log=True, y_log=True)
        )
    return Picture(
        "ratio",
        "Signal over noise coefficients against n SNR^2/T",
        f"Mean gamma over mean rho of filters that began on the positive side, after {study.steps} "
        f"steps; each point an n and an SNR, mean of {results.sizes['seed']} runs.",
        panels,
    )


def _ratio_in_time(study: TopKRegimes, results: xr.Dataset) -> Picture:
    """Ratio over time in units of n SNR^2/T: means, and the extreme pairs."""
    at = results.isel(
        d=-1,
        samples=_middle(results["samples"].values),
        classes=_middle(results["classes"].values),
    )
    n, classes = int(at["samples"]), int(at["classes"])
    snr = results["snr"].values
    panels = []
    for here in sorted({0, _middle(snr), len(snr) - 1}):
        cell = at.isel(snr=here)
        order = n * float(snr[here]) ** 2 / classes
        parts = (
            ("largest gamma over least rho", cell["gamma_high"] / cell["rho_low"], "dotted"),
            ("mean gamma over mean rho", cell["gamma"] / cell["rho"], "solid"),
            ("least gamma over largest rho", cell["gamma_low"] / cell["rho_high"], "dashed"),
        )
        curves = [
            mean_curve(
                label, study.reads, (values / order).transpose("seed", "read").values, None, style
            )
            for label, values, style in parts
        ]
        panels.append(
            Lines(
                curves,
                "step",
                "gamma/rho in units of n SNR^2/T",
                title=f"SNR = {snr[here]:g}",
                x_log=True,
                y_log=True,
            )
        )
    return Picture(
        "ratio-in-time",
        "The ratio of signal to noise coefficients while training",
        f"n = {n}, T = {classes}, d = {float(at['d']):g}, mean and 95 % interval of "
        f"{results.sizes['seed']} runs. Prop. 5.2 wants all three lines level and of order 1: the "
        "solid one for filters on average, the others for the most extreme pairs.",
        panels,
    )
