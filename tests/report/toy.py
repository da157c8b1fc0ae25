"""A study whose pictures show every kind of panel; it is drawn, never run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Cells, Context, Cost, Output, Study, Verdict
from rarefy.core.picture import Curve, HeatMap, Lines, Picture, Table

STEPS = np.arange(400.0)


def trajectories(log: bool = False) -> Lines:
    """Bands, marks close to each other, three roles and a theory line."""
    curves = []
    for role, rate in (("majority", 0.016), ("minority", 0.008), ("noise", -0.003)):
        y = 0.05 * np.exp(np.minimum(rate * STEPS, 4))
        curves.append(Curve(role, STEPS, y, 0.8 * y, 1.2 * y, role=role))
    theory = 0.05 * np.exp(0.016 * STEPS[:250])
    curves.append(Curve("growth rate of (7)", STEPS[:250], theory, role="theory", style="dashed"))
    return Lines(
        curves,
        "training step",
        "projection on the feature, in units of the neuron's norm",
        "Three stages of one neuron",
        y_log=log,
        marks=[(150.0, "T1"), (165.0, "T2")],
    )


def noise_levels() -> Lines:
    """Curves without roles that end apart: labelled where they end."""
    x = np.linspace(0.1, 1.0, 10)
    curves = []
    for sigma, top in ((0.01, 0.9), (0.03, 0.6), (0.05, 0.4)):
        y = top * x / (x + 0.3)
        curves.append(Curve(f"σ = {sigma:g}", x, y, y - 0.03, y + 0.03))
    return Lines(curves, "minority frequency ε_min", "maximal cosine", "Alignment")


def crowded() -> Lines:
    """Many curves, some of one role, on logarithmic axes with zeros and gaps."""
    x = np.geomspace(0.01, 1, 9)
    curves = [
        Curve(f"feature {j}, d = {2**j}", x, x ** (0.3 * j), role="minority") for j in range(1, 5)
    ]
    y = x**2.0
    y[0], y[4] = 0.0, np.nan
    curves.append(Curve("measured", x, y, y - 0.02, y + 0.02, role="lucky", style="points"))
    curves.append(Curve("bound (14)", x, 0.5 * x, role="theory", style="dotted"))
    return Lines(curves, "ε_min / ε_max", "neurons per feature", "Counts", x_log=True, y_log=True)


def cosines(shift: float = 0.0) -> HeatMap:
    """Neurons by features, a hole, notes on a dark and on a bright cell."""
    values = np.random.default_rng(0).random((24, 9)) ** 4 * 0.3 + shift
    values[3, 2] = np.nan
    values[5, 4], values[6, 4] = 0.0 + shift, 0.3 + shift
    return HeatMap(
        values,
        [f"M{j}" for j in range(1, 10)],
        range(24),
        "feature",
        "neuron",
        "squared cosine",
        f"Neurons and features{' (shifted)' if shift else ''}",
        notes=[(5, 4, "0.00"), (6, 4, "0.30")],
    )


def phases() -> HeatMap:
    """A fine grid of two measured quantities."""
    sigma, keep = np.linspace(0.01, 1, 60), np.arange(2, 122, 2)
    return HeatMap(
        np.log1p(sigma[None, :] * keep[:, None]),
        list(sigma),
        list(keep),
        "noise level σ_p",
        "weights kept K",
        "test loss (nats)",
        "Phase diagram",
    )


def phase_boundaries() -> HeatMap:
    """The largest map there is, noisy, with two curves, one outside, a level line and a hole."""
    sigma, keep = np.arange(1, 101) / 100, np.arange(2, 201)
    signal = keep[:, None] * sigma[None, :] ** 2
    noise = np.random.default_rng(1).standard_normal(signal.shape)
    values = 4 * signal / (signal + 60) * (1 + 0.1 * noise)
    values[150:155, 3:8] = np.nan
    x = np.linspace(0.01, 1, 100)
    curves = [
        Curve("K = 95 / σ²", x, 95 / x**2, role="theory", style="dashed"),
        Curve("K = 20 / σ²", x, 20 / x**2, role="minority"),
        Curve("K = 1000 / σ²", x, 1000 / x**2, style="dotted"),
    ]
    return HeatMap(
        values,
        list(sigma),
        list(keep),
        "noise level σ_p",
        "weights kept K",
        "test loss (nats)",
        "Boundaries",
        curves=curves,
        levels=[1.0],
    )


def picture(*panels: Lines | HeatMap, name: str = "toy") -> Picture:
    return Picture(name, f"A picture of {name}", "What there is to see.", panels)


PICTURES = (
    picture(trajectories(), trajectories(log=True), name="trajectories"),
    picture(noise_levels(), crowded(), name="alignment"),
    picture(cosines(), cosines(0.2), phases(), name="maps"),
)


@dataclass(frozen=True, kw_only=True)
class Gallery(Study):
    name: ClassVar[str] = "toy-gallery"
    title: ClassVar[str] = "Every kind of panel"
    lab: ClassVar[str] = "toy"
    paper_says: ClassVar[str] = (
        "Stage 1 (000, eq. 7): a neuron's projection on a feature grows at a rate linear in the "
        "feature's frequency, while components outside the feature space only decay (eq. 8)."
    )
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 2-3; Lemma 1"
    claims: ClassVar[tuple[str, ...]] = ("C1", "C10")
    axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[Mapping[str, Mapping[str, Any]]] = {"tiny": {"seeds": 2}, "paper": {}}

    eps_min: tuple[float, ...] = (0.1, 0.5, 1.0)
    neurons: int = 24

    def outputs(self) -> tuple[Output, ...]:
        return (Output("alignment", (), "maximal cosine", "1"),)

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def cost(self) -> Cost:
        return Cost(1, 1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        raise AssertionError("never run")

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return [
            verdict("", "not-run", scale, "decreasing", "nothing"),
            verdict("C1", "fails", scale, "slope 2", "slope 0.98 [0.95, 1.01]", note="at d = 9"),
            verdict("C1.1", "holds", scale, "slope 1", "slope 0.98 [0.95, 1.01]"),
            verdict("C10.1", "inconclusive", scale, "increasing", "rho 0.2 (p 0.2)"),
        ]

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return list(PICTURES)

    def tables(self, results: xr.Dataset) -> list[Table]:
        rows = [("0.01", 3, 0.123456789), ("0.03", 12, float("nan"))]
        return [Table("sensitivity", "Sensitivity", "By lr.", ("lr", "count", "cosine"), rows)]


def verdict(
    claim: str, outcome: str, scale: str, predicted: str, measured: str, note: str = ""
) -> Verdict:
    return Verdict(
        claim, "toy-gallery", scale, "default", predicted, measured, None, 30, "±0.1", outcome, note
    )


def results(value: float = 1.0) -> xr.Dataset:
    return xr.Dataset(
        {
            "alignment": (("eps_min", "seed"), np.full((3, 2), value)),
            "nonfinite_step": (("eps_min", "seed"), np.full((3, 2), -1)),
        },
        attrs={"device": "cpu", "provenance": {"torch": "2.13", "cores": 2}},
    )


def entry(study: Study | None = None, scale: str = "tiny", value: float = 1.0) -> Any:
    study = study or Gallery.at(scale)
    data = results(value)
    return (study, scale, data, study.verdicts(data, scale))
