"""Scripts of many runs: every line can be run, and goes on after others that are unfinished."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from rarefy.studies import get_study

QUEUES = sorted((Path(__file__).parents[2] / "queues").glob("*"))
RECORD = """#!/usr/bin/env bash
echo "$*" >> said
case "$*" in {cases} *) exit 0 ;; esac
"""


@pytest.mark.parametrize("script", QUEUES, ids=lambda path: path.name)
def test_every_line_is_a_run_of_its_own(script: Path) -> None:
    text = script.read_text("utf-8")
    lines = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("try ")]
    for rarefy, run, name, *options in lines:
        named = dict(zip(options[::2], options[1::2], strict=True))
        assert (rarefy, run) == ("rarefy", "run") and named.keys() <= {"--scale", "--seeds"}
        get_study(name).at(named["--scale"], seeds=int(named.get("--seeds", 1)))
    scales = [(line[2], line[4]) for line in lines]
    assert scales and len(set(scales)) == len(scales)


@pytest.mark.parametrize(
    ("cases", "code", "all_run"),
    [
        ("", 0, True),
        ("*cifar10-keep-100*) exit 3 ;;", 3, True),
        ("*cifar10-keep-100*) exit 1 ;; *cifar100-keep-100*) exit 3 ;;", 1, True),
        ("*cifar100-keep-100*) exit 130 ;;", 130, False),
    ],
)
def test_a_line_goes_on_after_others(tmp_path: Path, cases: str, code: int, all_run: bool) -> None:
    (tmp_path / "rarefy").write_text(RECORD.format(cases=cases))
    (tmp_path / "rarefy").chmod(0o755)
    (script,) = (path for path in QUEUES if path.name == "longtail.sh")
    ended = subprocess.run(
        [script, "--max-seconds", "9 9"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=False,
    )
    assert ended.returncode == code
    said = (tmp_path / "said").read_text().splitlines()
    first = "run longtail-table --scale cifar10-keep-100 --results results --max-seconds 9 9"
    assert said[0] == first
    assert (len(said) == script.read_text().count("\ntry rarefy")) is all_run
