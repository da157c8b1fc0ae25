"""The best network on the way is kept, and a training past its best is stopped: as an independent
computation has it, through any stop, and never by test images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_longtail import stopping, task
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.core.writing import OutputFolder
from rarefy.nets.backbones import Encoder
from rarefy.tools.longtail import watching
from rarefy.tools.longtail.evaluation import evaluate_features
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.pretraining import PretrainResult, PretrainTask, pretrain_one
from rarefy.tools.longtail.sets import AS_IS, Parts, Tail
from rarefy.tools.longtail.watching import IN_A_ROW, asked_places, watched_features
from rarefy.tools.saved_networks import load_backbone
from rarefy.train.image_batches import Scaling
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.method import Method

pytestmark = pytest.mark.usefixtures("eager")
EPOCHS = 6


def watched_task(**changes: Any) -> PretrainTask:
    recipe = Recipe(epochs=EPOCHS, learning_rate=0.05, weight_decay=1e-4)
    looks = tuple(range(1, EPOCHS + 1))
    return task(recipe=recipe, watched=looks, **{"best": True, "stop": True, **changes})


def trained(method: str = "simclr", **changes: Any) -> PretrainResult:
    context = changes.pop("context", Context())
    return pretrain_one(watched_task(**changes), Method.parse(method), 0, 0, context, "one")


Seen = list[tuple[dict[str, list[float]], Encoder]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """All looks, with the network that was looked at (a copy of its own)."""
    looks: Seen = []

    def spied(encoder: Encoder, *others: Any) -> dict[str, list[float]]:
        looks.append((watched_features(encoder, *others), encoder))
        return {name: list(values) for name, values in looks[-1][0].items()}

    monkeypatch.setattr(watching, "watched_features", spied)
    return looks


Planted = Callable[..., None]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Looks at which so many of the held-out images are right, whatever was learnt."""

    def plant(*shares: float) -> None:
        def made_up(encoder: Encoder, now: Any, parts: Parts) -> dict[str, list[float]]:
            share = shares[now.epoch - 1]
            right = (np.arange(len(asked_places(parts))) % 10 < 10 * share).astype(float)
            return {"knn": [share], "right": right.tolist(), "effective_rank": [3.0]}

        monkeypatch.setattr(watching, "watched_features", made_up)

    return plant


@pytest.mark.quick("simclr", "branches:0.3")
@pytest.mark.parametrize("method", ["simclr", "pruned:0.5", "branches:0.3", "sdclr"])
def test_what_is_judged_and_saved_is_the_best_look(method: str, seen: Seen, tmp_path: Path) -> None:
    context = Context(models=OutputFolder(tmp_path))
    found = trained(method, context=context, stop=False)
    assert len(seen) == EPOCHS
    knn = [look["knn"][0] for look, _ in seen]
    best = max(range(EPOCHS), key=lambda look: (knn[look], look))  # of equals the later
    assert found.history.kept_epoch == best + 1 and found.history.stopped_epoch == 0
    assert found.history.watched["knn"] == knn
    assert found.history.watched["best_right"] == seen[best][0]["right"]
    # the same features, bit for bit, as of the network that was looked at then
    backbone, about = load_backbone(tmp_path / "one.pt")
    assert (about["kept_epoch"], about["epochs"]) == (best + 1, EPOCHS)
    scaling, images = Scaling(found.parts.mean, found.parts.std), found.parts.test.images
    features = features_of(backbone, images, scaling)
    then = seen[best][1].backbone
    assert torch.equal(features, features_of(then, images, scaling))
    worth = evaluate_features(
        lambda x: features_of(then, x, scaling), found.parts, watched_task().evaluation
    )
    assert found.quality is not None
    assert torch.equal(found.quality.accuracy["knn"], worth.accuracy["knn"])
    if best + 1 < EPOCHS:
        last = seen[-1][1].backbone
        assert not torch.equal(features, features_of(last, images, scaling))


def test_without_being_asked_the_last_is_kept(seen: Seen) -> None:
    last = trained(best=False, stop=False)
    assert (last.history.kept_epoch, last.history.stopped_epoch) == (0, 0)
    scaling = Scaling(last.parts.mean, last.parts.std)
    worth = evaluate_features(
        lambda x: features_of(seen[-1][1].backbone, x, scaling),
        last.parts,
        watched_task().evaluation,
    )
    assert last.quality is not None
    assert torch.equal(last.quality.accuracy["knn"], worth.accuracy["knn"])


