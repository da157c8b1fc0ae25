"""Pictures and tables of ``benign-correlation``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign._constants import ONES, READ, Constants
from rarefy.studies.benign._correlation_theory import (
    Prediction,
    conditions_at,
    feature_boundary,
    least_error,
    tail_errors,
)
from rarefy.studies.benign._correlation_verdicts import behaves, resolution
from rarefy.studies.benign._maps import AXIS_LABELS, accuracy_map, counted, difference_map

if TYPE_CHECKING:
    from rarefy.studies.benign.benign_correlation import BenignCorrelation

LAW_TITLES = {
    "gaussian": "Gaussian noise",
    "uniform": "uniform noise, A = U Lambda U^T",
    "uniform-own": "uniform noise, A = U Lambda",
}


def correlation_pictures(study: BenignCorrelation, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["strength", "gamma"])
    schedules = [str(name) for name in ordered["schedule"].values]
    pictures = [_map(study, ordered, name) for name in schedules]
    pictures.append(_best(study, ordered))
    if "gaussian" in ordered["law"].values:
        pictures.append(_tail(study, ordered))
        pictures += [_differences(ordered, name) for name in schedules if ordered.sizes["law"] > 1]
    return pictures


def _map(study: BenignCorrelation, results: xr.Dataset, schedule: str) -> Picture:
    here = results.sel(schedule=schedule)
    gamma = here["gamma"].values.astype(float)
    strength = here["strength"].values.astype(float)
    edge = feature_boundary(study, gamma, 1.0)
    inside = (edge >= strength[0]) & (edge <= strength[-1])
    curve = Curve("signal ratio 1", edge[inside], gamma[inside], role="theory")
    panels = [
        accuracy_map(
            1 - here["test_error"].sel(law=law),
            "strength",
            "gamma",
            LAW_TITLES[str(law)],
            [curve] if inside.sum() > 1 else [],
        )
        for law in here["law"].values
    ]
    loss = here["train_loss"]
    return Picture(
        f"map-{schedule}",
        f"Accuracy over feature strength and noise correlation, {study.words(schedule)}",
        f"003 Fig. 3, {counted(results)}, {study.test_samples} test samples. Upwards the noise of "
        "each class gets a shape of its own, to the right the feature gets stronger. At the top "
        "left there is hardly any feature: what is right there was learnt from noise. The curve "
        "is where Theorem 1's signal ratio |S||u|^4/|A_k^T A_j|_F^2 is 1; thin lines are levels "
        f"of accuracy. Training loss {float(loss.min()):.2g} to {float(loss.max()):.2g} "
        f"(log K = {np.log(study.classes):.2f}).",
        panels,
    )


def _best(study: BenignCorrelation, results: xr.Dataset) -> Picture:
    gamma = results["gamma"].values.astype(float)
    fine = np.geomspace(gamma[0], gamma[-1], 200)
    weak = results.isel(strength=0)
    panels = []
    for law in results["law"].values:
        samples = (1 - weak["test_error"].sel(law=law)).transpose("schedule", "seed", "gamma")
        curves = [
            mean_curve(str(name), gamma, samples.sel(schedule=name).values, role=str(name))
            for name in results["schedule"].values
        ]
        best = 1 - least_error(study, fine, str(law))
        curves.append(Curve("best by noise alone", fine, best, role="theory", style="dashed"))
        panels.append(
            Lines(
                curves,
                AXIS_LABELS["gamma"],
                "test accuracy",
                LAW_TITLES[str(law)],
                x_log=True,
            )
        )
    return Picture(
        "best",
        f"How near to optimal without a feature (|u| = {float(weak['strength']):g})",
        "Dashed: the accuracy of the classifier that knows every A_k and sees the noise patch "
        "alone, no constant fitted (for A = U Lambda U^T with uniform zeta: the best by second "
        f"moments). Lines: what the network reaches, {counted(results)}, with 95 % bands; chance "
        f"is {1 / study.classes:.2f}.",
        panels,
    )


def _tail(study: BenignCorrelation, results: xr.Dataset) -> Picture:
    gamma = results["gamma"].values.astype(float)
    chosen = gamma[np.unique(np.linspace(0, len(gamma) - 1, 6).round().astype(int))]
    tail = tail_errors(results["stratum_error"].sel(law="gaussian").isel(strength=0))
    lengths = tail["edge"].values
    fine = np.linspace(0, lengths[-1], 60)
    least = 0.1 * resolution(study)[1]
    panels = []
    for schedule in results["schedule"].values:
        curves = []
        for place, value in enumerate(chosen):
            role = f"gamma {place}"
            samples = tail.sel(schedule=schedule, gamma=value).transpose("seed", "edge").values
            mean = samples.mean(axis=0)
            shown = np.where(mean > 0, mean, np.nan)
            curves.append(Curve(f"Gamma = {value:g}", lengths, shown, role=role, style="points"))
            if value == 1:  # every rule is as good as another
                continue
            best = least_error(study, np.array(value), "gaussian", fine)
            best = np.where(best >= least, best, np.nan)
            curves.append(Curve(f"Gamma = {value:g}, best", fine, best, role=role, style="dashed"))
        panels.append(
            Lines(
                curves,
                "L: only samples with |z| at least L",
                "test error",
                study.words(str(schedule)),
                y_log=True,
            )
        )
    return Picture(
        "tail",
        "Test error on samples far out along their class's special direction",
        "z is zeta along the class's special direction, a measure of long-tailedness that asks no "
        f"network (003 Definition 1 does). Gaussian, |u| = {float(results['strength'][0]):g}; "
        f"points: {counted(results)}, dashed: the best classifier by noise alone; no point: "
        "no error seen. At Gamma = 1 z tells nothing and the error stays at chance.",
        panels,
    )


def _differences(results: xr.Dataset, schedule: str) -> Picture:
    accuracy = 1 - results["test_error"].sel(schedule=schedule)
    panels = [
        difference_map(
            accuracy.sel(law=law) - accuracy.sel(law="gaussian"),
            "strength",
            "gamma",
            f"{LAW_TITLES[str(law)]}, minus Gaussian",
        )
        for law in results["law"].values
        if law != "gaussian"
    ]
    return Picture(
        f"laws-{schedule}",
        f"What the law of the noise changes, {schedule}",
        f"{counted(results).capitalize()}. With A = U Lambda U^T the coordinate along the special "
        "direction mixes all of zeta and is nearly Gaussian; with A = U Lambda it is itself "
        "uniform and seldom small, so that noise can tell more about the class.",
        panels,
    )


# ------------------------------------------------------------------------------------------ tables


def correlation_tables(study: BenignCorrelation, results: xr.Dataset) -> list[Table]:
    ordered = results.sortby(["strength", "gamma"])
    tables = [_conditions(study, ordered)]
    if "gaussian" in ordered["law"].values:
        tables.insert(0, _regimes(study, ordered))
    return tables


def _regimes(study: BenignCorrelation, results: xr.Dataset) -> Table:
    order = ("seed", "strength", "gamma")
    here = results.sel(law="gaussian")
    prediction = Prediction.of(
        study, here["strength"].values.astype(float), here["gamma"].values.astype(float)
    )
    rows: list[list[object]] = []
    for words, constants in (("C_1=C_2=4, C_3=1, c=1/4", READ), ("all 1, c_3=1/4", ONES)):
        regime = prediction.regime(constants)
        for schedule in here["schedule"].values:
            part = here.sel(schedule=schedule)
            tail = tail_errors(part["stratum_error"]).transpose(*order, "edge")
            obeys = _obeying(study, prediction, part, tail, order, constants)
            error = part["test_error"].transpose(*order).values
            for name in ("features", "tail", "harmful", "open"):
                among = np.broadcast_to(regime == name, error.shape)
                share = obeys[name][among].mean() if among.any() and name in obeys else np.nan
                rows.append(
                    [
                        words,
                        str(schedule),
                        name,
                        int((regime == name).sum()),
                        _text(error[among].mean() if among.any() else np.nan),
                        _text(share),
                    ]
                )
    return Table(
        "regimes",
        "Theorem 1's regimes on the Gaussian map",
        "features: error on all data at most (K-1) exp(-c_1 signal ratio); tail: error given |z| "
        ">= L at most (K-1) exp(-c_2 L^2 Gamma) for every L > 0 measured; harmful: error at least "
        "c_3 (1 - 1/K); open: nothing is said. The constants are the paper's free ones, so a small "
        "share speaks against these values only. With all constants 1 every cell with Gamma >= 1, "
        "even homogeneous noise, counts as tail. Here the training loss is not asked for; the "
        "printed training does not reach the one Theorem 1 speaks of.",
        ["constants", "training", "regime", "cells", "mean test error", "share that obeys"],
        rows,
    )


def _obeying(
    study: BenignCorrelation,
    prediction: Prediction,
    part: xr.Dataset,
    tail: xr.DataArray,
    order: tuple[str, ...],
    constants: Constants,
) -> dict[str, np.ndarray]:
    lengths = tail["edge"].values
    return behaves(
        prediction,
        part["test_error"].transpose(*order).values,
        tail.values[..., lengths > 0],
        lengths[lengths > 0],
        resolution(study),
        constants,
    )


def _text(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ""


def _conditions(study: BenignCorrelation, results: xr.Dataset) -> Table:
    ends = [
        (results[name].values.min(), results[name].values.max()) for name in ("gamma", "strength")
    ]
    corners = [(float(g), float(u)) for g in dict.fromkeys(ends[0]) for u in dict.fromkeys(ends[1])]
    rows: dict[tuple[str, ...], list[str]] = {}
    for schedule in results["schedule"].values:
        training = study.training(str(schedule))
        columns = [conditions_at(study, u, g, training) for g, u in corners]
        for line in zip(*columns, strict=True):
            if all(condition.holds for condition in line):
                continue
            missed = ["holds" if c.holds else f"{c.ratio:.3g} times" for c in line]
            rows.setdefault((line[0].formula, *missed), []).append(str(schedule))
    total = len(columns[0])
    return Table(
        "conditions",
        "By how much the corners of the map miss Condition 1",
        f"Lines of Condition 1 (of {total}) that fail somewhere, with its large constant C set to "
        "1 and delta = 0.1; 'inf' is a value of the wrong sign. The theorem's regime lies far from "
        "the paper's own experiment, and no |u| near 0 can be in it: sigma_0 would have to be "
        "smaller still.",
        ["training", "asks for", *(f"Gamma={g:g} |u|={u:g}" for g, u in corners)],
        [[" and ".join(names), *line] for line, names in rows.items()],
    )
