"""Methods, and controls of the mask, under one protocol: one row per method, a column per set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pages.longtail.rows import BASELINE, NOT_RUN, SET_NAMES, Found, in_words
from pages.markdown import table
from rarefy.studies.longtail.published import METHODS
from rarefy.studies.longtail.table.study import BRANCHES, CONTROLS, MASK_FREE
from rarefy.studies.longtail.words import spoken

SETS = ("cifar100", "cifar10")
USUAL = 1e-4
NOISE = f"{BRANCHES}+noise"
CHANGES = {
    MASK_FREE: "nothing",
    BRANCHES: "its smallest weights are left out, chosen anew every epoch",
    NOISE: "all its weights are multiplied by Gaussian noise, drawn anew every update, as strong "
    "as the mask",
    f"{BRANCHES}+dropout": "random weights are left out, drawn anew every update, as many as are "
    "as strong as the mask",
    f"{BRANCHES}+random": "random weights are left out, as many as by the mask (which is stronger)",
    f"{BRANCHES}+frozen": "the weights that were smallest at first are left out to the end",
    f"{BRANCHES}+both": "as by the mask, and for the other view too",
}
"""What becomes of the network for the second of the two views."""


def methods_table(found: dict[str, Found]) -> str:
    """One row per method and weight decay, beside what is published."""
    runs = _runs(found, ("methods", "decay"))
    rows = dict.fromkeys((way, USUAL) for way in METHODS)
    rows |= dict.fromkeys((way, one.weight_decay) for one in runs for way in one.ways)
    lines = []
    for way, decay in rows:
        name = spoken(way) + (f", weight decay {decay:g}" if decay != USUAL else "")
        theirs = METHODS.get(way) if decay == USUAL else None
        shown = f"{theirs.accuracy:.1f} ({theirs.name})" if theirs else "-"
        lines.append([name, shown, *_cells(runs, way, decay)])
    published = f"published, {SET_NAMES['cifar100']}, 2,000 epochs"
    return table(["method", published, *_columns(runs)], lines)


def controls_table(found: dict[str, Found]) -> str:
    """What is it about the mask? One row per control."""
    runs = _runs(found, CONTROLS)
    lines = [["SimCLR", "", *_cells(runs, BASELINE, USUAL)]]
    lines += [[f"`{way}`", what, *_cells(runs, way, USUAL)] for way, what in CHANGES.items()]
    return table(["method", "the network of the second view", *_columns(runs)], lines)


def mask_answer(found: dict[str, Found]) -> str:
    """In words, set by set, what was seen so far."""
    lines = []
    for data in SETS:
        runs = [one for one in _runs(found, CONTROLS) if one.data == data and NOISE in one.ways]
        for one in runs[:1]:
            mask, noise, free = (one.gain(way) for way in (BRANCHES, NOISE, MASK_FREE))
            lines.append(
                f"- {SET_NAMES[data]}, {one.epochs} epochs: two views one by one gain "
                f"{in_words(free)} points, with a mask {in_words(mask)}, and with noise of the "
                f"same strength instead of the mask {in_words(noise)}: "
                f"{100 * noise.mean / mask.mean:.0f} % of it, without leaving out a single weight."
            )
    return "\n".join(lines)


def _runs(found: dict[str, Found], kinds: Iterable[str]) -> list[Found]:
    names = {f"{data}-{kind}-500" for data in SETS for kind in kinds}
    return [one for scale, one in found.items() if scale in names]


def _cells(runs: list[Found], way: str, decay: float) -> Iterator[str]:
    for data in SETS:
        asked = [one for one in runs if (one.data, one.weight_decay) == (data, decay)]
        here = [one for one in asked if way in one.ways]
        if not here:
            yield from (NOT_RUN, "")
            continue
        yield f"{here[0].mean(way):.2f}"
        yield "" if way == BASELINE else in_words(here[0].gain(way))


def _columns(runs: list[Found]) -> list[str]:
    found = []
    for data in SETS:
        lengths = dict.fromkeys(f"{one.epochs} epochs" for one in runs if one.data == data)
        found += [", ".join([SET_NAMES[data], *lengths]), "gain over SimCLR"]
    return found
