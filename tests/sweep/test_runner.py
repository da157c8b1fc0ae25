"""The runner: batches do not matter, memory is respected, failures leave a store to go on with."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from toy_study import Toy

import rarefy
from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import Interrupted, RunError, UsageError
from rarefy.sweep import choices, runner, store
from rarefy.sweep.arrays import Arrays
from rarefy.sweep.runner import execute

pytestmark = pytest.mark.usefixtures("eager")


def toy(out: Path, *, scale: str = "tiny", **options: Any) -> runner.Execution:
    parameters = {name: options.pop(name) for name in list(options) if hasattr(Toy, name)}
    return execute(Toy.at(scale, **parameters), scale, device="cpu", out=out, **options)


def test_a_cell_is_the_same_alone_and_in_any_batch(tmp_path: Path) -> None:
    seven, many = (
        toy(tmp_path / str(batch), seeds=12, batch=batch, dtype="float64").dataset
        for batch in (7, 500)
    )
    alone = toy(tmp_path / "1", seeds=1, drift=(0.5,), sigma=(0.2,), dtype="float64").dataset
    np.testing.assert_allclose(seven["path"], many["path"], rtol=1e-10, atol=0)
    same = seven["path"].sel(alone.coords)
    np.testing.assert_allclose(same, alone["path"], rtol=1e-10, atol=0)


def test_two_workers_give_the_same_bits_as_one(tmp_path: Path) -> None:
    one = toy(tmp_path / "one", seeds=20).dataset
    torch.set_num_threads(2)
    two = toy(tmp_path / "two", seeds=20)
    assert two.finished and two.dataset.equals(one)
    assert torch.get_num_threads() == 2


def test_two_workers_stop_in_time_and_go_on_later(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    options: dict[str, Any] = {"seeds": 40, "pause": 0.02}
    first = toy(tmp_path / "store", max_seconds=0.3, **options)
    assert not first.finished
    again = toy(tmp_path / "store", **options)
    assert again.finished and again.dataset.equals(toy(tmp_path / "fresh", **options).dataset)


def test_a_worker_that_fails_ends_the_run_and_keeps_the_store(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    with pytest.raises(ZeroDivisionError):
        toy(tmp_path / "store", seeds=12, break_at_seed=0)
    assert toy(tmp_path / "other", seeds=12).finished


def test_the_callers_arithmetic_is_left_as_it_was(tmp_path: Path) -> None:
    toy(tmp_path / "store")
    assert sys.float_info.min / 2 > 0


def test_a_run_that_goes_nan_is_marked_and_the_rest_go_on(tmp_path: Path) -> None:
    plain = toy(tmp_path / "plain").dataset
    wrong = toy(tmp_path / "wrong", nan_at_seed=1).dataset
    assert (wrong["nonfinite_step"].sel(seed=1) == 2).all()
    assert (wrong["nonfinite_step"].sel(seed=0) == -1).all()
    assert wrong["end"].sel(seed=1).isnull().all()
    assert wrong["end"].sel(seed=0).equals(plain["end"].sel(seed=0))


def test_a_cell_too_large_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs 1000 TB, .* are free on cpu"):
        toy(tmp_path / "deep" / "store", gigabytes=1e6)
    assert list(tmp_path.iterdir()) == []


def test_batches_fit_into_half_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = watch_batches(monkeypatch)
    monkeypatch.setattr(choices, "free_memory", lambda device: 20 * 1000)
    toy(tmp_path / "store", seeds=4)
    assert sizes == [8, 8, 8]


def test_batches_on_a_cpu_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = watch_batches(monkeypatch)
    toy(tmp_path / "store", seeds=12)
    assert sizes == [32, 32, 8]


def watch_batches(monkeypatch: pytest.MonkeyPatch, limit: int = 10**9) -> list[int]:
    """The sizes of the batches that run; larger ones than ``limit`` run out of memory."""
    sizes: list[int] = []
    simulate = Toy.simulate

    def watched(study: Toy, cells: Cells, context: Context) -> Mapping[str, np.ndarray]:
        if len(cells) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        sizes.append(len(cells))
        return simulate(study, cells, context)

    monkeypatch.setattr(Toy, "simulate", watched)
    return sizes


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="a batch does not fit into memory",
    then="it is halved as often as it takes, and the numbers are equal; a single cell that "
    "does not fit is named",
    lost="time",
    named="out of memory in a batch",
)
def test_out_of_memory_halves_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = toy(tmp_path / "whole", seeds=4).dataset
    sizes = watch_batches(monkeypatch, limit=5)
    assert toy(tmp_path / "store", seeds=4).dataset.equals(whole)
    assert sizes == [4] * 6
    watch_batches(monkeypatch, limit=0)
    with pytest.raises(RunError, match="a single cell of toy does not fit"):
        toy(tmp_path / "never")


@pytest.mark.fault(
    theme="Runs and trainings that are stopped or fail",
    when="the disk fills up while a run stores its batches",
    then="one line says how much is stored; the same command finishes it",
    lost="the batches in flight",
    named="disk full",
)
def test_a_disk_that_fills_up_leaves_a_store_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, calls = Arrays.__getitem__, []

    def full(arrays: Arrays, name: str) -> Any:
        calls.append(name)
        if calls.count("end") == 2 and name == "path":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(arrays, name)

    monkeypatch.setattr(Arrays, "__getitem__", full)
    with pytest.raises(RunError) as caught:
        toy(tmp_path / "store", seeds=12, go_on="rarefy run toy")
    assert caught.value.exit_code == 1
    said = str(caught.value)
    assert "No space left on device" in said and "32 of 72 cells are stored" in said
    assert said.endswith("go on with: rarefy run toy")
    monkeypatch.setattr(Arrays, "__getitem__", opened)
    again = toy(tmp_path / "store", seeds=12)
    assert again.finished and again.dataset.equals(toy(tmp_path / "fresh", seeds=12).dataset)


def test_a_disk_too_full_to_create_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store.zarr, "open_group", full)
        with pytest.raises(RunError, match="No space left on device"):
            toy(tmp_path / "store")
    assert toy(tmp_path / "store").finished


def test_a_study_that_raises_keeps_what_was_finished(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        toy(tmp_path / "store", seeds=12, break_at_seed=11)
    assert (
        store.Store(
            tmp_path / "store", Toy.at("tiny", seeds=12, break_at_seed=11), "tiny", "float32"
        )
        .done()
        .sum()
        == 64
    )


def test_time_that_runs_out_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"seeds": 20}
    simulate, now, through = Toy.simulate, time.monotonic, []

    def one_batch_in_time(study: Toy, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        found = simulate(study, cells, context)
        through.append(len(cells))
        return found

    with monkeypatch.context() as patch:  # whatever else the machine does meanwhile
        patch.setattr(Toy, "simulate", one_batch_in_time)
        clock = SimpleNamespace(monotonic=lambda: now() + 1000 * len(through))
        patch.setattr("rarefy.core.contracts.time", clock)
        first = toy(tmp_path / "store", max_seconds=100, go_on="again", **options)
    assert not first.finished and 0 < first.cells_done < 120
    assert first.dataset["end"].notnull().sum() == first.cells_done
    assert f"{first.cells_done} of 120 cells" in first.note and "go on with: again" in first.note
    spent = store.Store(tmp_path / "store", Toy.at("tiny", **options), "tiny", "float32")
    wall = spent.wall_seconds()
    second = toy(tmp_path / "store", **options)
    assert second.finished and second.note == ""
    assert second.dataset.equals(toy(tmp_path / "fresh", **options).dataset)
    assert 0 < wall < spent.wall_seconds()


def test_not_one_batch_in_time_says_so(tmp_path: Path) -> None:
    stopped = toy(tmp_path / "store", max_seconds=0.05, pause=0.1)
    assert stopped.cells_done == 0 and "not one batch was through" in stopped.note


def test_an_interrupt_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(study: Toy, cells: Cells, context: Context) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Toy, "simulate", interrupted)
        with pytest.raises(Interrupted, match="0 of 12 cells are stored in .*: again") as caught:
            toy(tmp_path / "store", go_on="again")
    assert isinstance(caught.value, KeyboardInterrupt) and caught.value.exit_code == 130
    assert toy(tmp_path / "store").finished


def test_compilation_is_chosen_by_the_work_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAREFY_COMPILE")
    monkeypatch.setattr(choices, "can_compile", lambda device: True)
    seen: list[bool] = []

    def look(study: Toy, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        seen.append(context.compiled)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return {
            "end": np.zeros(len(cells)),
            "path": np.zeros((len(cells), study.steps, 2)),
        }

    monkeypatch.setattr(Toy, "simulate", look)
    monkeypatch.setattr(Toy, "compile_from", 4 * 60)
    with pytest.raises(Interrupted):
        toy(tmp_path / "large", seeds=10)
    toy(tmp_path / "large", seeds=10)  # less is left than compiling pays for, but bits count more
    toy(tmp_path / "small", seeds=9)
    assert all(seen[:-4]) and seen[-2:] == [False] * 2
    monkeypatch.setenv("RAREFY_COMPILE", "1")
    toy(tmp_path / "forced", seeds=1)
    assert seen[-1] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_seconds": 0}, "max_seconds=0: must be more than 0"),
        ({"batch": 0}, "batch=0: must be at least 1"),
        ({"dtype": "float16"}, "unknown dtype 'float16'"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        toy(tmp_path / "store", **options)
    assert list(tmp_path.iterdir()) == []


def test_the_short_way_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    results = rarefy.run(Toy, scale="tiny", seeds=3, device="cpu", drift=1.0)
    assert results["end"].shape == (1, 2, 3)
    assert [verdict.outcome for verdict in rarefy.judge(Toy, results)] == ["holds"]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="unknown parameter of toy 'drft'; did you mean 'drift'"):
        rarefy.run(Toy, scale="tiny", drft=1.0)
