"""docs/longtail-table.md: 000 Table 2 with what was measured beside what was published, with its
pictures, from the committed results of the study longtail-table. Every number on it is computed;
rows that nobody has run yet say so."""

from __future__ import annotations

import json
from pathlib import Path

from pages.longtail.advice import advice, against_published, chosen_share, growth, verdict_of
from pages.longtail.length import (
    course_picture,
    course_table,
    length_picture,
    length_table,
    repeated,
    where_from,
)
from pages.longtail.rows import (
    BASELINE,
    EPOCHS,
    LARGEST,
    NOT_RUN,
    ROWS,
    SCALES,
    SET_NAMES,
    Found,
    committed,
)
from pages.markdown import table
from rarefy.report.static import as_png, draw_picture
from rarefy.studies.longtail.published import TABLE_2, Row
from rarefy.studies.longtail.tables import shown
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
    rows: list[list[object]] = []
    for row in TABLE_2:
        published = f"{row.shown()} ({row.gain:+.2f})"
        name = f"{SET_NAMES[row.data]}, rho {row.rho:g}"
        here = [one for one in (_row(found, row, epochs) for epochs in EPOCHS) if one]
        if not here:
            reachable = any(row.data == here["data"] for here in ROWS)
            why = NOT_RUN if reachable else "out of reach"
            rows.append([name, published, why, *[""] * 6])
        for one in here:
            pruned, branches = (one.methods(kind)[:1] for kind in ("pruned", "branches"))
            cells = [NOT_RUN] * 4
            for method in pruned:
                cells[:2] = shown(one.gain(method), True), shown(one.masked_gain(method), True)
            for method in branches:
                cells[2:] = shown(one.mean(method)), shown(one.gain(method), True)
            n = min(one.gain(method).n for method in (*pruned, *branches, BASELINE))
            rows.append([name, published, one.epochs, shown(one.mean(BASELINE)), *cells, n])
    columns = ("set", "published", "epochs", "SimCLR", "gain, Algorithm 1")
    more = ("gain, its masked network", "two branches", "gain, two branches", "n")
    return table((*columns, *more), rows)


def _row(found: dict[str, Found], row: Row, epochs: int) -> Found | None:
    return found.get(f"{row.data}-rho{row.rho:g}-{epochs}")


def delta_table(found: dict[str, Found]) -> str:
    rows = []
    for row in TABLE_2:
        for epochs in EPOCHS:
            one = _row(found, row, epochs)
            if one is None:
                continue
            cells = [shown(one.mean(BASELINE, "delta_20"))]
            for kind in ("pruned", "branches"):
                best = one.methods(kind)
                cells.append(shown(one.gain(best[0], "delta_20"), True) if best else NOT_RUN)
            cells.append("-")
            if f"{row.data}-control-{epochs}" in SCALES and row.rho == LARGEST:
                # (as many images, as many epochs)
                control = found.get(f"{row.data}-control-{epochs}")
                cells[-1] = NOT_RUN
                if control:
                    control = control.at(one.results["seed"].values.tolist())
                    cells[-1] = shown(control.mean(BASELINE, "delta_20", images=BALANCED))
            rows.append([one.name, row.shown(delta=True), epochs, *cells])
    if not rows:
        return "No row has been run yet."
    columns = ("set", "published", "epochs", "SimCLR", "Algorithm 1 less SimCLR")
    return table((*columns, "two branches less SimCLR", "balanced control, SimCLR"), rows)


def keep_table(found: dict[str, Found]) -> str:
    rows = [
        [
            SET_NAMES[one.data],
            f"{one.results['class_count'].max().item():,.0f}",
            one.epochs,
            spoken(method),
            f"{one.held_out(method):.2f}",
            shown(one.mean(method)),
        ]
        for scale, one in found.items()
        if "-keep-" in scale or "-curve-" in scale
        for method in one.ways
    ]
    if not rows:
        return "Not run yet."
    columns = ("set", "largest class", "epochs", "method", "held-out training images")
    return table((*columns, "test images"), rows)


def judges_table(found: dict[str, Found]) -> str:
    """Gains for head and tail, by each way to judge, of the rows that were run."""
    rows = [
        [
            f"{one.name}, {one.epochs} epochs",
            protocol_words(protocol),
            spoken(method),
            *(
                shown(one.gain(method, name, protocol), True)
                for name in ("overall", "many", "medium", "few")
            ),
        ]
        for one in found.values()
        if one.is_row
        for protocol in one.protocols
        for kind in ("pruned", "branches")
        for method in one.methods(kind)[:1]
    ]
    if not rows:
        return "No row has been run yet."
    columns = ("set", "judged by", "method", "all classes", "many", "medium", "few")
    return table(columns, rows)


