"""Seconds from the start of a process until a verb prints its first line, and until it ends.

    python benchmarks/bench_commands.py [--long] [--machine epyc]

On standard output or error: what a person sees. Five times each, in turn; processor time is that
of the process until its first line, and of all its processes to the end: fair on a machine that is
busy. ``--long``: also, once each, the report of all results, ``make demo`` in an environment that
is there, and ``make test``. ``--machine``: what the record is called after; docs/speed.md shows
those with a name in docs/pages/goals.py.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import asked, keep, size

ROOT = Path(__file__).parents[1]
VERBS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "studies": ["studies"],
    "claims": ["claims"],
    "claims B6": ["claims", "B6"],
    "run (tiny)": ["run", "contrast-dynamics", "--scale", "tiny", "--device", "cpu"],
    "report": ["report", str(ROOT / "results" / "topk-phase-paper.json")],
}
LONG = {
    "report of all results": ["report", str(ROOT / "results")],
    "make demo": ["demo", "--results", str(ROOT / "results")],
    "make test": ["make", "--directory", str(ROOT), "test"],
}
COLUMNS = ("first line", "its processor time", "end", "processor")


def seconds(arguments: list[str]) -> tuple[float, float, float, float]:
    folder = tempfile.mkdtemp()
    began, spent = time.perf_counter(), _spent()
    process = subprocess.Popen(
        arguments if arguments[0] == "make" else [sys.executable, "-m", "rarefy", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1), "it said nothing"
    first = time.perf_counter() - began
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    core = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    process.communicate()
    assert process.returncode == 0
    shutil.rmtree(folder)
    return first, core, time.perf_counter() - began, _spent() - spent


def _spent() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    arguments = asked(__doc__ or "", repeats=size(5, 1), long=False, machine="here")
    verbs = size(VERBS, {"--version": VERBS["--version"]})
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in verbs}
    for _ in range(arguments.repeats):
        for name, words in verbs.items():
            taken[name].append(seconds(words))
    for name, words in LONG.items() if arguments.long else ():
        taken[name] = [seconds(words)]
    print(f"{'median seconds':24}" + "".join(f"{column:>20}" for column in COLUMNS))
    record = {}
    for name, rows in taken.items():
        values = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"{name:24}" + "".join(f"{value:20.2f}" for value in values))
        record[name] = dict(zip(COLUMNS, values, strict=True))
    keep(arguments, f"commands-{arguments.machine}", {"n": arguments.repeats, "seconds": record})


if __name__ == "__main__":
    main()
