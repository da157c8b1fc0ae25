"""What pruning did over time: kept, changed and revived weights of every layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pandas as pd
import torch
from torch import Tensor

COLUMNS = ("kept", "changed", "revived", "empty_filters")
FIRST, EVERY = 10, 10
"""The first choices of masks are counted, then one every so many updates: where masks are chosen at
every update, counting would take longer than choosing."""
MOST = 4096
"""Records kept; beyond, every other one is dropped, again and again."""


def tally(layers: Sequence[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """Counts of every layer, in the order of ``COLUMNS``, from ``PrunedParameter.compare``: in a
    few operations for all layers, since on a GPU each costs as much as a small layer."""
    device = layers[0][0].device
    before, now, both = (
        torch.cat([each.to(device) for each in part]).long() for part in zip(*layers, strict=True)
    )
    table = torch.stack([now, before + now - 2 * both, now - both, (now == 0).long()])
    sums = torch.nn.functional.pad(table.cumsum(dim=1), (1, 0))
    ends = [0, *accumulate(len(each) for each, _, _ in layers)]
    return torch.stack([sums[:, end] for end in ends]).diff(dim=0)


class Trajectory:
    """Records of choices of masks. Counts stay on their device until somebody looks: reading them
    at once would make a GPU wait at every step."""

    def __init__(self, sizes: dict[str, int]) -> None:
        """``sizes``: weights of every layer."""
        self.sizes = sizes
        self.steps: list[int] = []
        self._counts: list[Tensor] = []
        self.choices = 0
        """How often masks were chosen."""
        self._every = 1
        self._last: Tensor | None = None

    def wanted(self, step: int) -> bool:
        """Whether a choice of masks after so many updates is to be counted."""
        first = self.choices < FIRST and self._every == 1
        return first or step - self.steps[-1] >= EVERY * self._every

    def add(self, step: int, counts: Tensor | None) -> None:
        """``counts``: (layer, one of ``COLUMNS``), None if they are not ``wanted``."""
        self.choices += 1
        if counts is None:
            return
        self._last = counts
        self.steps.append(step)
        self._counts.append(counts)
        if len(self.steps) > MOST:
            self.steps, self._counts = self.steps[::2], self._counts[::2]
            self._every *= 2

    def now(self) -> dict[str, Tensor]:
        """For a log: share of all weights that is kept, and churn, at the last counted choice."""
        if self._last is None:
            return {"keep": torch.tensor(1.0), "churn": torch.tensor(0.0)}
        kept, changed = self._last[:, :2].sum(dim=0) / sum(self.sizes.values())
        # the first choice is no change of mind
        return {"keep": kept, "churn": changed if self.choices > 1 else torch.zeros_like(changed)}

    def __len__(self) -> int:
        return len(self.steps)

    def frame(self) -> pd.DataFrame:
        """One row per layer and counted choice of masks: step, layer, weights, kept, keep (share
        kept), churn (share of the mask that changed), revived (weights that came
        back), empty_filters."""
        names = list(self.sizes)
        counts = self._all()
        frame = pd.DataFrame(
            {
                "step": [step for step in self.steps for _ in names],
                "layer": names * len(self.steps),
                **{name: counts[:, :, place].flatten() for place, name in enumerate(COLUMNS)},
            }
        )
        frame["weights"] = frame["layer"].map(self.sizes)
        frame["keep"] = frame["kept"] / frame["weights"]
        frame["churn"] = frame["changed"] / frame["weights"]
        return frame[
            ["step", "layer", "weights", "kept", "keep", "churn", "revived", "empty_filters"]
        ]

    def _all(self) -> Any:
        if not self._counts:
            return torch.zeros(0, len(self.sizes), len(COLUMNS), dtype=torch.int64).numpy()
        return torch.stack([each.cpu() for each in self._counts]).numpy()

    def state(self) -> dict[str, Any]:
        return {
            "steps": list(self.steps),
            "counts": torch.from_numpy(self._all()),
            "every": self._every,
            "choices": self.choices,
            "last": self._last,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.steps = list(state["steps"])
        self._counts = list(state["counts"].unbind(0))
        self._every, self.choices = int(state["every"]), int(state["choices"])
        self._last = state["last"]