def _made(found: dict[str, Found]) -> str:
    lines = []
    for scale, one in found.items():
        made = json.loads(one.results.attrs["provenance"])
        where = made.get("gpu") or made.get("machine") or made.get("device", "")
        lines.append(f"- `{scale}`: {str(made.get('date', ''))[:10]}, {where}")
    return "\n".join(lines) or "Nothing yet."


def page(found: dict[str, Found]) -> str:
    parts = [
        "<!-- made by docs/make.py from results/; do not edit -->",
        "# Pruning and long-tailed contrastive learning: Table 2",
        "Table 2 of paper 000 (Liao et al., see [the claims](claims.md)) reports the accuracy of a "
        "linear probe on features learnt without labels from long-tailed images, without pruning "
        "and with. It does not say how many epochs, which "
        "share is kept, or how often it was repeated, and its method can be read in two ways: "
        "Algorithm 1 (both views through the masked network, everything updated; here weights, "
        "and whole filters where the share kept is chosen), or two branches as in the code whose "
        "setup it follows (Jiang et al. 2021). Both are run here beside SimCLR with the same head, "
        "temperature, weight decay, epochs, first weights and views.",
        "## What to choose today",
        advice(found),
        "## Accuracy",
        "Linear probe, per cent; [ ]: 95 % interval over n orders of the classes; gains are over "
        "SimCLR, order by order. Orders come in mirrored pairs, which the intervals do not know "
        "of. Published spreads come without their n. Of Algorithm 1 the dense network is judged, "
        "which never saw an image (its statistics are measured anew), and the masked one. The "
        "largest class has 5,000 (500 on CIFAR100-LT) images; ResNet-18. ImageNet-LT is out of "
        "reach of this project's machines and stays as published.",
        main_table(found),
        "Seen so far, each reading of the method for itself; fewer than five orders of the "
        "classes decide nothing of [the claim](claims.md), P6:",
        "\n".join(verdict_of(found, kind) for kind in ("pruned", "branches")),
        "## Head, tail, and other judges",
        "Gains over SimCLR in points, order by order, for all classes and for thirds of them by "
        "their number of images (of ten classes 4, 3 and 3): a linear probe with all labels or "
        "with those of the long-tailed images alone, ten labels per class, nearest neighbours.",
        "![Gains over SimCLR from head to tail](images/longtail-gains.png)",
        judges_table(found),
        "## How long one trains",
        "ResNet-18 on CIFAR, a small network on the bundled digits (468 images; two cores are "
        "enough: `rarefy run longtail-table --scale digits-branches-300`). With 1 kept there are "
        "two branches and no mask, the control: a gain that it does not show is due to the masks.",
        "![Gain over SimCLR by the number of epochs](images/longtail-length.png)",
        length_table(found),
        "## Where the gain comes from",
        "Over the orders of the classes that all lengths have: is more learnt with masks, or more "
        "lost without? The best length is that of SimCLR on held-out training images, the numbers "
        "are of test images.",
        where_from(found),
        repeated(found),
        "![Linear probe by length of training, and neighbours on the way]"
        "(images/longtail-course.png)",
        "`linear` to `nearest neighbours`: test images, per cent. Loss and distance of views "
        "(alignment): training images, at the end.",
        course_table(found),
        "## Beside the published gains",
        against_published(found),
        "## Delta_20",
        "Accuracy of the fifth of the classes with most images less that of the fifth with fewest, "
        "in points. With one order of the classes it mostly says which classes are easy; the last "
        "column is the same number where every class has as many images, for the same orders.",
        delta_table(found),
        "## The share that is kept",
        "One order of the classes, rho 100. What Algorithm 1 keeps is chosen by held-out training "
        "images after 100 epochs, never by test images, and with a smaller largest class, so that "
        "no pre-training saw them. Best there: " + chosen_share(found),
        keep_table(found),
        "## Does the gain grow with rho?",
        growth(found),
        "## How to run what is missing",
        "`queues/longtail.sh` goes through the rows in order of importance, skips what is in "
        "`results/`, stops each after `--max-seconds` and goes on where it was. Then `python "
        "docs/make.py longtail-table`.",
        "## Where the numbers come from",
        _made(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
