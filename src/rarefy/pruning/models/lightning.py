"""``PrunerCallback``: the Pruner in a Lightning training.

    callback = PrunerCallback(keep=0.3)
    lightning.Trainer(callbacks=[callback]).fit(module)
    sparse = callback.pruner.export()

Needs ``pip install 'rarefy[lightning]'``.
"""

from __future__ import annotations

from typing import Any

from rarefy.core.errors import bad_value
from rarefy.pruning.models.adapters import check_settings, missing
from rarefy.pruning.models.pruner import Pruner

try:
    import lightning.pytorch as pl
except ModuleNotFoundError as error:
    raise missing("lightning", "lightning") from error


class PrunerCallback(pl.Callback):
    """Takes the keyword arguments of ``Pruner``; ``callback.pruner`` is there from the fit's start
    on. Its state travels in Lightning's checkpoints: a resumed fit goes on as if it had not
    stopped. Logs ``<name>/keep`` and ``<name>/churn``.

    optimizer: which one, if ``configure_optimizers`` gives several.
    name: in logs and checkpoints; two callbacks in one training need two names.
    """

    def __init__(self, *, optimizer: int = 0, name: str = "pruner", **settings: Any) -> None:
        check_settings(settings)
        self.name, self.settings = name, settings
        self.pruner: Pruner | None = None
        self._optimizer = optimizer
        self._saved: dict[str, Any] | None = None
        self._waits = False

    @property
    def state_key(self) -> str:
        return self._generate_state_key(name=self.name)

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        # a checkpoint comes before the optimiser is made: its state has to wait
        self._saved, self._waits = None, stage == "fit"

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        count = len(trainer.optimizers)
        if not 0 <= self._optimizer < count:
            raise bad_value("optimizer", self._optimizer, f"the module has {count}, from 0 on")
        saved, before = self._saved, self.pruner
        if before is not None and before.model is pl_module:
            # a further fit: Lightning makes a new optimiser, but goes on counting
            if saved is None and trainer.global_step > 0:
                saved = before.state_dict()
            before.detach()
        optimizer = trainer.optimizers[self._optimizer]
        self.pruner = Pruner(pl_module, optimizer, **self.settings)
        if saved is not None:
            self.pruner.load_state_dict(saved)
        self._saved, self._waits = None, False

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any, **kwargs: Any
    ) -> None:
        if self.pruner is not None and not trainer.barebones:
            for key, value in self.pruner.trajectory.now().items():
                pl_module.log(f"{self.name}/{key}", value.to(pl_module.device))

    def state_dict(self) -> dict[str, Any]:
        return {} if self.pruner is None else self.pruner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._waits:
            self._saved = state_dict
        elif self.pruner is not None:  # a test of the best checkpoint, say
            self.pruner.load_state_dict(state_dict)
