"""Pictures and tables of ``benign-correlation``."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.benign.conditions import conditions
from rarefy.studies.benign.constants import ONES, READ
from rarefy.studies.benign.correlation.claims import behaves, resolution
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment
from rarefy.studies.benign.correlation.theory import Prediction, least_error, tail_errors
from rarefy.studies.benign.maps import AXIS_LABELS, accuracy_map, counted
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.chart import heat_map
from rarefy.studies.kit.tables import table

LAW_TITLES = {
    "gaussian": "Gaussian noise",
    "uniform": "uniform noise, A = U Lambda U^T",
    "uniform-own": "uniform noise, A = U Lambda",
}


def pictures(study: CorrelationExperiment, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["strength", "gamma"])
    schedules = texts(results, "schedule")
    found = [*(_map(study, ordered, name) for name in schedules), _best(study, ordered)]
    if "gaussian" in ordered["law"].values:
        found.append(_tail(study, ordered))
        found += [_differences(ordered, name) for name in schedules if ordered.sizes["law"] > 1]
    return found


def _map(study: CorrelationExperiment, results: xr.Dataset, schedule: str) -> Picture:
    here = results.sel(schedule=schedule)
    gamma = here["gamma"].values.astype(float)
    strength = here["strength"].values.astype(float)
    gram = study.spectrum(torch.tensor(gamma)).gram()[:, 0, 1].numpy()
    edge = (gram / study.size) ** 0.25  # |u| at which the signal ratio is 1
    inside = (edge >= strength[0]) & (edge <= strength[-1])
    curve = Curve("signal ratio 1", edge[inside], gamma[inside], role="theory")
    panels = [
        accuracy_map(
            1 - here["test_error"].sel(law=law),
            "strength",
            "gamma",
            LAW_TITLES[law],
            [curve] if inside.sum() > 1 else [],
        )
        for law in texts(results, "law")
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


def _best(study: CorrelationExperiment, results: xr.Dataset) -> Picture:
    gamma = results["gamma"].values.astype(float)
    fine = np.geomspace(gamma[0], gamma[-1], 200)
    weak = results.isel(strength=0)
    panels = []
    for law in texts(results, "law"):
        accuracy = 1 - weak["test_error"].sel(law=law)
        curves = [
            mean_curve(name, gamma, by_seed(accuracy.sel(schedule=name)), role=name)
            for name in texts(results, "schedule")
        ]
        best, label = 1 - least_error(study, fine, law), AXIS_LABELS["gamma"]
        curves.append(Curve("best by noise alone", fine, best, role="theory", style="dashed"))
        panels.append(Lines(curves, label, "test accuracy", LAW_TITLES[law], x_log=True))
    return Picture(
        "best",
        f"How near to optimal without a feature (|u| = {float(weak['strength']):g})",
        "Dashed: the accuracy of the classifier that knows every A_k and sees the noise patch "
        "alone, no constant fitted (for A = U Lambda U^T with uniform zeta: the best by second "
        f"moments). Lines: what the network reaches, {counted(results)}, with 95 % bands; chance "
        f"is {1 / study.classes:.2f}.",
        panels,
    )


def _tail(study: CorrelationExperiment, results: xr.Dataset) -> Picture:
    gamma = results["gamma"].values.astype(float)
    chosen = gamma[np.unique(np.linspace(0, len(gamma) - 1, 6).round().astype(int))]
    tail = tail_errors(results["stratum_error"].sel(law="gaussian").isel(strength=0))
    lengths = tail["edge"].values
    fine = np.linspace(0, lengths[-1], 60)
    least = 0.1 * resolution(study)[1]
    panels = []
    for schedule in texts(results, "schedule"):
        curves = []
        for place, value in enumerate(chosen):
            role = f"gamma {place}"
            mean = by_seed(tail.sel(schedule=schedule, gamma=value)).mean(axis=0)
            shown = np.where(mean > 0, mean, np.nan)
            curves.append(Curve(f"Gamma = {value:g}", lengths, shown, role=role, style="points"))
            if value == 1:  # every rule is as good as another
                continue
            best = least_error(study, np.array(value), "gaussian", fine)
            best = np.where(best >= least, best, np.nan)
            curves.append(Curve(f"Gamma = {value:g}, best", fine, best, role=role, style="dashed"))
        x_label, words = "L: only samples with |z| at least L", study.words(schedule)
        panels.append(Lines(curves, x_label, "test error", words, y_log=True))
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
        heat_map(
            accuracy.sel(law=law) - accuracy.sel(law="gaussian"),
            "strength",
            "gamma",
            AXIS_LABELS,
            "difference in test accuracy",
            f"{LAW_TITLES[law]}, minus Gaussian",
            signed=True,
        )
        for law in texts(results, "law")
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


def tables(study: CorrelationExperiment, results: xr.Dataset) -> list[Table]:
    ordered = results.sortby(["strength", "gamma"])
    found = [_conditions(study, ordered)]
    return [_regimes(study, ordered), *found] if "gaussian" in texts(results, "law") else found


def _regimes(study: CorrelationExperiment, results: xr.Dataset) -> Table:
    here = results.sel(law="gaussian")
    prediction = Prediction.of(study, here["strength"].values, here["gamma"].values)
    rows = []
    for words, constants in (("C_1=C_2=4, C_3=1, c=1/4", READ), ("all 1, c_3=1/4", ONES)):
        regime = prediction.regime(constants)
        for schedule in texts(here, "schedule"):
            part = here.sel(schedule=schedule)
            error = by_seed(part["test_error"], "strength", "gamma")
            tail = tail_errors(part["stratum_error"])
            far = tail["edge"].values > 0
            tails = by_seed(tail, "strength", "gamma", "edge")[..., far]
            lengths = tail["edge"].values[far]
            obeys = behaves(prediction, error, tails, lengths, resolution(study), constants)
            for name in ("features", "tail", "harmful", "open"):
                among = np.broadcast_to(regime == name, error.shape)
                share = obeys[name][among].mean() if among.any() and name in obeys else np.nan
                rows.append(
                    {
                        "constants": words,
                        "training": schedule,
                        "regime": name,
                        "cells": int((regime == name).sum()),
                        "mean test error": _text(error[among].mean() if among.any() else np.nan),
                        "share that obeys": _text(share),
                    }
                )
    return table(
        "regimes",
        "Theorem 1's regimes on the Gaussian map",
        "features: error on all data at most (K-1) exp(-c_1 signal ratio); tail: error given |z| "
        ">= L at most (K-1) exp(-c_2 L^2 Gamma) for every L > 0 measured; harmful: error at least "
        "c_3 (1 - 1/K); open: nothing is said. The constants are the paper's free ones, so a small "
        "share speaks against these values only. With all constants 1 every cell with Gamma >= 1, "
        "even homogeneous noise, counts as tail. Here the training loss is not asked for; the "
        "printed training does not reach the one Theorem 1 speaks of.",
        rows,
    )


def _text(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ""


def _conditions(study: CorrelationExperiment, results: xr.Dataset) -> Table:
    ends = [
        (results[name].values.min(), results[name].values.max()) for name in ("gamma", "strength")
    ]
    corners = [(float(g), float(u)) for g in dict.fromkeys(ends[0]) for u in dict.fromkeys(ends[1])]
    rows: dict[tuple[str, ...], list[str]] = {}
    samples = study.classes * study.size
    for schedule in results["schedule"].values:
        training = study.training(str(schedule))
        columns = [
            conditions(study, study.spectrum(torch.tensor([g])), u, samples, training)
            for g, u in corners
        ]
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
