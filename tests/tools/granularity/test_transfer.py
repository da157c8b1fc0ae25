"""One transfer: pairs that share everything but their labels, nothing chosen on test images, stops
that lose nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_trainings import Enough, stopped_after

from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import UsageError
from rarefy.nets.backbones import Headed, build_backbone
from rarefy.tools.granularity import reference, sets, transfer
from rarefy.tools.granularity.evaluation import worst_subclasses
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import ONCE, TARGET, Source, load_sets, pretraining_labels

CPU = torch.device("cpu")
DIGITS = Source("digits", target="parity", samples=160, test_samples=100)


def experiment(**options: Any) -> GranularityExperiment:
    return GranularityExperiment.at("tiny", **options)


def ran(which: str, seed: int = 0, context: Context | None = None, **options: Any) -> Any:
    """One cell's outputs."""
    chosen = experiment(**options)
    values = {"labels": np.array([which]), "seed": np.array([seed])}
    cells = Cells(values, np.array([chosen.cell_key({"seed": seed})]))
    return {name: one[0] for name, one in chosen.simulate(cells, context or Context()).items()}


def test_held_out_images_are_in_no_training() -> None:
    images = load_sets(DIGITS, CPU)
    assert images.same
    assert not set(images.held_out.ids) & set(images.tuned.ids)
    assert not set(images.test.ids) & {*images.tuned.ids, *images.held_out.ids}
    assert len(images.held_out) == pytest.approx(
        0.1 * (len(images.tuned) + len(images.held_out)), abs=2
    )


def test_labels_of_every_kind_are_whole_and_agree_as_they_should() -> None:
    images = load_sets(DIGITS, CPU)
    pixels = images.source.images.flatten(1).float().numpy()
    found = {
        name: pretraining_labels(name, images, pixels, 0)
        for name in (TARGET, "class", "kmeans-within:3", "random:4", "samples")
    }
    assert [one.classes for one in found.values()] == [2, 10, 6, 4, len(images.source)]
    assert [found[name].agreement for name in (TARGET, "class", "kmeans-within:3")] == [1, 1, 1]
    assert found["random:4"].agreement < 0.7
    assert found["samples"].smallest == 1
    for one in found.values():
        assert one.labels.unique().tolist() == list(range(one.classes))


def test_a_new_head_keeps_the_backbone() -> None:
    backbone, width = build_backbone("lenet", 1, 8)
    first, second = Headed(backbone, width, 5), Headed(build_backbone("lenet", 1, 8)[0], width, 2)
    second.load_backbone(first.state_dict())
    images = torch.rand(3, 1, 8, 8)
    torch.testing.assert_close(second.backbone(images), first.backbone(images))
    assert second(images).shape == (3, 2)


def test_cells_of_a_seed_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: dict[str, list[torch.Tensor]] = {}
    heads: list[torch.Tensor] = []
    plain = transfer.training_on

    def watched(model: Headed, *args: Any) -> Any:
        begun.setdefault(which, []).append(next(model.backbone.parameters()).detach().clone())
        if len(begun[which]) == 2:
            heads.append(model.head.weight.detach().clone())
        return plain(model, *args)

    monkeypatch.setattr(transfer, "training_on", watched)
    for which in (TARGET, "class", "random:4"):
        ran(which)
    for which in ("class", "random:4"):
        torch.testing.assert_close(begun[which][0], begun[TARGET][0])
        assert not torch.equal(begun[which][1], begun[TARGET][1])  # tuned from its own weights
    assert len({tuple(head.flatten().tolist()) for head in heads}) == 1  # with the same new layer


def test_one_pass_has_one_accuracy_and_the_others_all() -> None:
    once, target, fine = ran(ONCE), ran(TARGET), ran("class")
    assert np.isfinite(once["test_accuracy"]).tolist() == [[False, True]]
    assert np.isnan(once["probe_accuracy"]).all()
    for found in (target, fine):
        for name in ("test_accuracy", "held_out_accuracy", "probe_accuracy", "probe_held_out"):
            assert ((0 <= found[name]) & (found[name] <= 1)).all()
    assert np.isfinite(target["pretrained_accuracy"])
    assert np.isnan(fine["pretrained_accuracy"])


def test_a_checkpoint_on_the_way_is_tuned_from_its_own_weights() -> None:
    found = ran("class", checkpoints=(0.5, 1.0))
    assert found["test_accuracy"].shape == (2, 2)
    assert np.isfinite(found["probe_accuracy"]).all()
    assert found["probe_accuracy"][1] == ran("class")["probe_accuracy"][0]


@pytest.mark.quick("6", "15")
@pytest.mark.parametrize("updates", [2, 6, 10, 15, 20, 23])
def test_a_stop_anywhere_loses_nothing(updates: int, tmp_path: Path) -> None:
    whole = ran("class", checkpoints=(0.5, 1.0))
    stopped = replace(stopped_after(updates), scratch=tmp_path)
    with pytest.raises(Enough):
        ran("class", context=stopped, checkpoints=(0.5, 1.0))
    again = ran("class", context=Context(scratch=tmp_path), checkpoints=(0.5, 1.0))
    for name, values in whole.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
    assert not list(tmp_path.glob("*.pt"))


