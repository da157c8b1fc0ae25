"""The race for a keep: on held-out training images alone, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from pages import DOCS, ROOT, regret
from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.tools import keep_race
from rarefy.tools.image_data import on_device
from rarefy.tools.keep_race import KEEPS, Race, race
from rarefy.tools.train_images import TrainImages

SMALL = TrainImages.at("tiny", network="small_trainings:tiny", epochs=3, samples=120)


def test_no_test_image_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = on_device("digits", torch.device("cpu"))
    shown: list[Any] = []
    real = keep_race.Scorer.confusion

    def watched(self: Any, network: Any, images: Any, *rest: Any) -> Any:
        shown.append(images)
        return real(self, network, images, *rest)

    monkeypatch.setattr(keep_race.Scorer, "confusion", watched)
    found = race(SMALL, Context())
    assert len(shown) == len(KEEPS) * keep_race.SEEDS
    assert all(set(one.ids) <= set(digits.train.ids) for one in shown)
    assert found.images == len(shown[0]) and 15 < found.images < 40
    assert tuple(found.scores) == KEEPS and found.epochs == 3  # all: there are few updates
    assert race(SMALL, Context()) == found  # the same again


def test_the_best_is_chosen_and_of_equals_the_larger() -> None:
    assert Race({1.0: 80.0, 0.5: 81.0, 0.3: 82.0}, 5, 40).chosen == 0.3
    dense = Race({1.0: 90.0, 0.5: 82.0, 0.3: 82.0}, 5, 40)
    assert (dense.chosen, dense.beside) == (1.0, 0.5)
    assert Race({1.0: 90.0, 0.5: float("nan"), 0.3: 2.0}, 5, 40).beside == 0.3


def test_it_says_what_it_chose_and_why() -> None:
    assert Race({1.0: 80.0, 0.5: 81.0, 0.3: 82.25}, 5, 40).sentence == (
        "keep 0.3 is chosen: best after 5 epochs on 40 held-out training images, 82.2 % of "
        "balanced accuracy (dense 80.0, keep 0.5 81.0)"
    )
    lost = Race({1.0: 80.0, 0.5: 8.0}, 5, 40).sentence
    assert lost.startswith("dense is chosen") and lost.endswith("keep 0.5 is trained beside it")


def test_nothing_can_be_held_out() -> None:
    with pytest.raises(UsageError, match="keep='auto': needs a class with two different training"):
        race(replace(SMALL, samples=10), Context())


def test_the_table_of_regrets_is_that_of_the_committed_runs() -> None:
    assert regret.now(ROOT / "results") in (DOCS / "keep.md").read_text("utf-8"), (
        "run: python docs/make.py regret"
    )
