"""BatchNorm of the network that answers is measured anew, and a probe looks at each image once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_trainings import BATCH, batches, training
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.nets.backbones import Features, build_backbone
from rarefy.nets.builder import NETWORKS
from rarefy.tools import image_data
from rarefy.tools import sparse_training as tool
from rarefy.tools.exported_networks import exported, write_exported
from rarefy.tools.longtail.features import features_of
from rarefy.tools.network_evaluation import final_network
from rarefy.tools.sparse_training import Task, train_one
from rarefy.train.image_batches import Augmentation, Scaling
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import Training

KEY = 5
NETWORK = "small_trainings:tiny"


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    yield
    image_data._loaded.cache_clear()
    image_data._halves.cache_clear()


def task(**options: Any) -> Task:
    recipe = Recipe(epochs=2, learning_rate=0.05)
    settings: dict[str, Any] = {"network": NETWORK, "batch": 32, "samples": 200}
    return Task(data="digits", recipe=recipe, **{**settings, "changes": Augmentation(), **options})


def seen_by_norm(network: nn.Module, shown: Iterator[tuple[Tensor, Tensor]]) -> Tensor:
    """What BatchNorm, the second layer, is given by all these batches."""
    return torch.cat([network[0](x).detach() for x, _ in shown])


# ------------------------------------------------------------------------------------------- others


def test_other_batches_of_the_same_images() -> None:
    quiet = batches(changes=Augmentation(1, True, 0.2)).without_noise()
    assert (quiet.batch, quiet.changes) == (BATCH, Augmentation(1, True, 0.0))
    plain = batches(changes=Augmentation(1, True))
    for (x, y), (expected, labels) in zip(quiet.epoch(3), plain.epoch(3), strict=True):
        assert torch.equal(x, expected) and torch.equal(y, labels)  # moved and mirrored alike
    assert (quiet.run_key, quiet.dtype, quiet.scaling) == (17, plain.dtype, plain.scaling)


# ---------------------------------------------------------------------------- the final network


@pytest.mark.parametrize("name", ["dense", "project", "project, every 3", "dense rule"])
def test_dense_and_pruned_networks_are_measured_alike(name: str) -> None:
    made = training(name)
    made.run(Context())
    kept = {key: one.clone() for key, one in made.model.state_dict().items()}
    network = final_network(made)
    assert network is not made.model
    for key, one in made.model.state_dict().items():
        assert torch.equal(one, kept[key]), key  # the training is as it was
    for key, one in made.evaluation_model().named_parameters():
        assert torch.equal(dict(network.named_parameters())[key], one), key
    seen = seen_by_norm(network, made.batches.epoch(0))  # images as they were shown, with noise
    torch.testing.assert_close(network[1].running_mean, seen.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)
    if not made.pruning_spec.dense_between(made.batches.steps):
        assert not torch.allclose(made.model[1].running_mean, network[1].running_mean, atol=1e-5)


def test_on_the_way_only_copies_are_measured() -> None:
    for name in ("dense", "project", "masked rule, every 3"):
        made = training(name)
        assert final_network(made, last=False) is made.model
    made = training("project, every 3")
    made.run(Context())
    network = final_network(made, last=False)
    seen = seen_by_norm(network, made.batches.epoch(0))
    torch.testing.assert_close(network[1].running_mean, seen.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)


def test_without_batchnorm_there_is_nothing_to_measure() -> None:
    made = training(model=nn.Sequential(nn.Flatten(), nn.Linear(25, 3)))
    assert final_network(made) is made.model


def test_clean_halves_are_asked_of_statistics_without_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Training] = []
    make = tool.new_training

    def remembered(*args: Any) -> Training:
        made.append(make(*args))
        return made[-1]

    monkeypatch.setattr(tool, "new_training", remembered)
    noisy = task(changes=Augmentation(noise=1.0), test_noise=(0.0, 1.0))
    outcome = train_one(noisy, PruningSpec(0.5), KEY, Context())
    network = final_network(made[0])
    data = image_data.on_device("digits", torch.device("cpu"))
    scaling = Scaling(data.mean, data.std)
    quiet = list(made[0].batches.without_noise().epoch(0))
    mean = seen_by_norm(network, iter(quiet)).mean((0, 2, 3))
    values = torch.stack([network[0](x).detach().var((0, 2, 3)) for x, _ in quiet])
    network[1].running_mean.copy_(mean)
    network[1].running_var.copy_(values.mean(0))
    for part, accuracy in zip(
        image_data.halves_of_test("digits", 0, torch.device("cpu")),
        outcome.clean_halves,
        strict=True,
    ):
        answers = network.eval()(scaling(part.images.float() / 255, torch.float32))
        right = float((answers.argmax(1) == part.labels).double().mean())
        assert accuracy == pytest.approx(right, abs=0.006)  # one image, by rounding
    assert outcome.clean_halves != outcome.halves[0]  # those have the statistics of noise


def test_without_noise_clean_halves_are_the_halves() -> None:
    for spec in (PruningSpec(), PruningSpec(0.3)):
        outcome = train_one(task(), spec, KEY, Context())
        assert outcome.clean_halves == outcome.halves[0]


# ------------------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            {"test_noise": (0.0, 0.5, 0.0)},
            r"test_noise=\(0.0, 0.5, 0.0\): has the same value twice",
        ),
        ({"precision": "bf1"}, "unknown precision 'bf1'; did you mean 'bf16'"),
    ],
)
def test_a_wrong_task_is_told(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        task(**wrong)


# -------------------------------------------------------------------------------- exported networks


SCALING = Scaling((0.3, 0.4, 0.5), (0.2, 0.0, 0.3))
"""One channel never changes."""
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.mark.quick("lenet", "cnn-small")
@pytest.mark.parametrize("name", NETWORKS)
def test_the_program_gives_our_features(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    backbone, width = build_backbone(name, 3, 12)
    with torch.no_grad():  # statistics of its own, as after a training
        backbone.train()(torch.rand(16, 3, 12, 12))
    state = {name: value.clone() for name, value in backbone.state_dict().items()}
    write_exported(exported(backbone, SCALING, 12, name), tmp_path / "one.pt2", "test")
    assert backbone.training and all(
        torch.equal(value, state[name]) for name, value in backbone.state_dict().items()
    )
    program = torch.export.load(tmp_path / "one.pt2").module()
    for count in (1, 2, 9):
        images = torch.randint(0, 256, (count, 3, 12, 12), dtype=torch.uint8)
        found = program(images / 255)
        assert found.shape == (count, width) and not found.requires_grad
        torch.testing.assert_close(found, features_of(backbone, images, SCALING), **CLOSE)


class Flat(nn.Module):
    """Somebody's network, whose forward pass is given."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.linear, self.kind = nn.Linear(3 * 64, 5), kind

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x.reshape(len(x), -1))
        if self.kind == "branches":
            return x if x.sum() > 0 else -x
        return x + torch.rand_like(x) if self.kind == "random" else x


def test_a_network_that_asks_for_the_length_of_a_batch_can_be_followed() -> None:
    network = Features(Flat("plain"))
    program = exported(network, SCALING, 8, "mine").module()
    images = torch.randint(0, 256, (7, 3, 8, 8), dtype=torch.uint8)
    torch.testing.assert_close(
        program(images / 255), features_of(network, images, SCALING), **CLOSE
    )


@pytest.mark.quick("random")
@pytest.mark.parametrize("kind", ["branches", "random"])
def test_what_cannot_be_followed_is_one_line(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError) as found:
        exported(Features(Flat(kind)), SCALING, 8, "my_nets:flat")
    said = str(found.value)
    assert said.startswith("export: torch.export cannot follow the network 'my_nets:flat' (")
    assert "load the saved weights into its own code" in said and "\n" not in said
    assert capfd.readouterr() == ("", "")
