"""``rarefy queue`` through its real entry point, and every way a queue can stop in this process."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toy_study import Toy, only
from toy_training import ToyTraining

from rarefy import cli
from rarefy.cli import queueing
from rarefy.core.contracts import Cells, Context
from rarefy.studies.api import read_results
from rarefy.sweep.lock import Lock

Rarefy = Callable[..., subprocess.CompletedProcess[str]]
Out = pytest.CaptureFixture[str]


def test_the_real_command_runs_and_tells(command: Rarefy, tmp_path: Path) -> None:
    lines = ["toy --scale tiny --set break_at_seed=0  # cannot", "toy --scale tiny --set lr=0.5"]
    (tmp_path / "q.txt").write_text("\n".join(lines))
    ran = command("queue", "q.txt")
    assert ran.returncode == 1
    assert "1 of 2: toy tiny --set break_at_seed=0\n" in ran.stderr
    assert "error: q.txt:1: ZeroDivisionError: the toy was told to break" in ran.stderr
    assert "2 of 2: toy tiny --set lr=0.5\ntoy: start\ntoy: finished" in ran.stderr
    assert max(len(line) for line in ran.stdout.splitlines() if "ZeroDiv" not in line) <= 80
    assert re.search(r"1 +toy +tiny +0/12 +failed +\d s", ran.stdout)
    assert re.search(r"2 +toy +tiny +12/12 +done +\d s", ran.stdout)
    assert "1 of 2 lines are done, 1 failed; 12 cells remain; the same command" in ran.stdout


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, eager: None) -> Path:
    """Toys are the only studies, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    toys = {"toy": Toy, "toy-training": ToyTraining}
    only(monkeypatch, *toys.values())
    return tmp_path


def queue(*lines: str, options: tuple[str, ...] = ()) -> int:
    Path("q.txt").write_text("\n".join(lines))
    return cli.main(["queue", "q.txt", *options])


def states(capsys: Out) -> list[str]:
    """What ``--list`` says of the queue that was written last."""
    capsys.readouterr()
    assert cli.main(["queue", "q.txt", "--list", "--json"]) == 0
    return [line["state"] for line in json.loads(capsys.readouterr().out)["lines"]]


