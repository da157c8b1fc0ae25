"""Verdicts of ``contrast-pruning``: P2, P5 in the theorem's state, P3, P4 in trained networks.

Decided with the bias on and, of the shares that are pruned, at the smallest: by Theorem 3.2 no more
than the rare feature has neurons. Trained networks are pruned from the last start on (T4), the
theorem's state at once. They decide where they are wide enough for lucky neurons (27) to exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.exponents import exponent_in_eps, slope_in_eps
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.words import bias_name, spelled_slope
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.theory.contrastive_pruning import elapsed_time, pure_count_with_pruning_order

BEGIN_NAMES = {"random": "trained", "theorem": "theorem's state"}
FLAT = 0.5
"""An exponent of energies up to this counts as none: a quarter of the 2 of (13)."""


@dataclass(frozen=True)
class Condition:
    """Runs that are judged together, ``words`` for what differs from those that decide."""

    experiment: PruningExperiment
    results: xr.Dataset
    begin: str
    words: str
    bias: float
    start: int
    alpha: float

    @property
    def here(self) -> xr.Dataset:
        return self.results.sel(begin=self.begin, bias_scale=self.bias, start=self.start)

    @property
    def pruned(self) -> xr.Dataset:
        return self.here.sel(alpha=self.alpha)

    @property
    def first(self) -> xr.Dataset:
        """Where pruning begins (or the first read after it), but never untrained weights."""
        trained = 0 if self.begin == "theorem" else 1
        reads = [read for read in self.experiment.reads if read >= max(self.start, trained)]
        return self.pruned.sel(read=reads[0])

    def name(self, scale: str) -> Naming:
        before = f"{self.words}: " if self.words else ""
        when = "" if self.begin == "theorem" else f", pruned from step {self.start}"
        where = f"{BEGIN_NAMES[self.begin]}{when}, alpha={self.alpha:.2g}, {bias_name(self.bias)}"
        return Naming(self.experiment, scale, before, f", {where}, {self.experiment.setting}")

    def claim(self, number: str, begin: str = "random") -> str:
        """The primary reading, or its claim where this is another choice than the one that decides
        it: trained networks (``begin``) must be wide, the theorem's state is as it is."""
        wide = begin == "theorem" or self.experiment.neurons >= self.experiment.d**2
        decides = wide and not self.words and self.begin == begin
        return number if decides else number.partition(".")[0]

    def unless_unmet(self, verdict: Verdict) -> Verdict:
        """Where a trained network decides, Theorem 3.2 presupposes alpha m <= |M*_j| and, by App.
        F, that the pruned neurons are the rare feature's."""
        if verdict.role != "primary":
            return verdict
        pure = float(self.first["pure"].sel(group="minority").mean())
        count = self.alpha * self.experiment.neurons
        if pure < count:
            return undecided(verdict, f"{count:g} pruned, {pure:.2g} rare pure neurons")
        own = float(self.first["pure_pruned"].mean()) * pure / count
        why = f"of the pruned neurons a share of {own:.2g} is the rare feature's, not most"
        return undecided(verdict, why if own < 0.5 else "")


def conditions(experiment: PruningExperiment, results: xr.Dataset) -> Iterator[Condition]:
    few, *_, many = (alpha for alpha in (*experiment.alpha, experiment.alpha[-1]) if alpha > 0)
    bias = experiment.bias_scale[-1]
    for begin in experiment.begin:
        first, last = experiment.start[0], experiment.start[-1]
        start = first if begin == "theorem" else last
        changes = [("", bias, start, few)]
        if many != few:
            changes.append(("more pruned", bias, start, many))
        if first != start:
            changes.append(("pruned from the first step", bias, first, few))
        changes += [(bias_name(v), v, start, few) for v in experiment.bias_scale[:-1]]
        for change in changes:
            yield Condition(experiment, results, str(begin), *change)


