"""``PrunerTrainerCallback``: the Pruner in a training by Hugging Face's Trainer.

    callback = PrunerTrainerCallback(keep=0.3)
    transformers.Trainer(model, arguments, callbacks=[callback], ...).train()
    sparse = callback.pruner.export()

Needs ``pip install 'rarefy[hugging-face]'``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rarefy.core.errors import UsageError
from rarefy.core.reading import read_tensors
from rarefy.pruning.models.adapters import check_settings, missing
from rarefy.pruning.models.pruner import Pruner

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ModuleNotFoundError as error:
    raise missing("transformers", "hugging-face") from error

FILE = "pruner.pt"
"""In a checkpoint's folder."""


class PrunerTrainerCallback(TrainerCallback):
    """Takes the keyword arguments of ``Pruner``; ``callback.pruner`` is there from the training's
    start on. Its state lies in the checkpoint's folder: a resumed training goes on as if it had not
    stopped. Keep and churn stand beside the loss in ``trainer.state.log_history``.

    resume_from: the checkpoint's folder, needed only if it lies outside ``output_dir`` (a Trainer
        does not tell its callbacks what it resumes from).
    """

    def __init__(
        self, *, resume_from: str | os.PathLike[str] | None = None, **settings: Any
    ) -> None:
        check_settings(settings)
        self.resume_from, self.settings = resume_from, settings
        self.pruner: Pruner | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        model, optimizer = kwargs["model"], kwargs["optimizer"]
        resumed = state.global_step > 0
        loaded = _weights(model) if resumed else {}
        if self.pruner is not None and self.pruner.model is model:
            self.pruner.detach()  # trained again, with a new optimiser
        self.pruner = Pruner(model, optimizer, **self.settings)
        if resumed:
            folder = self._folder(args, state)
            self._load(folder)
            _check_same(model, loaded, folder)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.pruner is not None and state.log_history and "loss" in state.log_history[-1]:
            now = self.pruner.trajectory.now()
            state.log_history[-1] |= {f"pruner_{key}": float(now[key]) for key in now}

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if self.pruner is not None and args.should_save:
            folder = _usual_folder(args, state)
            unfinished = folder / f"{FILE}.part"
            torch.save(self.pruner.state_dict(), unfinished)
            unfinished.replace(folder / FILE)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # the Trainer has put the best weights into the model: they have masks of their own
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            self._load(Path(state.best_model_checkpoint))

    def _folder(self, args: TrainingArguments, state: TrainerState) -> Path:
        if self.resume_from is not None:
            return Path(self.resume_from)
        given = args.resume_from_checkpoint
        if isinstance(given, str) and Path(given).is_dir():
            return Path(given)
        return _usual_folder(args, state)

    def _load(self, folder: Path) -> None:
        assert self.pruner is not None
        path = folder / FILE
        if not path.is_file():
            raise UsageError(
                f"resume_from: {folder} has no {FILE}; give the folder of a checkpoint that a "
                "pruner was in"
            )
        try:
            state = read_tensors(path)
        except Exception as error:  # wrong bytes fail in whatever meets them first
            why = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise UsageError(f"resume_from: {path} is damaged ({why})") from error
        self.pruner.load_state_dict(state)


def _usual_folder(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir or ".") / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"


def _weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def _check_same(model: nn.Module, loaded: dict[str, torch.Tensor], folder: Path) -> None:
    """The folder was guessed: the pruner's weights must be those that the Trainer has loaded."""
    for name, weight in _weights(model).items():
        if not torch.equal(weight, loaded[name]):
            raise UsageError(
                f"resume_from: {folder / FILE} is of other weights than the model: {name} differs"
            )