def test_judges_are_trained_once_and_are_not_those_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = reference.pretrain_stage

    def counted(*args: Any) -> Any:
        asked.append(args[6])
        return plain(*args)

    monkeypatch.setattr(reference, "pretrain_stage", counted)
    first = ran("class", context=Context(scratch=tmp_path), judged=True)
    second = ran(TARGET, context=Context(scratch=tmp_path), judged=True)
    assert len(asked) == 2
    assert first["hard_share"] == second["hard_share"]
    shares = {name: first[f"{name}_share"] for name in ("hard", "mirror")}
    shares["other"] = 1 - sum(shares.values())
    mean = sum(share * first[f"{name}_accuracy"] for name, share in shares.items() if share)
    assert mean == pytest.approx(first["test_accuracy"][-1, -1])


def test_worst_subclasses() -> None:
    subclasses = torch.arange(20).repeat_interleave(4)
    right = torch.ones(80, dtype=torch.bool)
    right[:4], right[4:6] = False, False
    assert worst_subclasses(right, subclasses) == (0.0, 0.25)
    one_more = torch.cat([torch.zeros(20, dtype=torch.int64), torch.tensor([1])])
    assert worst_subclasses(torch.arange(21) < 15, one_more) == (0.75, 0.75)  # one image: no class


def test_a_diverged_network_of_features_stops_its_cell() -> None:
    found = ran("kmeans:4", features="target", learning_rate=1e8)
    assert found["nonfinite_step"] >= 0 and np.isnan(found["test_accuracy"]).all()


def test_a_target_class_without_training_images() -> None:
    with pytest.raises(UsageError, match="target class 'blurred' has 0 training images"):
        sets._check_target(torch.tensor([1, 1, 2, 2]), ("blurred", "even", "odd"))


def test_another_set_gives_as_many_images_and_none_that_judges() -> None:
    found = load_sets(replace(DIGITS, target_data="digits"), CPU)
    judging = {*found.held_out.ids, *found.test.ids}
    assert not found.same and not judging & set(found.source.ids)
    assert len(found.source) == pytest.approx(len(found.tuned), abs=5)


@pytest.mark.parametrize("name", ["target", "once", "samples", "random"])
def test_a_level_called_like_something_else(name: str, tmp_path: Path) -> None:
    rows = [f"{digit},{'even' if digit % 2 == 0 else 'odd'}" for digit in range(10)]
    file = tmp_path / "levels.csv"
    file.write_text("\n".join([f"class,{name},x", *(f"{row},{row[-3:]}" for row in rows)]))
    with pytest.raises(UsageError, match=f"level '{name}' has a name that means something else"):
        load_sets(replace(DIGITS, hierarchy=str(file)), CPU)


def test_an_edited_hierarchy_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "levels.csv"
    seen = []
    for halves in (("a", "b"), ("a", "b b")):
        rows = [f"{digit},{halves[digit % 2]}" for digit in range(10)]
        file.write_text("\n".join(["child,parent", *rows]))
        seen.append(load_sets(replace(DIGITS, hierarchy=str(file), target="parent"), CPU).target)
    assert seen == [("a", "b"), ("a", "b b")]


def test_an_embedding_goes_by_the_order_of_the_training_set(tmp_path: Path) -> None:
    images = load_sets(DIGITS, CPU)
    whole = reference.data_of(DIGITS, CPU).train
    np.save(tmp_path / "own.npy", np.arange(len(whole), dtype=np.float32)[:, None])
    features = reference.clustering_features(
        str(tmp_path / "own.npy"), DIGITS, experiment().task(), 0, Context()
    )
    assert [whole.ids[int(row)] for row in features[:, 0]] == list(images.source.ids)


@pytest.mark.parametrize(
    ("rows", "words"), [(5, "an embedding of 5 x 3; it must have a row per training image")]
)
def test_an_embedding_of_another_length(tmp_path: Path, rows: int, words: str) -> None:
    np.save(tmp_path / "own.npy", np.zeros((rows, 3), dtype=np.float32))
    with pytest.raises(UsageError, match=words):
        ran("kmeans:4", features=str(tmp_path / "own.npy"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": "colours"}, "features='colours': must be target, pixels, an embedding"),
        ({"features": "none.npy"}, "there is no embedding none.npy"),
    ],
)
def test_features_that_are_none(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ran("kmeans:4", **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": ("class",)}, "must have 'target', to compare with"),
        ({"checkpoints": (0.5,)}, "must rise and end with 1"),
        ({"labels": ("target", "shape")}, "shape"),
        ({"target": "shape"}, "shape"),
        (
            {"target_data": "mnist", "labels": ("target",)},
            "mnist",
        ),
    ],
)
def test_what_cannot_be_asked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        experiment(**options).inputs()
