"""Which images a training uses and is asked about: by content, of every class, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from small_trainings import instead_of_digits, made_up
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.data.images import ImageData
from rarefy.tools import image_data, network_evaluation
from rarefy.tools import sparse_training as tool
from rarefy.tools.image_data import some_of
from rarefy.tools.sparse_training import Outcome, Task, train_one
from rarefy.train.evaluation import Score, evaluate
from rarefy.train.image_batches import Augmentation, Scaling, unit_pixels
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Sets are remembered by name; a test may have another one of that name."""
    yield
    image_data._loaded.cache_clear()
    image_data._halves.cache_clear()


def train(**options: Any) -> Outcome:
    recipe = Recipe(epochs=2, learning_rate=0.05)
    changes = options.pop("changes", Augmentation())
    asked = Task("digits", "small_trainings:tiny", recipe, changes, 16, **options)
    return train_one(asked, PruningSpec(), 5, Context())


def test_training_scores_ask_images_of_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where images lie sorted by class and not all are asked."""
    instead_of_digits(monkeypatch, made_up(400))
    monkeypatch.setattr(tool, "TRAIN_SCORED", 100)
    asked: list[Tensor] = []

    def watched(model: Any, images: Tensor, labels: Tensor, *rest: Any) -> Any:
        asked.append(labels)
        return evaluate(model, images, labels, *rest)

    monkeypatch.setattr(network_evaluation, "evaluate", watched)
    train()
    counts = [torch.bincount(labels, minlength=4).tolist() for labels in asked if len(labels) > 20]
    assert counts and all(count == [25, 25, 25, 25] for count in counts)


def test_some_images_are_the_same_share_of_every_class_in_any_order() -> None:
    data = made_up(80).train
    order = torch.randperm(80, generator=torch.Generator().manual_seed(1))
    found, other = some_of(data, 20), some_of(data.take(order), 20)
    assert torch.bincount(found.labels).tolist() == [5, 5, 5, 5]
    assert sorted(found.ids) == sorted(other.ids)
    assert set(some_of(data, 8).ids) < set(found.ids)  # fewer are some of them
    assert some_of(data, 0) is data and some_of(data, 80) is data and some_of(data, 99) is data
    uneven = data.take([*range(20), *range(20, 28), *range(40, 41)])
    assert torch.bincount(some_of(uneven, 14).labels).tolist() == [10, 4, 1]  # none is lost


def test_halves_are_different_images_of_every_class_whatever_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = image_data.halves_of_test("digits", 0, CPU)
    everything = image_data.on_device("digits", CPU).test
    assert not set(first.ids) & set(second.ids)
    assert set(first.ids) | set(second.ids) == set(everything.ids)
    counts = [torch.bincount(half.labels, minlength=10) for half in (first, second)]
    assert (counts[0] - counts[1]).abs().max() <= 1
    data, order = image_data.on_device("digits", CPU), torch.arange(len(everything)).flip(0)
    turned = ImageData(data.name, data.train, everything.take(order), data.source)
    instead_of_digits(monkeypatch, turned)
    assert set(image_data.halves_of_test("digits", 0, CPU)[0].ids) == set(first.ids)


def test_fewer_test_images_are_used_where_asked() -> None:
    first, second = image_data.halves_of_test("digits", 50, CPU)
    assert abs(len(first) + len(second) - 50) <= 5  # each class is rounded
    assert abs(len(first) - len(second)) <= 10
    everything = image_data.on_device("digits", CPU).test
    assert set(first.ids) | set(second.ids) == set(some_of(everything, 50).ids)
    outcome = train(test_samples=50)
    for share, half in zip(outcome.halves[0], (first, second), strict=True):
        assert share * len(half) == pytest.approx(round(share * len(half)))


def test_no_two_sets_of_images_are_asked_with_the_same_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a half would judge with the luck that the other chose by."""
    data = made_up(80, tested=40)
    instead_of_digits(monkeypatch, data)
    drawn: list[Tensor] = []

    def watched(model: nn.Module, images: Tensor, labels: Tensor, *rest: Any) -> Score:
        seen: list[Tensor] = []
        hook = model.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        found = evaluate(model, images, labels, *rest)
        hook.remove()
        scaling = Scaling(data.mean, data.std)
        drawn.append((seen[0] - scaling(unit_pixels(images, torch.float32), torch.float32))[:16])
        return found

    monkeypatch.setattr(network_evaluation, "evaluate", watched)
    train(test_noise=(0.3, 0.5), changes=Augmentation(noise=0.3))
    # without noise: training images, and both halves once more
    clean = [place for place, one in enumerate(drawn) if float(one.abs().max()) < 1e-5]
    assert clean == [4, 5, 7]
    drawn = [one for place, one in enumerate(drawn) if place not in clean]
    assert len(drawn) == 5  # two halves at both noises, training images
    for place, one in enumerate(drawn):
        assert float(one.std()) > 0.3
        for other in drawn[place + 1 :]:
            alike = torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1]
            assert abs(float(alike)) < 0.15  # 1024 pixels: 0.03 by chance


def test_halves_of_the_test_images_add_up() -> None:
    outcome = train(test_noise=(0.0, 0.3))
    first, second = (len(part) for part in image_data.halves_of_test("digits", 0, CPU))
    for halves, score in zip(outcome.halves, outcome.test, strict=True):
        both = (first * halves[0] + second * halves[1]) / (first + second)
        assert score.accuracy == pytest.approx(both)


def test_one_test_image_a_class_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """No half can have every class then, and one of them may be empty."""
    instead_of_digits(monkeypatch, made_up(tested=4))
    found = train()
    assert found.test[0].accuracy in (0, 0.25, 0.5, 0.75, 1)
    assert found.test[0].loss > 0


def test_the_identity_of_a_set_changes_with_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for count in (40, 44, 40):
        instead_of_digits(monkeypatch, made_up(count))
        names.append(image_data.data_identity("digits"))
    assert names[0] == names[2] != names[1] and names[0].startswith("made up (")
    data = made_up()
    assert image_data.noise_in_pixels("digits") == pytest.approx(data.std[0])


def test_options_of_a_folder_travel_in_one_text() -> None:
    text = image_data.with_options("photos", 16, 0.25, True)
    assert text == "photos?size=16&test_share=0.25&skip_bad=1"
    assert image_data.split_options(text) == (
        "photos",
        {"size": 16, "test_share": 0.25, "skip_bad": True},
    )
    assert image_data.with_options("digits", None, None, False) == "digits"
    with pytest.raises(UsageError, match="unknown option of a folder 'sice'; did you mean 'size'"):
        image_data.split_options("photos?sice=3")
    with pytest.raises(UsageError, match="size='x': must be a number"):
        image_data.split_options("photos?size=x")
