"""Pictures of ``granularity-extreme``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity._common import ROLES, seeds_in_words
from rarefy.studies.granularity._extreme_verdicts import LEARNT, difference
from rarefy.studies.granularity._setting import share_curve
from rarefy.studies.granularity._tuning import COUNTS, STAGES, error_of
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_extreme import GranularityExtreme


def extreme_pictures(study: GranularityExtreme, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    return [_granularity(study, here), _harm(study, here), _progress(study, here)]


def _granularity(study: GranularityExtreme, here: xr.Dataset) -> Picture:
    marks = [(1.0, "coarse"), (float(study.subclasses), "fine"), (float(study.most), "one each")]
    panels = []
    for kind in ("hard", "easy"):
        for stage in STAGES:
            error = error_of(here, kind, stage).transpose("seed", "per_side", "patch_noise")
            panels.append(
                Lines(
                    [
                        share_curve(
                            f"noise {noise:g}",
                            here["per_side"].values,
                            error.sel(patch_noise=noise).values,
                            f"noise {place}",
                        )
                        for place, noise in enumerate(here["patch_noise"].values)
                    ],
                    x_label="labels of each side",
                    y_label="error (share of samples)",
                    title=f"{kind} samples, {stage} fine-tuning",
                    x_log=True,
                    marks=marks,
                )
            )
    return Picture(
        "granularity",
        "Error against granularity",
        f"One stored set of {2 * study.most} easy samples, {study.subclasses} subclasses a side, "
        "always the same samples; only their labels change, from the two sides (left mark) over "
        "the subclasses (middle) to one label a sample (right). The network answers with the "
        "side of its largest output. Labels finer than the subclasses can be told apart only by "
        "what differs between samples of one subclass: the strengths of their features and the "
        "noise in their patches. Granularity is overdone where a curve rises again to the right of "
        "the middle mark, and harmful where it ends above its left end. Left: after "
        f"{study.steps} updates with these labels. Right: after {study.tune_steps} more on the "
        f"coarse question, for all networks, as the paper compares. {study.setting}; bands: 95 % "
        f"over {seeds_in_words(here)}.",
        panels,
    )


def _harm(study: GranularityExtreme, here: xr.Dataset) -> Picture:
    noises = here["patch_noise"].values.astype(float)
    panels = []
    for words, per_side in (("coarse", 1), ("fine", study.subclasses)):
        curves = [
            mean_curve(
                f"{kind} samples, {stage}",
                noises,
                difference(here, kind, stage, study.most, per_side),
                role,
                style,
            )
            for kind, role in (("hard", "hard"), ("easy", "easy"), ("mixed", "half of each"))
            for stage, style in zip(STAGES, ("dashed", "solid"), strict=True)
        ]
        ends, level = np.array([noises.min(), noises.max()]), np.full(2, COUNTS)
        curves.append(Curve(f"counts: {COUNTS:g}", ends, level, role="bound", style="dotted"))
        panels.append(
            Lines(
                curves,
                x_label="noise in every patch (std)",
                y_label="error added by one label a sample",
                title=f"against {words} labels",
            )
        )
    return Picture(
        "harm",
        "What one label a sample costs",
        "Error of networks first trained with one label a sample minus that of networks first "
        "trained with coarse labels (left) or fine ones (right) of the same samples. Above the "
        "dotted line one label a sample does harm that counts, below 0 it helps. Dashed: before "
        "fine-tuning; solid: after all networks were trained on with the coarse question, the "
        "paper's comparison, in which coarse labels are the baseline. Mixed: a test set of which "
        f"half is hard. Bands: 95 % over {seeds_in_words(here)}, paired by seed.",
        panels,
    )


def _progress(study: GranularityExtreme, here: xr.Dataset) -> Picture:
    panels = []
    names = {1: "coarse", study.subclasses: "fine", study.most: "one label a sample"}
    for noise in here["patch_noise"].values:
        curves = []
        for per_side, words in names.items():
            one = here.sel(patch_noise=noise, per_side=per_side).transpose("seed", "read")
            reads, role = one["read"].values, ROLES[words]
            share = one["loss"].values / math.log(2 * per_side)
            curves += [
                share_curve(f"{words}: hard error", reads, one["hard_error"].values, role),
                mean_curve(f"{words}: loss over guessing's", reads, share, role, "dotted"),
            ]
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
        "Before fine-tuning. Dotted: training loss over log(labels), what guessing costs; solid: "
        "error on hard samples. Labels count as learnt when a dotted curve is at most "
        f"{LEARNT:g}. If finer labels were only learnt more slowly, a solid curve would go on "
        "falling to the others while its dotted one falls; if they do harm, it stays above them "
        f"after its labels are learnt. Bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )
