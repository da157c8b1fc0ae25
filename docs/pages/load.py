"""docs/load.md: what many cells, images, rows, hours and workers cost, from the committed records
of benchmarks/bench_load.py and of the soak (tests/heavy/last.json). Every number is computed."""

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
    found = [median(row[clock]) for clock in ("core", "wall")]
    return [f"{each:,.0f}" if each >= 100 else f"{each:.3g}" for each in found]


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


# ----------------------------------------------------------------------------------------- sections


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
    large = last["large_batches"]
    grown = last["cells"] / rows[0]["cells"]
    return [
        f"**{last['cells']:,} cells cost {over[-1][0]:.1f} s of processor time more than the bare "
        f"computation** ({over[-1][1]:.0f} s of the clock), lie in "
        f"{last['files']:,} files and take {_megabytes(last['study']['own_memory_bytes'])} of "
        f"memory. {grown:.0f} times as many cells cost {times:.1f} times as much "
        f"(quadratic would be {grown**2:.0f}).",
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
        f"In batches of {large['batch']:,}, as on a GPU, the {last['cells']:,} cells took "
        f"{median(large['core']):.2f} s of processor time ({median(large['wall']):.2f} s of the "
        f"clock) and {large['files']:,} files.",
        "A file (the store's unit of loss) holds a batch of one array, at least 32 cells, and "
        "about a 64th of a large grid; coordinates, which follow from the parameters, 4,096.",
    ]


def _fit() -> tuple[float, float]:
    """Seconds the parent of a cluster needs for a batch and, beside that, for each of its cells."""
    rows = _rows("writing")
    cell, batch = np.polyfit(
        [row["batch"] for row in rows], [median(row["core"]) for row in rows], 1
    )
    (with_dask,) = _rows("parent")
    sent = median(with_dask["core"]) - median(rows[0]["core"])  # (both with batches of 32)
    return float(batch) + max(sent, 0.0), float(cell)


def _smallest(batch: float, cell: float, seconds: float) -> str:
    """Cells of a batch with which the parent is at most half busy."""
    spare = seconds / (2 * WORKERS) - cell
    return f"{max(1, int(np.ceil(batch / spare))):,}" if spare > 0 else "none is enough"


def _writing() -> list[str]:
    rows = [
        [f"{row['batch']:,}", *(f"{1e3 * median(row[clock]):.1f} ms" for clock in ("core", "wall"))]
        for row in _rows("writing")
    ]
    (with_dask,) = _rows("parent")
    core, written = _fit(), _rows("writing")[0]
    limits = [
        [
            f"{seconds:g} s",
            _smallest(*core, seconds),
            f"{seconds / 2 / (core[0] / 32 + core[1]):,.0f}",
        ]
        for seconds in CELL_SECONDS
    ]
    return [
        "## Workers",
        "Workers compute and one parent writes. What the parent does with a batch, until the disk "
        "has it:",
        table(["cells in a batch", "processor", "clock"], rows),
        f"With Dask, sending it and fetching what a worker gave included, a batch of "
        f"{with_dask['batch']} takes {1e3 * median(with_dask['core']):.1f} ms of processor time of "
        "parent and scheduler together, which are one process for `--cluster local:N`. So a batch "
        f"costs about p = {1e3 * core[0]:.1f} ms, and q = {1e6 * core[1]:.0f} µs per cell.",
        *_scaling(),
        f"**To {WORKERS:,} workers** nothing was measured; this follows. N workers with cells of c "
        "seconds in batches of b give N / (b c) batches per second, and keep the parent busy for N "
        f"(p + q b) / (b c) of the time. That is half for {WORKERS:,} workers with these batches, "
        "and with batches of 32 for so many workers:",
        table(
            [
                "a cell takes",
                f"batch for {WORKERS:,} workers",
                "workers for batches of 32",
            ],
            limits,
        ),
        f"Below {2 * WORKERS * core[1]:.2g} s per cell no batch is large enough for {WORKERS:,} "
        "workers: the files are the limit then, and several studies with a store each are the way. "
        "This is processor time; by the clock, with waiting for this disk, a batch took "
        f"{median(written['wall']) / median(written['core']):.1f} times as long: take larger "
        "batches where the disk is slow. "
        "Assumed: outputs of a dozen numbers per cell; a network and a disk that are no slower; "
        "workers that need each other for nothing; batches of about the same length, and several "
        f"per worker, else the last one is waited for ({WORKERS:,} workers with batches of 32 need "
        f"a sweep of {10 * WORKERS * 32:,} cells to be busy nine tenths of the time).",
    ]


