"""Several processes a run: the same store, progress that adds up, failures told in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_study import Toy
from toy_training import STEPS, ToyTraining

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.sweep import runner
from rarefy.sweep.runner import Execution, execute
from rarefy.sweep.workers import _Reports, threads_at_once

pytestmark = pytest.mark.usefixtures("eager")


def run(out: Path, jobs: int = 1, **options: Any) -> Execution:
    parameters = {name: options.pop(name) for name in list(options) if hasattr(ToyTraining, name)}
    study = ToyTraining.at("tiny", **parameters)
    return execute(study, "tiny", device="cpu", out=out, jobs=jobs, **options)


class Report:
    """Instead of a progress bar."""

    made: list[Report] = []

    def __init__(self, title: str, total: float, before: float) -> None:
        self.total, self.before = total, before
        self.advanced: list[float] = []
        self.said: list[str] = []
        self.done: list[float] = []
        self.advance, self.say = self.advanced.append, self.said.append
        self.batch_done = self.done.append
        Report.made.append(self)

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    Report.made.clear()
    monkeypatch.setattr(runner, "Progress", Report)
    return Report.made


@pytest.mark.slow
def test_two_processes_give_the_same_store_as_one_and_progress_adds_up(
    tmp_path: Path, reports: list[Report]
) -> None:
    one = run(tmp_path / "one", progress=True)
    folder = tmp_path / "traces"
    folder.mkdir()
    two = run(tmp_path / "two", jobs=2, progress=True, folder=str(folder))
    assert one.finished and two.finished
    np.testing.assert_array_equal(one.dataset["end"], two.dataset["end"])
    assert (two.dataset["nonfinite_step"] == -1).all()
    begun = [path.name.split(".") for path in folder.glob("*.begun")]
    assert sorted(name for name, _, _ in begun) == [
        f"{seed}-{height}" for seed in range(3) for height in (1, 2)
    ]
    for report in reports:
        assert report.total == 6 * STEPS and report.before == 0
        assert sum(report.advanced) == 6 * STEPS
    assert reports[0].done[-1] == 6 * STEPS
    assert set(reports[1].done) == {0}  # processes tell it themselves
    assert len(reports[0].said) == 6 * STEPS
    # of processes only the last words in a while are heard
    assert reports[1].said and all(text.startswith("cell ") for text in reports[1].said)


@pytest.mark.usefixtures("forked_processes")
def test_a_process_that_fails_ends_the_run_and_what_others_finish_is_stored(
    tmp_path: Path,
) -> None:
    """The other one is asked to stop, but is through with its cell: hours of work must count, the
    more so as its checkpoint is gone."""
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "0-1.order").write_text("be late")
    (folder / "0-2.order").write_text("raise")
    with pytest.raises(ZeroDivisionError, match="the toy was told to break"):
        run(tmp_path / "store", jobs=2, seeds=1, folder=str(folder), patient=False)
    (folder / "0-2.order").unlink()
    (folder / "0-1.order").write_text("raise")  # it must not be run again
    again = run(tmp_path / "store", seeds=1, folder=str(folder), patient=False)
    assert again.finished
    np.testing.assert_array_equal(
        again.dataset["end"], run(tmp_path / "fresh", seeds=1).dataset["end"]
    )


def test_more_jobs_than_cells_or_none_left_need_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was asked for")

    monkeypatch.setattr("rarefy.sweep.workers.ProcessPoolExecutor", never)
    assert run(tmp_path / "store", jobs=8, seeds=1, height=(1.0,)).finished
    assert run(tmp_path / "store", jobs=8, seeds=1, height=(1.0,)).finished


def test_an_ordinary_study_runs_in_one_process(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="jobs=2: cells of toy run together in one process"):
        execute(Toy.at("tiny"), "tiny", device="cpu", out=tmp_path / "store", jobs=2)
    with pytest.raises(UsageError, match="jobs=0: must be at least 1"):
        run(tmp_path / "store", jobs=0)
    assert list(tmp_path.iterdir()) == []


def test_trainings_have_the_cores_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 4)
    device = Context().device
    assert threads_at_once(ToyTraining.at("tiny"), device) == 1
    assert threads_at_once(Toy.at("tiny"), device) == 4


def test_each_training_is_a_batch_of_its_own_whatever_is_asked(tmp_path: Path) -> None:
    assert run(tmp_path / "store", batch=4).finished  # (the toy takes no two cells at once)


def test_a_set_that_has_changed_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    content = folder / "content"
    content.write_text("digits (abc)")
    options = {"folder": str(folder)}
    assert run(tmp_path / "store", seeds=1, **options).finished
    assert run(tmp_path / "store", seeds=2, **options).finished  # the same: gone on with
    content.write_text("digits (xyz)")
    with pytest.raises(UsageError) as caught:
        run(tmp_path / "store", seeds=3, **options)
    said = str(caught.value)
    assert "was made from data digits (abc), not digits (xyz)" in said and "\n" not in said
    content.write_text("digits (abc)")
    found = run(tmp_path / "store", seeds=3, **options)  # nothing was harmed
    assert found.finished and '"data": "digits (abc)"' in found.dataset.attrs["provenance"]
    content.write_text("digits (xyz)")
    assert run(tmp_path / "store", seeds=3, overwrite=True, **options).finished


def test_a_set_may_change_while_nothing_is_stored(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "content").write_text("first")
    (folder / "0-1.order").write_text("raise")
    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "store", folder=str(folder))
    (folder / "content").write_text("second")
    (folder / "0-1.order").unlink()
    found = run(tmp_path / "store", folder=str(folder))
    assert found.finished and '"data": "second"' in found.dataset.attrs["provenance"]


def test_a_process_reports_now_and_then_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("rarefy.sweep.workers.time.monotonic", lambda: now[0])
    sent: list[tuple[float, str]] = []

    class Queue:
        put = staticmethod(sent.append)

    reports = _Reports(Queue())
    for _ in range(10):
        now[0] += 0.2
        reports.say(f"at {now[0]:.1f}")
        reports.advance(0.5)
    reports.send()
    assert len(sent) == 4  # every 0.6 seconds, and what was left
    assert sum(amount for amount, _ in sent) == 5
    assert sent[0] == (1.5, "at 100.6")
