"""The closer look at features: of features that are known, of views that are known, and resumed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from small_longtail import made_up, task
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.tools.longtail.dissection import DIRECTIONS, _matched, dissected_features, view_targets
from rarefy.tools.longtail.features import final_encoder
from rarefy.tools.longtail.pretraining import new_pretraining, pretrain_one
from rarefy.tools.longtail.sets import Parts, parts_of
from rarefy.train.simclr.method import Method
from rarefy.train.views.views import Views

pytestmark = pytest.mark.usefixtures("eager")
CLASSES, ORDER = 4, (2, 0, 3, 1)
SIMCLR = Method.parse("simclr")


class SeenClass(nn.Module):
    """The label that an image seems to have, by its first pixel: ``made_up`` puts it there."""

    def forward(self, x: Tensor) -> Tensor:
        label = ((x[:, 0, 0, 0] * 0.3 + 0.5) * 255).round().long().clamp(0, CLASSES - 1)
        return nn.functional.one_hot(label, CLASSES).float()


def look(backbone: nn.Module, width: int, parts: Parts) -> dict[str, list[float]]:
    own = (backbone, width)
    training = new_pretraining(task(batch=8), SIMCLR, parts, 0, Context(), own=own)  # type: ignore[arg-type]
    return dissected_features(final_encoder(training), training, parts)


def test_features_that_are_the_class_are_nothing_else() -> None:
    found = look(SeenClass(), CLASSES, made_up([10] * CLASSES, ORDER, (20, 10, 5, 3)))
    assert found["unseen_knn"] == [1.0] * CLASSES
    assert found["class_share"] == pytest.approx([1.0])
    assert found["effective_rank"] == pytest.approx([CLASSES - 1], abs=1e-3)
    shares = found["spectrum"]
    assert shares[:4] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-9)
    assert len(shares) == DIRECTIONS and all(one != one for one in shares[CLASSES:])
    assert len(found["knn"]) == 1 and len(found["separability"]) == CLASSES


def test_accuracy_stands_by_rank_with_the_head_first() -> None:
    found = look(SeenClass(), CLASSES, made_up([10, 8, 10, 10], ORDER, (20, 10, 5, 3)))
    # class 1 is at the last rank; two of its ten images look like class 2
    assert found["unseen_knn"] == [1.0, 1.0, 1.0, 0.8]


def test_pixels_know_their_view_and_nobody_by_heart() -> None:
    parts = parts_of("digits", task().tail, 0, torch.device("cpu"))
    found = look(nn.Flatten(), 64, parts)
    crop, colour = found["augmentation"]
    assert 0.2 < crop <= 1 and colour != colour  # (digits are grey: no colour is drawn)
    trained, unseen = found["retrieval"]
    assert 0 < trained < 1 and abs(trained - unseen) < 0.15
    assert 0 < found["unseen_alignment"][0] < 2 and found["unseen_uniformity"][0] < 0
    again = look(nn.Flatten(), 64, parts)
    assert (again["retrieval"], again["knn"]) == (found["retrieval"], found["knn"])


def test_as_many_trained_as_unseen_images_of_each_class() -> None:
    trained, unseen = torch.tensor([0, 1, 0, 0, 2]), torch.tensor([0, 0, 1, 1, 1, 3])
    places = _matched(trained, unseen, 4)
    assert [one.tolist() for one in places] == [[0, 2, 1], [0, 1, 2]]


def test_targets_are_what_is_seen_of_a_view() -> None:
    draws = torch.Generator().manual_seed(0)
    drawn = Views.default(3, 32).draw(400, 32, 32, draws)
    crop, colour = view_targets(drawn, 32, 32)
    whole = drawn._replace(boxes=torch.tensor([[0, 0, 32, 32]]).repeat(800, 1))
    torch.testing.assert_close(
        view_targets(whole, 32, 32)[0], torch.tensor([0.5, 0.5, 0.0]).double().repeat(800, 1)
    )
    left = drawn._replace(boxes=torch.tensor([[0, 0, 16, 16]]).repeat(800, 1))
    down, across, area = view_targets(left, 32, 32)[0].unbind(1)
    assert down.unique().tolist() == [0.25] and area.exp().mean() == pytest.approx(0.25)
    assert torch.equal(across, torch.where(drawn.mirrored, 0.75, 0.25).double())
    assert crop.shape == (800, 3) and colour.shape == (800, 4)
    left_alone = ~drawn.jittered
    assert 0 < left_alone.sum() < 400
    assert (colour[left_alone] == torch.tensor([1.0, 1, 1, 0]).double()).all()
    grey = drawn.jittered & drawn.greyed
    assert (colour[grey, 2:] == torch.tensor([1.0, 0]).double()).all() and grey.any()
    assert torch.equal(colour[grey, :2], drawn.factors[grey, :2].double())


def test_a_training_that_was_stopped_has_lost_no_look(tmp_path: Path) -> None:
    asked = task(watched=(1, 2), look=dissected_features)
    whole = pretrain_one(asked, SIMCLR, 0, 0, Context())
    done: list[float] = []

    class Stop:
        def is_set(self) -> bool:
            return len(done) >= 4  # after the first epoch's three updates and one more

    stopped = Context(scratch=tmp_path, stop=Stop(), advance=done.append)  # type: ignore[arg-type]
    with pytest.raises(OutOfTime):
        pretrain_one(asked, SIMCLR, 0, 0, stopped)
    rest = pretrain_one(asked, SIMCLR, 0, 0, Context(scratch=tmp_path))
    assert set(whole.history.watched) == set(rest.history.watched)
    for name, values in whole.history.watched.items():
        torch.testing.assert_close(
            torch.tensor(rest.history.watched[name]), torch.tensor(values), equal_nan=True
        )
        assert name == "best_right" or len(values) % 2 == 0


def test_looking_changes_neither_the_training_nor_its_checkpoint() -> None:
    plain = task(watched=(2,))
    closer = dataclasses.replace(plain, look=dissected_features)
    assert repr(plain) == repr(closer)  # checkpoints go by it
    first, second = (pretrain_one(one, SIMCLR, 0, 0, Context()) for one in (plain, closer))
    assert first.history.loss == second.history.loss
    assert first.history.watched["knn"] == second.history.watched["knn"]