def verdicts(experiment: PruningExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for at in conditions(experiment, results):
        if at.begin == "theorem":
            found += [*_strength(at, scale), *_logits(at, scale), _stays_pure(at, scale)]
            if not at.words:
                found.append(_strength(replace(at, words="early"), scale, early=True)[1])
        else:
            found += [*_pure(at, scale), *_who_is_pruned(at, scale)]
            if not at.words:
                found.append(_strength(at, scale)[0])
    return found


def _strength(at: Condition, scale: str, early: bool = False) -> list[Verdict]:
    """P2, (18): exponent in eps_min of the energy of rare over frequent features, at the end or
    ``early``, at the second read."""
    energy, step = at.here["energy"], at.experiment.reads[1 if early else -1]
    with_, without = (energy.sel(alpha=a, read=step) for a in (at.alpha, 0.0))
    slope, unpruned = exponent_in_eps(with_), exponent_in_eps(without)
    named = at.name(scale)
    rarest, lr = at.experiment.eps_min[0], at.experiment.lr
    wait = elapsed_time(rarest, rarest, at.alpha, lr, at.experiment.growth_constant)
    after = f"{step - at.start} pruned steps, {wait:.0f} are due by App. F.4"
    beside = f"{after}; not pruned {spelled_slope(unpruned)}"
    flat = named(at.claim("P2.1", "theorem"), "energy, rare over frequent: exponent in eps_min")
    nearer = named(at.claim("P2.2", "theorem"), "exponent in eps_min nearer 0 than without pruning")
    why = "" if unpruned.low > FLAT else "no dependence on eps_min is left without pruning either"
    gain = _nearer(without, with_)
    return [
        st.judge_slope(flat, slope, 0.0, FLAT, beside),
        undecided(st.judge_difference(nearer, gain, "positive", note=beside), why),
    ]


def _nearer(without: xr.DataArray, with_: xr.DataArray) -> st.Interval:
    """|exponent| without minus with pruning, by a bootstrap over seeds."""
    order, log_eps = ("seed", "group", "eps_min"), np.log(with_["eps_min"].values)
    both = np.stack([values.transpose(*order).values for values in (without, with_)], axis=1)

    def gain(sample: np.ndarray) -> np.ndarray:
        first, second = (abs(slope_in_eps(sample[:, :, place], log_eps)) for place in (0, 1))
        return first - second

    return st.bootstrap_interval(both, gain)


def _logits(at: Condition, scale: str) -> list[Verdict]:
    """P5, Lemma F.2: the positive logit falls on samples with the rare feature, on no others."""
    positive, named = at.first["positive"].mean("eps_min"), at.name(scale)
    fall = positive.sel(network="dense") - positive.sel(network="masked")
    rare, others = (fall.sel(contains=kind).values for kind in ("contains", "lacks"))
    falls = named(
        at.claim("P5.1", "theorem"), "fall of the positive logit, samples with the rare feature"
    )
    spared = named(at.claim("P5.2", "theorem"), "fall on other samples over that on these")
    note, size = "dense minus masked; mean over eps_min", "sizes; none is read as at most a quarter"
    quotient = np.divide(abs(others), abs(rare), out=np.full_like(rare, np.nan), where=rare != 0)
    return [
        st.judge_difference(falls, rare, "positive", note=note),
        st.judge_bound(spared, quotient, st.OMEGA, "at_most", note=size),
    ]


def _stays_pure(at: Condition, scale: str) -> Verdict:
    """P3 in the theorem's state, where all neurons are pure at first."""
    pure = at.here["pure"].sel(group="minority").isel(read=-1)
    gain = (pure.sel(alpha=at.alpha) - pure.sel(alpha=0.0)).mean("eps_min")
    named = at.name(scale)("P3", "pure neurons of the rare feature, as many as without pruning")
    return st.judge_bound(named, gain.values, -0.5, "at_least", note="half a neuron less is none")


def _pure(at: Condition, scale: str) -> list[Verdict]:
    """P3: pure neurons of a rare feature, by the operational set, at the end."""
    experiment, named = at.experiment, at.name(scale)
    pure = at.here["pure"].sel(group="minority").isel(read=-1)
    with_ = pure.sel(alpha=at.alpha)
    with_, gain = (values.mean("eps_min") for values in (with_, with_ - pure.sel(alpha=0.0)))
    note = f"mean over eps_min, step {experiment.reads[-1]}"
    more = named(at.claim("P3.1"), "pure neurons of a rare feature: pruned minus not pruned")
    found = [at.unless_unmet(st.judge_difference(more, gain.values, "positive", note=note))]
    if not at.words:
        order = pure_count_with_pruning_order(experiment.neurons, experiment.d)
        enough = named(at.claim("P3.2"), "pure neurons of a rare feature over m/d")
        note = f"{note}; Omega(1) read as 1/4"
        bound = st.judge_bound(enough, (with_ / order).values, st.OMEGA, "at_least", note=note)
        found.append(at.unless_unmet(bound))
    return found


def _who_is_pruned(at: Condition, scale: str) -> list[Verdict]:
    """P4, Remark 2: a rare feature's pure neurons are smaller, so that pruning takes them."""
    state, named, note = at.first, at.name(scale), "mean over eps_min, where there are any"
    pruned = named("P4", "rare pure neurons: share pruned minus alpha")
    share = (state["pure_pruned"].mean("eps_min") - at.alpha).values
    found = [st.judge_difference(pruned, share, "positive", note=note)]
    if at.words:
        return found
    norm = xr.apply_ufunc(np.log, state["norm"])
    gap = (norm.sel(group="minority") - norm.sel(group="majority")).mean("eps_min").values
    smaller = named(at.claim("P4.1"), "log norm of pure neurons: rare minus frequent")
    beyond = (state["pruned_rare"] - state["neurons_rare"]).mean("eps_min").values
    strongest = named("P4", "by strongest feature, silent neurons too: rare among pruned minus all")
    lucky = state["lucky"].where(state["lucky_pruned"].notnull())
    counts = round(float(state["lucky_pruned"].sum())), round(float(lucky.sum()))
    literal = named("P4", "the lucky set (27) at the start: share pruned at least alpha")
    return [
        *found,
        st.judge_difference(smaller, gap, "negative", note=note),
        st.judge_difference(strongest, beyond, "positive", note="mean over eps_min"),
        st.judge_fraction(literal, *counts, at.alpha, note="neurons of all runs"),
    ]
