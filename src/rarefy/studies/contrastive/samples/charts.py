"""The picture of ``contrast-samples``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture
from rarefy.data.finite_set import FRESH
from rarefy.studies.contrastive.samples.claims import SET_WORDS, deciding, quantity, sizes
from rarefy.studies.contrastive.samples.experiment import SamplesExperiment
from rarefy.studies.kit.slices import curve_along, every

NAMES = {
    "plain": "plain",
    "pruned": "Algorithm 1",
    "branches": "two branches, no mask",
    "masked": "two branches, one masked",
}
LABELS = {"probe": "rare features' sign, probe", "cosine": "largest cosine with a rare feature"}


def pictures(experiment: SamplesExperiment, results: xr.Dataset) -> list[Picture]:
    few, decides = sizes(experiment)[0], experiment.again[0]
    here, panels = deciding(experiment, results).sel(again=decides), []
    shown = [size for size in (few, FRESH) if size in experiment.samples]
    for name, label in LABELS.items():
        for size in shown:
            curves = [
                curve_along(NAMES[str(training)], quantity(one, name), "read", str(training))
                for (training,), one in every(here.sel(samples=size), "training")
            ]
            title = "fresh samples" if size == FRESH else f"{size} samples"
            marks = [(float(experiment.figure_read), "earlier look")]
            panels.append(Lines(curves, "training step", label, title, x_log=True, marks=marks))
    caption = (
        f"Networks of {experiment.neurons} neurons; rare features with eps_min = "
        f"{experiment.eps_min[0]:g}. {SET_WORDS[decides].capitalize()} "
        f"{'under fresh noise ' if decides == 'sample' else ''}at every step, or all is fresh "
        "(right). Were rare features lost by long training, lines on the left would fall after "
        "the mark; were masks to keep them, the masked branch would not. "
        f"{results.sizes['seed']} runs a line, 95 % intervals."
    )
    title = "Rare features in long training on few samples"
    return [Picture("samples", title, caption, panels)]
