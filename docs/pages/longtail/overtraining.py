"""docs/overtraining.md: what happens inside SimCLR when it is trained too long, with its pictures,
from the committed results of the study longtail-overtraining, and what is still to run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pages.longtail.rows import BASELINE, JUDGE, Found
from pages.markdown import folded, table
from rarefy.ledger.claims import load_claims
from rarefy.measure.statistics import mean_interval
from rarefy.report.static import as_png, draw_picture
from rarefy.studies.api import read_results
from rarefy.studies.longtail.overtraining.charts import UNSEEN, looks_table, trained
from rarefy.studies.longtail.overtraining.claims import MASKED
from rarefy.studies.longtail.overtraining.measures import (
    MEASURES,
    early_look,
    seen,
    shown,
    two_looks,
)
from rarefy.studies.longtail.words import spoken
from rarefy.tools.decision import FEWEST as DECIDE

STUDY = "longtail-overtraining"
SECTIONS = {
    "small-1000": "A quarter of the images, 1,000 epochs",
    "small-decay-1000": "With five times the weight decay",
    "small-controls-1000": "What about the mask?",
    "cifar10-2000": "All images, 2,000 epochs",
    "digits-2000": "In miniature: few digits, a small network",
}
"""Scales that are told, in their order."""
PILOTED = "digits-2000"
WHOLE, PART = ("neighbours", "class-or-image", "views", "geometry", "spectrum"), 2
"""Pictures of the first section; of the others the first so many."""


def committed(folder: Path) -> dict[str, Found]:
    """Results by scale."""
    paths = {scale: folder / f"{STUDY}-{scale}.parquet" for scale in SECTIONS}
    return {scale: Found(*read_results(path)) for scale, path in paths.items() if path.exists()}


def files(folder: Path) -> dict[str, str | bytes]:
    """Contents by name of file, of the results in a folder."""
    found = committed(folder)
    images = {
        f"images/overtraining-{scale}-{picture.name}.png": as_png(draw_picture(picture))
        for scale, one in found.items()
        for picture in one.study.picture(one.results)
        if picture.name in _pictures(scale)
    }
    return {"overtraining.md": page(found)} | images


def _pictures(scale: str) -> tuple[str, ...]:
    return WHOLE if scale == next(iter(SECTIONS)) else WHOLE[:PART]


def summary_table(one: Found) -> str:
    """One row per method: what its features are worth, and what became of them."""
    lines = []
    for method in trained(one.results):
        row = [spoken(method)]
        if JUDGE in one.protocols:
            probe = one.values(method)
            row.append(f"{mean_interval(probe).mean:.2f}")
            for other in (BASELINE, MASKED):
                known = other in one.ways and method not in (BASELINE, other)
                row.append(shown(mean_interval(probe - one.values(other))) if known else "")
        row += [shown(two_looks(one.results, method, name)[2]) for name in ("knn", "class")]
        row += [f"{two_looks(one.results, method, name)[1]:.2f}" for name in ("rank", "memorised")]
        heart, plain = (seen(one.results, way, "memorised")[:, -1] for way in (method, BASELINE))
        row.append("" if method == BASELINE else shown(mean_interval(heart - plain)))
        lines.append(row)
    judged = ["linear probe at the end, %", "less SimCLR", f"less {spoken(MASKED)}"]
    changes = [f"{MEASURES[name].words}, change" for name in ("knn", "class")]
    ends = ["effective rank at the end", "learnt by heart at the end, points", "less SimCLR"]
    columns = ["method", *(judged if JUDGE in one.protocols else []), *changes, *ends]
    return table(columns, lines)


def section(scale: str, one: Found) -> Iterator[str]:
    """One training: sentences, pictures, and the table behind them."""
    yield f"## {SECTIONS[scale]}"
    if scale == PILOTED:
        yield (
            "It decides none of the questions: its size was chosen after two trainings of SimCLR "
            "had been looked at in all these measures, and they are two of its five."
        )
    epochs = one.results["watched_epoch"].values
    images = int(one.results["class_count"].isel(seed=0).max("algorithm").sum())
    few = one.results.sizes["seed"] < DECIDE
    yield (
        f"{one.name}, {images:,} images, weight decay {one.study.parameters()['weight_decay']:g}, "
        f"orders of the classes: {one.results.sizes['seed']}"
        + (", which decide nothing yet" if few else "")
        + f". Changes are from epoch {epochs[early_look(one.results)]} to {epochs[-1]}; [ ]: 95 % "
        "interval, order by order:"
    )
    yield summary_table(one)
    for picture in one.study.picture(one.results):
        if picture.name in _pictures(scale):
            yield f"![{picture.title}](images/overtraining-{scale}-{picture.name}.png)"
            yield picture.caption.removeprefix(f"{UNSEEN}.").strip()
    looks = looks_table(one.results)
    yield folded("Every measure at both looks", table(looks.columns, looks.rows))


def page(found: dict[str, Found]) -> str:
    parts = [
        "<!-- made by docs/make.py from results/; do not edit -->",
        "# What happens inside SimCLR when it is trained too long",
        "On few, long-tailed images SimCLR's features got worse when it was trained for long, and "
        "two branches of which one is masked kept what they had, in the one order of the classes "
        "that was trained so long ([the numbers](longtail-table.md)). Its loss does not show it. "
        "This page looks inside, on "
        "test images, which no training saw, as many of each class: how much of the features is "
        "*class*, how much is the single *image*, how much is the *view* that was taken of it, and "
        "along how many directions they vary. Two fixed looks are compared, at 40 % of the "
        "training and at its end, because the best of many looks is the best by luck too. Pictures "
        "show means and 95 % bands over orders of the classes. What decides was declared before "
        "the runs that decide:",
        "\n".join(
            f"- [{claim.id}](claims/{claim.id}.md): {claim.statement} **{claim.line}**"
            for claim in load_claims()
            if STUDY in {primary.study for primary in claim.primaries}
        ),
        *(part for scale in SECTIONS if scale in found for part in section(scale, found[scale])),
        "## Still to run" if SECTIONS.keys() - found.keys() else "",
        "\n".join(
            f"- {title}: `rarefy run {STUDY} --scale {scale} --results results`"
            for scale, title in SECTIONS.items()
            if scale not in found
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
