"""Verdicts of ``granularity-errors``: Theorem 5.1 (G1), Theorems 5.2 and G.3 (G2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import Identity, judge_bound, judge_difference, mean_interval
from rarefy.studies.granularity.errors.experiment import FRESH, ErrorsExperiment
from rarefy.studies.granularity.experiment import AS_CHOSEN, CHANGES
from rarefy.studies.granularity.premises import ORDER_ONE, SMALL, most_subclasses, polylog, premises
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, judge_worst

RECIPES = tuple(word for word in CHANGES if word.startswith("hard:"))
"""Other kinds of hard samples than the chosen one."""
RECIPE_LINES = ("iota_lower", "s_dagger iota_upper", "s_dagger", "sigma_strong")
"""Lines of App. B.3 that hard samples must keep to."""
OWN_SCORE = math.log(1.5)
"""Score of a sample's own label that ends phase 1 (Def. G.2, the largest B it allows)."""
ERRORS = {
    "easy_error": "(6) error on easy samples",
    "hard_error": "(6) error on hard samples",
    "easy_label_error": "Theorem G.3, wrong labels of easy samples",
    "hard_label_error": "Theorem G.3, wrong labels of hard samples",
}
Cases = Mapping[str, np.ndarray]


def verdicts(experiment: ErrorsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    named = Naming(experiment, scale, f"{experiment.setting}: ")
    parts = (_coarse, _other_hard_samples, _fine, _gain)
    return [verdict for part in parts for verdict in part(experiment, results, named)]


def _small(identity: Identity, cases: Cases, note: str) -> Verdict:
    return judge_worst(identity, cases, SMALL, "at_most", note=note)


def _of_order_one(identity: Identity, cases: Cases, note: str) -> Verdict:
    return judge_worst(identity, cases, ORDER_ONE, "at_least", note=note)


def _over_time(
    results: xr.Dataset,
    name: str,
    labels: str,
    counts: Sequence[int],
    samples: int = FRESH,
    variation: str = AS_CHOSEN,
) -> dict[int, np.ndarray]:
    """(seed, read) per number of subclasses; nothing where such samples were not run."""
    if samples not in results["samples"].values:
        return {}
    here = results[name].sel(labels=labels, samples=samples, variation=variation)
    return {k: by_seed(here.sel(subclasses=k), "read") for k in counts}


def _enough(experiment: ErrorsExperiment, results: xr.Dataset) -> tuple[list[int], list[int]]:
    """Numbers of subclasses of at least polylog(d): up to d^0.4, and above it."""
    enough = [int(k) for k in results["subclasses"].values if k >= polylog(experiment.d)]
    most = most_subclasses(experiment.d)
    return [k for k in enough if k <= most], [k for k in enough if k > most]


def _stored(results: xr.Dataset) -> list[int]:
    return [int(n) for n in results["samples"].values if n != FRESH]


# ---------------------------------------------------------------------------------- Theorem 5.1, G1


def _coarse(study: ErrorsExperiment, results: xr.Dataset, named: Naming) -> list[Verdict]:
    window, beyond = _enough(study, results)
    most = f"above d^0.4 = {most_subclasses(study.d):.1f}, the most that line 4 of App. B.3 allows"
    # which is about coarse labels too
    too_many = f"k={', '.join(map(str, beyond))} {most}" if beyond else ""
    about = "coarse labels, every k >= log(d)"
    found = []
    for name, words in (("loss", "(3) training loss"), ("easy_error", "(4) error on easy samples")):
        cases = _since_small(results, name, window + beyond)
        what = f"{about}, {words} at most {SMALL:g} from the first such read on"
        found.append(_small(named("G1", what), cases, too_many if cases else _few(study)))
    for words, several in (("fresh samples", [FRESH]), ("stored sets", _stored(results))):
        if not several:
            continue
        cases = {
            f"k={k}" + (f", {n} a subclass" if n else ""): values
            for n in several
            for k, values in _over_time(results, "hard_error", "coarse", window + beyond, n).items()
        }
        what = f"{about}, {words}, (5) error on hard samples at least {ORDER_ONE:g} at every read"
        note = joined(_outside(study, AS_CHOSEN), too_many) if cases else _few(study)
        found.append(_of_order_one(named("G1", what), cases, note))
    return found


def _since_small(results: xr.Dataset, name: str, counts: Sequence[int]) -> Cases:
    """Coarse labels, fresh samples: (seed, read) from the first read on at which the mean is
    certainly small, T* of Theorem 5.1; the end where there is none."""
    level, reads, cases = corrected_level(len(counts)), results["read"].values, {}
    for k, values in _over_time(results, name, "coarse", counts).items():
        small = [mean_interval(column, level).high <= SMALL for column in values.T]
        first = small.index(True) if any(small) else -1
        cases[f"k={k}, from update {int(reads[first])} on"] = values[:, first:]
    return cases


def _few(study: ErrorsExperiment) -> str:
    return f"needs k >= log(d) = {polylog(study.d):.1f} and fresh samples"


def _outside(study: ErrorsExperiment, variation: str) -> str:
    """Lines of App. B.3 that hard samples do not keep to."""
    return joined(
        *(
            f"{each.name} = {each.value:.2g}, line {each.formula.partition(':')[0]} of App. B.3 "
            f"has {each.sense} {each.limit:.2g}"
            for each in premises(study.varied(variation), study.main)
            if each.name in RECIPE_LINES and not each.holds
        )
    )


def _other_hard_samples(
    study: ErrorsExperiment, results: xr.Dataset, named: Naming
) -> list[Verdict]:
    """(5) with other hard samples: how much of it is due to the chosen ones."""
    main, found = study.main, []
    counts = [main] if main >= polylog(study.d) else []
    for recipe in (word for word in RECIPES if word in texts(results, "variation")):
        there = _over_time(results, "hard_error", "coarse", counts, variation=recipe)
        cases = {f"k={k}": values for k, values in there.items()}
        what = (
            f"coarse labels, k={main}, other hard samples ({recipe[6:]}), (5) error on hard "
            f"samples at least {ORDER_ONE:g} at every read"
        )
        note = _outside(study, recipe) if cases else _few(study)
        found.append(_of_order_one(named("G1", what), cases, note))
    return found


# ---------------------------------------------------------------------------- Theorems 5.2, G.3, G2


def _fine(study: ErrorsExperiment, results: xr.Dataset, named: Naming) -> list[Verdict]:
    window, beyond = _enough(study, results)
    if FRESH not in results["samples"].values:
        window, beyond = [], []
    between = f"{polylog(study.d):.1f} to {most_subclasses(study.d):.1f}"
    none = f"needs log(d) <= k <= d^0.4, {between}, and fresh samples"
    held = f"of the k run, {between} holds {', '.join(map(str, window))}"
    about = "fine labels, log(d) <= k <= d^0.4"
    places = {k: _end_of_phase_1(results, k) for k in window}
    when = joined(*(_when(results, k, place) for k, place in places.items()))

    def ends(name: str, counts: Sequence[int]) -> Cases:
        there = _over_time(results, name, "fine", counts)
        return {f"k={k}": values[:, -1] for k, values in there.items()}

    first, last = [], []
    for name, words in ERRORS.items():
        there = _over_time(results, name, "fine", window)
        cases = {f"k={k}": _at(values, places[k]) for k, values in there.items()}
        identity = named("G2", f"{about}, {words} at the first read after T_0")
        first.append(_small(identity, cases, joined(when, held) if window else none))
        identity = named("G2", f"{about}, {words} at the end, long after T_0")
        note = f"Theorem G.3 speaks of T_0; {held}" if window else none
        last.append(_small(identity, ends(name, window), note))
    if beyond:
        identity = named("G2", "fine labels, k > d^0.4, error on hard samples at the end")
        covered = "beyond what Theorem 5.2 covers"
        last.append(_small(identity, ends("hard_error", beyond), covered))
    for n in _stored(results):
        what = (
            f"fine labels, k={study.main}, a stored set of {n} a subclass, error on hard samples "
            "at the end"
        )
        (values,) = _over_time(results, "hard_error", "fine", [study.main], n).values()
        note = "the theorem is about fresh samples"
        last.append(judge_bound(named("G2", what), values[:, -1], SMALL, "at_most", note=note))
    return first + last


def loss_at_own_score(subclasses: int) -> float:
    """Loss of fine labels when a sample's own score is log(3/2) and all others are 0."""
    return math.log(2 * subclasses - 1 + math.exp(OWN_SCORE)) - OWN_SCORE


def _end_of_phase_1(results: xr.Dataset, k: int) -> np.ndarray:
    """Of every seed the place of the first read at or after T_0, or -1. T_0 is over where the loss
    is at most that of an own score of log(3/2), or where easy samples have that margin: scores are
    not negative, so that an own score is at least the margin."""
    loss, margin = (_over_time(results, name, "fine", [k])[k] for name in ("loss", "easy_margin"))
    over = (loss <= loss_at_own_score(k)) | (margin >= OWN_SCORE)
    return np.where(over.any(axis=1), over.argmax(axis=1), -1)


def _at(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The value of every seed at its own read, NaN without one."""
    return np.where(place >= 0, values[np.arange(len(values)), place], np.nan)


def _when(results: xr.Dataset, k: int, place: np.ndarray) -> str:
    """When T_0 was reached, in words."""
    reads, there = results["read"].values, place[place >= 0]
    reached = f"k={k}: T_0 reached by {len(there)} of {len(place)} seeds"
    if not len(there):
        return reached
    first, last = (int(reads[each]) for each in (there.min(), there.max()))
    when = f"update {first}" if first == last else f"updates {first} to {last}"
    before = int(reads[max(int(there.min()) - 1, 0)])
    loss = mean_interval(_at(_over_time(results, "loss", "fine", [k])[k], place)).mean
    return (
        f"{reached}, read at {when} (the read before: {before}), loss there {loss:.2f}, at T_0 "
        f"{loss_at_own_score(k):.2f}"
    )


def _gain(study: ErrorsExperiment, results: xr.Dataset, named: Naming) -> list[Verdict]:
    """What the comparison of the two theorems comes to, and for whom."""
    if FRESH not in results["samples"].values:
        return []
    here = results.sel(variation=AS_CHOSEN, subclasses=study.main, samples=FRESH)
    error, hardest = here["hard_error"].isel(read=-1), here["stratum_error"].isel(stratum=0)
    coarse = float(hardest.sel(labels="coarse").mean())
    return [
        judge_difference(
            named("G2", f"k={study.main}, hard error of coarse minus that of fine labels"),
            by_seed(error.sel(labels="coarse") - error.sel(labels="fine")),
            "positive",
            note="same samples, same test; paired by seed",
        ),
        judge_bound(
            named(
                "G2",
                f"fine labels, k={study.main}, error on the 1/{study.strata} of hard samples that "
                "the coarse network gets most wrong",
            ),
            by_seed(hardest.sel(labels="fine")),
            SMALL,
            "at_most",
            note=f"error of the coarse network there {coarse:.3f}, by selection",
        ),
    ]
