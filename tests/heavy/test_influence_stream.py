"""Influence of 10^7 rows of 512 features, 20 GB that are never there: time and peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyarrow import parquet

ROWS, WIDTH, CLASSES, CHUNK = 10_000_000, 512, 10, 1 << 15
MOST = 1.5e9
"""Bytes of the process at its peak: 1 GB as asked for, and what Python and torch take."""
SCRIPT = """
import json, sys, time
import numpy as np, torch
import rarefy
from rarefy.core.settings import peak_memory

rows, width, classes, chunk, out = *map(int, sys.argv[1:5]), sys.argv[5]
shares = np.arange(classes, 0, -1) / np.arange(1, classes + 1).sum()

def pairs():
    for place, first in enumerate(range(0, rows, chunk)):
        random = np.random.default_rng([7, place])
        size = min(chunk, rows - first)
        labels = random.choice(classes, size, p=shares)
        yield random.standard_normal((size, width), np.float32), labels

begun = peak_memory(torch.device("cpu"))
found = rarefy.stream_influence(pairs, out=out, memory=1_000_000_000)
print(json.dumps({"seconds": round(found.seconds), "peak": peak_memory(torch.device("cpu")),
                  "begun": begun, "counts": found.counts.tolist(), "notes": found.notes}))
"""


def test_ten_million_rows_of_512_features_in_bounded_memory(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    path = tmp_path / "scores.parquet"
    sizes = [str(number) for number in (ROWS, WIDTH, CLASSES, CHUNK)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *sizes, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    record_property("rows x features", f"{ROWS} x {WIDTH} float32, {CLASSES} classes")
    record_property("seconds", told["seconds"])
    record_property("peak memory in MB", round(told["peak"] / 1e6))
    record_property("of which libraries in MB", round(told["begun"] / 1e6))
    assert told["peak"] < MOST
    counts = np.array(told["counts"])
    assert counts.sum() == ROWS
    # a check across all rows: the sum of x^T S x over a class is the squared norm of S
    sums, norms, ranks = np.zeros(CLASSES), np.zeros(CLASSES), []
    with parquet.ParquetFile(path) as held:
        for group in range(held.num_row_groups):
            part = held.read_row_group(group).to_pandas()
            label = part["label"].to_numpy().astype(int)
            n = counts[label].astype(float)
            r, shared = part["distance"].to_numpy() ** 2, part["shared"].to_numpy()
            q = shared * (n - 2) ** 2 * (n - 1) / n / 2 + r**2
            sums += np.bincount(label, q, CLASSES)
            norms[label] = -part["shrinking"].to_numpy() * ((n - 1) * (n - 2)) ** 2 / (2 * n - 3)
            ranks.append(part["percentile"].to_numpy())
    away = np.abs(sums / norms - 1).max()
    record_property("sum of x^T S x against |S|^2, relative", float(away))
    assert away < 1e-10
    assert abs(np.concatenate(ranks).mean() - 50) < 1e-6
