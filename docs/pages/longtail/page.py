"""docs/longtail-table.md: 000 Table 2 with what was measured beside what was published, with its
pictures, from the committed results of the study longtail-table. Every number on it is computed;
rows that nobody has run yet say so."""

from __future__ import annotations

import json
from pathlib import Path

from pages.longtail.answers import REACHED, advice, answers, chosen_share, runs_of
from pages.longtail.length import (
    course_picture,
    length_picture,
    length_table,
    repeated,
    where_from,
)
from pages.longtail.methods import (
    controls_table,
    decay_answer,
    mask_answer,
    methods_table,
)
from pages.longtail.rows import (
    BASELINE,
    LARGEST,
    NOT_RUN,
    SCALES,
    SET_NAMES,
    Found,
    at_rho,
    committed,
)
from pages.markdown import folded, table
from rarefy.report.static import as_png, draw_picture
from rarefy.studies.longtail.published import TABLE_2
from rarefy.studies.longtail.table.study import ALGORITHM_1, BRANCHES
from rarefy.studies.longtail.words import protocol_words, spoken
from rarefy.tools.longtail.readings import BALANCED


def files(folder: Path) -> dict[str, str | bytes]:
    """Contents by name of file, of the results in a folder."""
    found = committed(folder)
    pictures = (length_picture(found), course_picture(found))
    return {"longtail-table.md": page(found)} | {
        f"images/longtail-{one.name}.png": as_png(draw_picture(one)) for one in pictures
    }


def main_table(found: dict[str, Found]) -> str:
    """A line per row of Table 2 and number of epochs."""
    lines: list[list[object]] = []
    for row in TABLE_2:
        name = f"{SET_NAMES[row.data]}, rho {row.rho:g}"
        published = f"{row.shown()} ({row.gain:+.2f})"
        here = at_rho(found, row.data, row.rho)
        for epochs, one in here.items():
            gain, theirs = (one.gain(way) for way in (BRANCHES, ALGORITHM_1[row.data]))
            branches = f"{one.mean(BRANCHES):.2f}" if gain.values else "-"
            cells = [f"{one.mean(BASELINE):.2f}", branches, gain.shown(), theirs.shown()]
            counted = (gain if gain.values else theirs).counted
            lines.append([name, epochs, published, *cells, counted])
        if not here:
            why = NOT_RUN if row.data in REACHED else "out of reach"
            lines.append([name, why, published, *[""] * 5])
    columns = ("set", "epochs", "published", "SimCLR", "two branches", "gain")
    return table((*columns, "gain, Algorithm 1", "n"), lines)


def delta_table(found: dict[str, Found]) -> str:
    lines = []
    for row in TABLE_2:
        for epochs, one in at_rho(found, row.data, row.rho).items():
            gaps = [one.gain(way, "delta_20") for way in (BRANCHES, ALGORITHM_1[row.data])]
            control, told = found.get(f"{row.data}-control-{epochs}"), "-"
            if f"{row.data}-control-{epochs}" in SCALES and row.rho == LARGEST:
                told = NOT_RUN  # (as many images, as many epochs)
            if control and row.rho == LARGEST:
                same = control.at(one.results["seed"].values.tolist())
                told = f"{same.mean(BASELINE, 'delta_20', images=BALANCED):.2f}"
            plain = f"{one.mean(BASELINE, 'delta_20'):.2f}"
            shown = (gap.shown() for gap in gaps)
            lines.append([one.name, epochs, row.shown(delta=True), plain, *shown, told])
    columns = ("set", "epochs", "published", "SimCLR", "two branches less SimCLR")
    return table((*columns, "Algorithm 1 less SimCLR", "balanced control, SimCLR"), lines)


def keep_table(found: dict[str, Found]) -> str:
    rows = [
        [
            SET_NAMES[one.data],
            f"{one.results['class_count'].max().item():,.0f}",
            one.epochs,
            spoken(method),
            f"{one.held_out(method):.2f}",
            f"{one.mean(method):.2f}",
        ]
        for scale, one in found.items()
        if "-keep-" in scale or "-curve-" in scale
        for method in one.ways
    ]
    columns = ("set", "largest class", "epochs", "method", "held-out training images")
    return table((*columns, "test images"), rows)


def judges_table(found: dict[str, Found]) -> str:
    """Gains of two branches for head and tail, by each way to judge."""
    parts = ("overall", "many", "medium", "few")
    lines = [
        [
            f"{one.name}, {one.epochs} epochs",
            protocol_words(protocol),
            *(one.gain(BRANCHES, name, protocol).shown() for name in parts),
            one.gain(BRANCHES).counted,
        ]
        for data in REACHED
        for one in runs_of(found, data, BRANCHES)
        for protocol in one.protocols
    ]
    return table(("set", "judged by", "all classes", "many", "medium", "few", "n"), lines)


