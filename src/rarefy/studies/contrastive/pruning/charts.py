"""Pictures and tables of ``contrast-pruning``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.estimates import mean_interval
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.contrastive.pruned_pairs import judged_quantity, pruned_alphas, state_read
from rarefy.studies.contrastive.pruning.claims import BEGIN_NAMES
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.studies.contrastive.words import bias_name, spelled_slope
from rarefy.studies.kit.slices import curve_along, every
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order

FREQUENCY = "minority frequency, eps_min"


def pictures(experiment: PruningExperiment, results: xr.Dataset) -> list[Picture]:
    return [
        _one_neuron(results),
        _who_is_pruned(results),
        _logits(experiment, results),
        _growth(experiment, results),
        _coefficient(results),
    ]


def _places(results: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Every beginning and bias: random weights are pruned from the last start (T4 at paper scale,
    where the theorem begins), the theorem's state at once."""
    found = []
    for (begin, bias), here in every(results, "begin", "bias_scale"):
        at = here.isel(start=0 if begin == "theorem" else -1)
        found.append((f"{BEGIN_NAMES[str(begin)]}, {bias_name(bias)}", at))
    return found


def _one_neuron(results: xr.Dataset) -> Picture:
    eps = float(results["eps_min"][0])
    alpha = float(pruned_alphas(results)[-1])
    panels = []
    for title, here in _places(results):
        run = here["neuron"].sel(eps_min=eps).isel(seed=0)
        x, pruned, not_pruned = (run["moment"], run.sel(alpha=alpha), run.sel(alpha=0.0))
        label = f"pruned, alpha = {alpha:g}"
        curves = [
            Curve(label, x.values, pruned.values, role="minority"),
            Curve("not pruned", x.values, not_pruned.values, role="minority", style="dashed"),
        ]
        marks = [(float(here["start"]), "pruning")] if int(here["start"]) else ()
        labels = ("training step", "weight on the rare feature")
        panels.append(Lines(curves, *labels, title=title, y_log=True, marks=marks))
    return Picture(
        "one-neuron",
        "One neuron of a rare feature, with and without pruning",
        "Pruning leaves the smallest neurons out when the network judges how well two views of a "
        "sample match, but still updates them. If the small neurons are those of the rare "
        "feature, its samples now look badly matched, count more, and the neuron grows (solid "
        f"above dashed). Both curves are the same run (seed 0, eps_min = {eps:g}): same weights, "
        "same data, the neuron that begins most aligned with the first rare feature; pruning "
        "begins at the marked line. From random weights there is no such gain: the smallest "
        "neurons are not the rare feature's. In the theorem's state a share alpha that leaves out "
        "all neurons of a feature never lets the network rest: each feature in turn is missing, "
        "and all weights go on growing.",
        panels,
    )


def _who_is_pruned(results: xr.Dataset) -> Picture:
    alpha = float(pruned_alphas(results)[0])
    eps = float(results["eps_min"][0])
    panels = []
    for title, here in _places(results.sel(eps_min=eps, alpha=alpha)):
        curves = [
            curve_along("among the pruned", here["pruned_rare"], "read", "minority"),
            curve_along("among all neurons", here["neurons_rare"], "read", "noise", "dashed"),
        ]
        panels.append(Lines(curves, "training step", "share that are rare neurons", title=title))
    return Picture(
        "who-is-pruned",
        "Who is left out: is it the neurons of rare features? (P4)",
        "The gain from pruning rests on rare features having the smallest neurons. A neuron "
        f"belongs to the feature it is strongest on; alpha = {alpha:g}, eps_min = {eps:g}; bands "
        "are 95 % intervals of the mean over runs. Solid above dashed: rare neurons are pruned "
        "more than by chance. With the bias, neurons that no feature wakes are the smallest, and "
        "few neurons are a rare feature's own.",
        panels,
    )


def _logits(experiment: PruningExperiment, results: xr.Dataset) -> Picture:
    alpha = float(pruned_alphas(results)[-1])
    panels = []
    for title, here in _places(results):
        read = state_read(experiment, here)
        at = here.sel(alpha=alpha, read=read)["positive"]
        change = at.sel(network="masked") - at.sel(network="dense")
        curves = [
            curve_along(label, change.sel(contains=kind), "eps_min", role)
            for kind, label, role in (
                ("contains", "samples with a rare feature", "minority"),
                ("lacks", "all other samples", "majority"),
            )
        ]
        what = "change of the positive logit"
        panels.append(Lines(curves, FREQUENCY, what, title=f"{title}, step {read}"))
    return Picture(
        "logits",
        "Which samples notice that neurons are missing (Lemma F.2)",
        "The positive logit is the network's confidence that the right partner is the right one. "
        f"Leaving out the {alpha:.0%} smallest neurons should lower it on samples with a rare "
        "feature and nowhere else. Both networks have the same weights; only the mask differs.",
        panels,
    )


