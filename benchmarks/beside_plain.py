"""The library timed beside the plain loop on a CPU, for all benchmarks that do so: what is asked on
the command line, how times are named, the table that is printed and the record that is kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from rarefy.core.provenance import provenance


def asked(doc: str, rounds: int = 5) -> argparse.Namespace:
    """``rounds`` and ``out``."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args()


def plain_ways(kind: str, threads: int) -> Iterator[tuple[str, int]]:
    """Names and threads of the plain loop's two ways to train a kind: the rival is the faster."""
    yield f"plain, {kind}", threads
    yield f"plain, {kind}, one thread", 1


def compared(
    columns: Mapping[str, Mapping[str, float]], kind_of: Callable[[str], str]
) -> dict[str, dict[str, float]]:
    """How many times as fast as the best plain loop of its kind each is, for every column of
    seconds a cell-step; printed with the times."""
    ratios = {
        column: {name: _best_plain(median, kind_of(name)) / median[name] for name in median}
        for column, median in columns.items()
    }
    titles = "".join(f" {column:>10} {'x best plain':>13}" for column in columns)
    print(f"{'ms a cell-step':40}{titles}")
    for name in next(iter(columns.values())):
        cells = (
            f" {median[name] * 1e3:10.3f} {ratios[column][name]:13.1f}"
            for column, median in columns.items()
        )
        print(f"{name:40}" + "".join(cells))
    return ratios


def _best_plain(median: Mapping[str, float], kind: str) -> float:
    return min(median[name] for name, _ in plain_ways(kind, 1))


def keep(path: Path, record: Mapping[str, Any], threads: int) -> None:
    """The record, with where it was made."""
    where = {"threads": threads, "provenance": provenance(torch.device("cpu"), "float32", 0.0)}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**record, **where}, indent=1) + "\n")
