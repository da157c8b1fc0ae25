"""The Pruner in a real training by Hugging Face's Trainer: offline, CPU, tiny models."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from small_networks import assert_same
from torch import Tensor, nn
from torch.utils.data import Dataset

from rarefy.core.errors import UsageError
from rarefy.pruning.regrowth import RigL
from rarefy.pruning.schedules import constant

if TYPE_CHECKING:
    import transformers

    from rarefy.pruning.models.hugging_face import FILE, PrunerTrainerCallback

STEPS = 8


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """By who runs these tests, not by all who collect them: it takes three seconds."""
    global transformers, FILE, PrunerTrainerCallback
    os.environ["HF_HUB_OFFLINE"] = "1"  # before the import, which reads it
    import transformers

    from rarefy.pruning.models.hugging_face import FILE, PrunerTrainerCallback


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Data(Dataset[dict[str, Tensor]]):
    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(5)
        self.x = torch.randn(32, 6, generator=draw)
        self.labels = torch.randint(0, 3, (32,), generator=draw)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"x": self.x[place], "labels": self.labels[place]}


def trainer(
    callback: PrunerTrainerCallback,
    folder: Path,
    model: nn.Module | None = None,
    kind: type[transformers.Trainer] | None = None,
    data: Dataset[dict[str, Tensor]] | None = None,
    **more: object,
) -> transformers.Trainer:
    usual = {
        "output_dir": str(folder),
        "max_steps": STEPS,
        "per_device_train_batch_size": 8,
        "learning_rate": 0.05,
        "logging_steps": 1,
        "save_steps": 4,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
    }
    made = (kind or transformers.Trainer)(
        Net() if model is None else model,
        transformers.TrainingArguments(**{**usual, **more}),
        train_dataset=data or Data(),
        eval_dataset=data or Data(),
        callbacks=[callback],
    )
    made.remove_callback(transformers.PrinterCallback)
    return made


SETTINGS = {
    "dense": {"keep": 0.5},
    "masked": {"keep": 0.5, "update": "masked", "schedule": constant(3), "moments": "reset"},
    "project": {"keep": 0.5, "update": "project", "schedule": constant(3)},
    "rigl": {
        "keep": 0.5,
        "update": "masked",
        "regrow": RigL(7, share=0.5),
        "schedule": constant(3),
    },
    "random": {"keep": 0.5, "score": "random", "schedule": constant(3), "moments": "reset"},
}


@pytest.mark.quick("masked", "dense")
@pytest.mark.parametrize("way", SETTINGS)
def test_a_resumed_training_equals_an_uninterrupted_one(way: str, tmp_path: Path) -> None:
    from accelerate.optimizer import AcceleratedOptimizer

    whole = PrunerTrainerCallback(**SETTINGS[way])
    training = trainer(whole, tmp_path)
    training.train()
    # the hooks are those of the optimiser inside the one that accelerate wraps around it
    assert isinstance(training.optimizer, AcceleratedOptimizer)
    assert whole.pruner is not None and whole.pruner.optimizer is training.optimizer.optimizer
    assert whole.pruner.step == STEPS and whole.pruner.model is training.model
    assert whole.pruner.keep == pytest.approx(0.5)

    again = PrunerTrainerCallback(**SETTINGS[way])
    trainer(again, tmp_path).train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert again.pruner is not None
    assert_same(whole.pruner, again.pruner)
    frames = [each.pruner.trajectory.frame() for each in (whole, again)]
    assert frames[0].equals(frames[1])


def test_checkpoint_is_a_plain_one_with_a_safe_file_beside_it(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    callback = PrunerTrainerCallback(keep=0.5)
    training = trainer(callback, tmp_path, max_steps=4)
    training.train()
    folder = tmp_path / "checkpoint-4"
    saved = load_file(folder / "model.safetensors")
    assert set(saved) == set(Net().state_dict())
    assert (saved["net.0.weight"] == 0).float().mean() == 0.5
    state = torch.load(folder / FILE, weights_only=True)
    assert state["step"] == 4
    assert not list(folder.glob("*.part"))


@pytest.mark.slow
def test_resumed_from_elsewhere(tmp_path: Path) -> None:
    first, second, moved = tmp_path / "first", tmp_path / "second", tmp_path / "moved"
    whole = PrunerTrainerCallback(keep=0.5)
    trainer(whole, first).train()
    shutil.copytree(first / "checkpoint-4", moved)
    lost = trainer(PrunerTrainerCallback(keep=0.5), second)
    with pytest.raises(UsageError, match="checkpoint-4 has no pruner.pt; give the folder"):
        lost.train(resume_from_checkpoint=str(moved))
    shutil.copytree(moved, tmp_path / "damaged")
    (tmp_path / "damaged" / FILE).write_bytes(b"")
    cut = PrunerTrainerCallback(keep=0.5, resume_from=tmp_path / "damaged")
    with pytest.raises(UsageError, match=r"^resume_from: .*pruner.pt is damaged \(.*\)$"):
        trainer(cut, second).train(resume_from_checkpoint=str(moved))
    # a stranger's checkpoint lies where one would look: noticed by its weights
    stranger = Net()
    torch.nn.init.normal_(stranger.net[0].weight)
    trainer(PrunerTrainerCallback(keep=0.5), second, stranger, max_steps=4).train()
    wrong = trainer(PrunerTrainerCallback(keep=0.5), second)
    with pytest.raises(UsageError, match=r"checkpoint-4.pruner.pt is of other weights than"):
        wrong.train(resume_from_checkpoint=str(moved))
    told = PrunerTrainerCallback(keep=0.5, resume_from=moved)
    trainer(told, second).train(resume_from_checkpoint=str(moved))
    assert_same(whole.pruner, told.pruner)
    told = PrunerTrainerCallback(keep=0.5)
    trainer(told, second, resume_from_checkpoint=str(moved)).train(str(moved))
    assert_same(whole.pruner, told.pruner)


def test_the_best_model_comes_with_its_masks(tmp_path: Path) -> None:
    callback = PrunerTrainerCallback(keep=0.5, score="random")

    class Falling(transformers.Trainer):
        """Better and better is worse and worse: the first checkpoint is the best."""

        def evaluate(self, *args: object, **kwargs: object) -> dict[str, float]:
            metrics = {"eval_worse": float(self.state.global_step)}
            self.log(dict(metrics))
            return metrics

    more = {"eval_strategy": "steps", "eval_steps": 4, "load_best_model_at_end": True}
    more |= {"metric_for_best_model": "worse", "greater_is_better": False}
    training = trainer(callback, tmp_path, kind=Falling, **more)
    training.train()
    assert training.state.best_model_checkpoint == str(tmp_path / "checkpoint-4")
    assert callback.pruner.step == 4
    weight = training.model.net[0].weight
    assert torch.equal(weight != 0, callback.pruner.masks["net.0.weight"])
    assert torch.equal(callback.pruner.export().net[0].weight, weight)


def test_training_again_begins_anew_with_all_weights(tmp_path: Path) -> None:
    callback = PrunerTrainerCallback(keep=0.5)
    training = trainer(callback, tmp_path, max_steps=2)
    training.train()
    first = callback.pruner
    dense = first.pruned["net.0.weight"].dense().clone()
    training.train()
    assert callback.pruner is not first and callback.pruner.step == 2
    steps = callback.pruner.trajectory.frame()["step"].unique()
    assert list(steps) == [0, 1, 2] and (dense != 0).all()


def test_keep_and_churn_stand_beside_the_loss(tmp_path: Path) -> None:
    callback = PrunerTrainerCallback(keep=0.5)
    training = trainer(callback, tmp_path, max_steps=4)
    training.train()
    frame = callback.pruner.trajectory.frame()
    logs = [each for each in training.state.log_history if "loss" in each]
    assert [each["step"] for each in logs] == [1, 2, 3, 4]
    for each in logs:
        rows = frame[frame["step"] == each["step"]]
        changed = (rows["churn"] * rows["weights"]).sum() / rows["weights"].sum()
        assert each["pruner_churn"] == pytest.approx(changed)
        assert each["pruner_keep"] == pytest.approx(0.5)


def test_accumulation_and_clipping_of_the_trainer(tmp_path: Path) -> None:
    callback = PrunerTrainerCallback(keep=0.5)
    more = {"gradient_accumulation_steps": 2, "max_grad_norm": 0.1, "max_steps": 3}
    trainer(callback, tmp_path, **more).train()
    assert callback.pruner.step == 3


def test_a_small_bert_with_tied_weights(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
    )

    class Words(Dataset[dict[str, Tensor]]):
        def __len__(self) -> int:
            return 16

        def __getitem__(self, place: int) -> dict[str, Tensor]:
            words = (torch.arange(6) * 3 + place) % 20
            return {"input_ids": words, "labels": words}

    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config)
    callback = PrunerTrainerCallback(keep=0.25)
    training = trainer(callback, tmp_path, model, data=Words(), max_steps=3, save_steps=3)
    training.train()
    pruner = callback.pruner
    assert pruner.step == 3 and pruner.keep == pytest.approx(0.25)
    # word embeddings and the decoder are one weight: it is pruned once, and is the same in both
    decoder, embedding = model.cls.predictions.decoder.weight, model.get_input_embeddings().weight
    assert decoder is embedding and (decoder == 0).float().mean() == 0.75
    # the checkpoint is what from_pretrained reads, with the weights that acted
    read = transformers.BertForMaskedLM.from_pretrained(tmp_path / "checkpoint-3")
    ids = Words()[0]["input_ids"][None]
    with torch.no_grad():
        assert torch.equal(read.eval()(ids).logits, model.eval()(ids).logits)


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match="unknown setting of Pruner 'share'"):
        PrunerTrainerCallback(share=0.5)


def test_without_transformers_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "rarefy.pruning.models.hugging_face")
    with pytest.raises(UsageError, match=r"^transformers is not installed: pip install 'rarefy\[h"):
        import rarefy.pruning.models.hugging_face  # noqa: F401
