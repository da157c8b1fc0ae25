"""An hour of commands in one process: memory, open files, threads and temporary files do not grow.

Every round runs a sweep, more seeds of it, scores with their page, and a report, all through the
command line's entry point and under new names. ``RAREFY_SOAK_SECONDS`` says for how long.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_study import Toy, only

from rarefy import cli
from rarefy.measure.estimates import Interval, t_quantile

SECONDS = float(os.environ.get("RAREFY_SOAK_SECONDS", "3600"))
WARM_UP, PARTS = 1 / 4, 12
"""The first quarter is left out: libraries fill their caches. The rest is cut into parts, whose
medians are the points of a line: rounds next to each other are not independent."""
MOST_MEGABYTES = 20.0
"""That an hour may add, by the upper end of the interval; a process of 500 MB could then run for a
day. Chosen before the first run."""
MOST_OBJECTS = 1.0
"""That a round may add, likewise; a leak of one container per command would be four."""


def growth(at: np.ndarray, values: np.ndarray) -> Interval:
    """Slope over ``at`` with its 95 % interval, from medians of parts."""
    parts = np.array_split(np.arange(len(at)), PARTS)
    x, y = (np.array([np.median(each[part]) for part in parts]) for each in (at, values))
    away = x - x.mean()
    slope = float(away @ y / (away @ away))
    rest = y - y.mean() - slope * away
    half = float(t_quantile(PARTS - 2)) * float(np.sqrt(rest @ rest / (PARTS - 2) / (away @ away)))
    return Interval(slope, slope - half, slope + half, len(at))


def megabytes() -> float:
    """Resident memory that is no file's: what this process has taken for itself."""
    status = Path("/proc/self/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


SAID = io.StringIO()
"""For all commands: click never lets go of a stream that it has written to."""


def one_round(number: int, folder: Path) -> None:
    """Commands in a folder of their own, which then goes away; nothing may be left elsewhere."""
    here = folder / f"round-{number}"
    here.mkdir()
    os.chdir(here)
    rng = np.random.default_rng(number)
    np.savez("set.npz", X=rng.normal(size=(400, 8)), y=np.arange(400) % 4)
    commands = (
        ("run", "toy", "--scale", "tiny", "--results", "res"),
        ("run", "toy", "--scale", "tiny", "--seeds", "4"),
        ("influence", "set.npz", "--csv"),
        ("report", "runs/toy-tiny", "res", "--out", "page.html"),
    )
    for command in commands:
        SAID.seek(0)
        SAID.truncate()
        with contextlib.redirect_stdout(SAID), contextlib.redirect_stderr(SAID):
            code = cli.main([*command])
        assert code == 0, SAID.getvalue()
    os.chdir(folder)
    shutil.rmtree(here)


def soak(seconds: float, folder: Path, work: Callable[[int, Path], None]) -> dict[str, np.ndarray]:
    """What was seen after each round."""
    seen: dict[str, list[float]] = {}
    began = time.monotonic()
    while (now := time.monotonic() - began) < seconds or len(seen["seconds"]) < 2 * PARTS:
        used = time.process_time()
        work(len(seen.get("seconds", ())), folder)
        used = time.process_time() - used
        gc.collect()
        found = {
            "seconds": now,
            "processor": used,
            "megabytes": megabytes(),
            "objects": len(gc.get_objects()),
            "files": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
            "left": sum(len(names) for _, *both in os.walk(folder) for names in both),
        }
        for name, value in found.items():
            seen.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in seen.items()}


def judged(seen: dict[str, np.ndarray], record: Callable[[str, Any], None]) -> list[str]:
    """What grew, in words."""
    rounds = len(seen["seconds"])
    warm = int(rounds * WARM_UP)
    later = {name: values[warm:] for name, values in seen.items()}
    memory = growth(later["seconds"] / 3600, later["megabytes"])
    objects = growth(np.arange(warm, rounds), later["objects"])
    slower = growth(later["seconds"] / 3600, later["processor"] / np.median(later["processor"]))
    record("seconds", round(float(seen["seconds"][-1])))
    record("rounds", rounds)
    record("rounds left out as warm-up", warm)
    record("megabytes after the first round, warm-up and all", [
        round(float(seen["megabytes"][place]), 1) for place in (0, warm, -1)
    ])  # fmt: skip
    parts = np.array_split(later["megabytes"], PARTS)
    record("megabytes, medians of parts", [round(float(np.median(part)), 1) for part in parts])
    for name, found in (
        ("megabytes per hour", memory),
        ("objects per round", objects),
        ("processor time of a round, relative change per hour", slower),
    ):
        record(name, [round(value, 4) for value in found[:3]])
    record("processor seconds of a round", round(float(np.median(later["processor"])), 3))
    grew = []
    if memory.high > MOST_MEGABYTES:
        grew.append(f"memory by {memory} MB an hour")
    if objects.high > MOST_OBJECTS:
        grew.append(f"objects by {objects} a round")
    for name in ("files", "threads", "left"):
        most = int(seen[name][: max(warm, 1)].max()), int(later[name].max())
        record(f"most {name} in the warm-up and after", most)
        if most[1] > most[0]:
            grew.append(f"{name} from {most[0]} to {most[1]}")
    return grew


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAREFY_COMPILE", "0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    only(monkeypatch, Toy)
    return tmp_path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_an_hour_of_commands_adds_nothing(
    folder: Path, record_property: Callable[[str, Any], None]
) -> None:
    seen = soak(SECONDS, folder, one_round)
    if keep := os.environ.get("RAREFY_SOAK_KEEP"):
        np.savez(keep, **seen)
    assert judged(seen, record_property) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_leak_is_told(folder: Path) -> None:
    """The soak can fail: a few kB, two objects and a file kept per round."""
    kept: list[Any] = []

    def leaks(number: int, folder: Path) -> None:
        kept.append([b"%05d" % number * 10_000, []])
        (folder / f"{number}.tmp").touch()
        time.sleep(0.001)

    grew = judged(soak(1.0, folder, leaks), lambda name, value: None)
    assert [each.partition(" ")[0] for each in grew] == ["memory", "objects", "left"]
