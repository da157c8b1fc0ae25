"""Time per cell-step against the number of cells and of seeds, from the committed GPU benchmark.

python benchmarks/plot_topk_scaling.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.report.static import as_png, draw_picture

HERE = Path(__file__).parent
BATCH = 4096
"""Cells that the runner puts into one batch on a GPU."""


def main() -> None:
    record = json.loads((HERE / "results" / "topk-gpu.json").read_text("utf-8"))
    by_cells = {int(k): v for k, v in record["microseconds per cell-step by cells"].items()}
    by_seeds = {
        int(k): v for k, v in record["microseconds per cell-step by seeds of 2,048 cells"].items()
    }
    cells = np.array(list(by_cells))
    whole = 1e-3 * cells * np.array(list(by_cells.values()))
    chunked = 2048 * np.array(list(by_seeds))
    parts = 1e-3 * chunked * np.array(list(by_seeds.values()))
    picture = Picture(
        "scaling",
        "topk-phase on one GPU: time of one step for all cells",
        "",
        [
            Lines(
                [
                    Curve("one batch", cells, whole, role="measured"),
                    Curve("a batch a seed", chunked, parts, role="chunks", style="points"),
                    Curve(
                        "proportional",
                        cells,
                        whole[-2] * cells / cells[-2],
                        role="theory",
                        style="dotted",
                    ),
                ],
                x_label="cells",
                y_label="milliseconds a step",
                title="Proportional from two thousand cells on, in one batch or in chunks",
                x_log=True,
                y_log=True,
                marks=((BATCH, "the runner's batch"),),
            ),
        ],
    )
    target = HERE.parent / "docs" / "images" / "topk-scaling.png"
    target.write_bytes(as_png(draw_picture(picture), 110))
    print(target.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
