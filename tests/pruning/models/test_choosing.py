"""When and by what the Pruner chooses masks: schedules, gradients of what is left out, regrowth."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small_networks import cnn, dense_weights, mlp, mlp_batch, pruned, update
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.core.errors import UsageError
from rarefy.pruning.regrowth import SET, Regrowth, RigL
from rarefy.pruning.schedules import Schedule, constant, gradual, one_shot, periodic

# ---------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("schedule", "freeze_at", "chosen"),
    [
        (None, None, [0, 1, 2, 3, 4, 5, 6, 7]),
        (constant(3), None, [0, 3, 6]),
        (periodic(2, 1, 6), None, [1, 3, 5, 6]),
        (one_shot(4), None, [4]),
        (constant(2), 3, [0, 2, 3]),
        (None, 0, [0]),
        (gradual(1, 5, 2), None, [1, 3, 5]),
    ],
    ids=str,
)
def test_masks_are_chosen_when_the_schedule_says_so(
    schedule: Schedule | None, freeze_at: int | None, chosen: list[int]
) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.5, keep=0.5, schedule=schedule, freeze_at=freeze_at)
    for step in range(1, 8):
        before = pruner.masks["0.weight"]
        update(model, optimizer, mlp_batch(step))
        if step not in chosen:
            assert torch.equal(pruner.masks["0.weight"], before)
        elif step == chosen[-1]:
            weight = dense_weights(pruner)["0.weight"].abs()
            assert torch.equal(weight * pruner.masks["0.weight"] != 0, weight >= nth(weight, 3))
    assert pruner.trajectory.steps == chosen


def nth(weight: Tensor, keep: int) -> Tensor:
    return weight.topk(keep, dim=1).values[:, -1:]


def test_before_its_begin_a_schedule_leaves_an_ordinary_training() -> None:
    for rule in ("dense", "masked", "project"):
        model, plain = mlp(), mlp()
        optimizer, pruner = pruned(model, keep=0.5, update=rule, schedule=one_shot(3))
        other = torch.optim.SGD(plain.parameters(), lr=0.1)
        for step in range(3):
            assert pruner.keep == 1.0
            assert update(model, optimizer, mlp_batch(step)) == update(
                plain, other, mlp_batch(step)
            )
        assert pruner.keep == 0.5


def test_a_gradual_schedule_keeps_what_its_formula_says() -> None:
    """keep(t) = 0.5 + 0.5 (1 - (t - 2)/4)^3 of 48 weights."""
    model = mlp()
    optimizer, pruner = pruned(
        model, keep=0.5, granularity="layer", layers="0", schedule=gradual(2, 6)
    )
    kept = [int(pruner.masks["0.weight"].sum())]
    for step in range(7):
        update(model, optimizer, mlp_batch(step))
        kept.append(int(pruner.masks["0.weight"].sum()))
    way = [1, 1, 1, 27 / 64, 8 / 64, 1 / 64, 0, 0]
    assert kept == [48 - math.floor(48 * (0.5 - 0.5 * each) + 0.5) for each in way]
    assert kept == [48, 48, 48, 34, 27, 24, 24, 24]


# ------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("rule", ["dense", "masked", "project"])
def test_saliency_sees_the_gradient_of_what_is_left_out(rule: str) -> None:
    """With masked updates too, where the optimiser does not see it. |w g| of dense weights."""
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5, update=rule, score="saliency", layers="0")
    back = 0
    for step in range(6):
        x, y = mlp_batch(step)
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        gradient = model[0].weight.grad.clone()
        before = pruner.masks["0.weight"]
        assert (gradient[~before] != 0).any()
        dense = dense_weights(pruner)["0.weight"]
        optimizer.step()
        move = gradient * before if rule == "masked" else gradient
        score = ((dense - 0.1 * move) * gradient).abs()
        mask = pruner.masks["0.weight"]
        # clear decisions only: float32 sums differ
        edge = nth(score, 3)
        assert mask[score > 1.0001 * edge].all() and not mask[score < 0.9999 * edge].any()
        back += int((mask & ~before).sum())
    assert back > 0


def test_gradients_are_masked_between_the_choices_of_a_score_that_needs_them() -> None:
    """With masked updates: whole at updates after which masks are chosen, and only then."""
    model = mlp()
    optimizer, pruner = pruned(
        model, keep=0.5, update="masked", score="saliency", schedule=constant(3)
    )
    for step in range(1, 7):
        optimizer.zero_grad()
        model(mlp_batch(step)[0]).square().sum().backward()
        out = ~pruner.masks["0.weight"]
        assert (model[0].weight.grad[out] != 0).any() == (step % 3 == 0)
        optimizer.step()


def test_a_persons_score_gets_name_dense_weight_and_whole_gradient() -> None:
    calls: list[tuple[str, Tensor, Tensor | None]] = []

    def score(name: str, weight: Tensor, gradient: Tensor | None) -> Tensor:
        calls.append((name, weight.clone(), None if gradient is None else gradient.clone()))
        return weight.abs()

    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5, update="masked", score=score)
    assert [name for name, _, _ in calls] == ["0.weight", "2.weight"]
    assert torch.equal(calls[0][1], mlp()[0].weight) and calls[0][2] is None
    update(model, optimizer, mlp_batch())
    _, weight, gradient = calls[2]
    assert torch.equal(weight, dense_weights(pruner)["0.weight"])
    assert gradient is not None and (gradient[~pruner.masks["0.weight"]] != 0).any()


def test_random_masks_are_of_their_seed_and_new_at_every_choice() -> None:
    def masks(seed: int) -> list[Tensor]:
        model = cnn()
        optimizer, pruner = pruned(model, keep=0.5, score="random", seed=seed)
        found = [pruner.masks["0.weight"]]
        for _ in range(2):
            model(torch.ones(2, 2, 6, 6)).sum().backward()
            optimizer.step()
            found.append(pruner.masks["0.weight"])
        return found

    first, again, other = masks(0), masks(0), masks(1)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0]) and not torch.equal(first[0], first[1])


# ----------------------------------------------------------------------------------- regrowth


def plain_move(kept: Tensor, magnitude: Tensor, growth: Tensor, number: int) -> Tensor:
    """One row: the smallest kept ones go, as many of the others come."""
    inside = sorted(kept.nonzero().flatten().tolist(), key=lambda place: float(magnitude[place]))
    outside = sorted((~kept).nonzero().flatten().tolist(), key=lambda place: -float(growth[place]))
    after = kept.clone()
    after[inside[:number]] = False
    after[outside[:number]] = True
    return after


@pytest.mark.parametrize("granularity", ["filter", "layer", "global"])
@pytest.mark.parametrize("closure", [False, True])
def test_rigl_grows_where_the_gradient_is_largest(granularity: str, closure: bool) -> None:
    """Step by step against a plain loop over rows; by a closure as by an ordinary step."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    pruner = Pruner(
        model, optimizer, 0.5, update="masked", granularity=granularity, regrow=RigL(10, 0.5)
    )
    names = list(pruner.pruned)

    def rows(each: dict[str, Tensor]) -> list[Tensor]:
        """What competes with each other."""
        if granularity == "filter":
            return [row for name in names for row in each[name]]
        flat = [each[name].flatten() for name in names]
        return flat if granularity == "layer" else [torch.cat(flat)]

    for step in range(6):
        x, y = mlp_batch(step)
        gradients: dict[str, Tensor] = {}

        def evaluate(x: Tensor = x, y: Tensor = y, into: dict[str, Tensor] = gradients) -> Tensor:
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            into.update({name: model.get_parameter(name).grad.clone() for name in names})
            return loss

        before = pruner.masks
        if closure:
            optimizer.step(evaluate)
        else:
            evaluate()
            optimizer.step()
        after, dense = pruner.masks, dense_weights(pruner)
        part = 0.25 * (1 + math.cos(math.pi * (step + 1) / 10))
        # what went shows its last value, what came is zero: magnitudes before the move are these
        for kept, size, growth, found in zip(
            rows(before), rows(dense), rows(gradients), rows(after), strict=True
        ):
            number = math.floor(part * int(kept.sum()))
            expected = plain_move(kept, size.abs(), growth.abs(), number)
            assert torch.equal(found, expected)
        for name in names:
            came = after[name] & ~before[name]
            gone = before[name] & ~after[name]
            weight = model.get_parameter(name)
            buffer = optimizer.state[weight]["momentum_buffer"]
            assert (weight[came] == 0).all() and (dense[name][came] == 0).all()
            assert (buffer[came | gone] == 0).all() and (weight[gone] == 0).all()