def test_help_has_examples(capsys: Out) -> None:
    assert cli.main(["queue", "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("Example: rarefy queue") == 2 and "--overwrite" not in shown


# Going through


def test_listing_runs_nothing(here: Path, capsys: Out) -> None:
    assert queue("", "toy --scale tiny", "toy --set lr=0.5", options=("--list",)) == 0
    shown = capsys.readouterr()
    assert re.search(r"2 +toy +tiny +0/12 +waiting +-", shown.out)
    assert re.search(r"3 +toy +quick +0/180 +waiting +- +\n +--set lr=0.5", shown.out)
    assert "0 of 2 lines are done, 2 waiting; 192 cells remain\n" in shown.out
    assert shown.err == "" and [path.name for path in here.iterdir()] == ["q.txt"]


def test_what_is_done_is_not_run_again(here: Path, capsys: Out) -> None:
    assert cli.main(["run", "toy", "--scale", "tiny"]) == 0  # in the store that the queue uses
    capsys.readouterr()
    lines = (
        "toy --scale tiny",
        "toy --scale tiny --seeds 3",
        "toy --scale tiny --set nan_at_seed=1",
    )
    assert queue(*lines) == 0
    shown = capsys.readouterr()
    assert "1 of 3" not in shown.err
    assert "2 of 3: toy tiny --seeds 3\ntoy: start (67% found in the store)" in shown.err
    assert "6 of 12 cells stopped being finite" in shown.out and "all 3 lines are done" in shown.out
    assert queue(*lines, options=("--json",)) == 0
    shown = capsys.readouterr()
    described = json.loads(shown.out)
    assert shown.err == "" and described["summary"] == "all 3 lines are done"
    second = described["lines"][1]
    assert second.pop("stored_seconds") >= 0
    assert second == {
        "line": 2,
        "study": "toy",
        "scale": "tiny",
        "changes": "--seeds 3",
        "store": "runs/toy-tiny",
        "cells": 18,
        "cells_done": 18,
        "state": "done",
        "note": "",
        "seconds": None,
    }


def test_results_are_written_and_count_without_a_store(here: Path, capsys: Out) -> None:
    options = ("--results", "res", "--out", "stores")
    assert queue("toy --scale tiny --seeds 3", options=("--out", "stores")) == 0
    assert queue("toy --scale tiny --seeds 3", options=(*options, "--list")) == 0
    assert "1 to be written into the results; 0 cells remain" in capsys.readouterr().out
    assert queue("toy --scale tiny --seeds 3", options=options) == 0
    shown = capsys.readouterr()
    # written from the store, with nothing run
    assert "results: res/toy-tiny.parquet" in shown.err and "toy: start" not in shown.err
    elsewhere = ("--results", "res", "--out", "elsewhere")
    assert queue("toy --scale tiny", options=elsewhere) == 0
    assert re.search(r"toy +tiny +12/12 +done in results +-", capsys.readouterr().out)
    assert not Path("elsewhere").exists()
    # fewer seeds did not replace more
    json_ = json.loads(Path("res/toy-tiny.json").read_text())
    assert json_["spec"]["parameters"]["seeds"] == 3
    assert queue("toy --scale tiny --seeds 4", options=options) == 0
    json_ = json.loads(Path("res/toy-tiny.json").read_text())
    assert json_["spec"]["parameters"]["seeds"] == 4


def test_results_are_those_of_a_plain_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)
    assert queue("toy --scale tiny --set lr=0.5", options=("--results", "a")) == 0
    words = ["run", "toy", "--scale", "tiny", "--set", "lr=0.5"]
    assert cli.main([*words, "--results", "b"]) == 0
    assert read_results("a/toy-tiny.json")[2].equals(read_results("b/toy-tiny.json")[2])


def test_jobs_are_for_trainings_and_a_line_has_its_own(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, ...]] = []
    run_study = queueing.run_study

    def look(*arguments: Any, threads: int | None) -> Any:
        seen.append((arguments[0].name, arguments[3], arguments[4], arguments[-1], threads))
        return run_study(*arguments[:-1], 1, threads=threads)

    monkeypatch.setattr(queueing, "run_study", look)
    lines = (
        "toy --scale tiny --dtype float64",
        "toy-training --scale tiny",
        "toy-training --scale tiny --jobs 3 --seeds 4",
    )
    assert queue(*lines, options=("--jobs", "2", "--threads", "2", "--device", "cpu")) == 0
    assert seen == [
        ("toy", "cpu", "float64", None, 2),
        ("toy-training", "cpu", "float32", 2, 2),
        ("toy-training", "cpu", "float32", 3, 2),
    ]


# Stops


