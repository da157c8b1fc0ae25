"""Stores at an address: a kill before every single write."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from killed_remotely import EARLIER, kill_and_go_on
from toy_study import Toy, only

import rarefy
from rarefy.core.errors import UsageError
from rarefy.core.place import Remote
from rarefy.studies.api import open_store

pytestmark = pytest.mark.usefixtures("eager")


@pytest.mark.parametrize("how", EARLIER)
def test_killed_before_each_write_the_same_command_finishes_it(
    how: str,
    memory: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    kills = kill_and_go_on(memory, monkeypatch, how)
    record_property("kills", kills)
    assert kills > 20


def test_sigkill_of_a_run_into_an_s3_store(
    s3: str,
    here: Path,
    toy_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """The lease stays behind; on the same machine nobody has to wait until it runs out."""
    only(monkeypatch, Toy)
    out, options = f"{s3}/toy", {"scale": "quick", "seeds": 40, "pause": 0.05, "device": "cpu"}
    line = f"-m rarefy run toy --scale quick --seeds 40 --set pause=0.05 --device cpu --out {out}"
    told = {name: value for name, value in os.environ.items() if name[:4] == "AWS_"}
    process = subprocess.Popen(
        [sys.executable, *line.split()], cwd=here, env={**toy_environment, **told}
    )
    done = 0
    while process.poll() is None and not done:
        time.sleep(0.2)
        with contextlib.suppress(UsageError):  # there is none yet
            done = int(open_store(out).done().sum())
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert Remote(f"{s3}/.toy.lock").exists()
    done = int(open_store(out).done().sum())
    record_property("cells_done_at_the_kill", done)
    assert 0 < done < 240
    Path("hurry").touch()
    began = time.monotonic()
    found = rarefy.run(Toy, out=out, **options)
    record_property("seconds_until_finished", round(time.monotonic() - began, 1))
    assert found.equals(rarefy.run(Toy, **options))
