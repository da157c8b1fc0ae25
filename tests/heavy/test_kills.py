"""Commands that are killed.

Every command is run once undisturbed. Then it is killed at moments drawn at random over what it
writes, several times in a row, by SIGKILL, SIGTERM or Ctrl-C pressed twice. The same command then
has to finish it, and every file has to hold what the undisturbed one left, bit for bit.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import rarefy
from rarefy.tools.samples.opening import open_samples

SEED = 28
KILLS = (3, 2)
"""Each command is begun so often, and killed so many times in a row before it may finish."""
TIMEOUT = 300
QUEUE = Path(__file__).parents[2] / "queues" / "longtail.sh"
SMALL = "--network lenet --out s"
TRAIN = f"train digits --keep 0.5 --samples 300 --seeds 2 --save n {SMALL}"
PRETRAIN = f"pretrain digits --rho 8 --head 24 --protocols knn --seeds 1 --no-control {SMALL}"
PRETRAIN += " --method simclr,branches:0.3 --jobs 1 --save n"
COMMANDS = {
    "run in threads": "rarefy run contrast-init --scale tiny --seeds 400 --out s --results r",
    "run in processes": "rarefy run influence-removal --scale tiny --seeds 2 --out s --jobs 2",
    "train in processes": f"rarefy {TRAIN} --epochs 2 --jobs 2",
    "train": f"rarefy {TRAIN} --epochs 6 --jobs 1",
    "pretrain": f"rarefy {PRETRAIN} --epochs 60",
    "granularity": f"rarefy granularity digits --epochs 2 --seeds 1 --samples 120 {SMALL}"
    " --features pixels --made kmeans-within:2 --jobs 1",
    "influence": "rarefy influence photos --csv --out s",
    "clean": "rarefy clean photos --picks picks.json --copy --out s",
    "queue": "./queue.sh --jobs 1",
}
COLD = (COMMANDS["run in threads"], COMMANDS["queue"])
"""With all the imports of a process of their own."""
VOLATILE = re.compile(
    rb'[0-9a-f]{32}|\d{4}-\d\d-\d\dT[\d:+]+|"\w*seconds": [\d.]+|scored in</dt><dd>[^<]*|'
    rb'influence-photos-[0-9a-f]{8}|"before": \[[^]]*\]'
)
"""Times, dates, hashes of what has them, names by the path of the data, and what was replaced."""


Each = Callable[[int], object]
"""Of the number of a process."""


class Ran(NamedTuple):
    code: int
    told: str
    seconds: float


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """``rarefy`` is a program here, and two batches run at once."""
    program = tmp_path_factory.mktemp("bin") / "rarefy"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rarefy "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    source = str(Path(rarefy.__file__).parents[1])
    added = {"PATH": path, "PYTHONPATH": source, "RAREFY_COMPILE": "0", "OMP_NUM_THREADS": "2"}
    return {**os.environ, **added, "COLUMNS": "80"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos and decisions about them, and a queue."""
    folder, digits = tmp_path_factory.mktemp("inputs"), load_digits()
    for number, name in enumerate(("zero", "one", "two")):
        (folder / "photos" / name).mkdir(parents=True)
        for place in (digits.target == number).nonzero()[0][:25]:
            image = Image.fromarray((digits.images[place] * 15).astype("uint8")).resize((24, 24))
            image.save(folder / "photos" / name / f"{place}.png")
    ids = open_samples(folder / "photos").ids[::4]
    picks = [{"id": each, "decision": "drop"} for each in ids]
    held = {"format": "rarefy picks 1", "data": "photos", "read": {}, "picks": picks}
    (folder / "picks.json").write_text(json.dumps(held))
    head, _, _ = QUEUE.read_text("utf-8").partition("\n# the share")
    lines = "\ntry rarefy run influence-removal --scale tiny --seeds 1"
    lines += "\ntry rarefy run influence-covariance --scale tiny --seeds 1\nexit $ended\n"
    (folder / "queue.sh").write_text(head + lines)
    (folder / "queue.sh").chmod(0o755)
    return folder