def test_time_is_for_the_whole_queue(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate, now, through = Toy.simulate, time.monotonic, []

    def counted(study: Toy, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        found = simulate(study, cells, context)
        through.append(len(cells))
        return found

    lines = ("toy --scale tiny", "toy", "toy --scale tiny --set lr=2")
    with monkeypatch.context() as patch:  # time is over in the second batch of the second line
        patch.setattr(Toy, "simulate", counted)
        late = SimpleNamespace(monotonic=lambda: now() + 1000 * (sum(through) > 12))
        patch.setattr("rarefy.core.contracts.time", late)
        assert queue(*lines, options=("--max-seconds", "100")) == 0
    shown = capsys.readouterr()
    done = sum(through) - 12
    assert 0 < done < 180 and f"note: time is over: {done} of 180 cells" in shown.err
    assert shown.err.count("go on with: rarefy queue q.txt --max-seconds 100\n") == 1
    assert "3 of 3" not in shown.err
    assert "1 of 3 lines are done, 1 partly done, 1 waiting" in shown.out
    assert states(capsys) == ["done", "partly", "waiting"]
    assert queue(*lines, options=("--max-seconds", "100")) == 0
    assert states(capsys) == ["done", "done", "done"]


def test_no_line_is_begun_after_the_end(here: Path, capsys: Out) -> None:
    assert queue("toy --scale tiny", options=("--max-seconds", "1e-9")) == 0
    assert "0 of 1 lines are done, 1 waiting" in capsys.readouterr().out
    assert not Path("runs").exists()


def test_an_error_can_stop_the_queue(here: Path, capsys: Out) -> None:
    lines = ("toy --scale tiny --set break_at_seed=0", "toy --scale tiny")
    assert queue(*lines, options=("--stop-at-error",)) == 1
    shown = capsys.readouterr()
    assert "2 of 2" not in shown.err
    assert "line 1 failed: ZeroDivisionError: the toy was told to break" in shown.out
    assert "0 of 2 lines are done, 1 waiting, 1 failed" in shown.out
    with pytest.raises(ZeroDivisionError):
        cli.main(["--debug", "queue", "q.txt"])


def test_an_interrupt_ends_the_queue_and_says_how_to_go_on(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(study: Toy, cells: Cells, context: Context) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "simulate", interrupted)
        assert queue("toy --scale tiny", "toy") == 130
    said = capsys.readouterr().err
    assert "error: stopped: 0 of 12 cells" in said and said.endswith("with: rarefy queue q.txt\n")
    assert "2 of 2" not in said


def test_what_another_process_runs_is_left_alone(here: Path, capsys: Out) -> None:
    lock = Lock(here / "runs" / ".toy-tiny.lock", here / "runs" / "toy-tiny")
    lock.acquire()
    try:
        assert queue("toy --scale tiny", "toy --scale tiny --set lr=2") == 0
    finally:
        lock.release()
    shown = capsys.readouterr()
    assert re.search("note: q.txt:1: store runs/toy-tiny is being written by another", shown.err)
    assert "1 of 2 lines are done, 1 being run by another process" in shown.out


def test_a_foreign_store_is_a_failed_line_and_is_kept(here: Path, capsys: Out) -> None:
    assert cli.main(["run", "toy", "--scale", "tiny", "--set", "lr=0.5"]) == 0
    capsys.readouterr()
    lines = ("toy --scale tiny", "toy --scale tiny --set lr=2")
    assert queue(*lines) == 1
    said = (
        "store runs/toy-tiny was made with lr=0.5, not 1.0; remove that store or use another --out"
    )
    assert f"error: q.txt:1: {said}\n" in capsys.readouterr().err
    assert queue(*lines, options=("--list",)) == 0
    shown = capsys.readouterr().out
    assert f"line 1 refused: {said}\n" in shown and "1 of 2 lines are done, 1 refused" in shown
    assert cli.main(["run", "toy", "--scale", "tiny", "--set", "lr=0.5"]) == 0


def test_results_too_large_are_a_failed_line(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarefy.sweep.results.MAX_BYTES", 500)
    assert queue("toy --scale tiny", options=("--results", "res")) == 1
    assert "would have" in capsys.readouterr().err
    assert states(capsys) == ["done"]


# Wrong use: one line, exit code 2, nothing written


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("tou", (), "q.txt:1: unknown study 'tou'; did you mean 'toy'?"),
        ("toy --scale tny", ("--list",), "q.txt:1: unknown scale 'tny'"),
        ("toy\ntoy --set lr=2", ("--results", "res"), "q.txt:2: its results would replace those"),
        ("toy", ("--results", "q.txt"), "results='q.txt': is a file; name a folder"),
        ("toy", ("--out", "q.txt"), "out='q.txt': is a file; name a folder"),
        ("toy", ("--max-seconds", "0"), "max_seconds=0.0: must be more than 0"),
        ("toy", ("--jobs", "0"), "jobs=0: must be at least 1"),
        ("toy", ("--device", "tpu"), "unknown device 'tpu'; did you mean 'cpu'?"),
        ("toy", ("--overwrite",), "No such option"),
        ("# nothing", (), "queue q.txt is empty"),
    ],
)
def test_wrong_use(line: str, options: tuple[str, ...], said: str, here: Path, capsys: Out) -> None:
    assert queue(*line.split("\n"), options=options) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"error: .*\n", shown.err) and said in shown.err
    assert [path.name for path in here.iterdir()] == ["q.txt"]


def test_results_of_other_parameters_stop_the_queue_before_it_runs(here: Path, capsys: Out) -> None:
    assert queue("toy --scale tiny --set lr=2", options=("--results", "res")) == 0
    capsys.readouterr()
    before = Path("res/toy-tiny.json").read_bytes()
    lines = ("toy", "toy --scale tiny")
    assert queue(*lines, options=("--results", "res", "--out", "other")) == 2
    shown = capsys.readouterr()
    assert re.fullmatch(r"error: q\.txt:2: results: res/toy-tiny\.json .*not 1\.0; .*\n", shown.err)
    assert not Path("other").exists() and Path("res/toy-tiny.json").read_bytes() == before
    assert queue(*lines, options=("--results", "res", "--list")) == 0
    assert "1 waiting, 1 refused" in capsys.readouterr().out
