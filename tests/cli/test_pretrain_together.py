"""``rarefy pretrain`` in several processes under torchrun."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from folders import seen_in
from small_commands import SMALL
from small_longtail import task

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.tools.longtail import several_processes
from rarefy.tools.saved_networks import load_backbone


@pytest.mark.slow
def test_two_processes_train_one_network_and_what_is_finished_is_kept(
    here: Path, toy_environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*SMALL, "--batch", "32", "--protocols", "knn", "--method", "branches:0.3"]
    given += ["--seeds", "1", "--device", "cpu", "--out", "store", "--save", "nets"]
    given += ["--epochs", "12"]  # (two looks: all processes keep the network of the same one)
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rarefy"]
    done = subprocess.run(
        [sys.executable, *run, "pretrain", *given],
        cwd=here,
        env={**toy_environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)  # one process speaks
    assert (said["processes"], said["method"], said["rho"]) == (2, "branches:0.3", 8.0)
    assert 0 < said["knn"]["overall"] <= 100 and said["nonfinite_step"] == -1
    name = "digits-lenet-branches-0.3-rho-8-together"
    assert load_backbone(here / "nets" / f"{name}.pt")[1]["way"] == "branches:0.3"
    assert said["kept_epoch"] in (6, 12) and said["stopped_epoch"] is None
    control = said.pop("control")
    assert json.loads((here / "store" / f"{name}.json").read_text()) == said
    assert "epoch 1/12, loss" in done.stderr
    # the balanced control was trained too, by the same two processes on images of its own
    beside = "digits-lenet-branches-0.3-balanced-rho-8-together"
    assert json.loads((here / "store" / f"{beside}.json").read_text()) == control
    assert (control["images"], said["images"], control["processes"]) == ("balanced", "long-tail", 2)
    assert 0 < control["knn"]["overall"] <= 100 and control["loss"] != said["loss"]
    counts = {
        kind: load_backbone(here / "nets" / f"{file}.pt")[1]["counts"]
        for kind, file in (("tail", name), ("control", beside))
    }
    assert counts["tail"][0] == 8 * counts["tail"][-1]
    assert max(counts["control"]) - min(counts["control"]) <= 1
    assert 0 <= sum(counts["tail"]) - sum(counts["control"]) < 10  # as equal as ten classes can be


def together(store: str = "store", save: Path | None = None, **more: Any) -> None:
    options = {"methods": ("simclr",), "seeds": 1, "tasks": [task()], "max_seconds": None, **more}
    several_processes.pretrain_together(**options, store=Path(store), device="cpu", save=save)


@pytest.mark.usefixtures("eager")
def test_together_what_is_finished_is_printed_and_other_settings_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    together(save=here / "nets")
    first = json.loads(capsys.readouterr().out)
    (saved,) = seen_in(here / "nets")
    written = saved.stat().st_mtime_ns
    together(save=here / "nets")
    said = capsys.readouterr()
    assert json.loads(said.out) == first and saved.stat().st_mtime_ns == written
    assert "note: this was trained before (--overwrite does it again)" in said.err
    with pytest.raises(UsageError, match="with other settings; use --overwrite or another --out"):
        together(tasks=[task(temperature=0.5)])
    together(tasks=[task(temperature=0.5)], overwrite=True)
    assert json.loads(capsys.readouterr().out)["loss"] != first["loss"]

    asked: list[int] = []

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > 4:
            raise OutOfTime("over")

    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        together("other", max_seconds=500.0)
    assert "note: out of time; the same command goes on" in capsys.readouterr().err
    assert len(list(Path("other", ".scratch").iterdir())) == 1
    together("other")
    again = json.loads(capsys.readouterr().out)
    assert again == first and not list(Path("other", ".scratch").iterdir())

    together("wild", tasks=[task(recipe=wild())])
    lost = json.loads(capsys.readouterr().out)
    assert lost["nonfinite_step"] >= 0 and lost["loss"] == [None] and "knn" not in lost


def wild() -> Any:
    from rarefy.train.recipe import Recipe

    return Recipe(epochs=1, learning_rate=1e30)


@pytest.mark.usefixtures("eager")
def test_together_the_control_comes_first_and_each_is_kept(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = task()
    both = [plain, replace(plain, tail=replace(plain.tail, balanced=True))]
    together(tasks=both)
    said = json.loads(capsys.readouterr().out)
    assert said["images"] == "long-tail" and said["control"]["images"] == "balanced"
    control, tail = (
        Path("store", f"digits-lenet-simclr-{kind}-8-together.json")
        for kind in ("balanced-rho", "rho")
    )
    written = control.stat().st_mtime_ns
    tail.unlink()  # as where time was over after the control
    asked: list[int] = []

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > 2:
            raise OutOfTime("over")

    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        together(tasks=both, max_seconds=500.0)
    assert "note: out of time; the same command goes on" in capsys.readouterr().err
    assert not tail.exists()
    together(tasks=both)
    told = capsys.readouterr()
    assert json.loads(told.out) == said and "trained before" not in told.err
    assert control.stat().st_mtime_ns == written
    together(tasks=both[:1])  # without the control
    assert "control" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "more", [{"seeds": 2}, {"methods": ("simclr", "pixels")}, {"tasks": [task(), task(batch=16)]}]
)
def test_together_one_network_is_trained(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="under torchrun one method, one rho and one seed"):
        together(**more)
