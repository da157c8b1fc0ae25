"""Two gloo processes with DDP end with the same masks and weights, those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.multiprocessing import start_processes
from two_processes import UPDATES, WAYS, train, worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (dist.is_available() and dist.is_gloo_available()), reason="torch without gloo"
    ),
]
Results = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All trainings in one pair of processes: starting them is what takes time."""
    folder = tmp_path_factory.mktemp("two")
    start_processes(worker, (str(folder),), nprocs=2, start_method="forkserver")
    return [torch.load(Path(folder, f"rank{rank}.pt"), weights_only=True) for rank in (0, 1)]


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("way", WAYS)
def test_both_processes_have_the_same_masks_and_weights(way: str, both: Results) -> None:
    one, two = both[0][way], both[1][way]
    assert one["step"] == two["step"] == UPDATES
    assert all(same(a, b) for a, b in zip(one["masks"], two["masks"], strict=True))
    assert same(one["model"], two["model"]) and same(one["dense"], two["dense"])


@pytest.mark.parametrize("way", WAYS)
def test_they_are_those_of_one_process_with_all_data(way: str, both: Results) -> None:
    found, alone = both[0][way], train(way)
    moved = 0
    for update, (one, two) in enumerate(zip(found["masks"], alone["masks"], strict=True)):
        assert same(one, two), update
        moved += update > 0 and not same(one, found["masks"][update - 1])
    assert moved >= 2 or way in ("neurons", "project"), "the test needs masks that move"
    for kind in ("model", "dense"):
        for name, value in found[kind].items():
            torch.testing.assert_close(value, alone[kind][name], atol=1e-6, rtol=0, msg=name)
    for one, two in zip(found["gradients"], alone["gradients"], strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0)


def test_a_pruner_made_before_wrapping_is_refused_in_both_processes(both: Results) -> None:
    """And a process that trains a model of its own is left alone."""
    for found in both:
        assert len(found["refused"]) == len(WAYS)
        for message in found["refused"]:
            assert message.startswith("after 0 updates: pruner: made before DistributedDataPara")
            assert message.endswith("wrap the model first, then make the Pruner")
        assert same(found["its own"]["model"], train("magnitude")["model"])