def _scaling() -> list[str]:
    rows = _rows("workers")
    shown, alone = [], median(rows[0]["strong"]["wall"]) / rows[0]["strong"]["cells"]
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        for row in mine:
            first, clocks = mine[0], [median(row[kind]["wall"]) for kind in ("strong", "weak")]
            before = [median(first[kind]["wall"]) for kind in ("strong", "weak")]
            shown.append(
                [
                    f"{way}, {row['workers']}",
                    f"{row['strong']['cells']} cells in {clocks[0]:.1f} s",
                    f"{before[0] / clocks[0]:.2f}",
                    f"{row['weak']['cells']} cells in {clocks[1]:.1f} s",
                    f"{before[1] / clocks[1]:.2f}",
                    f"{median(row['strong']['core']):.1f} s",
                ]
            )
    return [
        f"Over one and two workers, batches of one cell of about {1e3 * alone:.0f} ms. Strong: the "
        "same cells, times as fast (2 would be perfect); weak: twice the cells for twice the "
        "workers, share of the speed (1 would be perfect). Processor time is that of the parent.",
        table(["workers", "strong", "times", "weak", "share", "processor time, strong"], shown),
    ]


def _images_and_rows() -> list[str]:
    (page,), (whole,) = _rows("gallery"), _rows("command")
    scored = [
        [f"{row['classes']:,}", *_seconds(row), _megabytes(row["own_memory_bytes"])]
        for row in _rows("influence")
    ]
    rows, width = (_rows("influence")[0][name] for name in ("rows", "width"))
    return [
        "## Images and rows",
        f"From the scores of {page['images']:,} images ({page['source']}) to the table and a page "
        f"of {_megabytes(page['bytes'])}: {median(page['core']):.1f} s of processor time "
        f"({median(page['wall']):.0f} s of the clock), "
        f"{_megabytes(page['process_memory_bytes'])} in all. The whole of `rarefy influence "
        "mnist`, from files to page with neighbours and label check: "
        f"{median(whole['core']):.0f} s of processor time, "
        f"{_megabytes(whole['process_memory_bytes'])} in all. The goal was 60 s and 1,500 MB.",
        f"Scores of {rows:,} x {width} rows, from a .npy file to the table, without neighbours and "
        "label check:",
        table(["classes", "processor s", "clock s", "own memory"], scored),
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
            [what, "{} in the warm-up, {} after".format(*told[f"most {name} {_THEN}"])]
            for what, name in (
                ("open files, at most", "files"),
                ("threads, at most", "threads"),
                ("files left behind, at most", "left"),
            )
        ),
    ]
    memory = told["megabytes after the first round, warm-up and all"]
    parts = told["megabytes, medians of parts"]
    steps = [after - before for before, after in zip(parts, parts[1:], strict=False)]
    step = max(steps, key=abs)
    return [
        "## An hour",
        f"One process ran a sweep, more seeds of it, scores with their page and a report, "
        f"{told['rounds']} times in {told['seconds'] / 60:.0f} minutes "
        f"({found['date'][:10]}, {found['machine']}, Python {found['python']}, torch "
        f"{found['torch']}). Memory after the first round, after the warm-up and at the end: "
        f"{', '.join(f'{each:.0f}' for each in memory)} MB; the largest step "
        f"between two twelfths is {step:+.1f} MB, and one step can make a slope. "
        "Growth with its 95 % interval, from "
        f"medians of twelve parts, the first {told['rounds left out as warm-up']} rounds left out:",
        table(["what", "growth"], rows),
        f"Memory of the parts, MB: {', '.join(map(str, told['megabytes, medians of parts']))}.",
    ]


_THEN = "in the warm-up and after"
_SLOWER = "processor time of a round, relative change per hour"


def _how() -> str:
    records = [
        _record(part)
        for part in ("cells", "writing", "parent", "gallery", "command", "influence", "workers")
    ]
    made = [record["provenance"] for record in records]
    busy = [row["load_average_before"] for record in records for row in record["results"]]
    rounds = min(len(row["study"]["wall"]) for row in records[0]["results"])
    first = made[0]
    return (
        f"`python benchmarks/bench_load.py` on {max(each['date'] for each in made)[:10]}: "
        f"{first['machine']}, {first['cores']} cores, Python {first['python']}, torch "
        f"{first['torch']}, numpy {first['numpy']}; medians of n = {rounds} rounds where nothing "
        "else is said, one thread. Before a part began, "
        f"{min(busy):.0f} to {max(busy):.0f} processes wanted its {first['cores']} cores: where "
        "the clock and the processor time (of all threads together) differ much, read the latter. "
        "Own memory is the most anonymous memory above that before, in the first round. "
        "`make test-heavy` asserts wide bounds, and runs the soak."
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
