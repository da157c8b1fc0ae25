"""Methods, and controls of the mask, under one protocol: one row per method, a column per set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pages.longtail.answers import STOPPED
from pages.longtail.rows import BASELINE, LARGEST, NOT_RUN, SET_NAMES, Found, in_words
from pages.markdown import table
from rarefy.studies.longtail.published import METHODS
from rarefy.studies.longtail.table import study as scales
from rarefy.studies.longtail.table.study import ALGORITHM_1, BRANCHES, CONTROLS, MASK_FREE
from rarefy.studies.longtail.words import protocol_words, spoken
from rarefy.tools.decision import FEWEST as DECIDE

SETS = ("cifar100", "cifar10")
EPOCHS = 500
USUAL = 1e-4
CHANGES = {
    MASK_FREE: "nothing",
    BRANCHES: "its smallest weights are left out, chosen anew every epoch",
    f"{BRANCHES}+noise": "all its weights are multiplied by Gaussian noise, drawn anew every "
    "update, as strong as the mask",
    f"{BRANCHES}+dropout": "random weights are left out, drawn anew every update, as many as are "
    "as strong as the mask",
    f"{BRANCHES}+random": "random weights are left out, as many as by the mask (which is stronger)",
    f"{BRANCHES}+frozen": "the weights that were smallest at first are left out to the end",
    f"{BRANCHES}+both": "as by the mask, and for the other view too",
}
"""What becomes of the network for the second of the two views."""
PRUNED = "pruned"
"""Algorithm 1, of each set with the share that its row has."""
COLUMNS = [
    column
    for data in SETS
    for column in (f"{SET_NAMES[data]}, {EPOCHS} epochs", "gain over SimCLR")
]


def methods_table(found: dict[str, Found]) -> str:
    """One row per method and weight decay, beside what is published with the same decay."""
    runs = _runs(found, (*scales.METHODS, "decay"))
    rows = dict.fromkeys((way, USUAL) for way in (*METHODS, PRUNED))
    rows |= {(way, theirs.weight_decay): None for way, theirs in METHODS.items()}
    rows |= dict.fromkeys((way, one.weight_decay) for one in runs for way in one.ways)
    lines = []
    for way, decay in sorted(rows, key=lambda row: row[1]):
        name = spoken(way)
        if way == PRUNED:
            shares = (ALGORITHM_1[data].removeprefix(f"{PRUNED}:") for data in SETS)
            name += f", {' and '.join(shares)} kept"
        theirs = METHODS.get(way)
        fits = theirs is not None and theirs.weight_decay == decay
        shown = f"{theirs.accuracy:.1f} ({theirs.name})" if theirs and fits else "-"
        lines.append([name, f"{decay:g}", shown, *_cells([*runs, *_elsewhere(found)], way, decay)])
    published = f"published, {SET_NAMES['cifar100']}, 2,000 epochs"
    return table(["method", "weight decay", published, *COLUMNS], lines)


def controls_table(found: dict[str, Found]) -> str:
    """What is it about the mask? One row per control."""
    runs = [*_runs(found, CONTROLS), *_elsewhere(found)]
    lines = [["SimCLR", "", *_cells(runs, BASELINE, USUAL)]]
    lines += [[f"`{way}`", what, *_cells(runs, way, USUAL)] for way, what in CHANGES.items()]
    return table(["method", "the network of the second view", *COLUMNS], lines)


def mask_answer(found: dict[str, Found]) -> tuple[str, str]:
    """Set by set, how much of the mask's gain each control has, and their gains by every judge."""
    said, tables = [], []
    for data in SETS:
        runs = [one for one in _runs(found, CONTROLS) if one.data == data]
        of = {way: one for one in runs for way in one.ways if way in CHANGES}
        if BRANCHES not in of or len(of) < 2:
            continue
        gains = {
            way: [of[way].gain(way, protocol=judge) for judge in of[way].protocols]
            for way in CHANGES
            if way in of
        }
        whole = gains[BRANCHES][0]
        shares = (
            f"`{way}` {gains[way][0].mean / whole.mean:.0%}" for way in gains if way != BRANCHES
        )
        hint = ": a hint" if whole.interval.n < DECIDE else ""
        said.append(
            f"- {SET_NAMES[data]}, {EPOCHS} epochs ({whole.counted}{hint}). By the linear probe "
            f"the mask gains {whole.mean:+.2f} over SimCLR. Of this gain have: "
            f"{', '.join(shares)}."
        )
        judges = [f"gain, {protocol_words(judge)}" for judge in of[BRANCHES].protocols]
        lines = [[f"`{way}`", *(gain.shown() for gain in row)] for way, row in gains.items()]
        tables.append(table((SET_NAMES[data], *judges), lines))
    return "\n".join(said), "\n\n".join(tables)


def decay_answer(found: dict[str, Found]) -> str:
    """How much of the gain a stronger weight decay leaves."""
    said = []
    for one in _runs(found, ("decay",)):
        usual = next((other for other in _elsewhere(found) if other.data == one.data), None)
        if usual is None:
            continue
        usual = usual.at(one.results["seed"].values.tolist())
        left, whole = one.gain(BRANCHES), usual.gain(BRANCHES)
        plain = f"{usual.mean(BASELINE):.2f} to {one.mean(BASELINE):.2f}"
        hint = ": a hint" if left.interval.n < DECIDE else ""
        said.append(
            f"- {SET_NAMES[one.data]}, {EPOCHS} epochs ({left.counted}{hint}). Is the gain what "
            f"too weak a decay leaves? {one.weight_decay:g} instead of {USUAL:g} takes SimCLR "
            f"from {plain} and two branches from {usual.mean(BRANCHES):.2f} to "
            f"{one.mean(BRANCHES):.2f}: {left.mean / whole.mean:.0%} of the gain are left."
        )
    return "\n".join(said)


def _runs(found: dict[str, Found], kinds: Iterable[str]) -> list[Found]:
    names = (f"{data}-{kind}-{EPOCHS}" for kind in kinds for data in SETS)
    return [found[name] for name in names if name in found]


def _elsewhere(found: dict[str, Found]) -> list[Found]:
    """Where the same trainings stand that a table has not run itself."""
    return _runs(found, (f"rho{LARGEST}", "branches"))


def _cells(runs: list[Found], way: str, decay: float) -> Iterator[str]:
    for data in SETS:
        asked = [one for one in runs if (one.data, one.weight_decay) == (data, decay)]
        name = ALGORITHM_1[data] if way == PRUNED else way
        here = [one for one in asked if name in one.ways]
        if not here:
            yield from (NOT_RUN, "")
            continue
        gain = here[0].gain(name)
        yield f"{here[0].mean(name):.2f}" if gain.values else STOPPED
        yield in_words(gain) if gain.values and way != BASELINE else f"({gain.counted})"
