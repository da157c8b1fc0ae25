"""Every reader under fire for minutes: RAREFY_FUZZ_SECONDS each, 600 if nothing is said, shared by
its targets.

Inputs are chosen by what they reach in the code that is Python; half of them are made by the
changes of the suite's short runs. Parsers in C (Arrow, libpng, libjpeg, zstd, PyTorch's zip files)
are seen from outside alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fuzz_targets import READER, READERS, TARGETS

import rarefy

SECONDS = int(os.environ.get("RAREFY_FUZZ_SECONDS", "600"))
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path, int], int]]:
    """Fuzzes a target in a process that imports everything once, and gives the exit code."""
    pytest.importorskip("atheris", reason="no atheris for this Python: pip install rarefy[heavy]")
    path = os.pathsep.join([str(HERE.parent), str(Path(rarefy.__file__).parents[1])])
    room = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAREFY_COMPILE": "0"}
    call = [sys.executable, str(HERE / "fuzz_process.py")]
    log = tmp_path_factory.mktemp("fuzz") / "log"
    pipe = subprocess.PIPE
    with log.open("w") as said:
        process = subprocess.Popen(call, env=room, stdin=pipe, stdout=pipe, stderr=said, text=True)
    assert process.stdin is not None and process.stdout is not None
    ask, answers = process.stdin, process.stdout

    def one(name: str, folder: Path, seconds: int) -> int:
        print(name, folder, seconds, sep="\t", file=ask, flush=True)
        answer = answers.readline()
        assert answer, log.read_text("utf-8", "replace")[-2000:]
        return int(answer)

    yield one
    ask.close()
    process.wait()
    answers.close()


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_stands_random_files(
    name: str,
    fuzz: Callable[[str, Path, int], int],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    reader = READER[name]
    seconds = -(-SECONDS // len(READERS[reader]))
    code = fuzz(name, tmp_path, seconds)
    log = (tmp_path / "log").read_text("utf-8", "replace")
    for what, value in {"reader": reader, "asked seconds": seconds, **_measured(log)}.items():
        record_property(what, value)
    found = tmp_path / "found.json"
    told = json.loads(found.read_text()) if found.exists() else {}
    record_property("findings", len(told))
    assert not told and code == 0, (
        f"{json.dumps(told, indent=1)[:4000]}\n{log[-1000:] * (code != 0)}"
    )


def _measured(log: str) -> dict[str, int]:
    """Executions, and edges of instrumented code and inputs kept, with the seeds and at the end."""
    states = re.findall(r"(\w+)\s+cov: (\d+) ft: \d+ corp: (\d+)", log)
    first = next((state for state in states if state[0] == "INITED"), ("", "0", "0"))
    last = states[-1] if states else first
    runs = re.search(r"number_of_executed_units: (\d+)", log)
    return {
        "runs": int(runs[1]) if runs else 0,
        "edges by the seeds": int(first[1]),
        "edges": int(last[1]),
        "inputs kept": int(last[2]),
    }
