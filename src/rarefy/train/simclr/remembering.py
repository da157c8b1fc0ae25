"""What a method remembers of each image while it trains, if it does: in one place for a training.

Everything is edited in place and outside of what is recorded or compiled.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from rarefy.nets.backbones import Encoder
from rarefy.train.simclr.boosted_memory import BoostedMemory
from rarefy.train.simclr.harmonising import Harmony, check_targets
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.objective import Contrast
from rarefy.train.simclr.view_batches import ViewBatches


class Remembering:
    """Of a training of ``encoder``; ``batches`` are shown as the memory says."""

    def __init__(self, method: Method, encoder: Encoder, batches: ViewBatches, epochs: int) -> None:
        self.batches = batches
        count, device = len(batches.images), batches.device
        self.boost = BoostedMemory(count, device) if method.boost else None
        batches.memory = self.boost
        self.harmony: Harmony | None = None
        if method.targets:
            layers = [one for one in encoder.projection.modules() if isinstance(one, nn.Linear)]
            width = layers[-1].out_features
            check_targets(method, width)
            self.harmony = Harmony(count, method.targets, width, epochs, batches.run_key, device)
        self._order: tuple[int, Tensor] | None = None

    def begin(self, step: int) -> None:
        """Before an update."""
        if self.harmony is not None:
            self.harmony.at_epoch(step // self.batches.steps)

    def of(self, found: Contrast, first: Tensor, second: Tensor) -> Contrast:
        """What a batch gave, with all that is to be remembered of it."""
        return found if self.harmony is None else self.harmony.added_to(found, first, second)

    def see(self, found: Contrast, step: int) -> None:
        """After an update."""
        epoch, batch = divmod(step, self.batches.steps)
        if found.each is None and found.directions is None:
            return
        if self._order is None or self._order[0] != epoch:
            self._order = epoch, self.batches.order(epoch)
        first = batch * self.batches.batch
        rows = self._order[1][first : first + self.batches.batch]
        if self.boost is not None and found.each is not None:
            self.boost.see(rows, found.each)
        if self.harmony is not None and found.directions is not None:
            self.harmony.see(rows, found.directions, epoch)

    def refresh(self, epochs: int) -> None:
        """After so many epochs."""
        if self.boost is not None:
            self.boost.refresh()
        if self.harmony is not None:
            self.harmony.refresh(epochs)

    def state_dict(self) -> dict[str, Any]:
        both = {"boost": self.boost, "harmony": self.harmony}
        return {name: one.state_dict() for name, one in both.items() if one is not None}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a state in which there may be more."""
        if self.boost is not None:
            self.boost.load_state_dict(state["boost"])
        if self.harmony is not None:
            self.harmony.load_state_dict(state["harmony"])
