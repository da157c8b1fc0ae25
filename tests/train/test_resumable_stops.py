"""Ctrl-C in the middle of an update: the update is finished and kept, and then it stops."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from small_pretrainings import pretraining
from small_trainings import STEPS, Enough, differences, network, stopped_after, training
from torch import Tensor, nn

import rarefy
from rarefy import cli
from rarefy.core import progress
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.simclr.data_parallel import World
from rarefy.train.supervised import Training

CPU = torch.device("cpu")
Handlers = list[Any]


def handlers() -> Handlers:
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Tests that were started with an & ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def answered() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: so does the runner."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


class Does(nn.Module):
    """A network in whose forward pass number ``at`` something happens."""

    def __init__(self, at: int, what: Callable[[], None]) -> None:
        super().__init__()
        self.inner, self.at, self.what, self.calls = network(), at, what, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.at:
            self.what()
        answers: Tensor = self.inner(x)
        return answers


def nothing() -> None:
    return None


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def made(at: int = 0, what: Callable[[], None] = nothing) -> Training:
    return training("project, every 3", model=Does(at, what))


def step_in(checkpoint: Checkpoint) -> int:
    state = checkpoint.load(CPU)
    return 0 if state is None else int(state["step"])


def watch(now: Training) -> None:
    now.history.watched.setdefault("loss", []).append(now.history.loss[-1])


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="Ctrl-C or SIGTERM comes in the middle of an update of a training",
    then="the update is finished and kept",
    lost="nothing",
)
@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, STEPS - 1, STEPS, STEPS + 1, 3 * STEPS])
def test_the_update_is_finished_and_kept(at: int, number: signal.Signals, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    whole = made()
    whole.run(Context(), watch=watch)
    before = handlers()
    with pytest.raises(KeyboardInterrupt):
        made(at, lambda: signal.raise_signal(number)).run(Context(), checkpoint, watch)
    assert handlers() == before
    assert step_in(checkpoint) == at
    again = made()
    again.run(Context(), checkpoint, watch)
    assert differences(whole, again) == []


@pytest.mark.parametrize("late", ["end of epoch", "watch"])
def test_the_end_of_an_epoch_belongs_to_its_last_update(
    late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    whole = made()
    whole.run(Context(), watch=watch)
    stopped = made()

    def watch_late(now: Training) -> None:
        if late == "watch":
            interrupt()
        watch(now)

    def end_late(losses: Tensor) -> None:
        interrupt()
        Training.end_of_epoch(stopped, losses)

    if late == "end of epoch":
        monkeypatch.setattr(stopped, "end_of_epoch", end_late)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(Context(), checkpoint, watch_late)
    assert step_in(checkpoint) == STEPS
    again = made()
    again.run(Context(), checkpoint, watch)
    assert differences(whole, again) == []


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_one_does_not_wait(second: signal.Signals, tmp_path: Path) -> None:
    reached = []

    def twice() -> None:
        interrupt()
        reached.append("first")
        signal.raise_signal(second)
        reached.append("second")

    before, checkpoint = handlers(), Checkpoint(tmp_path / "one.pt")
    stopped = made(3, twice)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(Context(), checkpoint)
    assert reached == ["first"] and stopped.step == 2
    assert step_in(checkpoint) == 0  # half an update must not be kept
    assert handlers() == before


def test_a_stop_is_not_lost_behind_another_error(tmp_path: Path) -> None:
    def both() -> None:
        interrupt()
        raise MemoryError  # (a sweep would go on with a smaller batch)

    with pytest.raises(KeyboardInterrupt):
        made(3, both).run(Context(), Checkpoint(tmp_path / "one.pt"))


def test_without_a_checkpoint_nothing_waits() -> None:
    stopped = made(3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(Context())
    assert stopped.step == 2


def test_a_sigterm_that_nobody_answers_ends_the_process_as_ever(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    seen: Handlers = []
    try:
        made(3, lambda: seen.extend(handlers())).run(Context(), Checkpoint(tmp_path / "one.pt"))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen[0] != signal.default_int_handler and seen[1] == signal.SIG_DFL


@pytest.mark.usefixtures("answered")
def test_a_process_that_its_context_stops_keeps_its_handlers(tmp_path: Path) -> None:
    """They end it by force where an update takes for ever."""
    seen: Handlers = []
    context = Context(stop=threading.Event())
    made(3, lambda: seen.extend(handlers())).run(context, Checkpoint(tmp_path / "one.pt"))
    assert seen == handlers()


def test_another_thread_sets_no_handlers(tmp_path: Path) -> None:
    seen: Handlers = []
    run = made(3, lambda: seen.extend(handlers())).run
    thread = threading.Thread(target=run, args=(Context(), Checkpoint(tmp_path / "one.pt")))
    thread.start()
    thread.join()
    assert seen == handlers()


@pytest.mark.parametrize("mine", [True, False])
def test_processes_of_one_training_stop_together(
    mine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if there were two: the other one is asked, or this one."""
    stopped = pretraining("simclr")
    stopped.world = World(0, 2)

    def summed(over: Tensor) -> None:
        over[1] += not mine

    monkeypatch.setattr(dist, "all_reduce", summed)
    with (
        pytest.raises(KeyboardInterrupt if mine else OutOfTime, match=None if mine else "another"),
        stopped._stops.waiting(),
    ):
        if mine:
            interrupt()
        stopped.out_of_time(Context())
        raise AssertionError("it should have stopped")


