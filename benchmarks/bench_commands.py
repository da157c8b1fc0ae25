"""Seconds from the start of a process until a verb prints its first line, and until it ends.

On standard output or error: what a person sees. Five times each, in turn; processor time is that
of the process until its first line, fair on a machine that is busy.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import asked, keep, size

VERBS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "studies": ["studies"],
    "claims": ["claims"],
    "claims B6": ["claims", "B6"],
    "run (tiny)": ["run", "contrast-dynamics", "--scale", "tiny", "--device", "cpu"],
    "report": ["report", str(Path(__file__).parents[1] / "results" / "topk-phase-paper.json")],
}
COLUMNS = ("first line", "its processor time", "end")


def seconds(arguments: list[str]) -> tuple[float, float, float]:
    folder = tempfile.mkdtemp()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "rarefy", *arguments],
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
    return first, core, time.perf_counter() - began


def main() -> None:
    arguments = asked(__doc__ or "", repeats=size(5, 1))
    verbs = size(VERBS, {"--version": VERBS["--version"]})
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in verbs}
    for _ in range(arguments.repeats):
        for name, words in verbs.items():
            taken[name].append(seconds(words))
    print(f"{'median seconds':16}" + "".join(f"{column:>20}" for column in COLUMNS))
    record = {}
    for name, rows in taken.items():
        values = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"{name:16}" + "".join(f"{value:20.2f}" for value in values))
        record[name] = dict(zip(COLUMNS, values, strict=True))
    keep(arguments, "commands", {"n": arguments.repeats, "seconds": record})


if __name__ == "__main__":
    main()