@pytest.mark.parametrize("regrow", [SET(4, 0.5), RigL(4, 0.5)])
def test_the_support_moves_with_a_fixed_number_and_settles(regrow: Regrowth) -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5, update="masked", regrow=regrow)
    for step in range(8):
        before = pruner.masks["0.weight"]
        update(model, optimizer, mlp_batch(step))
        after = pruner.masks["0.weight"]
        assert after.sum(dim=1).tolist() == [3] * 8
        moves = (after & ~before).sum(dim=1).tolist()
        # floor(0.25 (1 + cos(pi t / 4)) 3) at t = 1, 2, 3, 4
        assert moves == [[1, 0, 0, 0][step] if step < 4 else 0] * 8


def test_set_grows_at_random_by_its_seed() -> None:
    def end(seed: int) -> Tensor:
        model = nn.Linear(40, 2)
        torch.manual_seed(3)
        nn.init.normal_(model.weight)
        optimizer, pruner = pruned(model, keep=0.5, update="masked", regrow=SET(9, 0.5), seed=seed)
        model(torch.ones(1, 40)).sum().backward()
        optimizer.step()
        return pruner.masks["weight"]

    assert torch.equal(end(0), end(0)) and not torch.equal(end(0), end(1))


# ------------------------------------------------------------------------------- granularities


