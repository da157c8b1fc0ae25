"""Tables of ``benign-training``: rates, filters at the end, and Condition 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.studies.benign.conditions import conditions, initial_std
from rarefy.studies.benign.training.cases import CASES, ENDS
from rarefy.studies.benign.training.charts import power_of_ten
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.benign.training.lemmas import worst_other
from rarefy.studies.benign.trial import Training
from rarefy.studies.kit.reading import slices
from rarefy.studies.kit.tables import table
from rarefy.theory.conditions import COLUMNS, table_rows


def tables(study: TrainingExperiment, results: xr.Dataset) -> list[Table]:
    cases = results["case"].values.tolist()
    ends = [case for case in ENDS if case in cases]
    found = [_ends(results, ends)] if ends else []
    there = results["lr"].notnull().all(["gamma", "strength", "seed"])
    wide = [case for case in ("trained", "wide", "wide large start") if case in cases]
    return [*found, *(_conditions(study, results, case) for case in wide if there.sel(case=case))]


def _axes(results: xr.Dataset, *names: str) -> dict[str, list[float]]:
    return {name: results[name].values.tolist() for name in ("gamma", *names)}


def _ends(results: xr.Dataset, ends: list[str]) -> Table:
    rows = []
    for at, here in slices(results, {"case": ends, **_axes(results)}):
        mean = here.mean("seed")
        own = mean["tail_own"].isel(quantile=[0, -1])  # least of the low, largest of the high
        rows.append(
            {
                "training": at["case"],
                "Gamma": f"{at['gamma']:g}",
                "updates": _range(mean["updates"], ".0f"),
                "training loss": _range(mean["train_loss"]),
                "rank/m": _range(mean["rank_share"]),
                "a tenth active": _range(mean["active_enough"], ".4f"),
                "own over other": _range(mean["memory_own"] / mean["memory_other"]),
                "worst other over own": _range(worst_other(here["memory_worst"]).max("seed")),
                "own response": _range(own, ".2g"),
                "other response": _range(mean["tail_other"]),
                "kappa": _range(mean["log_kappa"], text=power_of_ten),
            }
        )
    return table(
        "ends",
        "The lemmas at the end of training",
        "Smallest and largest over |u| of means over seeds. Lemma 3: rank. Lemma 4: share of fresh "
        "samples that activate a tenth of the filters. Lemma 5: mean own over mean other response, "
        "and the largest other over the least own. Lemma 6: responses in units of its orders (own: "
        "5 % to 95 % quantile of long-tailed samples). Lemma 7: kappa.",
        rows,
    )


def _range(
    values: xr.DataArray, form: str = ".3g", text: Callable[[float], str] | None = None
) -> str:
    there = values.values[np.isfinite(values.values)]
    if not there.size:
        return "none"
    low, high = (text(x) if text else f"{x:{form}}" for x in (there.min(), there.max()))
    return low if low == high else f"{low} .. {high}"


def _conditions(study: TrainingExperiment, results: xr.Dataset, case: str) -> Table:
    there = study.at_case(case)
    gamma = float(results["gamma"].values.min())
    strength = results["strength"].values
    u = float(strength[np.abs(strength - 2.0).argmin()])
    cell = results.sel(case=case, gamma=gamma, strength=u)
    updates = float(cell["updates"].mean())
    made = Training(float(cell["lr"].mean()), round(updates) if np.isfinite(updates) else 2)
    found = conditions(there, there.spectrum(gamma), u, there.classes * there.size, made)
    lowest = initial_std(there) * float(np.sqrt(found[6].limit / there.filters))
    return Table(
        f"conditions-{case.replace(' ', '-')}",
        f"Condition 1, {CASES[case].text}: {there.setting}, |S|={there.size}",
        f"Gamma = {gamma:g}, |u| = {u:g}, C = 1, delta = 0.1. Two lines are about the initial "
        f"weights: m >= Omega(...), used for Lemma 4, asks for sigma_0 of at least {lowest:.2g}, "
        "so that they stay visible beside what is learnt; (c), used for Lemmas 5 and 6, for at "
        f"most {found[-1].limit:.2g}, so that they do not.",
        COLUMNS,
        [list(row) for row in table_rows(found)],
    )
