"""What pruning did over time: kept, changed and revived weights of every layer."""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch
from torch import Tensor

COLUMNS = ("kept", "changed", "revived", "empty_filters")
MOST = 4096
"""Records kept; beyond, every other one is dropped, again and again."""


class Trajectory:
    """One record a choice of masks. Counts stay on their device until somebody looks: reading them
    at once would make a GPU wait at every step."""

    def __init__(self, sizes: dict[str, int]) -> None:
        """``sizes``: weights of every layer."""
        self.sizes = sizes
        self.steps: list[int] = []
        self._counts: list[Tensor] = []
        self._every, self._seen = 1, 0
        self._last: Tensor | None = None

    def add(self, step: int, counts: list[Tensor]) -> None:
        """``counts``: of each layer, in the order of ``COLUMNS``."""
        self._seen += 1
        self._last = torch.stack([each.to(counts[0].device) for each in counts])
        if (self._seen - 1) % self._every:
            return
        self.steps.append(step)
        self._counts.append(self._last)
        if len(self.steps) > MOST:
            self.steps, self._counts = self.steps[::2], self._counts[::2]
            self._every *= 2

    def now(self) -> dict[str, Tensor]:
        """For a log: share of all weights that is kept, and churn of the last choice of masks."""
        if self._last is None:
            return {"keep": torch.tensor(1.0), "churn": torch.tensor(0.0)}
        kept, changed = self._last[:, :2].sum(dim=0) / sum(self.sizes.values())
        # the first choice is no change of mind
        return {"keep": kept, "churn": changed if self._seen > 1 else torch.zeros_like(changed)}

    def __len__(self) -> int:
        return len(self.steps)

    def frame(self) -> pd.DataFrame:
        """One row a layer and choice of masks: step, layer, weights, kept, keep (share kept),
        churn (share of the mask that changed), revived (weights that came back), empty_filters."""
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
            "seen": self._seen,
            "last": self._last,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.steps = list(state["steps"])
        self._counts = list(state["counts"].unbind(0))
        self._every, self._seen = int(state["every"]), int(state["seen"])
        self._last = state["last"]
