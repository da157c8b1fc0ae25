"""Pictures of S9 and S10: what pruning gains over noise and keep; what the dense network knows."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, HeatMap, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.estimates import mean_interval
from rarefy.studies.sparse.pairs import is_apart
from rarefy.studies.sparse.published import published
from rarefy.studies.sparse.readings import AXES, BANDS, PLACES, POINTS, Paired, placed, readings
from rarefy.tools.sparse_experiment import SparseTraining

KEEP, GAIN = "share of weights kept", "accuracy less dense, points"


def pictures(experiment: SparseTraining, results: xr.Dataset) -> list[Picture]:
    found: list[Picture] = []
    for count, (words, part) in enumerate(readings(results)):
        mark, named = (f"-{count}", f", {words}") if words else ("", "")
        every = {place: placed(part, place) for place in PLACES}
        known = {place: one for place, one in every.items() if len(one.levels) and one.thinned}
        if "both" in known:
            found.append(_curves(experiment, known["both"], mark, named))
        if known:
            found.append(_maps(known, mark, named))
    return [*found, _learnt(results)]


def _curves(experiment: SparseTraining, paired: Paired, mark: str, named: str) -> Picture:
    paper, data = published(experiment), experiment.data
    panels, keeps = [], np.array(sorted(paired.thinned))
    for band in BANDS:
        part, curves = paired.band(band), []
        for place, level in enumerate(part.levels):
            role = f"noise {level:g}"
            gains = np.stack([part.difference(keep)[:, place] for keep in keeps], axis=1)
            curves.append(mean_curve(role, keeps, gains, role))
            theirs = np.array([paper.difference(data, float(level), keep) for keep in keeps])
            if np.isfinite(theirs).any():
                curves.append(Curve(f"{role}, published", keeps, theirs, role=role, style="dotted"))
        if curves:
            panels.append(Lines(curves, KEEP, GAIN, f"{band} noise", x_log=True))
    caption = (
        f"Difference from the dense network of the same seed, {PLACES['both']}: mean and 95 % "
        f"interval over seeds; dotted: {paper.name}, where it has the set."
    )
    return Picture(f"gain{mark}", f"What pruning gains{named}", caption, panels)


def _maps(known: dict[str, Paired], mark: str, named: str) -> Picture:
    panels = []
    for place, paired in known.items():
        found = [
            [mean_interval(paired.difference(keep)[:, level]) for keep in paired.thinned]
            for level in range(len(paired.levels))
        ]
        panels.append(
            HeatMap(
                np.array([[each.mean for each in row] for row in found]),
                x=[f"{keep:g}" for keep in paired.thinned],
                y=[f"{level:g}" for level in paired.levels],
                x_label=KEEP,
                y_label="noise std",
                colour_label=GAIN,
                title=PLACES[place],
                notes=[
                    (row, column, "*")
                    for row, cells in enumerate(found)
                    for column, each in enumerate(cells)
                    if is_apart(each)
                ],
                signed=True,
            )
        )
    caption = (
        "Difference from the dense network of the same seed, mean over seeds. A star: its paired "
        "95 % interval excludes 0 (one in twenty does by chance)."
    )
    return Picture(f"map{mark}", f"Where the noise is{named}", caption, panels)


def _learnt(results: xr.Dataset) -> Picture:
    """Whether dense networks fit what they see, which a gain by pruning needs."""
    epochs, curves = results["epoch"].values.astype(np.float64), []
    for words, part in readings(results, AXES):
        dense = part["epoch_accuracy"].sel(keep=1.0).transpose("seed", "epoch")
        curves.append(mean_curve(words or "dense", epochs, POINTS * dense.values, words or "dense"))
    caption = (
        "Training images, with their noise, that the dense network classifies right, epoch by "
        "epoch: mean and 95 % interval over seeds. One that does not reach 100 % has nothing that "
        "pruning could keep it from fitting."
    )
    panel = Lines(curves, "epoch", "training accuracy, per cent")
    return Picture("learnt", "Does the dense network fit what it sees?", caption, [panel])
