"""Pictures of S9 and S10: what pruning gains over noise and keep, and how noise carries over."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.estimates import mean_band
from rarefy.studies.sparse.pairs import comparisons, pooled
from rarefy.studies.sparse.published import published
from rarefy.studies.sparse.readings import BANDS, PLACES, POINTS, Paired, placed, readings
from rarefy.tools.sparse_experiment import SparseTraining

KEEP, GAIN = "share of weights kept", "accuracy less dense, points"
TRAINED, ASKED = "noise std in training", "noise std in the test"


def pictures(experiment: SparseTraining, results: xr.Dataset) -> list[Picture]:
    found: list[Picture] = []
    for count, (words, part) in enumerate(readings(results)):
        mark, named = (f"-{count}", f", {words}") if words else ("", "")
        every = {place: placed(part, place) for place in PLACES}
        known = {place: one for place, one in every.items() if _something(one)}
        for place, paired in known.items():
            found.append(_curves(experiment, paired, f"{place}{mark}", f"{PLACES[place]}{named}"))
        if known:
            found.append(_maps(known, mark, named))
        found += _transfer(part, mark, named)
    return found


def _something(paired: Paired) -> bool:
    return any(np.isfinite(paired.difference(keep)).any() for keep in paired.thinned)


def _curves(experiment: SparseTraining, paired: Paired, name: str, words: str) -> Picture:
    paper, data = published(experiment), experiment.data
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
            theirs = np.array([paper.difference(data, float(level), keep) for keep in keeps])
            if np.isfinite(theirs).any():
                curves.append(Curve(f"{role}, published", keeps, theirs, role=role, style="dotted"))
        panels.append(Lines(curves, KEEP, GAIN, f"{band} noise", x_log=True))
        halves.append(_half_widths(part, band))
    said = "; ".join(text for text in halves if text)
    caption = (
        "Difference from the dense network of the same seed, mean over seeds"
        + (f"; dotted: {paper.name}." if data == paper.data else ".")
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
    """Of the dense network, both axes rising."""
    dense = part["test_accuracy"].sel(keep=np.isclose(part["keep"].values.astype(float), 1.0))
    if dense.sizes["keep"] == 0:
        return []
    dense = dense.isel(keep=0).sortby(["noise", "test_noise"])
    samples = dense.transpose("seed", "noise", "test_noise").values
    if not np.isfinite(samples).any():
        return []
    panel = HeatMap(
        POINTS * mean_band(samples).mean,
        x=[f"{level:g}" for level in dense["test_noise"].values.astype(float)],
        y=[f"{level:g}" for level in dense["noise"].values.astype(float)],
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
