"""Tables of ``topk-phase``: how regions agree, and what the theorems ask for."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.regions import agreement, overlap
from rarefy.studies.kit.arrays import texts
from rarefy.studies.topk.phase import regions
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.studies.topk.phase.theorems import FITTED
from rarefy.theory import topk
from rarefy.theory.conditions import COLUMNS, Condition, table_rows


def tables(experiment: PhaseExperiment, results: xr.Dataset) -> list[Table]:
    return [_agreement(experiment, results), _conditions(experiment, results)]


def _agreement(experiment: PhaseExperiment, results: xr.Dataset) -> Table:
    lower, upper = regions.published_constants(experiment)
    published = regions.published_region(experiment, results)
    predicted = regions.predicted_region(experiment, results)
    rows = []
    for reading in texts(results, "reading"):
        fits = regions.fitted_curves(experiment, results, reading)
        measured = regions.measured_regions(results, reading)
        same = [agreement(region, published) for region in measured]
        train = regions.at_end(results, "train_loss", reading)
        ours = regions.constants_of(experiment, fits)
        rows.append(
            {
                "reading": reading,
                "overlap, published": _mean(regions.overlaps(results, reading, published)),
                "overlap, first update": _mean(regions.overlaps(results, reading, predicted)),
                "agreement, published": _mean(same),
                "fitted lower constant": ours[0],
                "fitted upper constant": ours[1],
                "overlap of the fit": _mean([fit.overlap for fit in fits]),
                "training loss < 0.01": f"{(train < FITTED).mean():.3g}",
            }
        )
    all_ = np.ones_like(published)
    scores = overlap(all_, published), overlap(all_, predicted), agreement(all_, published)
    whole = ["the whole diagram", *(f"{score:.3g}" for score in scores), "", "", "", ""]
    return Table(
        "overlap",
        "How the regions of test loss < 2 agree",
        "Overlap: shared over joint area; agreement: share of cells on which both say the same. "
        "Fitted: the constants with which curves of the published form fit the measured region "
        f"best, one a seed (published: {lower:.3g} and {upper:.3g}); none where the region reaches "
        "the smallest K at every noise level. A form may fit well with other constants: see the "
        "overlap of the fit. The paper reports a training loss under 0.01 everywhere. All but the "
        "constants are means over seeds.",
        list(rows[0]),
        [*(list(row.values()) for row in rows), whole],
    )


def _conditions(experiment: PhaseExperiment, results: xr.Dataset) -> Table:
    loudest = float(regions.axes_of(results)[0].max())
    names = ("classes", "filters", "samples", "d", "mu", "sigma_0", "lr")
    conditions = topk.condition_4_1(
        **{name: getattr(experiment, name) for name in names},
        sigma=loudest,
        output_scale=experiment.scale,
        horizon=float(experiment.steps),
    )
    n, d, mu = experiment.samples, experiment.d, experiment.mu
    conditions += [
        Condition(
            "SNR",
            float(topk.snr(mu, loudest, d)),
            "<=",
            float(topk.noise_threshold_order(n)),
            "SNR <= Theta(1/n) (Theorem 4.4)",
        ),
        Condition(
            "last K",
            float(topk.window_upper_order(experiment.classes, n, mu, loudest)),
            ">=",
            float(topk.window_lower_order(d, mu, loudest, power=2)),
            "mu^2 sqrt(n)/(T sigma_p^2) >= d exp(-mu^2/(2 sigma_p^2)) + sqrt(d log(1/delta)): some "
            "K lies in the window of Theorem 4.4",
        ),
    ]
    return Table(
        "conditions",
        f"Condition 4.1 and the premises of Theorem 4.4 at sigma_p = {loudest:g}",
        "What the theorems assume, hidden constants read as 1, and by how much this finite "
        "setting misses it.",
        COLUMNS,
        [list(row) for row in table_rows(conditions)],
    )


def _mean(values: np.ndarray | list[float]) -> str:
    finite = np.asarray(values)[np.isfinite(values)]
    return f"{finite.mean():.3g}" if finite.size else "none"
