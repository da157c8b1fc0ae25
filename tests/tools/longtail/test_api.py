"""``rarefy.pretrain`` and ``rarefy.probe`` with one's own arrays and modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rarefy
from rarefy.core.errors import OutOfTime, RunError, UsageError
from rarefy.data.images import load_images
from rarefy.measure.class_report import COLUMNS

SHORT = {"epochs": 2, "batch": 64, "learning_rate": 0.05, "progress": False, "device": "cpu"}


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return load_images("digits").train.images[:200]


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU())


@pytest.mark.parametrize("method", ["simclr", "pruned:0.5", "branches:0.3", "sdclr:0.3"])
def test_a_module_of_ones_own_is_trained_in_place(images: torch.Tensor, method: str) -> None:
    network = small()
    before = network[0].weight.detach().clone()
    learnt = rarefy.pretrain(images, network, method, **SHORT)
    found = learnt.features(images[:10].numpy())
    assert found.shape == (10, 6) and bool(torch.isfinite(found).all())
    assert not torch.equal(network[0].weight, before)
    theirs = learnt.backbone.network[0].weight
    assert torch.equal(network[0].weight, theirs)
    assert learnt.history.columns.tolist() == ["epoch", "loss", "alignment", "uniformity", "churn"]
    assert len(learnt.history) == 2
    network(torch.rand(2, 1, 8, 8)).sum().backward()  # nobody prunes it any more


def test_the_same_seed_gives_the_same_and_another_another(images: torch.Tensor) -> None:
    first, again, other = (
        rarefy.pretrain(images, "lenet", **SHORT, seed=seed).features(images[:5])
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_it_goes_on_from_its_checkpoint(
    images: torch.Tensor, tmp_path: Path, stops_every: Callable[[int], None]
) -> None:
    long = {**SHORT, "epochs": 5}
    whole = rarefy.pretrain(images, "lenet", "branches:0.3", **long)
    stops_every(7)  # (of 15 updates)
    path, stops, resumed = tmp_path / "half.pt", 0, None
    while resumed is None:
        try:
            resumed = rarefy.pretrain(
                images, "lenet", "branches:0.3", **long, checkpoint=path, max_seconds=500
            )
        except OutOfTime:
            stops += 1
            assert path.exists() and stops < 100
    assert stops > 1 and torch.equal(resumed.features(images[:5]), whole.features(images[:5]))
    assert not path.exists()


@pytest.mark.quick("pruned:0.5+neuron")
@pytest.mark.parametrize("method", ["pruned:0.5+neuron", "pruned:0.5", "branches:0.3"])
def test_stops_leave_nothing_of_ours_on_a_module_of_ones_own(
    images: torch.Tensor, method: str, tmp_path: Path, stops_every: Callable[[int], None]
) -> None:
    long = {**SHORT, "epochs": 8}
    whole, network = small(), small()
    rarefy.pretrain(images, whole, method, **long)
    stops_every(9)  # (of 24 updates)
    stops = 0
    while True:
        try:
            rarefy.pretrain(
                images, network, method, **long, checkpoint=tmp_path / "half.pt", max_seconds=500
            )
            break
        except OutOfTime:
            stops += 1
            assert not any(one._forward_hooks for one in network.modules())
            assert bool((network[0].weight != 0).all())  # dense
    assert stops > 1
    for name, values in whole.state_dict().items():
        assert torch.equal(network.state_dict()[name], values), name


def test_a_loss_that_is_no_number_is_an_error_with_advice(images: torch.Tensor) -> None:
    much = {**SHORT, "learning_rate": 1e30, "epochs": 3}
    with pytest.raises(
        RunError, match=r"no number from update \d+ on; what usually helps: a lower"
    ):
        rarefy.pretrain(images, small(), **much)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((4, 8, 8, 3), dtype=np.uint8), "channels come first"),
        (np.zeros((4, 1, 8, 6), dtype=np.uint8), "must be square"),
        (np.zeros((4, 1, 8, 8)), "must be uint8"),
        (np.zeros((4, 2, 8, 8), dtype=np.uint8), "must have 1 or 3 channels"),
    ],
)
def test_images_that_are_none(given: np.ndarray, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        rarefy.pretrain(given, "lenet", **SHORT)


def test_other_wrong_arguments(images: torch.Tensor) -> None:
    with pytest.raises(UsageError, match="learns nothing"):
        rarefy.pretrain(images, "lenet", "pixels", **SHORT)
    with pytest.raises(UsageError, match="has no weights to train"):
        rarefy.pretrain(images, nn.Flatten(), **SHORT)
    with pytest.raises(UsageError, match="network Linear does not take images of 2 x 1 x 8 x 8: "):
        rarefy.pretrain(images, nn.Linear(3, 3), **SHORT)
    with pytest.raises(UsageError, match="at most the number of images, 200"):
        rarefy.pretrain(images, "lenet", **{**SHORT, "batch": 500})


def test_probe_of_features_that_say_all() -> None:
    random = np.random.default_rng(0)
    labels, asked = np.repeat(np.arange(5), 40), np.repeat(np.arange(5), 20)
    centres = 8 * random.standard_normal((5, 6))
    train = centres[labels] + random.standard_normal((200, 6)), labels
    test = centres[asked] + random.standard_normal((100, 6)), asked
    found = rarefy.probe(train, test, counts=[10, 50, 40, 30, 20], shots=5, draws=2)
    assert found["protocol"].tolist() == ["linear", "few", "knn"]
    assert (found["balanced_accuracy"] > 95).all() and (found["delta_20"].abs() < 10).all()
    assert (found["majority_accuracy"] == 20).all() and (found["majority_class"] == "1").all()
    # the head is class 1, the tail class 0
    spoilt = test[0].copy()
    spoilt[asked == 0] = centres[1]
    worse = rarefy.probe(train, (spoilt, asked), counts=[10, 50, 40, 30, 20], protocols=["knn"])
    assert worse["delta_20"][0] == 100
    assert (worse["worst_class"][0], worse["worst_recall"][0], worse["tail"][0]) == ("0", 0.0, 0.0)
    assert worse["warnings"][0][0] == "never answered: '0'"
    told = rarefy.probe(
        train, (spoilt, asked), [10, 50, 40, 30, 20], protocols=["knn", "few"], per_class=True
    )
    assert list(told.columns) == ["protocol", *COLUMNS] and len(told) == 2 * 5
    assert told["class"].tolist()[:5] == ["1", "2", "3", "4", "0"]
    assert told["recall"].tolist()[4] == 0 and told["precision"].tolist()[0] == 50
    other = rarefy.probe(train, (spoilt, asked), counts=[50, 10, 40, 30, 20], protocols=["knn"])
    assert other["delta_20"][0] == -100


def test_what_went_otherwise_than_asked_is_said() -> None:
    x, y = np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 2
    with pytest.warns(UserWarning, match="2 of 2 classes have fewer than 50 labels"):
        found = rarefy.probe((x, y), (x, y), protocols=["few"], shots=50, draws=1)
    assert found["strength"][0] > 0
    with pytest.warns(UserWarning, match="all 30 references vote, 100 were asked for"):
        rarefy.probe((x, y), (x, y), protocols=["knn"], neighbours=100)


def test_probes_asked_wrongly() -> None:
    x, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    with pytest.raises(UsageError, match="must be linear, few or knn"):
        rarefy.probe((x, y), (x, y), protocols=["fast"])
    with pytest.raises(UsageError, match="must be linear, few or knn"):
        rarefy.probe((x, y), (x, y), protocols=["long-tail"])  # (it needs images)
    with pytest.raises(UsageError, match="one for each of 2 classes"):
        rarefy.probe((x, y), (x, y), counts=[1, 2, 3])
    with pytest.raises(UsageError, match="train='20 features, 5 labels': must be as many"):
        rarefy.probe((x, y[:5]), (x, y))
    with pytest.raises(UsageError, match="whole numbers"):
        rarefy.probe((x, y.astype(float)), (x, y))