class Watch:
    """How far a command is, by what it has written: every file that has come or changed counts.
    (Not by the clock: the next one may find the machine less busy.)"""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen = folder, set[tuple[str, int]]()
        self.given = self.look()

    def look(self) -> int:
        for place, _, files in os.walk(self.folder):
            for name in files:
                path = os.path.join(place, name)
                with contextlib.suppress(OSError):  # it has just gone
                    self.seen.add((path, os.stat(path).st_mtime_ns))
        return len(self.seen)


WARM = """
import json, os, signal, sys
import matplotlib.pyplot, pandas, sklearn.linear_model, torch, xarray, zarr
import rarefy.tools.train_images, rarefy.tools.longtail.pretrain_images
from rarefy.cli import main
for line in sys.stdin:
    folder, words, said = json.loads(line)
    if not (child := os.fork()):
        os.setsid()
        os.chdir(folder)
        for number, path in enumerate((os.devnull, os.devnull, said)):
            os.dup2(os.open(path, os.O_RDWR), number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = words
        sys.exit(main())
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports what commands need, then forks for each of them: imports take longer than what they do,
and a kill would hit little else."""


class Runner:
    """Runs commands, most of them out of a process that has imported everything."""

    def __init__(self, environment: dict[str, str], scratch: Path) -> None:
        self.environment, self.said = environment, scratch / "said"
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.warm = subprocess.Popen([sys.executable, "-c", WARM], env=environment, **pipes)

    def __call__(self, folder: Path, words: str, each: Each | None = None) -> Ran:
        """Run a command; ``each`` is called with its process again and again while it runs."""
        self.said.write_bytes(b"")
        began, program = time.monotonic(), words.split()
        if words in COLD:
            before = signal.signal(signal.SIGINT, signal.default_int_handler)  # (as in a terminal)
            with self.said.open("wb") as said:
                pipes: Any = {"stdout": subprocess.DEVNULL, "stderr": said}
                pipes |= {"cwd": folder, "env": self.environment, "start_new_session": True}
                process = subprocess.Popen(program, **pipes)
            signal.signal(signal.SIGINT, before)
            pid, ended = process.pid, process.poll
        else:
            assert self.warm.stdin is not None and self.warm.stdout is not None
            self.warm.stdin.write(json.dumps([str(folder), program, str(self.said)]) + "\n")
            self.warm.stdin.flush()
            answers = self.warm.stdout
            pid = int(answers.readline())

            def ended() -> int | None:
                there = select.select([answers], [], [], 0)[0]
                return int(answers.readline()) if there else None

        while (code := ended()) is None:
            if time.monotonic() - began > TIMEOUT:
                os.killpg(pid, signal.SIGKILL)
                raise AssertionError(f"{words} does not end: {self.said.read_text()}")
            if each is not None:
                each(pid)
            time.sleep(0.01)
        return Ran(code, self.said.read_text(), time.monotonic() - began)


