"""Small products are left to one thread, and nothing else changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from rarefy.core import threads
from rarefy.core.threads import SMALL, limited, threads_for
from rarefy.measure.representation.probe_problem import ProbeProblem

CPU = torch.device("cpu")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_one_thread_for_small_products_and_the_same_as_before_afterwards() -> None:
    with threads_for(SMALL - 1, CPU):
        assert torch.get_num_threads() == 1
        with threads_for(SMALL, CPU):  # never more than around it
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    for products, device in ((SMALL, CPU), (1, torch.device("cuda"))):
        with threads_for(products, device):
            assert torch.get_num_threads() == 2
    with pytest.raises(KeyError), threads_for(1, CPU):
        raise KeyError
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_small_probe_uses_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    whole = ProbeProblem._loss

    def watched(self: ProbeProblem, *given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(torch.get_num_threads())
        return whole(self, *given)

    monkeypatch.setattr(ProbeProblem, "_loss", watched)
    rows, labels = torch.randn(60, 4), torch.arange(60) % 3
    problem = ProbeProblem(rows, labels, 3)
    problem.solve(0.1, torch.zeros(3, 4), torch.zeros(3), 1e-3, 20)
    assert seen and set(seen) == {1} and torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_libraries_are_looked_for_again_only_after_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(1):
        assert {library["num_threads"] for library in threadpool_info()} == {1}
    assert torch.get_num_threads() == 2
    found = threads._pools(len(sys.modules))
    with limited(1):
        assert threads._pools(len(sys.modules)) is found
    monkeypatch.setitem(sys.modules, "just_imported", ModuleType("just_imported"))
    with limited(1):
        assert threads._pools(len(sys.modules)) is not found