def test_it_stops_at_the_second_certain_fall_in_a_row(planted: Planted, logged: list[str]) -> None:
    done: list[float] = []
    planted(0.5, 0.9, 0.2, 0.9, 0.2, 0.2)
    found = trained(context=Context(advance=done.append))
    assert found.history.watched["fallen"] == [0, 0, 1, 0, 1, 1]
    assert found.history.stopped_epoch == 0  # the last look comes too late to stop anything
    assert found.history.kept_epoch == 4  # of equals the later
    assert "one:" not in "\n".join(logged)  # (the run's own lines say which was kept)
    planted(0.5, 0.9, 0.2, 0.2, 0.9, 0.9)
    done.clear()
    found = trained(context=Context(advance=done.append))
    assert IN_A_ROW == 2 and found.history.stopped_epoch == 4 and found.history.kept_epoch == 2
    assert len(found.history.loss) == 4 and sum(done) == pytest.approx(EPOCHS)  # a full bar
    assert (
        "one: stopped after epoch 4: held-out kNN accuracy fell for certain, from 90.0 % (epoch 2, "
        "which is kept) to 20.0 %"
    ) in "\n".join(logged)
    assert trained(stop=False).history.stopped_epoch == 0


@pytest.mark.quick("simclr")
@pytest.mark.parametrize("method", ["simclr", "branches:0.3"])
def test_stopped_by_a_deadline_it_ends_the_same(
    method: str, planted: Planted, tmp_path: Path
) -> None:
    """Before and after the best look, and after the training has stopped by itself."""
    planted(0.5, 0.9, 0.3, 0.2, 0.9, 0.9)
    whole = trained(method, context=Context(models=OutputFolder(tmp_path / "whole")))
    assert (whole.history.kept_epoch, whole.history.stopped_epoch) == (2, 4)
    first, _ = load_backbone(tmp_path / "whole" / "one.pt")
    for after in (4, 7, 11):  # of 3 updates an epoch
        with pytest.raises(OutOfTime):
            trained(method, context=stopping(tmp_path / "scratch", after))
        context = Context(scratch=tmp_path / "scratch", models=OutputFolder(tmp_path / f"{after}"))
        again = trained(method, context=context)
        assert again.history == whole.history
        assert again.quality is not None and whole.quality is not None
        assert torch.equal(again.quality.accuracy["knn"], whole.quality.accuracy["knn"])
        other, _ = load_backbone(tmp_path / f"{after}" / "one.pt")
        assert _same(first.state_dict(), other.state_dict())
        assert not list((tmp_path / "scratch").iterdir())


def test_a_crash_while_judging_does_not_train_on(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has stopped by itself stays stopped: the checkpoint says so."""
    planted(0.5, 0.9, 0.3, 0.2, 0.9, 0.9)
    monkeypatch.setattr("rarefy.train.checkpoints.EVERY_SECONDS", 0.0)
    whole = trained()
    place = "rarefy.tools.longtail.pretraining.evaluate_features"
    with monkeypatch.context() as patch:
        patch.setattr(place, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trained(context=Context(scratch=tmp_path))
    done: list[float] = []
    again = trained(context=Context(scratch=tmp_path, advance=done.append))
    assert again.history == whole.history and sum(done) == pytest.approx(EPOCHS)


def test_only_training_images_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Tensor] = []

    def spied(backbone: Any, images: Tensor, *others: Any) -> Tensor:
        shown.append(images)
        return features_of(backbone, images, *others)

    monkeypatch.setattr(watching, "features_of", spied)
    found = trained(stop=False)
    known = {tuple(one.flatten().tolist()) for one in found.parts.labelled.images}
    held = {
        tuple(one.flatten().tolist()) for one in found.parts.labelled.images[found.parts.held_out]
    }
    asked, others = shown[:2]
    assert {tuple(one.flatten().tolist()) for one in asked} <= held
    rest = {tuple(one.flatten().tolist()) for one in others}
    assert rest <= known and not rest & held


def test_without_labels_the_last_is_kept_and_ranks_are_seen(tmp_path: Path) -> None:
    from PIL import Image

    draws = np.random.default_rng(0)
    for number in range(20):
        pixels = draws.integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    folder = f"{tmp_path}?unlabelled=1"
    found = trained(data=folder, tail=Tail(AS_IS), batch=8)
    assert (found.history.kept_epoch, found.history.stopped_epoch) == (0, 0)
    assert set(found.history.watched) == {"effective_rank"}
    ranks = found.history.watched["effective_rank"]
    assert len(ranks) == EPOCHS and all(1 <= rank <= 19 for rank in ranks)


def _same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)