def test_time_that_is_over_is_kept_as_ever(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    with pytest.raises(Enough):
        made().run(stopped_after(4), checkpoint)
    assert step_in(checkpoint) == 4


# ------------------------------------------------------------------------- the real entry point

EPOCHS, HALF = 10, 5
COMMAND = (
    *("pretrain", "digits", "--rho", "20", "--epochs", str(EPOCHS), "--seeds", "1"),
    *("--no-control", "--method", "simclr", "--network", "lenet", "--device", "cpu"),
    *("--protocols", "knn", "--out", "store", "--save", "nets", "--jobs", "1"),
)
SLOW_ONCE = f"""
import runpy, sys, time
from rarefy.core import progress
from rarefy.tools import forecasting
from rarefy.train.simclr.pretraining import Pretraining

progress.LINE_EVERY_SECONDS = 0.0
forecasting.seconds_for = lambda *asked: "not tried"
quick = Pretraining.gradients_of

def slow(self, views):
    if self.step == {HALF} * self.batches.steps:
        print("inside", file=sys.stderr, flush=True)
        time.sleep(1)
    return quick(self, views)

Pretraining.gradients_of = slow
runpy.run_module("rarefy", run_name="__main__", alter_sys=True)
"""
"""The command, with a line an update instead of one a minute, and time to hit one in its middle."""


def started(folder: Path) -> subprocess.Popen[str]:
    package = str(Path(rarefy.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_ONCE, *COMMAND],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": package, "RAREFY_COMPILE": "0", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def percents(said: str) -> list[int]:
    return [int(one) for one in re.findall(r"^pretrain-images: (\d+)%", said, re.MULTILINE)]


def finished(folder: Path) -> dict[str, Tensor]:
    """What the same command gives when nobody stops it."""
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("RAREFY_COMPILE", "0")
        patch.setattr(progress, "LINE_EVERY_SECONDS", 0.0)
        assert cli.main(list(COMMAND)) == 0
    (saved,) = (folder / "nets").glob("*.pt")
    network: dict[str, Tensor] = torch.load(saved, weights_only=True)["state_dict"]
    return network


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_stopped_half_way_the_same_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed = finished(tmp_path / "undisturbed")
    capsys.readouterr()
    process = started(tmp_path)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line == "inside\n":
                os.killpg(process.pid, signal.SIGINT)
                break
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "stopped: 0 of 1 cells are stored in store" in said
    network = finished(tmp_path)
    assert percents(capsys.readouterr().err)[0] >= 100 * HALF // EPOCHS
    assert network.keys() == undisturbed.keys()
    assert all(torch.equal(network[name], undisturbed[name]) for name in network)
