"""Two gloo processes, each with half of every batch, do what one does with the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes
from two_pretrainings import EPOCHS, LATE, METHODS, found, made, worker

from rarefy.core.errors import UsageError
from rarefy.train.simclr.data_parallel import World, join_world

CPU = torch.device("cpu")
CLOSE = {"atol": 1e-5, "rtol": 0.0}
"""As the issue asks; sums in another order differ by 1e-7 an update."""
with_gloo = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="torch without gloo"
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All trainings in one pair of processes: starting them is what takes time."""
    folder = tmp_path_factory.mktemp("two")
    start_processes(worker, (str(folder),), nprocs=2, start_method="forkserver")
    return [torch.load(Path(folder, f"rank{rank}.pt"), weights_only=True) for rank in (0, 1)]


@with_gloo
@pytest.mark.parametrize("method", METHODS)
def test_two_processes_are_one_with_the_joint_batch(
    method: str, both: list[dict[str, Any]]
) -> None:
    alone = found(method)
    for one in both:
        for name, value in one[method]["weights"].items():
            torch.testing.assert_close(value, alone["weights"][name], msg=name, **CLOSE)
        for name, mask in one[method]["masks"].items():
            assert torch.equal(mask, alone["masks"][name]), name
        for name, values in one[method]["history"].items():
            # (the loss of the whole batch, wherever it is looked at)
            assert values == pytest.approx(alone["history"][name], abs=1e-5), name
        assert len(one[method]["history"]["loss"]) == EPOCHS
    assert (alone["masks"] != {}) == (not method.startswith("simclr"))


@with_gloo
def test_both_processes_have_the_very_same_weights(both: list[dict[str, Any]]) -> None:
    for method in METHODS:
        first, second = (one[method]["weights"] for one in both)
        assert all(torch.equal(first[name], second[name]) for name in first), method
    begun = made("simclr").export_encoder().state_dict()
    moved = both[0]["simclr"]["weights"]
    assert all((moved[name] - begun[name]).abs().max() > 1e-3 for name in moved if "4" in name)


@with_gloo
def test_all_stop_when_time_is_over_for_one(both: list[dict[str, Any]]) -> None:
    for one in both:
        assert one["stopped"]["said"] == "the time given with --max-seconds is over"
        assert one["stopped"]["step"] == LATE


@with_gloo
def test_they_go_on_as_if_nobody_had_stopped_them(both: list[dict[str, Any]]) -> None:
    first, second = (one["stopped"] for one in both)
    assert not torch.equal(first["mean"], second["mean"])  # each has seen its own half
    assert torch.equal(first["saved"], first["mean"])  # one writes: the first
    assert torch.equal(second["saved"], first["mean"])
    for name, value in first["whole"].items():
        assert torch.equal(first["again"][name], value), name


@with_gloo
def test_processes_that_would_go_on_from_different_updates_say_so(
    both: list[dict[str, Any]],
) -> None:
    for rank, one in enumerate(both):
        assert f"apart{rank}.pt is not the same for all processes" in one["apart"]
        assert one["agreed"] == [True, False]


@with_gloo
def test_points_of_all_are_gathered_in_order(both: list[dict[str, Any]]) -> None:
    every = torch.arange(24.0).reshape(6, 4)
    for rank, one in enumerate(both):
        lying, half, gradient = one["gathered"]
        assert torch.equal(lying, every) and torch.equal(half, every)
        wanted = torch.arange(6.0)[3 * rank : 3 * rank + 3, None].expand(3, 4)
        assert torch.equal(gradient, wanted)


def test_a_world_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with join_world(CPU) as world:
        assert world == World() and not dist.is_initialized()
    points = torch.ones(2, 3)
    assert world.all_gather(points) is points and world.share(6) == slice(0, 6)
    assert world.agree_on(3, CPU)
    world.barrier()


def test_shares() -> None:
    assert [World(rank, 3).share(6) for rank in range(3)] == [slice(0, 2), slice(2, 4), slice(4, 6)]
    with pytest.raises(UsageError) as error:
        World(0, 3).share(7)
    assert str(error.value) == "batch=7: must be a multiple of the 3 processes"


@with_gloo
def test_a_group_that_is_there_already_is_used_and_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")  # (as if: a real second process would have to answer)
    dist.init_process_group("gloo", init_method=(tmp_path / "m").as_uri(), rank=0, world_size=1)
    try:
        with join_world(CPU) as world:
            assert world == World(0, 1)
        assert dist.is_initialized()
    finally:
        dist.destroy_process_group()
