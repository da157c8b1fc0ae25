"""Pictures and tables of ``granularity-ablation``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import banded
from rarefy.studies.granularity._ablation_arms import LINEAR, Arm, awake_share, rate_of
from rarefy.studies.granularity._common import (
    LABELS,
    ROLES,
    seeds_in_words,
    sensitivity_table,
    shown,
)
from rarefy.studies.granularity._premises import premise_table
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_ablation import GranularityAblation

LEARNERS = {"following": "lucky", "scheduled": "bias", "linear": "baseline"}
"""Colours of the learners."""
LINES = (("following", "bias follows its neuron"), ("scheduled", "hard-coded bias"))


def ablation_pictures(study: GranularityAblation, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    found = [_learners(study, here)]
    if "quiet" in here["world"].values:
        found.append(_tuning(study, here.sel(world="quiet", arm="tuned")))
    return found


def _learners(study: GranularityAblation, here: xr.Dataset) -> Picture:
    end = here.isel(read=-1).sel(labels="fine")
    panels = []
    for world in (str(word) for word in here["world"].values):
        there = study.in_world(world)
        curves: list[Curve] = []
        ends: list[float] = []
        for kind, words in LINES:
            names = [str(word) for word in here["arm"].values if str(word).startswith(kind)]
            if not names:
                continue
            names.sort(key=lambda word: Arm.parse(word, study.d).rate)
            rates = np.array([Arm.parse(word, study.d).rate for word in names])
            ends += [rates.min(), rates.max()]
            values = end["hard_error"].sel(world=world, arm=names).transpose("seed", "arm").values
            curves.append(banded(words, rates, values, LEARNERS[kind]))
        for name, style in (("hard_error", "dotted"), ("easy_error", "dashed")):
            level = float(end[name].sel(world=world, arm=LINEAR).mean())
            words = f"no ReLU, {name.partition('_')[0]} samples"
            spread = np.array([min(ends), max(ends)])
            curves.append(
                Curve(words, spread, np.full(2, level), role=LEARNERS["linear"], style=style)
            )
        panels.append(
            Lines(
                curves,
                x_label="rate of the bias (paper's: leftmost)",
                y_label="error (share of samples)",
                title=f"{world}: {there.patches} patches, noise {there.sigma:g}",
                x_log=True,
            )
        )
    return Picture(
        "learners",
        "What the learner needs",
        "Errors of networks trained with fine labels, on hard samples where nothing else is said. "
        "A neuron's bias falls while it learns, by "
        "its rate times the neuron's own movement (follows), or by as much for all neurons "
        "(hard-coded: rate times what a detector of the shared feature would move at first with "
        "coarse labels). Where noise is weak (quiet) a network without ReLU does as well as any, "
        "and a bias is not needed. Where the noise of many patches adds up (noisy), a network "
        "without ReLU is lost even on easy samples, and so is one whose bias hardly falls, as "
        "the paper's rate 1/log^5(d) has it at this size; a bias that follows its neuron repairs "
        "that over a wide range of rates, a hard-coded one within a window, above which it "
        f"silences everything. {study.setting}, {study.steps} updates; bands: 95 % over "
        f"{seeds_in_words(here)}.",
        panels,
    )


def _tuning(study: GranularityAblation, here: xr.Dataset) -> Picture:
    steps = here["tuned"].values
    panels = [
        Lines(
            [
                banded(
                    f"{'fine, then coarse' if labels == 'fine' else 'coarse throughout'}{words}",
                    steps,
                    here[name].sel(labels=labels).transpose("seed", "tuned").values,
                    ROLES[labels],
                    style,
                )
                for labels in LABELS
                for name, words, style in lines
            ],
            x_label="updates of fine-tuning",
            y_label=y_label,
            title=title,
        )
        for title, y_label, lines in (
            (
                "Detectors of subclass features",
                "<w, v> of a detector, mean",
                (("own_weight", "", "solid"),),
            ),
            (
                "Errors",
                "error (share of samples)",
                (
                    ("tuned_hard_error", ", hard", "solid"),
                    ("tuned_easy_error", ", easy", "dashed"),
                ),
            ),
        )
    ]
    return Picture(
        "tuning",
        "Coarse fine-tuning keeps what fine labels taught",
        f"Networks after {study.steps} updates with fine or coarse labels train on with coarse "
        "labels and fresh samples; the fine network answers for a side by its largest output. "
        "Left: how strongly a subclass's detectors point along its feature. Right: errors. Coarse "
        "labels alone never teach the subclasses' features, but they do not take them away "
        f"either. Quiet world; bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


def ablation_tables(study: GranularityAblation, results: xr.Dataset) -> list[Table]:
    here = results.sel(variation=AS_CHOSEN).isel(read=-1)
    rows = []
    for world in (str(word) for word in here["world"].values):
        for arm in (str(word) for word in here["arm"].values):
            one = here.sel(world=world, arm=arm)
            if arm == "tuned":
                continue
            rows.append(
                (
                    world,
                    arm,
                    f"{Arm.parse(arm, study.d).rate:.2g}" if rate_of(arm) else "",
                    f"{float(one['loss'].sel(labels='fine').mean()):.3g}",
                    *(
                        shown(one[f"{kind}_error"].sel(labels=labels).values)
                        for labels in ("fine", "coarse")
                        for kind in ("easy", "hard")
                    ),
                )
            )
    learners = Table(
        "learners",
        "Errors by learner",
        f"After {study.steps} updates. paper: the rate of (18), 1/log^5(d) = "
        f"{1 / math.log(study.d) ** 5:.2g}. The linear network's learning rate is "
        f"{awake_share(study):.2g} of the others', the share of neurons that a feature wakes at "
        "the start, times the number in its name. Means with 95 % intervals over "
        f"{seeds_in_words(results)}.",
        (
            "world",
            "learner",
            "rate",
            "fine: training loss",
            "fine: easy error",
            "fine: hard error",
            "coarse: easy error",
            "coarse: hard error",
        ),
        rows,
    )
    tables = [learners]
    if "noisy" in results["world"].values:
        end = results.sel(world="noisy", labels="fine").isel(read=-1)
        names = [f"following-{study.main_rate}", f"scheduled-{study.main_rate}", LINEAR]
        names = [name for name in names if name in results["arm"].values]
        tables.append(
            sensitivity_table(
                end,
                {
                    f"{name}: {kind} error": end[f"{kind}_error"].sel(arm=name)
                    for name in names
                    for kind in ("easy", "hard")
                },
                "Fine labels in the noisy world.",
            )
        )
        tables.append(premise_table(study.in_world("noisy"), study.subclasses, ", noisy world"))
    return tables
