"""A training that can be stopped at any update and gone on with, to the same end."""

from __future__ import annotations

import contextlib
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import RunError
from rarefy.pruning.models.pruner import Pruner
from rarefy.train.checkpoints import WORTH_SECONDS, Checkpoint

Self = TypeVar("Self", bound="Resumable")


class Batches(Protocol):
    """What a training needs to know of its data."""

    steps: int
    """Batches per epoch."""
    device: torch.device

    def epoch(self, number: int, begin: int = 0) -> Iterator[Any]:
        """The batches of an epoch, from batch ``begin`` on: the same ones whenever it is asked."""
        ...


class DeferredSignals:
    """Ctrl-C, and SIGTERM where somebody answers it, wait for the end of the update under way, from
    which one can go on. A second one does not wait."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._before: dict[int, Callable[[int, Any], Any]] = {}

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if callable(before):
                    self._before[number] = before
                    signal.signal(number, self._later)
            yield
        finally:
            self._give_back()
            self.answer()  # also after the last update, or after another error: none is lost

    def answer(self) -> None:
        """What would have been done at once; as a rule a ``KeyboardInterrupt``."""
        while self.asked:
            number = self.asked.pop()
            self._before[number](number, None)

    def _later(self, number: int, frame: object) -> None:
        self.asked.append(number)
        self._give_back()

    def _give_back(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._later:  # (else somebody else has put his own)
                signal.signal(number, before)


class Resumable(ABC):
    """One network on its way. ``run`` trains to the end, or to the deadline of the context, at
    which the checkpoint has everything that is needed to go on."""

    model: nn.Module
    batches: Batches
    optimizer: torch.optim.Optimizer
    pruner: Pruner | None
    epochs: int
    history: Any
    """A dataclass of plain lists and numbers, with ``nonfinite_step``."""
    about: str = ""
    """Stands for all settings; a checkpoint with another one is refused."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.step = 0
        self._between = True
        """Whether weights, history and step belong together: not so inside an update."""
        self._stops = DeferredSignals()
        self._losses = torch.zeros(batches.steps, dtype=torch.float32, device=batches.device)

    @abstractmethod
    def update(self, batch: Any) -> Tensor:
        """One step of the optimiser on one batch; gives its loss, which nobody looks at yet."""

    @abstractmethod
    def end_of_epoch(self, losses: Tensor) -> None:
        """Write down what an epoch gave; ``losses`` of its batches, float64 on the CPU."""

    @property
    def model_dtype(self) -> torch.dtype:
        return next(self.model.parameters()).dtype

    @property
    def steps(self) -> int:
        return self.epochs * self.batches.steps

    @property
    def epoch(self) -> int:
        return self.step // self.batches.steps

    @property
    def enough(self) -> bool:
        """Whether it ends before its last epoch."""
        return bool(self.history.nonfinite_step >= 0)

    def out_of_time(self, context: Context) -> None:
        """Raise ``OutOfTime`` when there is none left, or what somebody asked for meanwhile."""
        context.check_time()
        self._stops.answer()

    def run(
        self: Self,
        context: Context,
        checkpoint: Checkpoint | None = None,
        watch: Callable[[Self], None] | None = None,
    ) -> Any:
        """Train to the end; ``watch`` is called after every epoch."""
        if checkpoint is not None:
            self._go_on(context, checkpoint)
        with self._saved_when_stopped(checkpoint), self._stopped_between(context, checkpoint):
            while self.step < self.steps and not self.enough:
                for batch in self.batches.epoch(self.epoch, self.step % self.batches.steps):
                    self.out_of_time(context)
                    self._between = False
                    self.advance(batch)
                    if self.step % self.batches.steps == 0:
                        self._end_of_epoch()
                        if watch is not None and self.history.nonfinite_step < 0:
                            watch(self)
                    self._between = True
                    context.advance(1 / self.batches.steps)
                    if checkpoint is not None and checkpoint.due() and self._good():
                        checkpoint.save(self.state_dict())
        if checkpoint is not None and checkpoint.due(WORTH_SECONDS) and self._good():
            checkpoint.save(self.state_dict())  # what comes after a training may fail too
        if self.history.nonfinite_step < 0 and not self._finite():
            self.history.nonfinite_step = self.step - 1  # the very last update did it
        if self.step < self.steps:
            context.advance(
                (self.steps - self.step) / self.batches.steps
            )  # a run that blew up, or has had enough, has no more to do
        return self.history

    def advance(self, batch: Any) -> None:
        """One update, counted."""
        loss = self.update(batch)
        # read once per epoch: asking the GPU for a number makes it wait
        self._losses[self.step % self.batches.steps] = loss.detach()
        self.step += 1

    def _go_on(self, context: Context, checkpoint: Checkpoint) -> None:
        state = checkpoint.load(self.batches.device)
        if state is None:
            return
        try:
            self.load_state_dict(state)
        except Exception as error:  # a state of somebody else's may hold anything
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise RunError(
                f"checkpoint {checkpoint.path} is of another network ({why}); remove it"
            ) from error
        context.advance(self.step / self.batches.steps)

    def _end_of_epoch(self) -> None:
        losses = self._losses.cpu().double()
        finite = torch.isfinite(losses)
        if not bool(finite.all()):
            begun = self.step - self.batches.steps
            self.history.nonfinite_step = begun + int((~finite).nonzero()[0])
        self.end_of_epoch(losses)

    def _good(self) -> bool:
        """Whether this is worth a checkpoint: one with a loss that is no number, or with weights
        that will give one, would take the place of the last good one."""
        if self.history.nonfinite_step >= 0:
            return False
        here = self._losses[: self.step % self.batches.steps]
        return bool(torch.isfinite(here).all()) and self._finite()

    def _finite(self) -> bool:
        """Of all that is trained: a branch may have parameters that the model has not."""
        trained = (one for group in self.optimizer.param_groups for one in group["params"])
        return all(bool(torch.isfinite(one).all()) for one in trained)

    @contextlib.contextmanager
    def _saved_when_stopped(self, checkpoint: Checkpoint | None) -> Iterator[None]:
        """Out of time, Ctrl-C, a lost disk elsewhere: what was trained so far is kept. Not in the
        middle of an update, which nobody could go on from: the last checkpoint stays then."""
        try:
            yield
        except BaseException:
            if checkpoint is not None and self.step > 0 and self._between and self._good():
                checkpoint.save(self.state_dict())
            raise

    def _stopped_between(
        self, context: Context, checkpoint: Checkpoint | None
    ) -> contextlib.AbstractContextManager[None]:
        """Ctrl-C nearly always comes in the middle of an update, where nothing could be kept. Only
        the main thread may set handlers; a process of several is stopped by its context."""
        main = threading.current_thread() is threading.main_thread()
        if checkpoint is None or context.stop is not None or not main:
            return contextlib.nullcontext()
        self._stops = DeferredSignals()
        return self._stops.waiting()

    # ---------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        device = self.batches.device
        state: dict[str, Any] = {
            "about": self.about,
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "losses": self._losses,
            "history": vars(self.history),
            # networks of others may draw (dropout)
            "random": torch.get_rng_state(),
        }
        if self.pruner is not None:
            state["pruner"] = self.pruner.state_dict()
        if device.type == "cuda":
            state["cuda random"] = torch.cuda.get_rng_state(device)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state.get("about", self.about) != self.about:
            raise ValueError("it was made with other settings")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.pruner is not None:
            self.pruner.load_state_dict(state["pruner"])
        self.step = state["step"]
        self._losses.copy_(state["losses"])
        self.history = type(self.history)(**state["history"])
        torch.set_rng_state(state["random"].cpu())
        if "cuda random" in state:
            torch.cuda.set_rng_state(state["cuda random"].cpu(), self.batches.device)