@pytest.fixture(scope="module")
def run(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    runner = Runner(environment, tmp_path_factory.mktemp("said"))
    yield runner
    runner.warm.kill()
    runner.warm.communicate()


def outcome(folder: Path, inputs: Path) -> dict[str, Any]:
    """What a command has left, without times and dates."""
    given = {path.relative_to(inputs) for path in inputs.rglob("*")}
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if not path.is_file() or name in given or "run_seconds" in name.parts:
            continue
        if ".partial" in str(name):  # (the next one that writes there removes it, a minute later)
            continue
        content: Any = path.read_bytes()
        if path.suffix == ".pt":
            content = leaves(torch.load(path, weights_only=True))
        elif path.suffix == ".parquet":
            content = pd.read_parquet(path).to_csv()
        elif path.suffix in (".json", ".html"):
            content = VOLATILE.sub(b"", content)
        found[name.as_posix()] = content
    return found


def leaves(value: Any, at: str = "") -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        return {at: (value.dtype, value.numpy(force=True).tobytes())}
    if isinstance(value, dict | list | tuple):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {
            place: leaf
            for name, part in parts
            for place, leaf in leaves(part, f"{at}/{name}").items()
        }
    return {at: repr(value)}


@dataclass
class Kill:
    """Ends a process when so much is written, and a little later."""

    watch: Watch
    moment: float
    kind: str
    everybody: bool
    """A script and its command; else the first process alone."""
    pauses: random.Random
    hit: str = "after"
    at: float = 0.0
    begun: bool = False

    def __call__(self, process: int) -> None:
        now, seen = time.monotonic(), self.watch.look()
        if not self.at and seen >= self.moment:
            # as far as that already when it begins: somewhere in the beginning
            self.at = now + self.pauses.uniform(0, 0.3 if self.begun else 3)
        self.begun = True
        if self.hit != "after" or not self.at or now < self.at:
            return
        self.hit = "in" if seen > self.watch.given else "before"
        if self.kind == "Ctrl-C twice":  # (a terminal sends it to all)
            os.killpg(process, signal.SIGINT)
            time.sleep(self.pauses.uniform(0, 0.5))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGINT)
        else:
            (os.killpg if self.everybody else os.kill)(process, getattr(signal, self.kind))


@pytest.mark.fault(
    when="a command is killed (SIGKILL), asked to end (SIGTERM) or stopped with Ctrl-C pressed "
    "twice, at a random moment, up to three times in a row: `run`, `train`, `pretrain`, "
    "`granularity`, `influence`, `clean`, a queue",
    then="the same command finishes it, and every file holds what an undisturbed one leaves, bit "
    "for bit; no traceback",
    lost="the batches under way; of trainings at most a minute; of other commands what they did",
    named="a parent killed at random moments: SIGKILL, SIGTERM, Ctrl-C twice",
)
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(
    name: str,
    inputs: Path,
    run: Runner,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """Kills of one command; the same command then gives an undisturbed one's bits."""
    words, drawn = COMMANDS[name], random.Random(f"{SEED} {name}")
    shutil.copytree(inputs, tmp_path / "whole")
    watch = Watch(tmp_path / "whole")
    whole = run(tmp_path / "whole", words, lambda process: watch.look())
    assert whole.code == 0, whole.told
    last, expected = watch.look(), outcome(tmp_path / "whole", inputs)
    assert expected
    hits: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for chain, kills in enumerate(KILLS):
        folder = tmp_path / str(chain)
        shutil.copytree(inputs, folder)
        watch = Watch(folder)
        for moment in sorted(drawn.uniform(watch.given, last) for _ in range(kills)):
            kind = drawn.choice(("SIGKILL", "SIGTERM", "Ctrl-C twice"))
            kill = Kill(watch, moment, kind, everybody=name == "queue", pauses=drawn)
            stopped = run(folder, words, kill)
            # (Python's own first imports say where they were: no line of ours has run then)
            early = "rarefy" not in stopped.told and stopped.told.endswith("KeyboardInterrupt\n")
            assert "Traceback" not in stopped.told or early, (kind, moment, stopped.told)
            hits[kill.hit] += 1
            kinds[kind] += kill.hit != "after"
        again = run(folder, words)
        for _ in range(3):  # (processes of a killed parent end by themselves, a little later)
            if again.code != 3:
                break
            time.sleep(3)
            again = run(folder, words)
        assert again.code == 0, again.told
        found = outcome(folder, inputs)
        assert sorted(found) == sorted(expected)
        assert [path for path in found if found[path] != expected[path]] == []
        shutil.rmtree(folder)
    assert kinds.total() >= 2, "hardly a kill hit the work"
    record_property("kills", kinds.total())
    record_property("before, in and after the work", [hits[w] for w in ("before", "in", "after")])
    record_property("by", dict(kinds))
    record_property("seed of the moments", f"{SEED} {name}")
    record_property("seconds undisturbed", round(whole.seconds, 1))
