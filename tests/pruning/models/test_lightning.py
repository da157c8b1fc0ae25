"""The Pruner in a real Lightning fit: tiny module, CPU, nothing written but checkpoints."""

from __future__ import annotations

import sys
from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch
from small_networks import assert_same
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from rarefy.core.errors import UsageError
from rarefy.pruning.models.lightning import PrunerCallback
from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.regrowth import RigL
from rarefy.pruning.schedules import constant, one_shot

pytestmark = [
    # Lightning 2.6 asks in a way that torch 2.13 calls old
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*:FutureWarning"),
    # advice for machines with more cores, or with a GPU, about trainings larger than these
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:GPU available but not used.*:UserWarning"),
]

EPOCHS, BATCHES = 4, 4


class Module(pl.LightningModule):
    """No dropout and data in order: a fit is a function of the start."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        self.seen: list[Tensor] = []

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        # what acts while gradients are taken
        self.seen.append(self.net[0].weight.detach().clone())
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def test_step(self, batch: list[Tensor], batch_idx: int) -> None:
        self.net(batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.05)


def data() -> TensorDataset:
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(8 * BATCHES, 6, generator=draw)
    return TensorDataset(x, torch.randint(0, 3, (len(x),), generator=draw))


def loader() -> DataLoader[tuple[Tensor, ...]]:
    return DataLoader(data(), batch_size=8)


def trainer(callbacks: list[pl.Callback], epochs: int = EPOCHS, **more: object) -> pl.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        callbacks=callbacks,
        **{**quiet, "enable_checkpointing": False, **more},
    )


def by_hand(epochs: int = EPOCHS, **settings: object) -> tuple[Module, Pruner]:
    module = Module()
    optimizer = module.configure_optimizers()
    pruner = Pruner(module, optimizer, **settings)
    for _ in range(epochs):
        for batch in loader():
            optimizer.zero_grad()
            module.training_step(batch, 0).backward()
            optimizer.step()
    return module, pruner


SETTINGS = {
    "dense": {"keep": 0.5},
    "masked": {"keep": 0.5, "update": "masked", "schedule": constant(3)},
    "project": {"keep": 0.5, "update": "project", "schedule": constant(3)},
    "rigl": {
        "keep": 0.5,
        "update": "masked",
        "regrow": RigL(12, share=0.5),
        "schedule": constant(3),
    },
    "saliency": {"keep": 0.5, "update": "masked", "score": "saliency"},
    "random": {"keep": 0.5, "score": "random", "schedule": constant(3), "moments": "reset"},
}


@pytest.mark.quick("masked", "dense", "saliency")
@pytest.mark.parametrize("way", SETTINGS)
def test_a_fit_equals_a_loop_written_by_hand(way: str) -> None:
    callback, module = PrunerCallback(**SETTINGS[way]), Module()
    trainer([callback]).fit(module, loader())
    other, pruner = by_hand(**SETTINGS[way])
    assert callback.pruner is not None and callback.pruner.step == EPOCHS * BATCHES
    assert_same(callback.pruner, pruner)
    # Lightning computes gradients inside optimizer.step(): there, too, masked weights must act
    assert len(module.seen) == EPOCHS * BATCHES
    assert all(torch.equal(a, b) for a, b in zip(module.seen, other.seen, strict=True))
    if way != "project":
        assert all((seen == 0).any() for seen in module.seen)


@pytest.mark.quick("masked", "dense")
@pytest.mark.parametrize("way", SETTINGS)
def test_a_resumed_fit_equals_an_uninterrupted_one(way: str, tmp_path: Path) -> None:
    whole = PrunerCallback(**SETTINGS[way])
    trainer([whole]).fit(Module(), loader())
    first = trainer([PrunerCallback(**SETTINGS[way])], EPOCHS // 2)
    first.fit(Module(), loader())
    path = tmp_path / "half.ckpt"
    first.save_checkpoint(path)
    module = Module()
    with torch.no_grad():
        module.net[0].weight.fill_(7.0)  # the checkpoint must be what counts
    again = PrunerCallback(**SETTINGS[way])
    trainer([again]).fit(module, loader(), ckpt_path=path, weights_only=True)
    assert whole.pruner is not None and again.pruner is not None
    assert_same(whole.pruner, again.pruner)
    frames = [each.pruner.trajectory.frame() for each in (whole, again)]
    assert frames[0].equals(frames[1])


def test_checkpoint_has_the_plain_models_keys(tmp_path: Path) -> None:
    training = trainer([PrunerCallback(keep=0.5)], 1)
    training.fit(Module(), loader())
    training.save_checkpoint(tmp_path / "one.ckpt")
    found = torch.load(tmp_path / "one.ckpt", weights_only=True)
    assert list(found["state_dict"]) == list(Module().state_dict())
    assert list(found["callbacks"]) == ["PrunerCallback{'name': 'pruner'}"]


def test_logs_keep_and_churn() -> None:
    callback = PrunerCallback(keep=0.5, name="sparse")
    training = trainer([callback], 2)
    training.fit(Module(), loader())
    frame = callback.pruner.trajectory.frame()
    last = frame[frame["step"] == 2 * BATCHES]
    total = last["weights"].sum()
    logged = training.logged_metrics
    assert float(logged["sparse/keep"]) == pytest.approx(last["kept"].sum() / total)
    changed = (last["churn"] * last["weights"]).sum()
    assert float(logged["sparse/churn"]) == pytest.approx(changed / total)


def test_before_the_first_masks_everything_is_kept_in_the_log() -> None:
    callback = PrunerCallback(keep=0.5, schedule=one_shot(100))
    training = trainer([callback], 1)
    training.fit(Module(), loader())
    assert float(training.logged_metrics["pruner/keep"]) == 1
    assert float(training.logged_metrics["pruner/churn"]) == 0


def test_accumulation_counts_updates_not_batches() -> None:
    callback = PrunerCallback(keep=0.5)
    trainer([callback], accumulate_grad_batches=2, gradient_clip_val=0.5).fit(Module(), loader())
    assert callback.pruner.step == EPOCHS * BATCHES // 2


def test_a_further_fit_of_the_same_trainer_goes_on() -> None:
    callback, module = PrunerCallback(keep=0.5), Module()
    training = trainer([callback], 2)
    training.fit(module, loader())
    training.fit_loop.max_epochs = 3
    training.fit(module, loader())
    assert callback.pruner.step == 3 * BATCHES
    assert callback.pruner.trajectory.choices == 3 * BATCHES + 1


def test_one_callback_for_two_models_leaves_the_first_as_it_is() -> None:
    callback, first, second = PrunerCallback(keep=0.5), Module(), Module()
    trainer([callback], 1).fit(first, loader())
    after = first.net[0].weight.detach().clone()
    trainer([callback], 1).fit(second, loader())
    assert torch.equal(first.net[0].weight, after) and (after == 0).any()
    assert callback.pruner.model is second and callback.pruner.step == BATCHES


def test_a_test_of_an_earlier_checkpoint_brings_its_masks(tmp_path: Path) -> None:
    class Saving(pl.Callback):
        def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
            if trainer.current_epoch == 0:
                trainer.save_checkpoint(tmp_path / "early.ckpt")

    callback, module = PrunerCallback(keep=0.5), Module()
    training = trainer([callback, Saving()])
    training.fit(module, loader())
    training.test(module, loader(), ckpt_path=tmp_path / "early.ckpt", verbose=False)
    _, early = by_hand(1, keep=0.5)
    assert_same(callback.pruner, early, optimizers=False)
    plain = callback.pruner.export()
    assert torch.equal(plain.net[0].weight, module.net[0].weight)


def test_two_callbacks_prune_two_layers(tmp_path: Path) -> None:
    pair = [
        PrunerCallback(keep=0.5, layers="net.0", name="first"),
        PrunerCallback(keep=1 / 4, layers="net.2", name="second"),
    ]
    training = trainer(pair, 1)
    training.fit(Module(), loader())
    training.save_checkpoint(tmp_path / "two.ckpt")
    assert [round(each.pruner.keep, 3) for each in pair] == [0.5, 0.25]
    assert len(torch.load(tmp_path / "two.ckpt", weights_only=True)["callbacks"]) == 2


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match="unknown setting of Pruner 'kep'; did you mean 'keep'"):
        PrunerCallback(kep=0.5)
    with pytest.raises(UsageError, match="optimizer=1: the module has 1, from 0 on"):
        trainer([PrunerCallback(optimizer=1)]).fit(Module(), loader())


def test_without_lightning_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.setitem(sys.modules, "lightning", None)
    monkeypatch.delitem(sys.modules, "rarefy.pruning.models.lightning")
    with pytest.raises(UsageError, match=r"^lightning is not installed: pip install 'rarefy\[li"):
        import rarefy.pruning.models.lightning  # noqa: F401
