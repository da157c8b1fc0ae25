"""Verdicts that the studies of images share: each family of readings is a function.

Differences are of errors in pairs, seed by seed, in per cent of the mean error of re-training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.granularity.images.numbers import (
    KINDS,
    PERCENT,
    at_end,
    best_of,
    chosen_errors,
    errors,
    of_kind,
    share_of_error,
)
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import GIVEN, ONCE, TARGET

NOTHING = 5.0
"""A gain of less than this share of the error, in per cent, is none: about what 38 classes gain in
004 Table 4 (4.4), which it calls near 0, and half of what the manual hierarchy gains in its Table
1 (4.38), both rounded up."""
PUBLISHED = {
    "G7.1": 8.76,
    "G7.2": 0.95,
    "G8.1": 6.67,
    "G8.2": 5.33,
    "G8.3": 12.95,
    "G10.1": 11.81,
    "G15.1": 1.94,
    "G15.3": 58.31,
}
"""Differences of errors in 004 Tables 1, 2, 5, over that of re-training there (5.25, 7.898)."""
REHEARSALS = ("tiny", "quick")


@dataclass(frozen=True)
class Asked:
    """What is judged; ``decides``: the scale at which readings with a number are primary; empty:
    nowhere."""

    experiment: GranularityExperiment
    results: xr.Dataset
    scale: str
    decides: str = "paper"

    def at(self, scale: str) -> Asked:
        return Asked(self.experiment, self.results, self.scale, scale)

    def lost(self, claim: str, what: str, worse: xr.DataArray, better: xr.DataArray,
             note: str = "") -> Verdict:  # fmt: skip
        """``worse`` has the larger error."""
        published = PUBLISHED.get(claim)
        identity, found, note = self._paired(claim, what, worse, better, note)
        return st.judge_difference(identity, found, "positive", note=note, published=published)

    def no_gain(self, claim: str, what: str, without: xr.DataArray, with_: xr.DataArray,
                note: str = "") -> Verdict:  # fmt: skip
        """The error ``with_`` is less than that ``without`` by nothing that counts."""
        identity, found, note = self._paired(claim, what, without, with_, note)
        return st.judge_bound(identity, found, NOTHING, "at_most", note=note)

    def named(self, claim: str, what: str) -> st.Identity:
        primary = self.decides and self.scale in (*REHEARSALS, self.decides)
        claim = claim if primary else claim.partition(".")[0]
        return Naming(self.experiment, self.scale, f"{self.experiment.setting}: ")(claim, what)

    def error(self, labels: str) -> xr.DataArray:
        return errors(self.results).sel(labels=labels, drop=True)

    def _paired(
        self, claim: str, what: str, first: xr.DataArray, second: xr.DataArray, note: str
    ) -> tuple[st.Identity, np.ndarray, str]:
        means = [float(one.mean()) for one in (first, second)]
        said = f"errors {means[0]:.2f} % and {means[1]:.2f} %; difference in % of re-training's"
        found = share_of_error(self.results, first - second)
        return self.named(claim, what), found, joined(note, said)


# ---------------------------------------------------------------------------- kinds and sizes


def manual(asked: Asked) -> list[Verdict]:
    """G7: the manual hierarchy helps, and its finest level is past the best one."""
    results, levels = asked.results, of_kind(asked.results, GIVEN)
    if not levels:
        return []
    best, which = best_of(results, levels)
    what = "re-training less the best manual level"
    found = [asked.lost("G7.1", what, asked.error(TARGET), best, which)]
    if len(levels) > 1:
        coarser, which = best_of(results, levels[:-1])
        what = f"the finest level ({levels[-1]}) less the best coarser one"
        found.append(asked.lost("G7.2", what, asked.error(levels[-1]), coarser, which))
    elif asked.decides:
        what = "the finest level less the best coarser one"
        found.append(st.judge_difference(asked.named("G7.2", what), [], "positive"))
    chosen = chosen_errors(results)
    best, which = best_of(results, levels, chosen)
    what = "length of fine-tuning chosen on held-out images: re-training less the best level"
    retrained = chosen.sel(labels=TARGET, drop=True)
    return [*found, asked.lost("G7", what, retrained, best, which)]


def order(asked: Asked) -> list[Verdict]:
    """G8: the order of the kinds by their best sizes; clusters within classes get worse with
    their number."""
    found, results = [], asked.results
    kinds = (GIVEN, "kmeans-within", "kmeans", "random")
    for number, (better, worse) in enumerate(zip(kinds, kinds[1:], strict=False), 1):
        labels = [of_kind(results, kind) for kind in (worse, better)]
        if not all(labels):
            continue
        (bad, bad_one), (good, good_one) = (best_of(results, some) for some in labels)
        what = f"{KINDS[worse]} less {KINDS[better]}"
        found.append(asked.lost(f"G8.{number}", what, bad, good, f"{bad_one} less {good_one}"))
    within = of_kind(results, "kmeans-within")
    if len(within) > 1:
        few, many = (asked.error(one) for one in (within[0], within[-1]))
        found.append(asked.lost("G8", f"{within[-1]} less {within[0]}", many, few))
    if (ids := of_kind(results, "random-within")) and (whole := of_kind(results, "kmeans")):
        (bad, bad_one), (good, good_one) = (best_of(results, some) for some in (ids, whole))
        what = f"{KINDS['random-within']} less {KINDS['kmeans']}"
        found.append(asked.lost("G8", what, bad, good, f"{bad_one} less {good_one}"))
    return found


def rebalanced(asked: Asked) -> list[Verdict]:
    """G9: clusters of like sizes are no better than plain ones of the same number."""
    results, known = asked.results, texts(asked.results, "labels")
    pairs = [
        (plain, one)
        for one in of_kind(results, "rebalanced")
        if (plain := one.replace("rebalanced", "kmeans-within")) in known
    ]
    if not pairs:
        return []
    of_plain, even = (
        results.sel(labels=[pair[place] for pair in pairs]).mean("labels") for place in (0, 1)
    )
    sizes = [float(one["smallest"].mean()) for one in (of_plain, even)]
    note = f"smallest cluster {sizes[0]:.0f} and {sizes[1]:.0f} images"
    what = f"{' and '.join(one for one, _ in pairs)} less the same rebalanced"
    verdict = asked.no_gain("G9.1", what, errors(of_plain), errors(even), note)
    return [undecided(verdict, "" if sizes[1] > sizes[0] else "nothing was rebalanced")]


def one_pass(asked: Asked) -> list[Verdict]:
    """G10: re-training beats what it starts from, one pass of the first stage."""
    retrained = asked.error(TARGET)
    once = PERCENT * (1 - asked.results["pretrained_accuracy"].sel(labels=TARGET, drop=True))
    found = [asked.lost("G10.1", "one pass less re-training", once, retrained)]
    if ONCE in texts(asked.results, "labels"):
        what = "one pass as long as both stages less re-training"
        found.append(asked.lost("G10", what, asked.error(ONCE), retrained))
    return found


def each_sample(asked: Asked) -> list[Verdict]:
    """G6: one label per image."""
    what = "one id per image less re-training"
    if "samples" not in texts(asked.results, "labels"):
        return []
    return [asked.lost("G6", what, asked.error("samples"), asked.error(TARGET))]


# --------------------------------------------------------------------- checkpoints, length, probes


def checkpoint(asked: Asked) -> list[Verdict]:
    """G15: fine-tuned from an earlier checkpoint, mean over the manual levels."""
    levels = of_kind(asked.results, GIVEN)
    if not levels or asked.results.sizes["checkpoint"] < 2:
        return []
    accuracy = asked.results["test_accuracy"].sel(labels=levels).mean("labels").isel(tuned=-1)
    first, last = (PERCENT * (1 - accuracy.isel(checkpoint=at, drop=True)) for at in (0, -1))
    ends = asked.results["checkpoint"].values[[0, -1]]
    what = f"fine-tuned from epoch {ends[0]} less from epoch {ends[1]}, manual levels"
    return [asked.lost("G15.1", what, first, last)]


def length(asked: Asked) -> list[Verdict]:
    """G15: with the finest labels, the end of fine-tuning is worse than the best earlier look."""
    levels = of_kind(asked.results, GIVEN)
    if not levels or asked.results.sizes["tuned"] < 2:
        return []
    finest = levels[-1]
    here = asked.results.sel(labels=finest, drop=True).isel(checkpoint=-1)
    early = here.isel(tuned=slice(None, -1)).rename(tuned="labels")
    looks = early["labels"].values.tolist()
    best, which = best_of(early, looks, PERCENT * (1 - early["test_accuracy"]))
    end = PERCENT * (1 - here["test_accuracy"].isel(tuned=-1, drop=True))
    last = here["tuned"].values[-1]
    what = f"{finest} pre-training, {last} epochs of fine-tuning less the best earlier look"
    return [asked.lost("G15.2", what, end, best, f"epoch {which}")]


def probe(asked: Asked) -> list[Verdict]:
    """G15: a linear probe of the finest pre-training loses to re-training."""
    if not (levels := of_kind(asked.results, GIVEN)):
        return []
    finest = levels[-1]
    accuracy = at_end(asked.results["probe_accuracy"].sel(labels=finest, drop=True))
    what = f"linear probe of {finest} pre-training less re-training"
    return [asked.lost("G15.3", what, PERCENT * (1 - accuracy), asked.error(TARGET))]


# ------------------------------------------------------------------------------------ the theory


def hard_images(asked: Asked) -> list[Verdict]:
    """Does the gain of fine labels sit in images that are hard by the multi-view model? On those
    that only a judge of fine labels gets right, fine labels win, and lose on the mirror image of
    that choice: both because judges favour labels like their own. Labels that teach other features
    and not more win as much as they lose; what is left over is the answer."""
    results, levels = asked.results, of_kind(asked.results, GIVEN)
    if not levels or results["hard_accuracy"].isnull().all():
        return []
    gains = {
        name: PERCENT
        * (
            results[f"{name}_accuracy"].sel(labels=levels).mean("labels")
            - results[f"{name}_accuracy"].sel(labels=TARGET)
        )
        for name in ("hard", "mirror", "other")
    }
    means = {name: float(gain.mean()) for name, gain in gains.items()}
    note = ", ".join(f"{name} {mean:+.2f}" for name, mean in means.items())
    what = "gain of manual levels on hard images plus that on the mirror image of their choice"
    values = by_seed(gains["hard"] + gains["mirror"])
    return [st.judge_difference(asked.named("", what), values, "positive", note=f"points: {note}")]
