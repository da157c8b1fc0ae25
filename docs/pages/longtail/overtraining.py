"""docs/overtraining.md: what happens inside SimCLR when it is trained too long, with its pictures,
from the committed results of the study longtail-overtraining. What nobody has run yet says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pages.longtail.rows import BASELINE, JUDGE, NOT_RUN, Found
from pages.markdown import table
from rarefy.ledger.claims import load_claims
from rarefy.measure.order_pairs import FEWEST
from rarefy.measure.statistics import mean_interval
from rarefy.report.static import as_png, draw_picture
from rarefy.studies.api import read_results
from rarefy.studies.longtail.overtraining.charts import UNSEEN, looks_table, trained
from rarefy.studies.longtail.overtraining.claims import CONTROLS, FREE, MASKED
from rarefy.studies.longtail.overtraining.measures import (
    MEASURES,
    TABLED,
    early_look,
    seen,
    shown,
    two_looks,
)
from rarefy.studies.longtail.words import spoken
from rarefy.tools.decision import FEWEST as DECIDE

STUDY = "longtail-overtraining"
FEW = f"In fewer than {FEWEST} orders, which make nothing certain"
SECTIONS = {
    "small-1000": "A quarter of the images, 1,000 epochs",
    "small-decay-1000": "With five times the weight decay",
    "small-controls-1000": "What about the mask?",
    "cifar10-2000": "All images, 2,000 epochs",
    "digits-2000": "In miniature: few digits, a small network",
}
"""Scales that are told, in their order."""
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


def story(one: Found, method: str) -> str:
    """What became of the features of one method between the two looks."""
    told: dict[str, list[str]] = {"Rises": [], "Falls": [], "No certain change": [], FEW: []}
    for name in TABLED:
        early, last, change = two_looks(one.results, method, name)
        kind = "No certain change"
        if change.n < FEWEST:
            kind = FEW
        elif change.low > 0 or change.high < 0:
            kind = "Rises" if change.mean > 0 else "Falls"
        if change.n:
            ends = f"{early:.2f} → {last:.2f} {MEASURES[name].unit}".strip()
            told[kind].append(f"{MEASURES[name].words} ({ends})")
    parts = (f"{kind}: {'; '.join(words)}." for kind, words in told.items() if words)
    return f"- **{spoken(method)}.** {' '.join(parts)}"


def gains(one: Found) -> Iterator[str]:
    """What every other method has at the end over SimCLR; masks over none, controls over masks."""
    for method in trained(one.results):
        for other in (BASELINE, MASKED if method in CONTROLS else FREE):
            if method in (BASELINE, other) or other not in one.ways:
                continue
            near = mean_interval(_end(one, method) - _end(one, other))
            probe = mean_interval(one.values(method) - one.values(other))
            yield (
                f"- {spoken(method)}, less {spoken(other)}, at the end: {shown(probe)} "
                f"points by the linear probe, {shown(near)} by neighbours of unseen images "
                f"(n = {probe.n})."
            )


def _end(one: Found, method: str):  # type: ignore[no-untyped-def]
    return seen(one.results, method, "knn")[:, -1]


def section(scale: str, one: Found | None) -> Iterator[str]:
    """One training: sentences, pictures, and the table behind them."""
    yield f"## {SECTIONS[scale]}"
    if one is None:
        yield f"{NOT_RUN.capitalize()}: `rarefy run {STUDY} --scale {scale} --results results`."
        return
    epochs = one.results["watched_epoch"].values
    images = int(one.results["class_count"].isel(seed=0).max("algorithm").sum())
    few = one.results.sizes["seed"] < DECIDE
    yield (
        f"{one.name}, {images:,} images, weight decay {one.study.parameters()['weight_decay']:g}, "
        f"orders of the classes: {one.results.sizes['seed']}"
        + (", which decide nothing yet" if few else "")
        + f". From epoch {epochs[early_look(one.results)]} to {epochs[-1]}:"
    )
    yield "\n".join(story(one, method) for method in trained(one.results))
    if JUDGE in one.protocols:
        yield "\n".join(gains(one))
    for picture in one.study.picture(one.results):
        if picture.name in _pictures(scale):
            yield f"![{picture.title}](images/overtraining-{scale}-{picture.name}.png)"
            yield picture.caption.removeprefix(f"{UNSEEN}.").strip()
    looks = looks_table(one.results)
    yield looks.caption.removeprefix(f"{UNSEEN}.").strip()
    yield table(looks.columns, looks.rows)


def page(found: dict[str, Found]) -> str:
    parts = [
        "<!-- made by docs/make.py from results/; do not edit -->",
        "# What happens inside SimCLR when it is trained too long",
        "On few, long-tailed images SimCLR's features get worse when it is trained for long, and "
        "two branches of which one is masked keep what they had "
        "([the numbers](longtail-table.md)). Its loss does not show it. This page looks inside, on "
        "test images, which no training saw, as many of each class: how much of the features is "
        "*class*, how much is the single *image*, how much is the *view* that was taken of it, and "
        "along how many directions they vary. Two fixed looks are compared, at 40 % of the "
        "training and at its end, because the best of many looks is the best by luck too. Pictures "
        "show means and 95 % bands over orders of the classes. What decides was declared before "
        "any of it was run:",
        "\n".join(
            f"- [{claim.id}](claims/{claim.id}.md): {claim.statement} **{claim.line}**"
            for claim in load_claims()
            if STUDY in {primary.study for primary in claim.primaries}
        ),
        *(part for scale in SECTIONS for part in section(scale, found.get(scale))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