@pytest.mark.parametrize(
    ("choices", "kept"),
    [
        ({"keep": 0.5}, (24, 12)),
        ({"keep": 2}, (16, 6)),
        ({"keep": 0.25, "granularity": "layer"}, (12, 6)),
        ({"keep": 5, "granularity": "layer"}, (5, 5)),
        ({"keep": 0.5, "granularity": "neuron", "layers": "0"}, (24, None)),
        ({"keep": 3, "granularity": "neuron", "layers": "0"}, (18, None)),
        ({"granularity": "2:3"}, (32, None)),
        ({"granularity": "1:4", "layers": "2"}, (None, 6)),
        ({"keep": 0.5, "distribution": {"0": 1, "2": 0.25}}, (8, 6)),
    ],
    ids=str,
)
def test_counts_of_every_granularity(
    choices: dict[str, Any], kept: tuple[int | None, int | None]
) -> None:
    if choices.get("granularity") == "2:3":
        choices = {**choices, "layers": "0"}
    model = mlp()
    optimizer, pruner = pruned(model, **choices)
    for step in range(2):
        update(model, optimizer, mlp_batch(step))
        for layer, count in zip(("0", "2"), kept, strict=True):
            if count is not None:
                assert int((model.get_parameter(f"{layer}.weight") != 0).sum()) == count
            else:
                assert f"{layer}.weight" not in pruner.pruned


def test_erk_and_global_keep_the_budget_of_all_layers_together() -> None:
    for choices in ({"granularity": "global"}, {"granularity": "layer", "distribution": "erk"}):
        model = cnn()
        _, pruner = pruned(model, keep=0.25, **choices)
        total = sum(each.kept.numel() for each in pruner.pruned.values())
        # a rounding of at most a half in each of three layers
        assert abs(sum(int(mask.sum()) for mask in pruner.masks.values()) - total / 4) <= 1.5
        shares = [float(mask.float().mean()) for mask in pruner.masks.values()]
        assert max(shares) - min(shares) > 0.02


def test_choices_are_counted_at_first_and_then_now_and_then() -> None:
    """Masks chosen at every update: counting them all would cost more than choosing."""
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = Pruner(model, optimizer, keep=0.5)
    for _ in range(35):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
    assert pruner.trajectory.choices == 36
    assert pruner.trajectory.steps == [*range(10), 19, 29]
    frame = pruner.trajectory.frame()
    assert (frame["kept"] == 12).all()


def test_rare_choices_are_all_counted() -> None:
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = Pruner(model, optimizer, keep=0.5, schedule=constant(every=10))
    for _ in range(200):
        optimizer.zero_grad()
        model(torch.randn(8, 6)).square().mean().backward()
        optimizer.step()
    assert pruner.trajectory.steps == [*range(0, 201, 10)]


def test_n_of_m_says_itself_what_stays() -> None:
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(UsageError, match=r"keep=0.5: granularity 1:4 keeps 0.25: leave keep out"):
        Pruner(model, optimizer, keep=0.5, granularity="1:4")
    assert Pruner(model, optimizer, granularity="1:4").keep == 0.25
