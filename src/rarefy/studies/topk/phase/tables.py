"""Tables of ``topk-phase``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.regions import agreement, overlap
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.studies.topk.phase.regions import (
    axes_of,
    constants_of,
    fitted_curves,
    measured_region,
    predicted_region,
    published_constants,
    published_region,
)
from rarefy.theory import topk
from rarefy.theory.conditions import COLUMNS, Condition, table_rows


def phase_tables(study: PhaseExperiment, results: xr.Dataset) -> list[Table]:
    sigma, _ = axes_of(results)
    lower, upper = published_constants(study)
    published, predicted = published_region(study, results), predicted_region(study, results)
    rows: list[list[object]] = []
    for reading in results["reading"].values:
        measured = [measured_region(results, reading, seed) for seed in results["seed"].values]
        fits = fitted_curves(study, results, str(reading))
        train = results["train_loss"].isel(read=-1).sel(reading=reading)
        rows.append(
            [
                str(reading),
                _mean([overlap(region, published) for region in measured]),
                _mean([overlap(region, predicted) for region in measured]),
                _mean([agreement(region, published) for region in measured]),
                *constants_of(study, fits),
                _mean([fit.overlap for fit in fits]),
                f"{float((train < 0.01).mean()):.3g}",
            ]
        )
    everything = np.ones_like(published)
    rows.append(
        [
            "the whole diagram",
            f"{overlap(everything, published):.3g}",
            f"{overlap(everything, predicted):.3g}",
            f"{agreement(everything, published):.3g}",
            "",
            "",
            "",
            "",
        ]
    )
    overlaps = Table(
        "overlap",
        "How the regions of test loss < 2 agree",
        "Overlap: shared over joint area; agreement: share of cells on which both say the same. "
        "Fitted: the constants with which curves of the published form fit the measured region "
        f"best, one a seed (published: {lower:.3g} and {upper:.3g}); none where the region reaches "
        "the smallest K at every noise level. A form may fit well with other constants: see the "
        "overlap of the fit. The paper reports a training loss under 0.01 everywhere. All but the "
        "constants are means over seeds.",
        [
            "reading",
            "overlap, published",
            "overlap, first update",
            "agreement, published",
            "fitted lower constant",
            "fitted upper constant",
            "overlap of the fit",
            "training loss < 0.01",
        ],
        rows,
    )
    conditions = topk.condition_4_1(
        classes=study.classes,
        filters=study.filters,
        samples=study.samples,
        d=study.d,
        mu=study.mu,
        sigma=float(sigma.max()),
        sigma_0=study.sigma_0,
        lr=study.lr,
        output_scale=study.scale,
        horizon=float(study.steps),
    )
    loudest = float(sigma.max())
    conditions += [
        Condition(
            "SNR",
            float(topk.snr(study.mu, loudest, study.d)),
            "<=",
            float(topk.noise_threshold_order(study.samples)),
            "SNR <= Theta(1/n) (Theorem 4.4)",
        ),
        Condition(
            "last K",
            float(topk.window_upper_order(study.classes, study.samples, study.mu, loudest)),
            ">=",
            float(topk.window_lower_order(study.d, study.mu, loudest, power=2)),
            "mu^2 sqrt(n)/(T sigma_p^2) >= d exp(-mu^2/(2 sigma_p^2)) + sqrt(d log(1/delta)): some "
            "K lies in the window of Theorem 4.4",
        ),
    ]
    return [
        overlaps,
        Table(
            "conditions",
            f"Condition 4.1 and the premises of Theorem 4.4 at sigma_p = {loudest:g}",
            "What the theorems assume, hidden constants read as 1, and by how much this finite "
            "setting misses it.",
            COLUMNS,
            [list(row) for row in table_rows(conditions)],
        ),
    ]


def _mean(values: list[float]) -> str:
    finite = [value for value in values if np.isfinite(value)]
    return f"{np.mean(finite):.3g}" if finite else "none"
