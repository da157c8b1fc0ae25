"""Processes start with Ctrl-C held back: one that is still importing would print where it was."""

import signal
import sys
from concurrent.futures import Future
from multiprocessing import forkserver
from pathlib import Path

import pytest

from rarefy.cli import showing
from rarefy.core.processes import ctrl_c_waits

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no signal masks")


def held_back() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_waits_inside_and_comes_after() -> None:
    with pytest.raises(KeyError), ctrl_c_waits():
        assert held_back()
        raise KeyError
    assert not held_back()


@pytest.mark.parametrize(("results", "started"), [(19, []), (20, [True])])
def test_the_reports_server_starts_with_ctrl_c_held_back(
    results: int, started: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(results):
        (tmp_path / f"{number}.parquet").touch()
    seen: list[bool] = []
    monkeypatch.setattr(forkserver, "ensure_running", lambda: seen.append(held_back()))
    monkeypatch.setattr(showing.multiprocessing, "set_forkserver_preload", lambda names: None)
    showing._start_server([str(tmp_path)])
    assert seen == started


def test_all_that_a_result_needs_is_imported_before_any_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread reads results, and would import beside the first one."""

    class Pool:
        def __init__(self, *about: object, **more: object) -> None: ...

        def submit(self, *work: object) -> Future[int]:
            done: Future[int] = Future()
            done.set_result(int("rarefy.report.page" in sys.modules))
            return done

        def shutdown(self, cancel_futures: bool) -> None: ...

    monkeypatch.setattr(showing, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr("rarefy.core.provenance.usable_cores", lambda: 2)
    monkeypatch.delitem(sys.modules, "rarefy.report.page", raising=False)
    assert list(showing._judged_and_drawn([Path("a.json")] * 20)) == [1] * 20