def _made(found: dict[str, Found]) -> str:
    lines = []
    for scale, one in found.items():
        made = json.loads(one.results.attrs["provenance"])
        where = made.get("gpu") or made.get("machine") or made.get("device", "")
        lines.append(f"- `{scale}`: {str(made.get('date', ''))[:10]}, {where}")
    return "\n".join(lines)


def page(found: dict[str, Found]) -> str:
    masks, by_judge = mask_answer(found)
    parts = [
        "<!-- made by docs/make.py from results/; do not edit -->",
        "# Pruning and long-tailed contrastive learning: Table 2",
        "## What to choose today",
        advice(found),
        "## Table 2, ours beside the published",
        "Liao et al. ([the claims](claims.md)) report a linear probe of features learnt without "
        "labels from long-tailed images, without pruning → with. Epochs, share kept and repeats "
        "are not given. Their method can be read in two ways, both run here beside SimCLR with the "
        "same head, temperature, weight decay, first weights and views (ResNet-18): two branches "
        "with a tenth of the weights in the masked one, as in the code whose setup they follow "
        "(Jiang et al. 2021), and Algorithm 1 (both views through the masked network).",
        main_table(found),
        "Per cent; gains in points over SimCLR, order by order of the classes. Orders come in "
        "mirrored pairs, in which head and tail change places: a pair counts once, with its mean. "
        "[ ]: 95 % interval over pairs and single orders; with fewer than three of these the gains "
        "of all orders stand there instead. ImageNet-LT is out of reach of this project's "
        "machines.",
        "## Answers",
        "Claims [P6](claims/P6.md) (pruning raises accuracy) and [P8](claims/P8.md) (the gain "
        "grows with rho) per set and method. Five pairs or single orders decide; three or four "
        "only look like something.",
        answers(found),
        "## What is it about the mask?",
        "\n".join(filter(None, (masks, decay_answer(found)))),
        controls_table(found),
        "Linear probe, all labels, rho 100; a gain is over SimCLR of the same run, in the same "
        "orders of the classes. As strong: layer by layer the same share of the weights' squared "
        "norm is removed or disturbed. By every judge:",
        by_judge,
        "## Methods under one protocol",
        "Linear probe, all labels, rho 100. Published: README of the code of Zhou et al. (2022), "
        "another split of the same set (largest class 450); their two branches (SDCLR, BCL-D) have "
        "SDCLR's settings, three layers in the head and own norms (`sdclr` and `sdclr+boost` "
        "here). A published number stands in the row with its weight decay. `boost`: their "
        "stronger views for samples that are memorised late; `harmonise`: Zhou et al. "
        "(2023); `schedule`: Kukleva et al. (2023). A gain is over SimCLR of the same run, with "
        "the same weight decay.",
        methods_table(found),
        "## How long one trains, and where the gain comes from",
        "Is more learnt with masks, or more lost without? The best length is that of SimCLR on "
        "held-out training images, the numbers are of test images, over the orders of the classes "
        "that all lengths have.",
        where_from(found),
        "![Gain over SimCLR by the number of epochs](images/longtail-length.png)",
        "![Linear probe by length of training, and neighbours on the way]"
        "(images/longtail-course.png)",
        repeated(found),
        folded("All lengths, other judges, the control without masks", length_table(found)),
        "## Head and tail",
        "Thirds of the classes by their number of images (of ten classes 4, 3 and 3), judged by a "
        "linear probe with all labels or with those of the long-tailed images alone, by ten labels "
        "per class, by nearest neighbours.",
        "![Gains over SimCLR from head to tail](images/longtail-gains.png)",
        folded("Gains of two branches from head to tail", judges_table(found)),
        folded(
            "Delta_20: the fifth of the classes with most images less that with fewest, points",
            delta_table(found) + "\n\nWith one order of the classes it mostly says which classes "
            "are easy; the last column is the same where every class has as many images.",
        ),
        folded(
            "The share that Algorithm 1 keeps, chosen on held-out training images",
            f"{chosen_share(found)}\n\n{keep_table(found)}",
        ),
        folded("Where the numbers come from", _made(found)),
        "What is missing: `queues/longtail.sh` goes through the rows in order of importance and "
        "goes on where it was; then `python docs/make.py longtail-table`.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
