"""Tables of ``topk-phase``: how regions agree, and what the theorems ask for."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.estimates import finite_mean
from rarefy.measure.regions import agreement, overlap
from rarefy.studies.kit.arrays import known, texts
from rarefy.studies.topk.phase import regions
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.theory import topk
from rarefy.theory.conditions import COLUMNS, Condition, table_rows


def tables(experiment: PhaseExperiment, results: xr.Dataset) -> list[Table]:
    return [_agreement(experiment, results), conditions(experiment, float(results["sigma"].max()))]


def _agreement(experiment: PhaseExperiment, results: xr.Dataset) -> Table:
    lower, upper = regions.published_constants(experiment)
    published = regions.published_region(experiment, results)
    rows = []
    for reading in texts(results, "reading"):
        fits = regions.fitted_curves(experiment, results, reading)
        measured = regions.measured_regions(results, reading)
        same = [agreement(region, published) for region in measured]
        scores = [overlap(region, published) for region in measured]
        train = regions.at_end(results, "train_loss", reading)
        ours = regions.constants_of(experiment, fits)
        fitted = known(train < regions.FITTED, train)
        shares = [f"{finite_mean(values, None):.3g}" for values in (scores, same, fitted)]
        rows.append([reading, *shares[:2], *ours, shares[2]])
    all_ = np.ones_like(published)
    whole = [f"{of(all_, published):.3g}" for of in (overlap, agreement)]
    return Table(
        "overlap",
        "How the regions of test loss < 2 agree with the published one",
        "Overlap: shared over joint area; agreement: share of cells on which both say the same; "
        "means over seeds. Fitted: the constants with which curves of the published form fit the "
        f"measured region best, median and range over seeds (published: {lower:.3g} and "
        f"{upper:.3g}); none where the region reaches the smallest K at every noise level.",
        ("reading", "overlap", "agreement", "lower", "upper", "training loss < 0.01"),
        [*rows, ["the whole diagram", *whole, "", "", ""]],
    )


def premises(experiment: PhaseExperiment, sigma: float) -> list[Condition]:
    """Condition 4.1 and what Theorem 4.4 wants, at one noise level."""
    keep = torch.tensor([float(min(experiment.keep))])
    names = ("classes", "filters", "samples", "d", "mu", "sigma_0")
    found = topk.condition_4_1(
        **{name: getattr(experiment, name) for name in names},
        lr=float(torch.as_tensor(experiment.rate(torch.tensor([sigma]), keep)).max()),
        sigma=sigma,
        output_scale=experiment.scale,
        horizon=float(experiment.steps),
    )
    n, d, mu = experiment.samples, experiment.d, experiment.mu
    return [
        *found,
        Condition(
            "SNR",
            float(topk.snr(mu, sigma, d)),
            "<=",
            float(topk.noise_threshold_order(n)),
            "SNR <= Theta(1/n) (Theorem 4.4)",
        ),
        Condition(
            "last K",
            float(topk.window_upper_order(experiment.classes, n, mu, sigma)),
            ">=",
            float(topk.window_lower_order(d, mu, sigma, power=2)),
            "mu^2 sqrt(n)/(T sigma_p^2) >= d exp(-mu^2/(2 sigma_p^2)) + sqrt(d log(1/delta)): some "
            "K lies in the window of Theorem 4.4",
        ),
    ]


def conditions(experiment: PhaseExperiment, sigma: float) -> Table:
    return Table(
        "conditions",
        f"Condition 4.1 and the premises of Theorem 4.4 at sigma_p = {sigma:.3g}",
        "What the theorems assume, hidden constants read as 1, and by how much this finite "
        "setting misses it.",
        COLUMNS,
        [list(row) for row in table_rows(premises(experiment, sigma))],
    )
