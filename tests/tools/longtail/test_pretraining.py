"""One pre-training: paired draws, stops, trouble, and files that give the same features again."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from small_longtail import CPU, KNN, stopping, task
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, RunError, UsageError
from rarefy.core.writing import OutputFolder
from rarefy.nets.backbones import build_backbone
from rarefy.nets.builder import build
from rarefy.tools.image_data import on_device
from rarefy.tools.longtail.evaluation import Evaluation, evaluate_features
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.pretraining import PretrainResult, check_task, pretrain_one
from rarefy.tools.longtail.probing import probe_file, probe_network
from rarefy.tools.longtail.sets import AS_IS, Parts, Tail, parts_of
from rarefy.tools.longtail.watching import asked_places
from rarefy.tools.saved_networks import load_backbone, load_network, save_network
from rarefy.train import checkpoints
from rarefy.train.image_batches import Scaling
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import Pretraining

pytestmark = pytest.mark.usefixtures("eager")


def trained(
    method: str = "simclr", seed: int = 0, order: int = 0, **options: Any
) -> PretrainResult:
    context = options.pop("context", Context())
    return pretrain_one(task(**options), Method.parse(method), seed, order, context, "one")


def knn(found: PretrainResult) -> list[float]:
    assert found.quality is not None
    return found.quality.accuracy["knn"].tolist()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Tensor], Tensor]]:
    """First weights of the backbone and first batch of all trainings that are run."""
    seen: list[tuple[dict[str, Tensor], Tensor]] = []
    run = Pretraining.run

    def spied(self: Pretraining, *args: Any) -> Any:
        weights = self.export_encoder("dense").backbone.state_dict()
        batch = next(iter(self.batches.epoch(0)))
        seen.append(({name: one.clone() for name, one in weights.items()}, batch))
        return run(self, *args)

    monkeypatch.setattr(Pretraining, "run", spied)
    return seen


def same(first: tuple[dict[str, Tensor], Tensor], other: tuple[dict[str, Tensor], Tensor]) -> bool:
    weights = all(torch.equal(first[0][name], other[0][name]) for name in first[0])
    return weights and torch.equal(first[1], other[1])


def test_methods_begin_with_the_same_weights_and_see_the_same_views(begun: list[Any]) -> None:
    found = [trained(method) for method in ("simclr", "pruned:0.5", "branches:0.3", "sdclr")]
    assert all(same(begun[0], other) for other in begun[1:])
    trained(seed=1)
    trained(order=1)
    assert not same(begun[0], begun[-2])
    # another order of classes: the same first weights, other images
    assert torch.equal(next(iter(begun[0][0].values())), next(iter(begun[-1][0].values())))
    assert not torch.equal(begun[0][1], begun[-1][1])
    simclr, pruned, branches, _ = found
    assert simclr.mechanism is None and simclr.masked_quality is None
    for one in (pruned, branches):
        assert one.mechanism is not None and one.masked_quality is not None
        assert int(one.mechanism.units.sum()) > 0
    assert len({tuple(one.history.loss) for one in found}) == 4


def test_a_floor_is_worth_what_the_first_weights_or_the_pixels_are(begun: list[Any]) -> None:
    untrained = trained("untrained")
    parts = trained("simclr").parts
    scaling = Scaling(parts.mean, parts.std)
    network, _ = build_backbone("lenet", 1, 8)
    network.load_state_dict(begun[0][0])
    expected = evaluate_features(lambda x: features_of(network, x, scaling), parts, KNN)
    assert knn(untrained) == expected.accuracy["knn"].tolist()
    pixels = evaluate_features(lambda x: x.flatten(1).float(), parts, Evaluation(("linear",)))
    floor = trained("pixels", evaluation=Evaluation(("linear",)))
    assert floor.quality is not None and floor.history.loss == []
    assert torch.equal(floor.quality.accuracy["linear"], pixels.accuracy["linear"])


def test_watching_changes_nothing_and_is_written_down() -> None:
    said: list[str] = []
    watched = trained("pruned:0.5", watched=(1, 2), context=Context(say=said.append))
    plain = trained("pruned:0.5")
    assert watched.history.loss == plain.history.loss and knn(watched) == knn(plain)
    assert len(watched.history.watched["knn"]) == 2
    assert len(watched.history.watched["separability"]) == 20
    assert len(said) == 2
    parts = ("one: epoch 2/2, loss ", "alignment ", "uniformity ", "churn ", "kNN ")
    for words in (*parts, "effective rank "):
        assert words in said[1]


@pytest.mark.parametrize(("looks", "said"), [((0.9, 0.5), True), ((0.5, 0.9), False)])
def test_a_training_past_its_best_says_so(
    looks: tuple[float, float],
    said: bool,
    monkeypatch: pytest.MonkeyPatch,
    logged: list[str],
) -> None:
    coming = iter(looks)

    def made_up(encoder: object, now: object, parts: Parts) -> dict[str, list[float]]:
        share = next(coming)
        right = (np.arange(len(asked_places(parts))) % 10 < 10 * share).astype(float)
        return {"knn": [share], "right": right.tolist(), "effective_rank": [3.0]}

    monkeypatch.setattr("rarefy.tools.longtail.watching.watched_features", made_up)
    trained("simclr", watched=(1, 2))
    words = "one: over-trained: held-out kNN accuracy peaked at 90.0 % (epoch 1)"
    assert (words in "\n".join(logged)) is said


@pytest.mark.parametrize("method", ["simclr", "branches:0.3"])
def test_stopped_anywhere_it_goes_on_to_the_same_end(method: str, tmp_path: Path) -> None:
    whole = trained(method, watched=(1, 2))
    for after in (2, 3):
        with pytest.raises(OutOfTime):
            trained(method, watched=(1, 2), context=stopping(tmp_path, after))
        assert len(list(tmp_path.iterdir())) == 1
        again = trained(method, watched=(1, 2), context=Context(scratch=tmp_path))
        assert again.history == whole.history and knn(again) == knn(whole)
        assert not list(tmp_path.iterdir())  # nothing is left behind


def test_other_settings_never_go_on_with_a_training(tmp_path: Path) -> None:
    with pytest.raises(OutOfTime):
        trained(context=stopping(tmp_path, 2))
    trained(context=Context(scratch=tmp_path), temperature=0.3)
    trained("pruned:0.5", context=Context(scratch=tmp_path))
    trained(order=1, context=Context(scratch=tmp_path))
    assert len(list(tmp_path.iterdir())) == 1  # the one that was stopped


def test_a_checkpoint_of_another_backbone_is_refused(tmp_path: Path) -> None:
    for network, folder in (("lenet", "a"), ("cnn", "b")):
        with pytest.raises(OutOfTime):
            trained(network=network, context=stopping(tmp_path / folder, 1))
    (other,), (mine,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    shutil.copy(other, mine)
    with pytest.raises(RunError, match=r"checkpoint .*\.pt is of another network .*; remove it"):
        trained(network="cnn", context=Context(scratch=tmp_path / "b"))


def test_a_loss_that_is_no_number_says_when_where_and_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)
    update = Pretraining.update

    def bad(self: Pretraining, batch: Tensor) -> Tensor:
        return update(self, batch * (float("nan") if self.step >= 4 else 1.0))

    monkeypatch.setattr(Pretraining, "update", bad)
    done: list[float] = []
    context = Context(
        scratch=tmp_path / ".store.scratch", advance=done.append, models=OutputFolder(tmp_path)
    )
    found = trained(context=context)
    assert found.quality is None and found.history.nonfinite_step == 4
    assert sum(done) == pytest.approx(2)  # the progress bar goes to its end
    kept = tmp_path / "store.stopped" / "one.pt"
    (said,) = logged
    for words in (
        "one: the loss is no number from update 4 (epoch 2) on",
        f"the last good checkpoint is {kept}",
        "what usually helps: a lower --lr, a longer --warm-up",
    ):
        assert words in said
    # it outlives the folder of what is under way, and is good
    state = torch.load(kept, weights_only=True)
    assert state["step"] == 4
    assert all(bool(torch.isfinite(one).all()) for one in state["model"].values())
    assert not (tmp_path / "one.pt").exists()  # no network is saved


def test_without_a_checkpoint_it_says_so(logged: list[str]) -> None:
    found = trained(recipe=Recipe(epochs=1, learning_rate=1e30))
    assert found.history.nonfinite_step >= 0
    assert "no checkpoint was written before; what usually helps" in "\n".join(logged)


@pytest.mark.parametrize("method", ["pruned:0.5", "branches:0.3"])
def test_a_saved_backbone_gives_the_same_features(method: str, tmp_path: Path) -> None:
    seen: list[Tensor] = []

    def kept(*args: Any) -> Tensor:
        seen.append(features_of(*args))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rarefy.tools.longtail.pretraining.features_of", kept)
        found = trained(method, order=3, context=Context(models=OutputFolder(tmp_path)))
    path = tmp_path / "one.pt"
    backbone, about = load_backbone(path)
    scaling = Scaling(tuple(about["mean"]), tuple(about["std"]))
    _, dense, _, masked = seen  # of training and test images
    features = features_of(backbone, found.parts.test.images, scaling)
    assert torch.equal(features, dense) and not torch.equal(features, masked)
    assert about["way"] == method and about["class_order"] == list(found.parts.order)
    assert about["seen"] == len(found.parts.seen) == sum(about["counts"])
    again = probe_file(path, None, KNN, "cpu")
    assert again.quality.accuracy["knn"].tolist() == knn(found)
    assert (again.order, again.seed, again.method, again.images) == (3, 3, method, "long-tail")
    assert again.setting == "digits, lenet, 2 epochs, rho 8, 24"


def test_files_of_both_kinds_are_not_mixed_up(tmp_path: Path) -> None:
    trained(context=Context(models=OutputFolder(tmp_path)))
    with pytest.raises(UsageError, match="one.pt is a backbone of rarefy pretrain: see load_back"):
        load_network(tmp_path / "one.pt")
    classifier = tmp_path / "classifier.pt"
    digits = on_device("digits", CPU)
    about = {"network": "lenet"}
    save_network(OutputFolder(tmp_path), "classifier", build("lenet", 1, 8, 10), digits, about)
    load_network(classifier)
    with pytest.raises(UsageError, match="classifier.pt is no backbone: rarefy pretrain --save"):
        load_backbone(classifier)
    with pytest.raises(UsageError, match="one.pt does not fit network 'cnn'"):
        load_backbone(tmp_path / "one.pt", "cnn")
    (tmp_path / "text.pt").write_text("no network")
    with pytest.raises(UsageError, match="text.pt is not a network that rarefy wrote"):
        load_backbone(tmp_path / "text.pt")
    whole = (tmp_path / "one.pt").read_bytes()
    for length in (2, 40, 1000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.pt").write_bytes(whole[:length])
        with pytest.raises(UsageError, match="cut.pt is damaged or cut short: copy it again"):
            load_backbone(tmp_path / "cut.pt")
    with pytest.raises(UsageError, match="cannot read .*gone.pt: No such file"):
        load_backbone(tmp_path / "gone.pt")


def test_a_network_judged_on_another_set_has_that_sets_ranks(
    tmp_path: Path, small_folder: Callable[..., str]
) -> None:
    trained(context=Context(models=OutputFolder(tmp_path)))
    folder = small_folder(size=8, counts=(12, 20, 16))
    found = probe_file(tmp_path / "one.pt", folder, KNN, "cpu")
    assert found.order == -2 and found.seed == 0
    # ranked by the images of this set, the largest class first
    assert list(found.parts.counts) == sorted(found.parts.counts, reverse=True)
    assert len(found.quality.accuracy["knn"]) == 3
    with pytest.raises(UsageError, match="wants images of 1 x 8 x 8, those of .* are 1 x 9 x 9"):
        probe_file(tmp_path / "one.pt", small_folder(size=9, counts=(9, 9)), KNN, "cpu")


@pytest.fixture
def small_folder(tmp_path: Path) -> Callable[..., str]:
    def made(size: int, counts: tuple[int, ...]) -> str:
        draws = np.random.default_rng(0)
        for label, count in enumerate(counts):
            folder = tmp_path / f"images{size}" / f"class{label}"
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = draws.integers(0, 256, (size, size), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
        return str(tmp_path / f"images{size}")

    return made


def test_tasks_are_checked_before_anything_is_trained(small_folder: Callable[..., str]) -> None:
    assert len(check_task(task(), CPU).seen) == 102
    with pytest.raises(UsageError, match="batch=103: must be at most the number of images, 102"):
        check_task(task(batch=103), CPU)
    with pytest.raises(UsageError, match="head_out=0: must be at least 1"):
        task(head_out=0)
    with pytest.raises(UsageError, match="unknown precision 'half'"):
        task(precision="half")
    with pytest.raises(UsageError, match="network"):
        check_task(task(network="no_such_network"), CPU)
    # which class is asked for most depends on the order: the first may be fine
    folder = small_folder(size=8, counts=(40, 40, 12))
    uneven = task(data=folder, tail=Tail("exponential", 8.0, "24"), batch=8)
    fine = [seed for seed in range(6) if _works(uneven, seed)]
    assert 0 < len(fine) < 6
    with pytest.raises(UsageError, match="too few images: class 'class2' has"):
        check_task(uneven, CPU, seeds=6)


def _works(one: Any, seed: int) -> bool:
    try:
        parts_of(one.data, one.tail, seed, CPU)
    except UsageError:
        return False
    return True


def test_without_labels_there_is_a_network_and_no_judgement(
    tmp_path: Path, small_folder: Callable[..., str]
) -> None:
    folder = f"{small_folder(size=8, counts=(10, 12))}?unlabelled=1"
    options = {"data": folder, "tail": Tail(AS_IS), "batch": 8, "watched": (1, 2)}
    found = trained("branches:0.3", context=Context(models=OutputFolder(tmp_path)), **options)
    assert found.quality is None and found.mechanism is None
    assert set(found.history.watched) == {"effective_rank"}
    assert len(found.history.loss) == 2
    _, about = load_backbone(tmp_path / "one.pt")
    assert about["seen"] == 22
    with pytest.raises(UsageError, match="needs labelled images.*--on"):
        probe_file(tmp_path / "one.pt", None, KNN, "cpu")
    assert len(probe_file(tmp_path / "one.pt", "digits", KNN, "cpu").parts.order) == 10
    assert trained("pixels", **options).quality is None


def test_anybodys_network_is_judged_by_its_features() -> None:
    found = probe_network(torch.nn.Flatten(), "digits", KNN, Tail("exponential", 8.0, "24"), 3)
    expected = trained("pixels", order=3)
    assert found.quality.accuracy["knn"].tolist() == knn(expected)
    assert (found.method, found.order, found.name) == ("", 3, "Flatten")
    assert dataclasses.replace(found, order=0).told("knn").overall > 0.9