def _growth(experiment: PruningExperiment, results: xr.Dataset) -> Picture:
    eps, alphas = float(results["eps_min"][len(results["eps_min"]) // 2]), pruned_alphas(results)
    constant = experiment.growth_constant
    panels = []
    for title, here in _places(results):
        read = state_read(experiment, here)
        at = here.sel(eps_min=eps, alpha=alphas, read=read)["extra_growth"]
        level, lr = np.full_like(alphas, eps), experiment.lr
        least = minority_rate_order(level, alphas, lr, constant)
        most = other_rate_order(level, alphas, lr, constant, experiment.d)
        own, others = "rare features, own neurons", "other features, all neurons"
        curves = [
            curve_along(own, at.sel(group="minority"), "alpha", "minority"),
            curve_along(others, at.sel(group="majority"), "alpha", "majority"),
            Curve("(15), at least", alphas, least, role="theory", style="dashed"),
            Curve("(16), at most", alphas, most, role="theory", style="dotted"),
        ]
        labels = ("share of neurons pruned, alpha", "growth a step, added")
        panels.append(Lines(curves, *labels, title=f"{title}, step {read}"))
    return Picture(
        "growth",
        "What one pruned step adds, compared with an unpruned one from the same state (15)-(16)",
        "Relative growth of the weight along a feature. Theory: orders of magnitude with their "
        f"constants set to 1, nothing fitted; eps_min = {eps:g}. In the theorem's own state rare "
        "features gain and the others gain less; from random weights the condition that the "
        "pruned neurons are the rare feature's need not hold.",
        panels,
    )


def _coefficient(results: xr.Dataset) -> Picture:
    panels = []
    for title, here in _places(results):
        name, what, _ = judged_quantity(str(here["begin"].values))
        last = here.isel(read=-1)[name]
        ratio = last.sel(group="minority") / last.sel(group="majority")
        curves = []
        for (alpha,), at in every(ratio, "alpha"):
            style = "dashed" if alpha == 0 else "solid"
            label = "not pruned" if alpha == 0 else f"alpha = {alpha:g}"
            curves.append(curve_along(label, at, "eps_min", label, style))
        panels.append(Lines(curves, FREQUENCY, f"{what}, rare / frequent", title=title, x_log=True))
    return Picture(
        "imbalance",
        "Does the weight on rare features still depend on how rare they are? (18)",
        f"At step {int(results['read'][-1])}. A flat line at 1: imbalance is overcome. Without a "
        "bias it is overcome by training alone, only later for rarer features; pruning has "
        "something to add where the dashed line is steep. Energy: squared weights of all neurons.",
        panels,
    )


def tables(experiment: PruningExperiment, results: xr.Dataset) -> list[Table]:
    return [_exponents(results), _rest(results), _telling(results)]


def _exponents(results: xr.Dataset) -> Table:
    table: list[list[object]] = []
    for title, here in _places(results):
        name, what, _ = judged_quantity(str(here["begin"].values))
        slopes = [exponent_in_eps(at) for _, at in every(here.isel(read=-1)[name], "alpha")]
        table.append([title, int(here["start"]), what, *map(spelled_slope, slopes)])
    shares = (f"alpha {float(alpha):g}" for alpha in results["alpha"].values)
    return Table(
        "exponents",
        "Exponent in eps_min of rare over frequent features at the end",
        f"Log-log slopes with 95 % bootstrap intervals over {results.sizes['seed']} seeds. 0: "
        "imbalance has no influence; Theorem 3.1 says 1 for weights and 2 for energies without "
        "pruning, Theorem 3.2 says 0 with.",
        ["beginning", "start", "quantity", *shares],
        table,
    )


def _rest(results: xr.Dataset) -> Table:
    """Whether pruned training comes to rest."""
    table: list[list[object]] = []
    energy = results["energy"].sel(group="majority").mean(["seed", "eps_min"])
    for title, here in _places(energy.to_dataset()):
        for (alpha,), at in every(here["energy"], "alpha"):
            table.append([title, f"{float(alpha):g}", *(f"{float(v):.3g}" for v in at.values)])
    return Table(
        "rest",
        "Squared weight on a frequent feature: does pruned training come to rest?",
        "Mean over runs and eps_min. When only some neurons of a feature are left out, the kept "
        "ones have to carry it alone, and all settle at a larger squared weight. When alpha takes "
        "all neurons of a feature, its samples look badly matched however large those neurons "
        "are: they grow past the next ones, which are then left out, and growth never ends. "
        "Theorem 3.2 allows alpha up to that point.",
        ["beginning", "alpha", *(f"step {int(r)}" for r in results["read"].values)],
        table,
    )


def _telling(results: xr.Dataset) -> Table:
    """Does the disagreement of dense and masked network point at samples with a rare feature?"""
    table: list[list[object]] = []
    for title, here in _places(results.sel(alpha=pruned_alphas(results))):
        for (alpha, read), at in every(here["telling"].mean("eps_min"), "alpha", "read"):
            found = [mean_interval(values.values) for _, values in every(at, "score")]
            cells = [f"{f.mean:.2f} ± {f.high - f.mean:.2f}" for f in found]
            table.append([title, f"{alpha:g}", int(read), *cells])
    return Table(
        "telling",
        "Finding samples with a rare feature without labels: AUROC",
        "Scores of a sample: how much of its squared embedding the pruned neurons carry; how far "
        "its positive logit falls when they are left out; and as controls the fall with as many "
        "neurons left out at random, and how large its embedding is (samples with a rare feature "
        "have more features). 0.5 is chance; mean over eps_min, 95 % interval over "
        f"{results.sizes['seed']} seeds.",
        ["beginning", "alpha", "step", *(str(s) for s in results["score"].values)],
        table,
    )
