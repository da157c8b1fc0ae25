"""One training from data to scores: pairs that share everything but the pruning, files that hold
what they say, stops that lose nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import seen_in
from small_trainings import Enough, instead_of_digits, made_up, stopped_after, tiny
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import RunError, UsageError
from rarefy.core.writing import OutputFolder
from rarefy.tools import image_data
from rarefy.tools import sparse_training as tool
from rarefy.tools.sparse_training import Outcome, Task, train_one
from rarefy.train.evaluation import evaluate
from rarefy.train.image_batches import Augmentation, Scaling
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import Training

CPU = torch.device("cpu")
KEY = 5


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Sets are remembered by name; a test may have another one of that name."""
    yield
    image_data._loaded.cache_clear()
    image_data._halves.cache_clear()


def task(**options: Any) -> Task:
    recipe = Recipe(epochs=options.pop("epochs", 2), learning_rate=0.05)
    settings: dict[str, Any] = {"network": "small_trainings:tiny", "batch": 32, "samples": 200}
    return Task(data="digits", recipe=recipe, **{**settings, "changes": Augmentation(), **options})


def train(spec: PruningSpec | None = None, **options: Any) -> Outcome:
    context = options.pop("context", Context())
    return train_one(task(**options), spec or PruningSpec(), KEY, context)


def test_the_same_key_gives_the_same_outcome_and_another_another() -> None:
    first = train(PruningSpec(0.5), test_noise=(0.0, 0.2), watched=(1, 2))
    assert first == train(PruningSpec(0.5), test_noise=(0.0, 0.2), watched=(1, 2))
    other = train_one(task(), PruningSpec(0.5), KEY + 1, Context())
    assert other.history.loss != first.history.loss
    assert len(first.test) == 2 and len(first.history.watched["accuracy"]) == 2
    # the last look is at the finished network, but for BatchNorm as training left it
    assert first.history.watched["accuracy"][-1] == pytest.approx(first.test[0].accuracy, abs=0.05)


def test_pairs_share_first_weights_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[Tensor]] = []
    begun: list[dict[str, Tensor]] = []
    make, update = tool.new_training, Training.update

    def watched(self: Training, batch: tuple[Tensor, Tensor]) -> Tensor:
        shown[-1].append(batch[0].clone())
        return update(self, batch)

    def remembered(task: Task, spec: PruningSpec, *rest: Any) -> Training:
        made = make(task, PruningSpec(), *rest)  # before anything is pruned
        begun.append({name: one.clone() for name, one in made.model.state_dict().items()})
        shown.append([])
        torch.manual_seed(0)  # (the second network below draws too)
        return make(task, spec, *rest)

    monkeypatch.setattr(tool, "new_training", remembered)
    monkeypatch.setattr(Training, "update", watched)
    for spec in (PruningSpec(), PruningSpec(0.3), PruningSpec(0.3, "masked", every=2)):
        train(spec, changes=Augmentation(1, True, 0.1))
    for weights, images in zip(begun[1:], shown[1:], strict=True):
        assert all(torch.equal(weights[name], one) for name, one in begun[0].items())
        assert len(images) == len(shown[0]) == 12
        assert all(torch.equal(a, b) for a, b in zip(images, shown[0], strict=True))


@pytest.mark.parametrize(
    "spec",
    [
        PruningSpec(),
        PruningSpec(0.3),
        PruningSpec(0.3, every=5),
        PruningSpec(0.3, "dense"),
        PruningSpec(0.3, "masked", every=5),
        PruningSpec(0.3, granularity="layer"),
    ],
)
def test_what_is_kept_and_saved_is_what_was_asked(spec: PruningSpec, tmp_path: Path) -> None:
    asked = task(test_noise=(0.0, 0.3))
    outcome = train_one(asked, spec, KEY, Context(models=OutputFolder(tmp_path / "nets")), "one")
    # filters of 9 and 54 weights: 3 of 9 and 16 of 54 are nearest to 0.3; as a layer 16 and 162
    kept = {"filter": 6 * 3 + 10 * 16, "layer": 16 + 162}[spec.granularity] / (54 + 540)
    assert outcome.kept == (1.0 if spec.keep == 1 else pytest.approx(kept, abs=6 / 594))
    stored = torch.load(tmp_path / "nets" / "one.pt", weights_only=True)
    assert [path.name for path in seen_in(tmp_path / "nets")] == ["one.pt"]
    network = tiny(1, 8, 10)
    network.load_state_dict(stored["state_dict"])
    weights = [network[0].weight, network[5].weight]
    assert sum(int((one != 0).sum()) for one in weights) / 594 == outcome.kept
    data = image_data.on_device("digits", CPU)
    scaling = Scaling(data.mean, data.std)
    found = evaluate(network, data.test.images, data.test.labels, scaling)
    assert found.accuracy == pytest.approx(stored["test_accuracy"][0], abs=1e-9)
    assert found.accuracy == pytest.approx(outcome.test[0].accuracy, abs=1e-9)
    assert found.loss == pytest.approx(outcome.test[0].loss, rel=1e-5)
    assert outcome.test[0].accuracy > 0.2  # it has learnt
    assert stored["thinning"] == dataclasses.asdict(spec)


