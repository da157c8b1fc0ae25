"""Verdicts of ``benign-correlation``: the maps of Fig. 3 (B6)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import judge_worst
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

NEAR = 0.05
"""Accuracy short of the best possible that still is "near-optimal": what a reader can make out in
a heat map's colours. Fixed before this study first ran."""
FIGURE_3 = ("gaussian", "uniform")
"""Laws of Fig. 3a and 3b."""


def least_error(study: CorrelationExperiment, gamma: np.ndarray, law: str) -> np.ndarray:
    """The best that can be done by noise alone (``rarefy.theory.class_noise_bayes``)."""
    kind = "uniform" if law == "uniform-own" else "gaussian"
    return least_noise_error(special_ratio(gamma, study.d - study.classes), study.classes, kind)


def verdicts(study: CorrelationExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    ordered = results.sortby(["strength", "gamma"])
    laws = texts(results, "law")
    shown = [law for law in FIGURE_3 if law in laws]
    found: list[Verdict] = []
    for schedule in texts(results, "schedule"):
        here = ordered.sel(schedule=schedule)
        primary = schedule == "printed" and bool(shown)
        if primary:
            found += _figure(study, here.sel(law=shown), Naming(study, scale))
        for law in laws:
            if not (primary and law in shown):
                named = Naming(study, scale, f"{schedule}, {law}: ")
                found.append(_near(study, here.sel(law=[law]), named, "B6"))
    return found


def _figure(study: CorrelationExperiment, here: xr.Dataset, named: Naming) -> list[Verdict]:
    """Both laws of the figure, with the printed recipe."""
    strength, gamma = here["strength"].values, here["gamma"].values
    both = by_seed(1 - here["test_error"].mean("law", skipna=False), "strength", "gamma")
    means = st.finite_mean(both)
    loss = f"training loss at most {float(here['train_loss'].max()):.2g}"
    return [
        _near(study, here, named, "B6.1"),
        st.judge_trend(
            named("B6.2", f"accuracy rises with Gamma at |u|={strength[0]:g}, mean of the laws"),
            st.spearman_trend(gamma, both[:, 0], within_rows=True),
            "increasing",
            note=f"from {means[0, 0]:.3f} to {means[0, -1]:.3f}; {loss}",
        ),
        st.judge_trend(
            named("B6.3", f"accuracy rises with |u| at Gamma={gamma[0]:g}, mean of the laws"),
            st.spearman_trend(strength, both[:, :, 0], within_rows=True),
            "increasing",
            note=f"from {means[0, 0]:.3f} to {means[-1, 0]:.3f}",
        ),
    ]


def _near(study: CorrelationExperiment, here: xr.Dataset, named: Naming, claim: str) -> Verdict:
    """Accuracy short of the best classifier by noise where there is hardly any feature and Gamma is
    largest, at the law for which it is furthest."""
    corner, short = here.isel(strength=0, gamma=-1), {}
    gamma = float(corner["gamma"])
    for law in texts(here, "law"):
        accuracy = by_seed(1 - corner["test_error"].sel(law=law))
        best = 1 - float(least_error(study, np.array(gamma), law))
        short[f"{law} (accuracy {st.finite_mean(accuracy):.3f}, best {best:.3f})"] = best - accuracy
    at = f"Gamma={gamma:g} |u|={float(corner['strength']):g}"
    what, chance = f"accuracy short of the best by noise, {at}", f"chance {1 / study.classes:.2f}"
    return judge_worst(named(claim, what), short, NEAR, "at_most", note=chance)
