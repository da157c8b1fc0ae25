"""Loss and accuracy by hand, and a network that evaluation leaves as it was."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy.train import evaluation
from rarefy.train.evaluation import Score, evaluate
from rarefy.train.image_batches import Scaling
from rarefy.train.precision import mixed_precision

PLAIN = Scaling((0.0,), (1.0,))


class Sees(nn.Module):
    """Answers with its pixels, and remembers what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.clone())
        return x.flatten(1)

    def shown(self) -> Tensor:
        return torch.cat(self.seen)


def small_cnn() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip


def some_images(count: int = 30, size: int = 4) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(4)
    images = torch.randint(0, 256, (count, 1, size, size), generator=draws, dtype=torch.uint8)
    return images, torch.randint(0, 3, (count,), generator=draws)


def test_loss_and_accuracy_by_hand() -> None:
    # logits (0, 1) and (1, 0) and (0.2, 0): three images of two pixels
    images = torch.tensor([[0, 255], [255, 0], [51, 0]], dtype=torch.uint8).reshape(3, 1, 1, 2)
    found = evaluate(Sees(), images, torch.tensor([1, 1, 0]), PLAIN, dtype=torch.float64)
    expected = (
        math.log(1 + math.exp(-1)) + math.log(1 + math.e) + math.log(1 + math.exp(-0.2))
    ) / 3
    assert found.loss == pytest.approx(expected, rel=1e-14)
    assert found.accuracy == pytest.approx(2 / 3, rel=1e-15)


@pytest.mark.parametrize("rows", [1, 7, 30, 2048])
def test_parts_do_not_matter(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = some_images()
    model = small_cnn().double()
    scaling = Scaling((0.4,), (0.3,))
    model.eval()
    with torch.no_grad():
        answers = model((images.double() / 255 - 0.4) / 0.3)
    monkeypatch.setattr(evaluation, "ROWS", rows)
    found = evaluate(model, images, labels, scaling, dtype=torch.float64)
    assert found.loss == pytest.approx(float(functional.cross_entropy(answers, labels)), rel=1e-13)
    assert found.accuracy == pytest.approx(float((answers.argmax(1) == labels).double().mean()))


def test_two_networks_asked_with_one_key_see_the_same_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluation, "ROWS", 8)
    images, labels = some_images(20)

    def shown(noise: float, run_key: int) -> Tensor:
        model = Sees()
        evaluate(model, images, labels, PLAIN, noise, run_key)
        return model.shown()

    assert torch.equal(shown(0.5, 1), shown(0.5, 1))
    assert not torch.isclose(shown(0.5, 1), shown(0.5, 2)).any(dim=0).all()
    assert torch.equal(shown(0.0, 1), shown(0.0, 2))
    # parts of a set have noise of their own
    noise = shown(0.5, 1) - shown(0.0, 1)
    assert not torch.isclose(noise[:8], noise[8:16]).any()


def test_test_noise_has_its_std_before_scaling() -> None:
    images = torch.full((40, 1, 32, 32), 102, dtype=torch.uint8)
    model = Sees()
    scaling = Scaling((0.4,), (0.5,))
    evaluate(model, images, torch.zeros(40, dtype=torch.int64), scaling, noise=0.2)
    shown = model.shown().double()
    # 40960 draws: relative standard errors 0.0035 and 0.005, five of them
    assert float(shown.std()) == pytest.approx(0.4, rel=0.018)
    assert abs(float(shown.mean())) < 0.01


@pytest.mark.parametrize("training", [True, False])
def test_the_network_is_left_as_it_was(training: bool) -> None:
    images, labels = some_images()
    model = small_cnn().train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    scores = [evaluate(model, images, labels, PLAIN, noise=0.1, run_key=3) for _ in range(2)]
    assert scores[0] == scores[1]  # no dropout, no moving statistics
    assert all(module.training == training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(one.grad is None for one in model.parameters())
    assert torch.equal(random, torch.get_rng_state())


def test_a_network_that_fails_is_left_as_it_was() -> None:
    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ZeroDivisionError

    model = Fails()
    with pytest.raises(ZeroDivisionError):
        evaluate(model, *some_images(), PLAIN)
    assert model.training


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_answers_that_are_no_numbers_give_a_loss_that_is_none(value: float) -> None:
    class Broken(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            answers = torch.zeros(len(x), 3)
            answers[5] = value
            return answers

    found = evaluate(Broken(), *some_images(), PLAIN)
    assert math.isnan(found.loss)
    assert 0 <= found.accuracy <= 1


def test_bfloat16_changes_the_score_a_little() -> None:
    images, labels = some_images(600)
    model = small_cnn()
    exact = evaluate(model, images, labels, PLAIN)
    rough = evaluate(model, images, labels, PLAIN, precision="bf16")
    assert rough.loss != exact.loss
    assert rough.loss == pytest.approx(exact.loss, rel=0.02)  # a bfloat16 has 8 bits


def test_mixed_precision_is_asked_for_by_name() -> None:
    weights, x = nn.Linear(4, 4), torch.ones(2, 4)
    cpu = torch.device("cpu")
    with mixed_precision(cpu, "bf16"):
        assert weights(x).dtype == torch.bfloat16
    with mixed_precision(cpu, "float32"):
        assert weights(x).dtype == torch.float32
    assert isinstance(evaluate(Sees(), *some_images(3, 2), PLAIN), Score)
