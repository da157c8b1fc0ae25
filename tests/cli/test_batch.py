"""Trainings on a batch system: SIGTERM is unfinished (exit code 3); the page's scripts go on."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from small_commands import SMALL

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.tools import forecasting

HERE = ("--jobs", "1", "--device", "cpu", "--json", "--seeds", "1")
TINY = ("--network", "small_trainings:tiny", "--epochs", "2")
COMMANDS = {
    "train": ("train", "digits", "--samples", "100", *TINY),
    "pretrain": (*("pretrain", *SMALL, "--batch", "32", "--protocols", "knn", "--no-control"),),
    "granularity": (
        *("granularity", "digits=tiny", "--hierarchy", "parents.csv", "--features", "pixels"),
        *TINY,
    ),
}
PAGE = Path(__file__).parents[2] / "docs" / "batch.md"


def block(language: str) -> str:
    page = PAGE.read_text()
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return str(found)


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.quick("pretrain")
@pytest.mark.parametrize("verb", COMMANDS)
def test_sigterm_is_unfinished_and_the_same_command_goes_on(
    verb: str,
    here: Path,
    digits_folder: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 60.0)
    (here / "parents.csv").write_text("child,parent\nzero,round\none,thin\ntwo,round\n")
    words = [digits_folder if word == "digits=tiny" else word for word in COMMANDS[verb]]
    asked, check = [], Context.check_time

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) == 5:  # in the first or second training
            os.kill(os.getpid(), signal.SIGTERM)
        check(self)

    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        assert cli.main([*words, *HERE, "--out", "store"]) == 3
    said = capsys.readouterr().err
    last = said.splitlines()[-1]
    assert re.match(r"note: stopped: \d of \d+ cells are stored in store", last), said
    assert f"go on with: rarefy {verb}" in last
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    # (that it goes on to the same numbers is tested with each verb's clock)
    assert cli.main([*words, *HERE, "--out", "store"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"]


def test_sigterm_outside_a_run_is_unfinished_too(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rarefy.tools import train_images

    monkeypatch.setattr(
        train_images, "train", lambda *given, **more: os.kill(os.getpid(), signal.SIGTERM)
    )
    assert cli.main(["train", "digits"]) == 3
    assert capsys.readouterr().err == "note: stopped by SIGTERM; the same command goes on\n"


def test_the_slurm_script_queues_unfinished_trainings_again(tmp_path: Path) -> None:
    (tmp_path / "array.sh").write_text(block("bash"))
    (tmp_path / "trainings.txt").write_text("rarefy 0 'a b'\nrarefy 3\nrarefy 2\n")
    program(tmp_path, "rarefy", 'echo "$2" >> seen; exit $1\n')
    program(tmp_path, "srun", 'exec "$@"\n')
    program(tmp_path, "scontrol", 'echo "$@" >> seen\n')
    codes = []
    for task in "123":
        given = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_JOB_ID": "70"}
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "array.sh"], cwd=tmp_path, env={**os.environ, "PATH": path, **given}
        )
        codes.append(done.returncode)
    assert codes == [0, 3, 2]
    assert (tmp_path / "seen").read_text() == "a b\n\nrequeue 70_2\n\n"


def test_the_submitit_example_trains_until_nothing_is_unfinished(
    here: Path, toy_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unfinished in its first job (what the verbs do then is tested above), trained in the next."""
    pytest.importorskip("submitit")
    rarefy = f"{sys.executable} -m rarefy"
    program(here, "rarefy", f'if mkdir first; then exit 3; fi\nexec {rarefy} "$@"\n')
    path = os.pathsep.join([toy_environment["PYTHONPATH"], str(PAGE.parents[1] / "tests")])
    given = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PATH": f"{here}:{os.environ['PATH']}"}
    for name, value in {**toy_environment, **given}.items():
        monkeypatch.setenv(name, value)
    tiny = ("rarefy train digits --samples 50 --keep 0.5 --seeds 1 --jobs 1 --json", *TINY)
    (here / "trainings.txt").write_text(" ".join((*tiny, "--out", "runs/a")) + "\n")
    names: dict[str, object] = {}
    exec(compile(block("python"), "batch.md", "exec"), names)
    assert names["codes"] == [0] and names["waiting"] == []
    assert len(list((here / "jobs").glob("*_result.pkl"))) == 2  # unfinished, and again
    assert cli.main(["check", "runs/a"]) == 0
