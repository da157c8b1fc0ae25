"""Supervised training: the plain PyTorch loop bit for bit, and what goes wrong on the way."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from small_trainings import BATCH, PRUNING_SPECS, STEPS, batches, counted, network, training
from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Augmentation
from rarefy.train.precision import resolve_precision
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.rate_schedules import rate_factor
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import Training

DOUBLE = torch.float64


def by_hand(
    optimizer: torch.optim.Optimizer, model: nn.Module, epochs: int, schedule: str, smoothing: float
) -> tuple[list[float], list[float]]:
    """The loop anybody would write; losses and accuracies of its epochs."""
    shown = batches(DOUBLE, Augmentation())
    losses, accuracies = [], []
    for epoch in range(epochs):
        loss_sum, right = 0.0, 0
        for number, (x, y) in enumerate(shown.epoch(epoch)):
            for group in optimizer.param_groups:
                step = epoch * STEPS + number
                group["lr"] = 0.05 * rate_factor(schedule, step, epochs * STEPS, 0.2)
            optimizer.zero_grad()
            answers = model(x)
            loss = functional.cross_entropy(answers, y, label_smoothing=smoothing)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
            right += int((answers.argmax(1) == y).sum())
        losses.append(loss_sum / STEPS)
        accuracies.append(right / (STEPS * BATCH))
    return losses, accuracies


@pytest.mark.parametrize("schedule", ["cosine", "step"])
@pytest.mark.parametrize("optimizer", ["sgd", "plain sgd", "adamw"])
def test_a_dense_training_is_the_plain_loop_bit_for_bit(optimizer: str, schedule: str) -> None:
    model = network().double()
    groups = [
        {"params": [model[0].weight, model[5].weight], "weight_decay": 0.01},
        {"params": [model[0].bias, *model[1].parameters(), model[5].bias], "weight_decay": 0.0},
    ]
    recipe: dict[str, Any] = {"weight_decay": 0.01, "warm_up": 0.2, "schedule": schedule}
    if optimizer == "adamw":
        plain: torch.optim.Optimizer = torch.optim.AdamW(groups, lr=0.05)
    else:
        momentum = 0.0 if optimizer == "plain sgd" else 0.9
        plain = torch.optim.SGD(groups, lr=0.05, momentum=momentum, nesterov=momentum > 0)
        recipe["momentum"] = momentum
    losses, accuracies = by_hand(plain, model, 3, schedule, 0.1)
    made = training(
        shown=batches(DOUBLE, Augmentation()),
        dtype=DOUBLE,
        optimizer=optimizer.split()[-1],
        label_smoothing=0.1,
        **recipe,
    )
    history = made.run(Context())
    for name, value in model.state_dict().items():
        assert torch.equal(value, made.model.state_dict()[name]), name
    assert history.loss == pytest.approx(losses, rel=1e-6)  # written down in float32
    assert history.accuracy == accuracies
    assert history.nonfinite_step == -1 and history.watched == {}


def test_training_learns() -> None:
    """Else everything here could be true of a loop that does nothing."""
    history = training(epochs=30, shown=batches(changes=Augmentation())).run(Context())
    assert history.accuracy[-1] > 0.9 and history.loss[-1] < 0.4 * history.loss[0]


def test_biases_and_normalisation_are_not_decayed() -> None:
    model = nn.Sequential(*network(), nn.LayerNorm(3))
    model.register_parameter("scale", nn.Parameter(torch.ones(())))
    model[0].bias.requires_grad_(False)
    for name in ("sgd", "adamw"):
        optimizer = Recipe(optimizer=name, weight_decay=0.3).make_optimizer(model)
        decay = {
            id(one): group["weight_decay"]
            for group in optimizer.param_groups
            for one in group["params"]
        }
        found = {name: decay.get(id(one)) for name, one in model.named_parameters()}
        assert found.pop("0.bias") is None
        assert {key for key, value in found.items() if value == 0.3} == {"0.weight", "5.weight"}
        assert {value for key, value in found.items() if key not in ("0.weight", "5.weight")} == {0}


def test_a_network_of_matrices_alone_can_be_trained() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 3, bias=False))
    assert math.isfinite(training(model=model).run(Context()).loss[-1])


@pytest.mark.parametrize("name", PRUNING_SPECS)
def test_the_network_that_answers_is_as_thin_as_was_asked(name: str) -> None:
    made = training(name)
    made.run(Context())
    answering = made.evaluation_model()
    spec = PRUNING_SPECS[name]
    weights = [answering[0].weight, answering[5].weight]
    kept = sum(int((one != 0).sum()) for one in weights) / sum(one.numel() for one in weights)
    if name == "dense":
        assert made.pruner is None and kept == 1
    elif spec.granularity == "neuron":
        # the answers stay whole: a class that is left out would never be answered
        assert list(made.pruner.masks) == ["0.weight"] and bool((weights[1] != 0).all())
        rows = (weights[0] != 0).flatten(1)
        assert bool((rows.all(1) | ~rows.any(1)).all())
        assert rows.any(1).double().mean() == pytest.approx(made.pruner.keep)
    else:
        # of 9 entries 4 are kept, of 54 22
        assert kept == (6 * 4 + 3 * 22) / (6 * 9 + 3 * 54)
    copied = spec.dense_between(STEPS) and made.pruner is not None
    assert (answering is made.model) == (not copied)
    answering(torch.zeros(2, 1, 5, 5))


def test_between_two_choices_the_answer_is_projected_and_the_training_is_not() -> None:
    made = training(PruningSpec(0.4, every=4))
    made.run(Context())  # 15 updates
    before = made.model[5].weight.detach().clone()
    assert (before != 0).all()
    answer = made.evaluation_model()[5].weight
    largest = before.abs().topk(22, dim=1).indices
    expected = torch.zeros_like(before).scatter(1, largest, before.gather(1, largest))
    assert torch.equal(answer, expected)
    assert torch.equal(made.model[5].weight, before)


def test_what_is_watched_is_called_once_an_epoch() -> None:
    seen: list[tuple[int, int, int, bool]] = []

    def watch(now: Training) -> None:
        seen.append((now.epoch, now.step, len(now.history.loss), now.model.training))

    training("project").run(Context(), watch=watch)
    assert [one[:3] for one in seen] == [(1, STEPS, 1), (2, 2 * STEPS, 2), (3, 3 * STEPS, 3)]


class Bursts(nn.Module):
    """Its answers stop being numbers at one update."""

    def __init__(self, at: int, value: float) -> None:
        super().__init__()
        self.inner, self.at, self.value, self.calls = network(), at, value, 0

    def forward(self, x: Tensor) -> Tensor:
        factor = self.value if self.calls == self.at else 1.0
        self.calls += 1
        return factor * self.inner(x)


@pytest.mark.parametrize("name", ["dense", "project, every 3", "dense rule"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("at", [0, STEPS - 1, STEPS, STEPS + 2, 3 * STEPS - 1])
def test_a_loss_that_is_no_number_ends_the_run_and_progress_adds_up(
    at: int, value: float, name: str
) -> None:
    advanced: list[float] = []
    watched: list[int] = []
    made = training(name, model=Bursts(at, value))
    history = made.run(counted(advanced), watch=lambda now: watched.append(now.epoch))
    assert history.nonfinite_step == at
    assert sum(advanced) == pytest.approx(3)
    ended = at // STEPS + 1
    assert len(history.loss) == ended and not math.isfinite(history.loss[-1])
    assert watched == list(range(1, ended))
    made.evaluation_model()  # a study still asks it


def test_the_deadline_of_a_context_ends_a_training_and_is_kept(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    advanced: list[float] = []
    context = counted(advanced, Context(deadline=time.monotonic() - 1))
    with pytest.raises(OutOfTime):
        training().run(context, checkpoint)
    assert advanced == [] and not checkpoint.path.exists()  # nothing was trained, nothing is kept


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"epochs": 0}, "epochs=0: must be at least 1"),
        ({"optimizer": "adam"}, "unknown optimizer 'adam'; did you mean 'adamw'?"),
        ({"schedule": "steps"}, "unknown schedule 'steps'; did you mean 'step'?"),
        ({"learning_rate": 0.0}, "learning_rate=0.0: must be positive and finite"),
        ({"learning_rate": math.nan}, "learning_rate=nan: must be positive and finite"),
        ({"momentum": 1.0}, "momentum=1.0: must be at least 0 and below 1"),
        ({"warm_up": -0.1}, "warm_up=-0.1: must be at least 0 and below 1"),
        ({"label_smoothing": 1.0}, "label_smoothing=1.0: must be at least 0 and below 1"),
        ({"weight_decay": -1.0}, "weight_decay=-1.0: must be finite and at least 0"),
    ],
)
def test_a_wrong_recipe_is_told(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe(**wrong)
    assert complaint in str(caught.value)


def test_precision_by_device_and_type() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert resolve_precision("auto", cpu, torch.float32) == "float32"
    assert resolve_precision("auto", gpu, torch.float32) == "bf16"
    assert resolve_precision("float32", gpu, torch.float32) == "float32"
    assert resolve_precision("bf16", cpu, torch.float32) == "bf16"
    assert resolve_precision("auto", gpu, DOUBLE) == "float32"
    with pytest.raises(UsageError, match="unknown precision 'bf1'; did you mean 'bf16'"):
        resolve_precision("bf1", cpu, torch.float32)


def test_bfloat16_trains_on_a_cpu_too() -> None:
    exact = training().run(Context())
    rough = training(shown=batches(torch.bfloat16), precision="bf16").run(Context())
    assert rough.loss != exact.loss
    assert rough.loss == pytest.approx(exact.loss, rel=0.05)
