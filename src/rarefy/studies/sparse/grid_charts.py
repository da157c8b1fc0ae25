"""Pictures of S9 and S10: what pruning gains over noise and keep, and how noise carries over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.estimates import mean_band
from rarefy.studies.sparse.grid_tables import published_data, published_difference
from rarefy.studies.sparse.pairs import comparisons, pooled
from rarefy.studies.sparse.readings import BANDS, PLACES, POINTS, Paired, placed, readings

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.studies.sparse.noise_grid import NoiseGrid


KEEP, GAIN = "share of weights kept", "accuracy less dense, points"
TRAINED, ASKED = "noise std in training", "noise std in the test"


def grid_pictures(study: NoiseGrid, results: xr.Dataset) -> list[Picture]:
    found: list[Picture] = []
    for count, (words, part) in enumerate(readings(results)):
        mark, named = (f"-{count}", f", {words}") if words else ("", "")
        every = {place: placed(part, place) for place in PLACES}
        known = {place: one for place, one in every.items() if _something(one)}
        for place, paired in known.items():
            found.append(_curves(study, paired, f"{place}{mark}", f"{PLACES[place]}{named}"))
        if known:
            found.append(_maps(known, mark, named))
        found += _transfer(part, mark, named)
    return found


def _something(paired: Paired) -> bool:
    return any(np.isfinite(paired.difference(keep)).any() for keep in paired.thinned)


def _curves(study: NoiseGrid, paired: Paired, name: str, words: str) -> Picture:
    beside = study.data == published_data(study)
    panels, halves = [], []
    keeps = np.array(sorted(paired.thinned))
    for band in BANDS:
        part = paired.band(band)
        gains = np.stack([part.difference(keep) for keep in keeps], axis=2)  # (seed, level, keep)
        if not np.isfinite(gains).any():
            continue
        curves = []
        for place, level in enumerate(part.levels):
            role = f"noise {level:g}"
            curves.append(Curve(role, keeps, mean_band(gains[:, place]).mean, role=role))
            theirs = np.array([published_difference(study, float(level), k) for k in keeps])
            if np.isfinite(theirs).any():
                curves.append(Curve(f"{role}, published", keeps, theirs, role=role, style="dotted"))
        panels.append(Lines(curves, KEEP, GAIN, f"{band} noise", x_log=True))
        halves.append(_half_widths(part, band))
    said = "; ".join(text for text in halves if text)
    caption = (
        "Difference from the dense network of the same seed, mean over seeds"
        + (f"; dotted: {study.published.name}." if beside else ".")
        + (f" Half of a point's 95 % interval: {said}." if said else " No point has an interval.")
    )
    return Picture(f"gain-{name}", f"What pruning gains, {words}", caption, panels)


def _half_widths(part: Paired, band: str) -> str:
    """With the spread pooled over the band's levels, at the smallest and largest number of seeds:
    six bands over each other could not be read."""
    found = []
    for keep in part.thinned:
        difference = part.difference(keep)
        n = np.isfinite(difference).sum(axis=0)
        spread = pooled(difference)
        if spread.freedom and n.max(initial=0):
            found.append(f"{spread.half(int(n.max())):.2f} at keep {keep:g}")
    return f"{band} {', '.join(found)}" if found else ""


def _maps(known: dict[str, Paired], mark: str, named: str) -> Picture:
    panels = []
    for place, paired in known.items():
        found = comparisons(paired)
        shape = (len(paired.levels), len(paired.thinned))
        values = np.array([each.difference.mean for each in found]).reshape(shape)
        notes = []
        for index, each in enumerate(found):
            row, column = divmod(index, shape[1])
            if each.apart or each.difference.n == 1:
                notes.append((row, column, "*" if each.apart else "†"))
        panels.append(
            HeatMap(
                values,
                x=[f"{keep:g}" for keep in paired.thinned],
                y=[f"{level:g}" for level in paired.levels],
                x_label=KEEP,
                y_label="noise std",
                colour_label=GAIN,
                title=PLACES[place],
                notes=notes,
                signed=True,
            )
        )
    caption = (
        "Difference from the dense network of the same seed, mean over seeds. A star: its paired "
        "95 % interval excludes 0 (one in twenty does by chance); a dagger: one seed."
    )
    return Picture(f"map{mark}", f"What pruning gains{named}", caption, panels)


def _transfer(part: xr.Dataset, mark: str, named: str) -> list[Picture]:
    values, noise, asked = _dense_map(part)
    if not np.isfinite(values).any():
        return []
    panel = HeatMap(
        values,
        x=[f"{level:g}" for level in asked],
        y=[f"{level:g}" for level in noise],
        x_label=ASKED,
        y_label=TRAINED,
        colour_label="accuracy, per cent",
        title="dense network",
    )
    caption = (
        "Each network is asked at every noise level: the diagonal has the same noise in training "
        "and test, the first column no noise in the test, the first row none in training. Mean "
        "over seeds."
    )
    title = f"Trained at one noise level, asked at another{named}"
    return [Picture(f"transfer{mark}", title, caption, [panel])]


def _dense_map(
    part: xr.Dataset,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean accuracy, (noise, test noise), and both axes rising."""
    noise, asked = (part[name].values.astype(np.float64) for name in ("noise", "test_noise"))
    dense = np.flatnonzero(np.isclose(part["keep"].values.astype(np.float64), 1.0))
    if len(dense) == 0:
        return np.full((len(noise), len(asked)), np.nan), noise, asked
    samples = (
        part["test_accuracy"].isel(keep=int(dense[0])).transpose("seed", "noise", "test_noise")
    )
    rows, columns = np.argsort(noise), np.argsort(asked)
    values = POINTS * mean_band(samples.values).mean[np.ix_(rows, columns)]
    return values, noise[rows], asked[columns]
