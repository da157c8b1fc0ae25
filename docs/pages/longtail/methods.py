"""Methods under one protocol, beside what is published of them."""

from __future__ import annotations

from pages.longtail.rows import BASELINE, NOT_RUN, SET_NAMES, Found, in_words
from pages.markdown import table
from rarefy.studies.longtail.published import METHODS
from rarefy.studies.longtail.words import spoken

SETS = ("cifar100", "cifar10")
USUAL = 1e-4


def methods_table(found: dict[str, Found]) -> str:
    """One row per method and weight decay; a column of accuracies and one of gains per set."""
    there = {
        data: [
            one
            for kind in ("methods", "decay")
            for scale, one in found.items()
            if scale.startswith(f"{data}-{kind}-")
        ]
        for data in SETS
    }
    rows: dict[tuple[str, float], list[str]] = {(way, USUAL): [] for way in METHODS}
    for one in sum(there.values(), []):
        rows |= {(way, one.weight_decay): [] for way in one.ways}
    for (way, decay), cells in rows.items():
        for data in SETS:
            here = [one for one in there[data] if way in one.ways and one.weight_decay == decay]
            if not here:
                cells += [NOT_RUN, ""]
                continue
            gain = "" if way == BASELINE else in_words(here[0].gain(way))
            cells += [f"{here[0].mean(way):.2f}", gain]
    lines = []
    for (way, decay), cells in rows.items():
        name = spoken(way) + (f", weight decay {decay:g}" if decay != USUAL else "")
        theirs = METHODS.get(way) if decay == USUAL else None
        shown = f"{theirs.accuracy:.1f} ({theirs.name})" if theirs else "-"
        lines.append([name, shown, *cells])
    columns = ["method", f"published, {SET_NAMES['cifar100']}, 2,000 epochs"]
    for data in SETS:
        lengths = dict.fromkeys(f"{one.epochs} epochs" for one in there[data])
        columns += [", ".join([SET_NAMES[data], *lengths]), "gain over SimCLR"]
    return table(columns, lines)
