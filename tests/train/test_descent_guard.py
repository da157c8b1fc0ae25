"""How runs that stop being finite are found: by all weights, or by the loss alone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.train.descent import GUARDS, State, Trajectory, descend
from rarefy.train.optimisers import Sgd
from rarefy.train.topk_pruning import TopKPruning

RUNS, STEPS, BAD, AT = 4, 8, 2, 3
"""Run BAD gets a gradient that is not finite in step AT, or diverges by itself."""


@dataclass(frozen=True)
class Bowl:
    """Half the squared length, with a gradient that may be ``poison`` for one run in one step."""

    poison: float = float("nan")

    def loss(self, parameters: dict[str, Tensor], batch: int) -> Tensor:
        return parameters["filters"].flatten(1).square().sum(dim=1) / 2

    def gradients(
        self, parameters: dict[str, Tensor], batch: int
    ) -> tuple[Tensor, dict[str, Tensor]]:
        slope = parameters["filters"].clone()
        if batch == AT:
            slope[BAD, 0, 0, 1] = self.poison
        return self.loss(parameters, batch), {"filters": slope}


def start() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {"filters": torch.randn(RUNS, 2, 3, 5, generator=generator, dtype=torch.float64)}


def weights(state: State) -> Tensor:
    return state.parameters["filters"]


def run(
    guard: str,
    problem: Bowl | None = None,
    lr: Tensor | float = 0.1,
    steps: int = STEPS,
    pruning: TopKPruning | None = None,
) -> Trajectory:
    return descend(
        problem or Bowl(0.0),
        start(),
        lambda step: step,
        Sgd(lr),
        steps,
        trackers={"weights": weights},
        record=range(steps + 1),
        pruning=pruning,
        guard=guard,
    )


def test_runs_that_stay_finite_are_the_same_bits_under_both() -> None:
    first, second = (run(guard) for guard in GUARDS)
    assert torch.equal(first.parameters["filters"], second.parameters["filters"])
    assert torch.equal(first.records["weights"], second.records["weights"])
    assert (first.nonfinite_step == -1).all() and (second.nonfinite_step == -1).all()


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_the_loss_shows_a_step_later_what_the_weights_show(poison: float) -> None:
    by_weights, by_loss = (run(guard, Bowl(poison)) for guard in ("weights", "loss"))
    others = [place for place in range(RUNS) if place != BAD]
    for found, noticed in ((by_weights, AT), (by_loss, AT + 1)):
        assert found.nonfinite_step[BAD] == noticed
        assert (found.nonfinite_step[others] == -1).all()
        seen = found.records["weights"]
        assert seen[BAD, : AT + 1].isfinite().all() and seen[BAD, noticed + 1 :].isnan().all()
        assert not seen[BAD, AT + 1].isfinite().all()  # never recorded as if nothing had happened
        assert torch.equal(seen[others], run("weights").records["weights"][others])
    # by weights the last finite ones are given back, by the loss they are what they became
    healthy = run("weights").records["weights"]
    assert torch.equal(by_weights.parameters["filters"][BAD], healthy[BAD, AT])
    assert not by_loss.parameters["filters"][BAD].isfinite().all()


def test_a_loss_that_overflows_is_seen_by_both_at_once() -> None:
    lr = torch.full((RUNS,), 0.1, dtype=torch.float64)
    lr[BAD] = 1e60  # the loss overflows first: it has the squares
    by_weights, by_loss = (run(guard, lr=lr) for guard in ("weights", "loss"))
    assert by_weights.nonfinite_step.tolist() == by_loss.nonfinite_step.tolist()
    assert by_loss.nonfinite_step[BAD] >= 0


def test_what_the_last_update_breaks_no_loss_can_show() -> None:
    """The price of the loss guard: its trackers see the broken weights and have to say so."""
    problem, steps = Bowl(), AT + 1
    assert run("weights", problem, steps=steps).nonfinite_step[BAD] == AT
    found = run("loss", problem, steps=steps)
    assert found.nonfinite_step[BAD] == -1
    assert found.records["weights"][BAD, -1].isnan().any()


@pytest.mark.parametrize("reading", ["revive", "fixed"])
def test_pruning_does_not_hide_a_run_that_went_wrong(reading: str) -> None:
    keep = torch.full((RUNS,), 2)

    def found(guard: str) -> Trajectory:
        pruning = TopKPruning(keep, reading, (2, 3, 5), first=AT + 1)
        return run(guard, Bowl(), pruning=pruning)

    assert found("weights").nonfinite_step[BAD] == AT
    assert found("loss").nonfinite_step[BAD] == AT + 1


def test_an_unknown_guard_is_named() -> None:
    with pytest.raises(UsageError, match="^guard='hope': must be one of weights, loss$"):
        run("hope")
