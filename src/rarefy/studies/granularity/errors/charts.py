"""Pictures and tables of ``granularity-errors``."""

from __future__ import annotations

from itertools import product

import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.errors.experiment import FRESH, ErrorsExperiment
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.premises import CHANCE
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.words import seeds_in_words, shown

HARD = (
    "A hard sample has patches with its subclass's feature, none with the feature its side shares, "
    "and weak traces of the other side's."
)
K = "subclasses of each side (k)"


def pictures(experiment: ErrorsExperiment, results: xr.Dataset) -> list[Picture]:
    here = results.sel(variation=AS_CHOSEN)
    fresh = here.sel(samples=_shown_samples(here))
    return [_over_k(experiment, fresh), _over_time(experiment, fresh), _for_whom(experiment, here)]


def _shown_samples(here: xr.Dataset) -> int:
    """Fresh ones, or the first there are."""
    return FRESH if FRESH in here["samples"].values else int(here["samples"].values[0])


def _over_k(study: ErrorsExperiment, fresh: xr.Dataset) -> Picture:
    end = fresh.isel(read=-1)

    def curve(name: str, labels: str, style: str = "solid") -> Curve:
        kind, _, what = name.partition("_")
        make = mean_curve if what == "margin" else lab.share_curve
        values = by_seed(end[name].sel(labels=labels), "subclasses")
        label = f"{labels} labels, {kind} samples"
        return make(label, end["subclasses"].values, values, lab.ROLES[labels], style)

    errors = [curve("hard_error", labels) for labels in LABELS]
    errors += [curve("easy_error", labels, "dashed") for labels in LABELS]
    title, y_label = "Share of test samples put on the wrong side", "error (share of samples)"
    panel = Lines(errors, K, y_label, title, x_log=True)
    margins = [curve("hard_margin", labels) for labels in LABELS]
    title = "Right side's score minus the wrong one's"
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
        [panel, Lines(margins, K, "margin (scores)", title, x_log=True)],
    )


def _over_time(study: ErrorsExperiment, fresh: xr.Dataset) -> Picture:
    here = fresh.sel(subclasses=study.main)
    here = here.sel(read=here["read"].values[here["read"].values > 0])
    reads, panels = here["read"].values, []
    for labels in LABELS:
        one = here.sel(labels=labels)
        curves = [
            mean_curve("training loss", reads, by_seed(one["loss"], "read"), "loss", "dotted")
        ]
        for kind, style in (("hard", "solid"), ("easy", "dashed")):
            error = by_seed(one[f"{kind}_error"], "read")
            curves.append(
                lab.share_curve(f"error on {kind} samples", reads, error, lab.ROLES[labels], style)
            )
        y_label = "error (share of samples), loss"
        panels.append(Lines(curves, "updates", y_label, f"{labels} labels", x_log=True))
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


def _for_whom(study: ErrorsExperiment, here: xr.Dataset) -> Picture:
    end = here.sel(subclasses=study.main).isel(read=-1)
    stored = [int(n) for n in end["samples"].values if n != FRESH]
    several = len(stored) > 1  # one number of samples makes no curve
    panels = [_how_many(end, stored)] if several else []
    strata = end["stratum_error"].sel(samples=_shown_samples(end))
    x, curves = strata["stratum"].values, []
    for labels in LABELS:
        values = by_seed(strata.sel(labels=labels), "stratum")
        curves.append(lab.share_curve(f"{labels} labels", x, values, lab.ROLES[labels]))
    x_label = "hard samples by margin in the coarse network (1: lowest)"
    panels.append(Lines(curves, x_label, "error", "Which samples gain"))
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


def _how_many(end: xr.Dataset, stored: list[int]) -> Lines:
    curves = []
    for labels in LABELS:
        error = end["hard_error"].sel(labels=labels)
        values = by_seed(error.sel(samples=stored), "samples")
        curves.append(
            lab.share_curve(f"{labels} labels, a stored set", stored, values, lab.ROLES[labels])
        )
        if FRESH in end["samples"].values:
            mean = float(error.sel(samples=FRESH).mean())
            ends, label = (stored[0], stored[-1]), f"{labels} labels, fresh samples"
            curves.append(lab.level(label, ends, mean, lab.ROLES[labels]))
    x_label, y_label = "training samples of every subclass", "error on hard samples"
    return Lines(curves, x_label, y_label, "How many samples it takes", x_log=True)


COLUMNS = {
    "loss": "training loss",
    "easy_error": "easy error",
    "hard_error": "hard error",
    "easy_label_error": "wrong labels, easy",
    "hard_label_error": "wrong labels, hard",
    "hard_margin": "margin, hard",
}


def tables(experiment: ErrorsExperiment, results: xr.Dataset) -> list[Table]:
    found = [_errors(experiment, results)]
    if FRESH in results["samples"].values:
        found.append(_sensitivity(experiment, results))
    return [*found, lab.setting_table(experiment), lab.premise_table(experiment, experiment.main)]


def _errors(study: ErrorsExperiment, results: xr.Dataset) -> Table:
    here = results.sel(variation=AS_CHOSEN).isel(read=-1)
    rows = []
    for n, k, labels in product(here["samples"].values, here["subclasses"].values, LABELS):
        one = here.sel(samples=n, subclasses=k, labels=labels)
        values = (shown(one[name].values) for name in COLUMNS)
        rows.append(("fresh" if n == FRESH else f"{n} a subclass", int(k), labels, *values))
    return Table(
        "errors",
        "Errors at the end of training",
        f"After {study.steps} updates; means with 95 % intervals over {seeds_in_words(results)}. "
        "Margin: score of the right side minus that of the wrong one.",
        ("samples", "k", "labels", *COLUMNS.values()),
        rows,
    )


def _sensitivity(study: ErrorsExperiment, results: xr.Dataset) -> Table:
    end = results.sel(subclasses=study.main, samples=FRESH).isel(read=-1)
    coarse, fine = (end.sel(labels=labels) for labels in LABELS)
    return lab.sensitivity_table(
        results,
        {
            "coarse: easy error": coarse["easy_error"],
            "coarse: hard error": coarse["hard_error"],
            "fine: training loss": fine["loss"],
            "fine: hard error": fine["hard_error"],
            "gain on hard samples": coarse["hard_error"] - fine["hard_error"],
        },
        f"{study.main} subclasses a side, fresh samples. {lab.PATCHES_AND_RATE}",
    )
