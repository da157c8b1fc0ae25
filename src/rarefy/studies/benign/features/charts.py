"""Pictures and tables of ``benign-features``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.separation import COUNTED, error_of, separation
from rarefy.studies.benign.conditions import condition_table, conditions
from rarefy.studies.benign.constants import READ
from rarefy.studies.benign.features.experiment import FeaturesExperiment
from rarefy.studies.benign.features.map import FeatureMap, maps_of
from rarefy.studies.benign.maps import accuracy_map
from rarefy.studies.kit.tables import table
from rarefy.theory import benign

SHOWN_RATIOS = (1.0, 4.0, 16.0)
"""Values of x whose lines are drawn over the maps."""


def pictures(study: FeaturesExperiment, results: xr.Dataset) -> list[Picture]:
    maps = maps_of(study, results)
    found = [_heat_maps(study, gamma, maps) for gamma in dict.fromkeys(here.gamma for here in maps)]
    fallen = [here for here in maps if here.schedule == "trained"] or maps
    return [*found, _fall(fallen), _cuts(maps)]


def _heat_maps(study: FeaturesExperiment, gamma: float, maps: list[FeatureMap]) -> Picture:
    here = [one for one in maps if one.gamma == gamma]
    n = len(here[0].error)
    noise = "noise of one kind for all classes" if gamma == 1 else "the setting of 003 Fig. 4a"
    return Picture(
        f"map-{gamma:g}",
        f"Accuracy over feature strength and class size at Gamma = {gamma:g}",
        f"Test accuracy, mean of {n} seeds; chance is {1 / here[0].classes:.2g}; {noise}. Lines: x "
        "= |S| |u|^4/|A_k^T A_j|_F^2 of Theorem 1, 2(a), constant along each. Where x is what "
        "counts, the level lines of accuracy run along them; where more samples do not help, they "
        "are upright.",
        [
            accuracy_map(
                xr.DataArray(
                    one.accuracy,
                    dims=("seed", "size", "strength"),
                    coords={"size": one.size, "strength": one.strength},
                ),
                "strength",
                "size",
                study.words(one.schedule),
                _contours(one),
            )
            for one in here
        ],
    )


def _contours(here: FeatureMap) -> list[Curve]:
    found = []
    for place, value in enumerate(SHOWN_RATIOS):
        # |u| at which x = value
        norm = (value * here.gram[0, 1] / here.size) ** 0.25
        there = (norm >= here.strength.min()) & (norm <= here.strength.max())
        if there.sum() > 1:
            style = ("solid", "dashed", "dotted")[place]
            at = (norm[there], here.size[there])
            found.append(Curve(f"x = {value:g}", *at, role="theory", style=style))
    return found


def _fall(maps: list[FeatureMap]) -> Picture:
    panels = [_against_x(here) for here in maps]
    first = maps[0]
    by_strength = Lines(
        [
            Curve(f"|S| = {size:g}", first.strength, _shown(first)[place], role=f"size {place}")
            for place, size in enumerate(first.size)
        ],
        "feature strength |u|",
        "test error",
        f"The same against |u| alone, Gamma = {first.gamma:g}",
        y_log=True,
    )
    n, tested = len(first.error), first.study.test_samples
    return Picture(
        "fall",
        "How the test error falls with the ratio of Theorem 1, 2(a)",
        f"Mean error of {n} seeds, {tested:,} fresh samples each. Left of x = 1 the theorem is "
        "silent, right of it the error is to fall at least exponentially, which is a straight line "
        "here. Dashed: K normal scores of which the right one is ahead by sqrt(a x) standard "
        "deviations, a the median over the cells that can be measured; the theorem's bound follows "
        "from this law. Dotted: (K - 1) exp(-c_1 x) with the largest c_1 that lies above all "
        f"points right of x = 1. Curves end where fewer than {COUNTED} errors were seen in all "
        "seeds together.",
        [*panels, by_strength],
    )


def _shown(here: FeatureMap) -> np.ndarray:
    """Mean errors, NaN where there were too few errors to count: (size, strength)."""
    mean = here.error.mean(axis=0)
    few = mean * len(here.error) * here.study.test_samples < COUNTED
    return np.where(few, np.nan, mean)


def _against_x(here: FeatureMap) -> Lines:
    shown = _shown(here)
    curves = [
        Curve(f"|S| = {size:g}", here.ratio[place], shown[place], role=f"size {place}")
        for place, size in enumerate(here.size)
    ]
    cells = here.measured()
    if cells.any():
        x, error = here.ratio[cells], here.mean_error()[cells]
        along = np.linspace(0.02, here.ratio[here.counted()].max(), 120)
        slope = float(np.median(separation(error, here.classes) ** 2 / x))
        law = error_of(np.sqrt(slope * along), here.classes)
        curves.append(Curve(f"normal law, a = {slope:.2g}", along, law, role="law", style="dashed"))
        constant = here.largest_constant()
        bound = np.minimum((here.classes - 1) * np.exp(-constant * along), 1.0)
        label = f"bound, c_1 = {constant:.2g}"
        curves.append(Curve(label, along, bound, role="theory", style="dotted"))
    return Lines(
        curves,
        x_label="x = |S| |u|^4/|A_k^T A_j|_F^2",
        y_label="test error",
        title=f"{here.schedule}, Gamma = {here.gamma:g}",
        y_log=True,
        marks=((1.0, "x = 1"),),
    )


def _cuts(maps: list[FeatureMap]) -> Picture:
    """Accuracy against |S| at a few |u|, for both schedules, at the largest Gamma."""
    gamma = max(here.gamma for here in maps)
    panels = []
    for here in (one for one in maps if one.gamma == gamma):
        open_ = np.flatnonzero(here.open_strengths())
        places = open_ if len(open_) else np.arange(len(here.strength))
        chosen = places[np.unique(np.linspace(0, len(places) - 1, 4).round().astype(int))]
        panels.append(
            Lines(
                [
                    Curve(
                        f"|u| = {here.strength[place]:g}",
                        here.size,
                        here.accuracy[:, :, place].mean(axis=0),
                        here.accuracy[:, :, place].min(axis=0),
                        here.accuracy[:, :, place].max(axis=0),
                        role=f"strength {order}",
                    )
                    for order, place in enumerate(chosen)
                ],
                x_label="training samples a class |S|",
                y_label="test accuracy",
                title=here.study.words(here.schedule),
            )
        )
    return Picture(
        "cuts",
        f"Does more data help? Accuracy against class size at Gamma = {gamma:g}",
        f"At strengths where accuracy is neither at chance nor saturated; mean and range of "
        f"{len(maps[0].error)} seeds. Theorem 1, 2(a) and Fig. 4a have rising curves; a flat one "
        "says that more samples do not help.",
        panels,
    )


def tables(study: FeaturesExperiment, results: xr.Dataset) -> list[Table]:
    size, strength = int(max(study.size)), float(max(study.strength))
    kind = "trained" if "trained" in study.schedule else study.schedule[0]
    noise = study.spectrum(max(study.gamma))
    training = study.training_at(kind, size, noise)
    asked = conditions(study, noise, strength, study.classes * size, training)
    found = condition_table(asked, f"{kind}, |S| = {size}, |u| = {strength:g}")
    trained = [one for one in maps_of(study, results) if one.schedule == "trained"]
    return [_harmful(trained), found] if trained else [found]


def _harmful(maps: list[FeatureMap]) -> Table:
    rows, floor = [], READ.harmful_error(maps[0].classes)
    for here in maps:
        crossing = here.crossing(floor)
        limit = max(READ.harmful, here.gamma)
        for place, size in enumerate(here.size):
            in_theorem = (limit * here.gram[0, 1] / size) ** 0.25
            rows.append(
                {
                    "Gamma": f"{here.gamma:g}",
                    "|S|": int(size),
                    "|u| in the theorem": f"{in_theorem:.3g}",
                    "|u| in its proof": f"{_in_proof(here, size, limit):.3g}",
                    f"|u| where the error is {floor:.3g}": _number(crossing[place]),
                    "x there": _number(here.ratio_at(crossing)[place]),
                    "largest training loss": f"{np.nanmax(here.train_loss[:, place]):.2g}",
                }
            )
    return table(
        "harmful",
        "How far harmful overfitting reaches (trained)",
        "|u| up to which statement 3 of Theorem 1 speaks with C_3 = Gamma, the much smaller one "
        "that its proof asks for (003 after (133)), and the one at which the measured error falls "
        f"below {floor:.3g}, a quarter of chance.",
        rows,
    )


def _in_proof(here: FeatureMap, size: float, limit: float) -> float:
    """Largest |u| under the condition that the proof of statement 3 uses."""
    samples = int(size * here.classes)
    norm = float(np.sqrt(limit * np.sqrt(here.gram[0, 1]) / samples))
    inside = benign.harmful_in_proof(
        here.gram, np.full(here.classes, norm * (1 - 1e-9)), samples, limit * (1 + 1e-9)
    )
    return norm if bool(inside.all()) else float("nan")


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "not on the grid"
