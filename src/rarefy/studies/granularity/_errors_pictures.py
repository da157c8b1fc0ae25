"""Pictures and tables of ``granularity-errors``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity._common import (
    CHANCE,
    LABELS,
    ROLES,
    seeds_in_words,
    sensitivity_table,
    shown,
)
from rarefy.studies.granularity._errors_verdicts import FRESH
from rarefy.studies.granularity._premises import premise_table
from rarefy.studies.granularity._setting import PATCHES_AND_RATE, setting_table, share_curve
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_errors import GranularityErrors

HARD = (
    "A hard sample has patches with its subclass's feature, none with the feature its side shares, "
    "and weak traces of the other side's."
)


def errors_pictures(study: GranularityErrors, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    samples = FRESH if FRESH in here["samples"].values else int(here["samples"].values[0])
    fresh = here.sel(samples=samples)
    return [_over_k(study, fresh), _over_time(study, fresh), _for_whom(study, here)]


def _curve(results: xr.Dataset, name: str, labels: str, over: str, style: str = "solid") -> Curve:
    values = results[name].sel(labels=labels).transpose("seed", over).values
    kind = "hard" if name.startswith("hard") else "easy"
    curve = mean_curve if name.endswith("margin") else share_curve
    return curve(
        f"{labels} labels, {kind} samples", results[over].values, values, ROLES[labels], style
    )


def _over_k(study: GranularityErrors, fresh: xr.Dataset) -> Picture:
    end = fresh.isel(read=-1)
    curves = [_curve(end, "hard_error", labels, "subclasses") for labels in LABELS]
    curves += [_curve(end, "easy_error", labels, "subclasses", "dashed") for labels in LABELS]
    panel = Lines(
        curves,
        x_label="subclasses of each side (k)",
        y_label="error (share of samples)",
        title="Share of test samples put on the wrong side",
        x_log=True,
    )
    margins = Lines(
        [_curve(end, "hard_margin", labels, "subclasses") for labels in LABELS],
        x_label="subclasses of each side (k)",
        y_label="margin (scores)",
        title="Right side's score minus the wrong one's",
        x_log=True,
    )
    return Picture(
        "subclasses",
        "What coarse and fine labels teach, by number of subclasses",
        "Two networks see the same training samples, all easy. One is told only the side (coarse "
        "labels), one the subclass (fine labels) and answers with the side of its largest output. "
        f"{HARD} With one subclass the labels are the same. The more subclasses share a side, the "
        "rarer is each subclass's own feature. A network with coarse labels can do without it; one "
        "that does has nothing to go by in a hard sample, and because the traces mislead it may "
        f"even be wrong more often than a coin ({CHANCE:g}). Look at how far the two solid curves "
        "of the left panel are apart, from where on, and whether the dashed ones are on the "
        f"ground. {study.setting}, {study.steps} updates; bands: 95 % over "
        f"{seeds_in_words(fresh)}, {study.test_each} test samples of each kind and subclass.",
        [panel, margins],
    )


def _over_time(study: GranularityErrors, fresh: xr.Dataset) -> Picture:
    here = fresh.sel(subclasses=study.main)
    here = here.sel(read=here["read"].values[here["read"].values > 0])
    panels = []
    for labels in LABELS:
        loss = here["loss"].sel(labels=labels).transpose("seed", "read").values
        panels.append(
            Lines(
                [
                    mean_curve("training loss", here["read"].values, loss, "loss", "dotted"),
                    *(
                        share_curve(
                            f"error on {kind} samples",
                            here["read"].values,
                            here[f"{kind}_error"].sel(labels=labels).transpose("seed", "read"),
                            ROLES[labels],
                            style,
                        )
                        for kind, style in (("hard", "solid"), ("easy", "dashed"))
                    ),
                ],
                x_label="updates",
                y_label="error (share of samples), loss",
                title=f"{labels} labels",
                x_log=True,
            )
        )
    return Picture(
        "training",
        f"Errors during training, {study.main} subclasses a side",
        f"{HARD} Left: once the loss on coarse labels is near 0 there is hardly anything left to "
        "learn from; see where the error on hard samples is by then, and whether it moves "
        "afterwards. Right: fine labels cannot be told from the shared feature alone, so a falling "
        "loss needs the subclasses' features; it begins at "
        f"log({2 * study.main}) instead of log(2). See whether the error on hard samples falls "
        f"with it. Bands: 95 % over {seeds_in_words(fresh)}.",
        panels,
    )


def _for_whom(study: GranularityErrors, here: xr.Dataset) -> Picture:
    end = here.sel(subclasses=study.main).isel(read=-1)
    panels = []
    stored = [int(n) for n in end["samples"].values if n != FRESH]
    several = len(stored) > 1  # one number of samples makes no curve
    if several:
        curves = []
        for labels in LABELS:
            error = end["hard_error"].sel(labels=labels)
            values = error.sel(samples=stored).transpose("seed", "samples").values
            curves.append(
                share_curve(f"{labels} labels, a stored set", stored, values, ROLES[labels])
            )
            if FRESH in end["samples"].values:
                level = float(error.sel(samples=FRESH).mean())
                curves.append(
                    Curve(
                        f"{labels} labels, fresh samples",
                        np.array([stored[0], stored[-1]], dtype=float),
                        np.array([level, level]),
                        role=ROLES[labels],
                        style="dotted",
                    )
                )
        panels.append(
            Lines(
                curves,
                x_label="training samples of every subclass",
                y_label="error on hard samples",
                title="How many samples it takes",
                x_log=True,
            )
        )
    samples = FRESH if FRESH in end["samples"].values else stored[0]
    strata = end["stratum_error"].sel(samples=samples)
    panels.append(
        Lines(
            [
                share_curve(
                    f"{labels} labels",
                    strata["stratum"].values,
                    strata.sel(labels=labels).transpose("seed", "stratum").values,
                    ROLES[labels],
                )
                for labels in LABELS
            ],
            x_label="hard samples by margin in the coarse network (1: lowest)",
            y_label="error",
            title="Which samples gain",
        )
    )
    left = (
        "Left: training samples drawn once, so many of every subclass, beside fresh ones at every "
        "update. The distance between the two colours is what fine labels gain; see from how many "
        "samples on it is there. Right: "
    )
    if not several:
        left = "Shown are "
    return Picture(
        "gain",
        f"What the gain depends on, {study.main} subclasses a side",
        f"{left}hard test samples in equal groups, by how wrong the network with coarse labels is "
        "about them. Its own error falls from left to right because the groups were made so; what "
        "is measured is the other curve, the error of the network with fine labels on the same "
        f"samples. Bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


def errors_tables(study: GranularityErrors, results: xr.Dataset) -> list[Table]:
    here = results.sel(variation=AS_CHOSEN).isel(read=-1)
    rows = []
    for n in here["samples"].values:
        for k in here["subclasses"].values:
            cell = here.sel(samples=n, subclasses=k)
            for labels in LABELS:
                one = cell.sel(labels=labels)
                rows.append(
                    (
                        "fresh" if n == FRESH else f"{n} a subclass",
                        int(k),
                        labels,
                        *(
                            shown(one[name].values)
                            for name in (
                                "loss",
                                "easy_error",
                                "hard_error",
                                "easy_label_error",
                                "hard_label_error",
                                "hard_margin",
                            )
                        ),
                    )
                )
    errors = Table(
        "errors",
        "Errors at the end of training",
        f"After {study.steps} updates; means with 95 % intervals over {seeds_in_words(results)}. "
        "Margin: score of the right side minus that of the wrong one.",
        (
            "samples",
            "k",
            "labels",
            "training loss",
            "easy error",
            "hard error",
            "wrong labels, easy",
            "wrong labels, hard",
            "margin, hard",
        ),
        rows,
    )
    about = [setting_table(study), premise_table(study, study.main)]
    if FRESH not in results["samples"].values:
        return [errors, *about]
    end = results.sel(subclasses=study.main, samples=FRESH).isel(read=-1)
    coarse, fine = (end.sel(labels=labels) for labels in LABELS)
    sensitivity = sensitivity_table(
        results,
        {
            "coarse: easy error": coarse["easy_error"],
            "coarse: hard error": coarse["hard_error"],
            "fine: training loss": fine["loss"],
            "fine: hard error": fine["hard_error"],
            "gain on hard samples": coarse["hard_error"] - fine["hard_error"],
        },
        f"{study.main} subclasses a side, fresh samples. {PATCHES_AND_RATE}",
    )
    return [errors, sensitivity, *about]
