"""Pictures and tables of ``granularity-extreme``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import banded
from rarefy.studies.granularity._common import ROLES, seeds_in_words, sensitivity_table, shown
from rarefy.studies.granularity._extreme_verdicts import LEARNT, when_learnt
from rarefy.studies.granularity._premises import premise_table
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_extreme import GranularityExtreme


def extreme_pictures(study: GranularityExtreme, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    return [_granularity(study, here), _progress(study, here)]


def _granularity(study: GranularityExtreme, here: xr.Dataset) -> Picture:
    end = here.isel(read=-1)
    marks = [(1.0, "coarse"), (float(study.subclasses), "fine"), (float(study.most), "one each")]
    panels = [
        Lines(
            [
                banded(
                    f"noise {noise:g}",
                    end["per_side"].values,
                    end[name].sel(patch_noise=noise).transpose("seed", "per_side").values,
                    f"noise {place}",
                )
                for place, noise in enumerate(end["patch_noise"].values)
            ],
            x_label="labels of each side",
            y_label="error (share of samples)",
            title=title,
            x_log=True,
            marks=marks,
        )
        for name, title in (
            ("hard_error", "hard test samples"),
            ("easy_error", "easy test samples"),
        )
    ]
    return Picture(
        "granularity",
        "Error against granularity: finer helps down to the subclasses",
        f"One stored set of {2 * study.most} easy samples, {study.subclasses} subclasses a side, "
        "always the same samples; only their labels change, from the two sides (left mark) over "
        "the subclasses (middle) to one label a sample (right). The network answers with the "
        "side of its largest output. Labels finer than the subclasses can only be told apart by "
        "the noise in the patches. Where that noise is weak, nothing is lost by them; where it "
        "is strong, networks learn it instead of features, and errors rise again. After "
        f"{study.steps} updates, {study.setting}; bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


def _progress(study: GranularityExtreme, here: xr.Dataset) -> Picture:
    panels = []
    names = {1: "coarse", study.subclasses: "fine", study.most: "one label a sample"}
    for noise in here["patch_noise"].values:
        curves = []
        for per_side, words in names.items():
            one = here.sel(patch_noise=noise, per_side=per_side).transpose("seed", "read")
            curves.append(
                banded(
                    f"{words}: hard error",
                    one["read"].values,
                    one["hard_error"].values,
                    ROLES[words],
                )
            )
            share = one["loss"].values / math.log(2 * per_side)
            curves.append(
                banded(
                    f"{words}: loss over guessing's",
                    one["read"].values,
                    share,
                    ROLES[words],
                    "dotted",
                )
            )
        panels.append(
            Lines(
                curves,
                x_label="updates",
                y_label="hard error; share of loss left",
                title=f"noise {noise:g}",
                x_log=True,
            )
        )
    return Picture(
        "progress",
        "Harmful, or only slower?",
        "Dotted: training loss over log(labels), what guessing costs; solid: error on hard "
        "samples. Labels count as learnt when a dotted curve falls below "
        f"{LEARNT:g}. One label a sample is learnt last, but its error hardly changes any more "
        "while the loss falls: where it is higher, more updates do not mend it. Bands: 95 % over "
        f"{seeds_in_words(here)}.",
        panels,
    )


def extreme_tables(study: GranularityExtreme, results: xr.Dataset) -> list[Table]:
    here = results.sel(variation=AS_CHOSEN)
    rows = []
    for noise in here["patch_noise"].values:
        for per_side in here["per_side"].values:
            one = here.sel(patch_noise=noise)
            end = one.sel(per_side=per_side).isel(read=-1)
            learnt = when_learnt(one, "hard_error", int(per_side))
            rows.append(
                (
                    f"{noise:g}",
                    int(per_side),
                    f"{float(end['loss'].mean()):.3g}",
                    f"{float(end['loss'].mean()) / math.log(2 * per_side):.2g}",
                    shown(end["easy_error"].values),
                    shown(end["hard_error"].values),
                    shown(learnt) if np.isfinite(learnt).any() else "never learnt",
                    f"{int(np.isfinite(learnt).sum())} of {len(learnt)}",
                )
            )
    errors = Table(
        "granularity",
        "Errors by granularity",
        f"At the end ({study.steps} updates), and at the first read where the training loss is at "
        f"most {LEARNT:g} of log(labels). Means with 95 % intervals over "
        f"{seeds_in_words(results)}.",
        (
            "noise",
            "labels a side",
            "training loss",
            "over guessing's",
            "easy error",
            "hard error",
            "hard error when learnt",
            "runs that learnt",
        ),
        rows,
    )
    end = results.sel(patch_noise=study.main_noise).isel(read=-1)
    ends = {"coarse": 1, "fine": study.subclasses, "one a sample": study.most}
    sensitivity = sensitivity_table(
        results,
        {
            f"{words}: {kind} error": end[f"{kind}_error"].sel(per_side=at)
            for kind in ("hard", "easy")
            for words, at in ends.items()
        },
        f"Noise {study.main_noise:g}, after {study.steps} updates.",
    )
    premise = premise_table(
        study.at_noise(study.main_noise), study.subclasses, f", noise {study.main_noise:g}"
    )
    return [errors, sensitivity, premise]
