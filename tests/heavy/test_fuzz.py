"""Every reader under fire for minutes: RAREFY_FUZZ_SECONDS each, 600 if nothing is said.

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
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz_targets import GROUPS

import rarefy

SECONDS = int(os.environ.get("RAREFY_FUZZ_SECONDS", "600"))
HERE = Path(__file__).parent


@pytest.mark.parametrize("group", GROUPS)
def test_readers_stand_random_files(
    group: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pytest.importorskip("atheris", reason="no atheris for this Python: pip install rarefy[heavy]")
    names = [target.name for target in GROUPS[group]]
    path = os.pathsep.join([str(HERE.parent), str(Path(rarefy.__file__).parents[1])])
    room = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "RAREFY_COMPILE": "0"}
    call = [sys.executable, str(HERE / "fuzz_process.py"), str(tmp_path), str(SECONDS), *names]
    ended = subprocess.run(call, env=room, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    wrong = {}
    for name in names:
        stem = re.sub(r"\W+", "-", name)
        log = (tmp_path / f"{stem}.log").read_text("utf-8", "replace")
        told = (
            json.loads(found.read_text()) if (found := tmp_path / f"{stem}.json").exists() else {}
        )
        code = int((tmp_path / f"{stem}.code").read_text())
        record_property(name, {**_measured(log), "asked": f"{SECONDS} s", "findings": len(told)})
        if told or code:
            wrong[name] = [f"exit code {code}: {log[-600:]}"] * bool(code) + list(told.values())
    assert not wrong, json.dumps(wrong, indent=1)[:6000]


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