def test_scores_on_training_images_with_noise_and_without() -> None:
    plain, noisy = train(), train(changes=Augmentation(noise=0.5))
    assert plain.train == plain.train_clean
    assert noisy.train.loss > noisy.train_clean.loss


def test_noise_drawn_once_is_memorised_and_new_noise_undoes_that() -> None:
    """Images drowned in noise of their own can be learnt by heart, which the epochs show; the
    training score asks with new noise, and nothing is left of it."""
    found = train(changes=Augmentation(noise=3.0, fresh=False), samples=60, epochs=60, batch=20)
    assert found.history.accuracy[-1] > 0.9
    assert found.train.accuracy < 0.5  # ten classes


def test_torchs_own_random_state_is_given_back() -> None:
    torch.manual_seed(77)
    expected = torch.rand(3)
    torch.manual_seed(77)
    train(network="small_trainings:tiny")
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(77)
    with pytest.raises(ZeroDivisionError), tool.own_random_state(KEY, CPU):
        torch.rand(100)
        raise ZeroDivisionError
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.quick("3-spec1", "6-spec0")
@pytest.mark.parametrize("spec", [PruningSpec(), PruningSpec(0.3, every=3)])
@pytest.mark.parametrize("steps", [0, 3, 6, 11])
def test_stopped_and_gone_on_with_it_is_the_same(
    spec: PruningSpec, steps: int, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"changes": Augmentation(1, True, 0.1), "watched": (1, 2)}
    whole = train(spec, **options)
    context = dataclasses.replace(stopped_after(steps), scratch=tmp_path / "scratch")
    with pytest.raises(Enough):
        train(spec, context=context, **options)
    assert len(list((tmp_path / "scratch").glob("*.pt"))) == (steps > 0)
    again = train(spec, context=Context(scratch=tmp_path / "scratch"), **options)
    assert whole == again
    assert list((tmp_path / "scratch").glob("*")) == []


def test_no_training_goes_on_with_another_ones_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(**options: Any) -> None:
        context = dataclasses.replace(stopped_after(3), scratch=tmp_path)
        with pytest.raises(Enough):
            train(PruningSpec(options.pop("keep", 1.0)), context=context, **options)

    data = made_up()
    instead_of_digits(monkeypatch, data)
    plain = train(samples=0, epochs=4)
    stop(samples=0, epochs=4, keep=0.5)
    stop(samples=0, epochs=5)
    stop(samples=0, epochs=4, changes=Augmentation(noise=0.1))
    instead_of_digits(monkeypatch, made_up(44))  # other images of the same name
    stop(samples=0, epochs=4)
    instead_of_digits(monkeypatch, data)
    assert plain == train(samples=0, epochs=4, context=Context(scratch=tmp_path))


def test_no_training_goes_on_with_a_network_whose_code_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = dataclasses.replace(stopped_after(3), scratch=tmp_path)
    with pytest.raises(Enough):
        train(context=context)
    (before,) = tmp_path.glob("*.pt")
    monkeypatch.setattr(tool, "identity", lambda name: f"{name} (changed)")
    with pytest.raises(Enough):
        train(context=dataclasses.replace(stopped_after(2), scratch=tmp_path))
    assert len(list(tmp_path.glob("*.pt"))) == 2 and before.exists()


def test_progress_adds_up_and_says_how_it_goes() -> None:
    advanced: list[float] = []
    said: list[str] = []
    train(context=Context(advance=advanced.append, say=said.append), watched=(2,))
    assert sum(advanced) == pytest.approx(2)
    assert said[0].startswith("run: epoch 1/2, loss ") and "accuracy" not in said[0]
    assert said[1].startswith("run: epoch 2/2, loss ") and "test accuracy" in said[1]


@pytest.mark.parametrize("keep", [1.0, 0.3])
def test_a_training_that_blows_up_still_has_an_outcome(keep: float) -> None:
    wild = dataclasses.replace(task(watched=(1, 2)), recipe=Recipe(2, learning_rate=1e30))
    found = train_one(wild, PruningSpec(keep, every=2), KEY, Context())
    assert 0 <= found.history.nonfinite_step < 12
    assert not math.isfinite(found.history.loss[-1])


def test_images_that_are_not_square_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    instead_of_digits(monkeypatch, made_up(height=8, width=9))
    with pytest.raises(UsageError, match="data='digits': images must be square, these are 8 x 9"):
        train(samples=0)


def test_a_folder_for_models_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "nets").write_text("in the way")
    with pytest.raises(RunError, match="cannot write .*one.pt") as caught:
        train_one(
            task(), PruningSpec(), KEY, Context(models=OutputFolder(tmp_path / "nets")), "one"
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"test_noise": (0.0, -1.0)}, "test_noise=-1.0: must be finite and at least 0"),
        ({"samples": -1}, "samples=-1: must be at least 0"),
        ({"test_samples": -2}, "test_samples=-2: must be at least 0"),
        ({"batch": 1}, "batch=1: must be at least 2"),
    ],
)
def test_a_wrong_task_is_told(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        task(**wrong)
