"""What pruning did, to look at: a table of the layers and curves over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure

from rarefy.core.errors import UsageError
from rarefy.core.tables import Table
from rarefy.core.writing import write_output

if TYPE_CHECKING:
    from rarefy.pruning.models.pruner import Pruner


def table(pruner: Pruner) -> Table:
    """A row per layer: its shape, what is kept, how its mask moved."""
    found = Table(title=f"pruned while training, after {pruner.step} updates")
    for column in ("weight", "shape", "kept", "keep"):
        found.add_column(column, justify="left" if column in ("weight", "shape") else "right")
    for column in ("last churn", "mean churn", "came back", "empty filters"):
        found.add_column(column, justify="right")
    frame = pruner.trajectory.frame()
    for name, pruned in pruner.pruned.items():
        layer = frame[frame["layer"] == name]
        kept = int(pruned.mask.sum())
        size = pruned.kept.numel()
        shape = "x".join(str(length) for length in pruned.kept.shape)
        found.add_row(name, shape, f"{kept:,}", f"{kept / size:.3f}", *_moves(layer))
    kept = sum(int(pruned.mask.sum()) for pruned in pruner.pruned.values())
    found.add_section()
    found.add_row("all", "", f"{kept:,}", f"{pruner.keep:.3f}", "", "", "", "")
    return found


def _moves(layer: pd.DataFrame) -> tuple[str, ...]:
    if layer.empty:
        return ("none yet",) + ("",) * 3
    later = layer.iloc[1:]  # the first choice is no change of mind
    if later.empty:
        return ("", "", "", f"{int(layer['empty_filters'].iloc[-1])}")
    return (
        f"{later['churn'].iloc[-1]:.4f}",
        f"{later['churn'].mean():.4f}",
        f"{(later['revived'] / later['weights']).mean():.4f}",
        f"{int(layer['empty_filters'].iloc[-1])}",
    )


def plot(pruner: Pruner, path: str | None = None) -> Figure:
    """Three panels over updates, one line per layer: share kept, churn of the mask, weights that
    came back. Written to ``path`` if there is one."""
    frame = pruner.trajectory.frame()
    if frame.empty:
        raise UsageError("pruner: nothing to plot, no masks were chosen yet")
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, 3)
    words = ("share kept", "share of the mask that changed", "share that came back")
    frame["back"] = frame["revived"] / frame["weights"]
    names = list(pruner.pruned)
    for panel, column, label in zip(panels, ("keep", "churn", "back"), words, strict=True):
        for place, name in enumerate(names):
            layer = frame[frame["layer"] == name]
            layer = layer if column == "keep" else layer.iloc[1:]
            colour = f"C{place}" if len(names) <= 10 else _shade(place, len(names))
            panel.plot(layer["step"], layer[column], color=colour, lw=1.3, label=name)
        panel.set_xlabel("updates")
        panel.set_title(label, fontsize=10)
        panel.set_ylim(bottom=0)
        panel.spines[["top", "right"]].set_visible(False)
    if len(names) <= 10:
        panels[0].legend(fontsize=7, frameon=False)
    else:
        panels[0].set_xlabel("updates (layers from the first, dark, to the last, light)")
    if path is not None:
        # (by its ending: it is written under another name first)
        form = Path(path).suffix[1:] or "png"
        write_output(Path(path), lambda partial: figure.savefig(partial, dpi=150, format=form))
    return figure


def _shade(place: int, count: int) -> str:
    return str(0.8 * place / max(count - 1, 1))
