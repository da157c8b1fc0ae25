"""Pictures and tables of ``granularity-errors``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity import charts as lab
from rarefy.studies.granularity.errors.experiment import (
    FIXED,
    IN_ALL,
    PER_OUTPUT,
    ErrorsExperiment,
)
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.premises import CHANCE
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.words import seeds_in_words, shown

HARD = (
    "A hard sample has patches with its subclass's feature, none with the feature its side shares, "
    "and weak traces of the other side's."
)
STYLES = {"hard": "solid", "easy": "dashed"}
ERROR = "error (share of samples)"


def pictures(experiment: ErrorsExperiment, results: xr.Dataset) -> list[Picture]:
    found = [_over_time(experiment, results)]
    if len(experiment.s_star) > 1:
        found.append(_over_s(experiment, results.sel(variation=AS_CHOSEN)))
    return found


def _over_time(study: ErrorsExperiment, results: xr.Dataset) -> Picture:
    here = results.sel(s_star=study.main)
    here = here.sel(read=here["read"].values[here["read"].values > 0])
    reads, panels, k = here["read"].values, [], study.subclasses_at(study.main)
    for labels in LABELS:
        one = here.sel(labels=labels, variation=AS_CHOSEN)
        curves = [
            mean_curve("training loss", reads, by_seed(one["loss"], "read"), "loss", "dotted")
        ]
        for kind, style in STYLES.items():
            error = by_seed(one[f"{kind}_error"], "read")
            label = f"error on {kind} samples"
            curves.append(lab.share_curve(label, reads, error, lab.ROLES[labels], style))
        if labels == "coarse":
            error = by_seed(one["no_strong_error"], "read")
            label = "hard samples without strong noise"
            curves.append(lab.share_curve(label, reads, error, "mixed"))
            for variation in (IN_ALL, PER_OUTPUT):
                if variation in texts(results, "variation"):
                    other = here["hard_error"].sel(labels=labels, variation=variation)
                    label = f"hard samples, {variation}"
                    curves.append(
                        lab.share_curve(label, reads, by_seed(other, "read"), "mixed", "dashed")
                    )
        panels.append(Lines(curves, "updates", f"{ERROR}, loss", f"{labels} labels", x_log=True))
    return Picture(
        "training",
        f"Errors during training, s*={study.main}, {k} subclasses a side",
        "Two networks see the same training samples, all easy. One is told only the side (coarse "
        "labels), one the subclass (fine labels) and answers with the side of its largest output. "
        f"{HARD} Left: once the loss on coarse labels is near 0 there is hardly anything left to "
        "learn from; see where the error on hard samples is by then, and whether it still falls. "
        f"A coin errs on {CHANCE:g}. Right: fine labels cannot be told from the shared feature "
        f"alone, so a falling loss, from log({2 * k}), needs the subclasses' features. Patch "
        f"counts are drawn; {study.setting}; bands: 95 % over {seeds_in_words(results)}.",
        panels,
    )


def _over_s(study: ErrorsExperiment, here: xr.Dataset) -> Picture:
    end, panels = here.isel(read=-1), []
    for title, names in (
        ("Chosen hard samples, and easy ones", {"hard": "hard_error", "easy": "easy_error"}),
        ("Hard samples without strong noise", {"hard": "no_strong_error"}),
    ):
        curves = []
        for kind, name in names.items():
            for labels in LABELS:
                values = by_seed(end[name].sel(labels=labels), "s_star")
                label, role = f"{labels} labels, {kind} samples", lab.ROLES[labels]
                curves.append(lab.share_curve(label, study.s_star, values, role, STYLES[kind]))
        x_label = "patches with the shared feature, in the mean (s*)"
        panels.append(Lines(curves, x_label, ERROR, title, x_log=True))
    pairs = ", ".join(f"{k} at s*={s}" for s, k in zip(study.s_star, study.subclasses, strict=True))
    return Picture(
        "patches",
        "What the number of patches changes",
        "Counts of patches are drawn, as the paper has it: with few of them some easy samples lack "
        "the shared feature by chance, and from those a network with coarse labels learns the "
        "subclasses' features too. The paper's s* is large. See whether the error of coarse labels "
        f"on hard samples rises with s*. Subclasses of each side: {pairs}. After {study.steps} "
        f"updates; bands: 95 % over {seeds_in_words(here)}.",
        panels,
    )


COLUMNS = {
    "loss": "training loss",
    "easy_error": "easy error",
    "hard_error": "hard error",
    "no_strong_error": "hard, no strong noise",
    "weak_traces_error": "hard, weak traces",
    "easy_label_error": "wrong labels, easy",
    "hard_label_error": "wrong labels, hard",
}


def tables(experiment: ErrorsExperiment, results: xr.Dataset) -> list[Table]:
    main, k = experiment.at_size(experiment.main), experiment.subclasses_at(experiment.main)
    return [_errors(experiment, results), lab.setting_table(main), lab.premise_table(main, k)]


def _errors(study: ErrorsExperiment, results: xr.Dataset) -> Table:
    end, rows = results.isel(read=-1), []
    for variation in texts(results, "variation"):
        for s in study.s_star:
            if not study._wanted(variation, s):
                continue
            for labels in LABELS:
                one = end.sel(variation=variation, s_star=s, labels=labels)
                m = study.coarse_neurons(s, variation) if labels == "coarse" else study.neurons
                values = (shown(one[name].values) for name in COLUMNS)
                rows.append((variation, s, study.subclasses_at(s), labels, m, *values))
    return Table(
        "errors",
        "Errors at the end of training",
        f"After {study.steps} updates; means with 95 % intervals over {seeds_in_words(results)}. "
        f"m: neurons per output. {FIXED.capitalize()}: s* patches of each kind in every sample. "
        "Weak traces: those of the other side at most 1/log(d) in all.",
        ("variation", "s*", "k", "labels", "m", *COLUMNS.values()),
        rows,
    )
