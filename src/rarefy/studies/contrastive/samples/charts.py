"""The picture and the table of ``contrast-samples``."""

from __future__ import annotations

import xarray as xr

from rarefy.core.picture import Lines, Picture, Table
from rarefy.data.finite_set import FRESH
from rarefy.measure.estimates import mean_interval
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


def size_name(size: int) -> str:
    return "fresh samples" if size == FRESH else f"{size} samples"


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
            marks = [(float(experiment.figure_read), "compared with the end")]
            panels.append(
                Lines(curves, "training step", label, size_name(size), x_log=True, marks=marks)
            )
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


def tables(experiment: SamplesExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for (again, size, training), at in every(
        deciding(experiment, results), "again", "samples", "training"
    ):
        found = [
            quantity(at.sel(read=read), name)
            for name in LABELS
            for read in (experiment.figure_read, experiment.reads[-1])
        ]
        end = at.isel(read=-1)
        found.append(quantity(end, "probe", "majority"))
        found.append(end["loss"].sel(seen="fresh") - end["loss"].sel(seen="trained"))
        found.append(end["outside"])
        spelled = []
        for values in found:
            one = mean_interval(values.values)
            spelled.append(f"{one.mean:.3f} ± {one.high - one.mean:.3f}")
        rows.append([SET_WORDS[str(again)], size_name(int(size)), NAMES[str(training)], *spelled])
    last, first = experiment.reads[-1], experiment.figure_read
    caption = (
        f"Mean over {results.sizes['seed']} seeds with 95 % intervals. Probe: balanced accuracy on "
        f"fresh, balanced samples; gap: loss (1) on fresh samples less that on the training set; "
        f"outside: share of the weights' squared norm outside the features; both at step {last}."
    )
    probes = (f"probe, rare, {first}", f"{last}", f"cosine, rare, {first}", f"{last}")
    heads = ["set", "size", "training", *probes, f"probe, frequent, {last}", "gap", "outside"]
    return [Table("samples", "What long training leaves of rare features", caption, heads, rows)]
