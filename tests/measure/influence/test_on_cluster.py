"""Pieces on a cluster that is slow, lost or of another version: one line of ours each."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rarefy.core.errors import OutOfTime, RunError, SchedulerLost
from rarefy.measure.influence import on_cluster
from rarefy.measure.influence.on_cluster import Workers


class Pretended:
    """A client whose futures do what they are told."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def nthreads(self) -> dict[str, int]:
        return {"a": 1}

    def compute(self, task: Any, retries: int) -> Pretended:
        return self

    def result(self, timeout: float) -> Any:
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what

    def release(self) -> None:
        raise OSError("nobody is there")


def results(what: Any, deadline: float | None = None) -> list[tuple[int, Any]]:
    tasks = [(place, (place,)) for place in range(5)]
    return list(Workers(Pretended(what), deadline).results(abs, tasks))


def test_results_come_in_order() -> None:
    assert results("done") == [(place, "done") for place in range(5)]


def test_what_a_lost_cluster_raises_is_one_line() -> None:
    from distributed import CancelledError, KilledWorker

    lost = "^the scheduler was lost \\(.*\\); the same call goes on$"
    for error in (ConnectionError("gone"), CancelledError("look-1")):
        with pytest.raises(SchedulerLost, match=lost) as found:
            results(error)
        assert found.value.exit_code == 3
    killed = KilledWorker("look-1", None, 3)
    with pytest.raises(RunError, match="a piece was lost with its workers, one after the other"):
        results(killed)


def test_nobody_waits_after_the_deadline() -> None:
    with pytest.raises(OutOfTime, match="stopped while scoring"):
        results(TimeoutError(), deadline=time.monotonic() + 0.05)


def test_a_worker_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_cluster._called(on_cluster.__version__, abs, -1) == 1
    with pytest.raises(RunError, match="^a worker has rarefy .*, here is 0.0; install the same$"):
        on_cluster._called("0.0", abs, -1)
