"""docs/load.md: what many cells, images, rows, hours and workers cost, from the committed records of
benchmarks/bench_load.py and of the soak (tests/heavy/last.json). Every number in it is computed."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import numpy as np

from pages import ROOT
from pages.markdown import table

RECORDS = ROOT / "benchmarks" / "results"
HEAVY = ROOT / "tests" / "heavy" / "last.json"
SOAK = "test_soak::test_an_hour_of_commands_adds_nothing"
WORKERS = 1000
CELL_SECONDS = (0.1, 1.0, 10.0, 100.0)

Row = dict[str, Any]


def _record(part: str) -> Row:
    record: Row = json.loads((RECORDS / f"load-{part}.json").read_text("utf-8"))
    return record


def _rows(part: str) -> list[Row]:
    rows: list[Row] = _record(part)["results"]
    return rows


def _seconds(row: Row) -> list[str]:
    return [f"{median(row['core']):.3g}", f"{median(row['wall']):.3g}"]


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


# ------------------------------------------------------------------------------------------ sections


def _cells() -> list[str]:
    rows = _rows("cells")
    shown, over = [], []
    for row in rows:
        study, plain = row["study"], row["plain"]
        more = [median(study[clock]) - median(plain[clock]) for clock in ("core", "wall")]
        over.append(more)
        shown.append(
            [
                f"{row['cells']:,}",
                *_seconds(plain),
                *_seconds(study),
                f"{1e3 * more[0] / row['cells']:.2f} ms",
                f"{row['files']:,}",
                _megabytes(study["own_memory_bytes"]),
            ]
        )
    last, times = rows[-1], over[-1][0] / over[0][0]
    grown = last["cells"] / rows[0]["cells"]
    return [
        f"**{last['cells']:,} cells cost {over[-1][0]:.1f} s of processor time more than the bare "
        f"computation** ({over[-1][1]:.0f} s of the clock on a busy machine), lie in "
        f"{last['files']:,} files and take {_megabytes(last['study']['own_memory_bytes'])} of "
        f"memory. {grown:.0f} times as many cells cost {times:.1f} times as much: nothing is "
        "quadratic.",
        "## Cells",
        "A study whose cells cost next to nothing, through runner and store, in batches of 32, "
        "beside the same batches in a plain loop in the same process. What it costs does not "
        "depend on what a cell computes: where a cell takes a second it is lost in the noise.",
        table(
            [
                *("cells", "plain: processor s", "clock s", "study: processor s", "clock s"),
                *("more per cell", "files", "own memory"),
            ],
            shown,
        ),
        "A file holds 32 cells of one array (the store's unit of loss); coordinates, which follow "
        "from the parameters, 4,096.",
    ]


def _fit(clock: str) -> tuple[float, float]:
    """Seconds of a batch and, beside that, of each of its cells."""
    rows = _rows("writing")
    cell, batch = np.polyfit(
        [row["batch"] for row in rows], [median(row[clock]) for row in rows], 1
    )
    return float(batch), float(cell)


def _smallest(batch: float, cell: float, seconds: float) -> str:
    """Cells of a batch with which the parent is at most half busy."""
    spare = seconds / (2 * WORKERS) - cell
    return f"{max(1, int(np.ceil(batch / spare))):,}" if spare > 0 else "none is enough"


def _writing() -> list[str]:
    rows = [
        [f"{row['batch']:,}", *(f"{1e3 * median(row[clock]):.1f} ms" for clock in ("core", "wall"))]
        for row in _rows("writing")
    ]
    fits = {clock: _fit(clock) for clock in ("core", "wall")}
    limits = [
        [
            f"{seconds:g} s",
            *(_smallest(*fits[clock], seconds) for clock in ("core", "wall")),
            f"{seconds / 2 / (fits['core'][0] / 32 + fits['core'][1]):,.0f}",
        ]
        for seconds in CELL_SECONDS
    ]
    batch, cell = fits["core"]
    least = 2 * WORKERS * cell
    return [
        "## Workers",
        "Workers compute and one parent writes. What the parent does with a batch, until the disk "
        "has it:",
        table(["cells in a batch", "processor", "clock"], rows),
        f"That is about {1e3 * batch:.1f} ms per batch and {1e6 * cell:.0f} µs per cell of "
        "processor time.",
        *_scaling(),
        f"**To {WORKERS:,} workers** nothing was measured; this follows. With N workers and cells "
        "of c seconds in batches of b, N / (b c) batches arrive per second, and the parent is "
        "busy for N (p + q b) / (b c) of the time, where p and q are the two numbers above. Half "
        f"busy at {WORKERS:,} workers, with the smallest batch that is enough, by processor time "
        "and by the clock of this busy machine:",
        table(
            [
                "a cell takes",
                f"batch for {WORKERS:,} workers",
                "by the clock",
                "workers with batches of 32",
            ],
            limits,
        ),
        f"Below {least:.2g} s per cell no batch is large enough for {WORKERS:,} workers: then the "
        "files are the limit, and several studies with a store each are the way. Assumed: outputs "
        "of a dozen numbers per cell; workers that do not wait for each other; a disk as fast as "
        "this one; a scheduler that needs about a millisecond per batch in a process of its own, "
        "as Dask's documentation has it; and batches of about the same length, else the last one "
        "is waited for.",
    ]


def _scaling() -> list[str]:
    rows = _rows("workers")
    shown = []
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        for row in mine:
            first, clocks = mine[0], [median(row[kind]["wall"]) for kind in ("strong", "weak")]
            alone = [median(first[kind]["wall"]) for kind in ("strong", "weak")]
            shown.append(
                [
                    f"{way}, {row['workers']}",
                    f"{row['strong']['cells']} cells in {clocks[0]:.1f} s",
                    f"{alone[0] / clocks[0]:.2f}",
                    f"{row['weak']['cells']} cells in {clocks[1]:.1f} s",
                    f"{alone[1] / clocks[1]:.2f}",
                    f"{median(row['strong']['core']):.1f} s",
                ]
            )
    return [
        "Over one and two workers, cells of some tens of milliseconds in batches of one. Strong: "
        "the same cells, times as fast (2 would be perfect); weak: twice the cells for twice the "
        "workers, share of the speed (1 would be perfect). Other programs used both cores "
        "meanwhile, so the clock says little; processor time (of the parent, for a cluster) "
        "says that no work is added.",
        table(["workers", "strong", "times", "weak", "share", "processor time, strong"], shown),
    ]


def _images_and_rows() -> list[str]:
    (page,) = _rows("gallery")
    scored = [
        [f"{row['classes']:,}", *_seconds(row), _megabytes(row["own_memory_bytes"])]
        for row in _rows("influence")
    ]
    rows, width = (_rows("influence")[0][name] for name in ("rows", "width"))
    whole = [
        [f"`rarefy {row['command']}`", *_seconds(row), _megabytes(row["process_memory_bytes"])]
        for row in _rows("commands")
    ]
    return [
        "## Images and rows",
        f"From the scores of {page['images']:,} images ({page['source']}) to the table and a page "
        f"of {_megabytes(page['bytes'])}: {median(page['core']):.1f} s of processor time "
        f"({median(page['wall']):.0f} s of the clock), "
        f"{_megabytes(page['process_memory_bytes'])} in all. The goal was 60 s and 1,500 MB.",
        f"Scores of {rows:,} x {width} rows, from a .npy file to the table, without neighbours and "
        "label check:",
        table(["classes", "processor s", "clock s", "own memory"], scored),
        "The whole commands, with neighbours, label check and page (once each, memory of the whole "
        "process; two threads):",
        table(["command", "processor s", "clock s", "memory"], whole),
    ]


def _soak() -> list[str]:
    found = json.loads(HEAVY.read_text("utf-8"))[SOAK]
    told = found["measured"]

    def slope(name: str, digits: int) -> str:
        mean, low, high = told[name]
        return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    rows = [
        ["memory, MB per hour", slope("megabytes per hour", 2)],
        ["Python objects per round", slope("objects per round", 3)],
        ["processor time of a round, per hour", slope(_SLOWER, 3)],
        *(
            [what, "{} in the warm-up, {} after".format(*told[f"most {name} in the warm-up and after"])]
            for what, name in (
                ("open files, at most", "files"),
                ("threads, at most", "threads"),
                ("files left behind, at most", "left"),
            )
        ),
    ]  # fmt: skip
    memory = told["megabytes after the first round, warm-up and all"]
    return [
        "## An hour",
        f"One process ran a sweep, more seeds of it, scores with their page and a report, "
        f"{told['rounds']} times in {told['seconds'] / 60:.0f} minutes "
        f"({found['date'][:10]}, {found['machine']}, Python {found['python']}, torch "
        f"{found['torch']}). Memory after the first round, after the warm-up and at the end: "
        f"{', '.join(f'{each:.0f}' for each in memory)} MB. Growth with its 95 % interval, from "
        f"medians of twelve parts, the first {told['rounds left out as warm-up']} rounds left out:",
        table(["what", "growth"], rows),
    ]


_SLOWER = "processor time of a round, relative change per hour"


def _how() -> str:
    records = [
        _record(part)
        for part in ("cells", "writing", "gallery", "influence", "commands", "workers")
    ]
    made = [record["provenance"] for record in records]
    busy = [row["load_average_before"] for record in records for row in record["results"]]
    rounds = min(len(row["study"]["wall"]) for row in records[0]["results"])
    first = made[0]
    return (
        f"`python benchmarks/bench_load.py` on {max(each['date'] for each in made)[:10]}: "
        f"{first['machine']}, {first['cores']} cores, Python {first['python']}, torch "
        f"{first['torch']}, numpy {first['numpy']}; medians of n = {rounds} rounds where nothing "
        "else is said, one thread. **The machine was busy**: between "
        f"{min(busy):.0f} and {max(busy):.0f} processes wanted its {first['cores']} cores. Read "
        "processor time (of all threads together); the clock is what happened that day. Own "
        "memory is the most anonymous memory above that before, in the first round. "
        "`make test-heavy` asserts bounds several times as large, and runs the soak."
    )


def page() -> str:
    parts = [
        "<!-- made by docs/make.py load; do not edit -->",
        "# What much data and many cells cost",
        *_cells(),
        *_writing(),
        *_images_and_rows(),
        *_soak(),
        "## How this was measured",
        _how(),
    ]
    return "\n\n".join(parts) + "\n"
