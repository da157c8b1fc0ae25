"""Tables of ``benign-training``: rates, filters at the end, and Condition 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.studies.benign._conditions import conditions, initial_std
from rarefy.studies.benign._experiment import Training
from rarefy.studies.benign._maps import power_of_ten
from rarefy.studies.benign._training_cases import CASES, ENDS
from rarefy.studies.benign._training_lemmas import worst_other
from rarefy.studies.benign._training_verdicts import feature_share
from rarefy.theory.conditions import COLUMNS, table_rows

if TYPE_CHECKING:
    from rarefy.studies.benign.benign_training import BenignTraining


def training_tables(study: BenignTraining, results: xr.Dataset) -> list[Table]:
    cases = results["case"].values.tolist()
    found = []
    if "slow" in cases:
        found.append(_rates(study, results))
    ends = [case for case in ENDS if case in cases]
    if ends:
        found.append(_ends(results, ends))
    for case in ("trained", "wide", "wide large start"):
        if case in cases:
            found.append(_conditions(study, results, case))
    return found


def _rates(study: BenignTraining, results: xr.Dataset) -> Table:
    rows: list[list[object]] = []
    slow = results.sel(case="slow").mean("seed")
    for gamma in results["gamma"].values:
        for u in results["strength"].values:
            here = slow.sel(gamma=gamma, strength=u)
            least, median, most = here["constant"].transpose("spread").values
            share = float(feature_share(study, u, study.size))
            rows.append(
                [
                    f"{gamma:g}",
                    f"{u:g}",
                    f"{float(here['lr']):.3g}",
                    f"{share:.2f}",
                    f"{least:.3g} / {median:.3g} / {most:.3g}",
                    f"{float(here['first_drop']):.3f}",
                    f"{float(here['bend']):.2f}",
                    f"{float(here['falls']):.4f}",
                    f"{float(here['gain_enough']):.4f}",
                ]
            )
    return Table(
        "rates",
        "How fast single losses fall in stage 1",
        "Rate of a sample (slowest, median, fastest; means over seeds) in units of what features "
        "alone give in the first step, eta m output_scale^2 |S||u|^2 (1 - 1/K)/(2 n log K). First "
        "step: mean measured fall over the closed form with the samples' own noise, (|S||u|^2 + "
        "|xi|^2) in place of |S||u|^2. Bend: rate in the second half of the fall over that in the "
        "first; 1 is geometric.",
        [
            "Gamma",
            "|u|",
            "learning rate",
            "features' share, predicted",
            "rate of samples",
            "first step",
            "bend",
            "samples that never rise",
            "steps with the gain of (68)",
        ],
        rows,
    )


def _ends(results: xr.Dataset, ends: list[str]) -> Table:
    rows: list[list[object]] = []
    for case in ends:
        for gamma in results["gamma"].values:
            here = results.sel(case=case, gamma=gamma)
            mean = here.mean("seed")
            own = mean["tail_own"].isel(quantile=[0, -1])  # least of the low, largest of the high
            rows.append(
                [
                    case,
                    f"{gamma:g}",
                    _range(mean["updates"], ".0f"),
                    _range(mean["train_loss"]),
                    _range(mean["rank_share"]),
                    _range(mean["numbered_over_floor"]),
                    _range(mean["active_enough"], ".4f"),
                    _range(mean["memory_own"] / mean["memory_other"]),
                    _range(worst_other(here["memory_worst"]).max("seed")),
                    _range(own, ".2g"),
                    _range(mean["tail_other"]),
                    _range(mean["log_kappa"], text=power_of_ten),
                ]
            )
    return Table(
        "ends",
        "The lemmas at the end of training",
        "Smallest and largest over |u| of means over seeds. Lemma 3: rank, and singular value "
        "number min{m, d, rank A} - n over its bound (none: there are more samples than filters). "
        "Lemma 4: share of fresh samples that activate a tenth of the filters. Lemma 5: mean own "
        "over mean other response, and the largest other over the least own. Lemma 6: responses in "
        "units of its orders (own: 5 % to 95 % quantile of long-tailed samples). Lemma 7: kappa.",
        [
            "training",
            "Gamma",
            "updates",
            "training loss",
            "rank/m",
            "numbered value",
            "a tenth active",
            "own over other",
            "worst other over own",
            "own response",
            "other response",
            "kappa",
        ],
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


def _conditions(study: BenignTraining, results: xr.Dataset, case: str) -> Table:
    there = study.at_case(CASES[case])
    gamma = float(results["gamma"].values.min())
    strength = results["strength"].values
    u = float(strength[np.abs(strength - 2.0).argmin()])
    noise = spectrum_for(gamma, there.d, there.classes, there.base)
    cell = results.sel(case=case, gamma=gamma, strength=u)
    updates = float(cell["updates"].mean())
    made = Training(float(cell["lr"].mean()), round(updates) if np.isfinite(updates) else 2)
    found = conditions(there, noise, u, there.classes * there.size, made)
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
