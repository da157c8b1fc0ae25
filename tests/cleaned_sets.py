"""Small data sets in every layout that is read, with all that a test compares of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples

KINDS = ("ash", "oak", "elm")


class Layout(NamedTuple):
    """How a set is written, how it is read, and how its cleaned twin is."""

    write: Callable[[Path, pd.DataFrame], str]
    read: dict[str, Any]
    cleaned: str
    """Below the folder that is written; empty for the folder itself."""


def frame(count: int = 24, seed: int = 0) -> pd.DataFrame:
    """Numbers, a label, and a column that nobody scores; every kind of tree has some."""
    generator = np.random.default_rng(seed)
    kinds = np.array(KINDS)[np.arange(count) % 3]
    numbers = generator.normal((np.arange(count) % 3)[:, None] * 2, 1, (count, 3))
    found = pd.DataFrame(numbers, columns=["height", "girth", "age"])
    return found.assign(kind=kinds, remark=[f'tree "{row}", old' for row in range(count)])


def _csv(path: Path, table: pd.DataFrame, **how: Any) -> str:
    table.to_csv(path, index=False, **how)
    return str(path)


def _parquet(path: Path, table: pd.DataFrame) -> str:
    table.assign(kind=table["kind"].astype("category")).to_parquet(path)
    return str(path)


def _feather(path: Path, table: pd.DataFrame) -> str:
    table.to_feather(path)
    return str(path)


def _npz(path: Path, table: pd.DataFrame) -> str:
    X = table[["height", "girth", "age"]].to_numpy()
    number = {kind: place + 3 for place, kind in enumerate(sorted(KINDS))}
    y = table["kind"].map(number).to_numpy(np.int16)
    apart = {"X_test": X[:4] + 9, "y_test": y[:4]}
    np.savez_compressed(path, X=X, y=y, remarks=table["remark"].to_numpy().astype(str), **apart)
    return str(path)


def _npy(path: Path, table: pd.DataFrame) -> str:
    np.save(path, table[["height", "girth", "age"]].to_numpy(np.float32))
    np.save(path.with_name("labels.npy"), table["kind"].to_numpy().astype("U3"))
    return str(path)


def _folder(path: Path, table: pd.DataFrame) -> str:
    generator = np.random.default_rng(1)
    for row, kind in enumerate(table["kind"]):
        place = path / kind / ("deep" if row % 5 == 0 else "") / f"{row // 3:02d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 255, (6, 6)).astype(np.uint8)).save(place)
    return str(path)


def _split_folder(path: Path, table: pd.DataFrame) -> str:
    _folder(path / "train", table)
    _folder(path / "test", table.iloc[:9].assign(kind=np.roll(table["kind"].iloc[:9], 1)))
    return str(path)


LAYOUTS = {
    "trees.csv": Layout(_csv, {"label": "kind"}, "trees.csv"),
    "trees.tsv.gz": Layout(
        lambda path, table: _csv(path, table, sep="\t", lineterminator="\r\n"),
        {"label": "kind", "names": "remark"},
        "trees.tsv.gz",
    ),
    "trees16.csv": Layout(
        lambda path, table: _csv(path, table, encoding="utf-16"), {"label": "kind"}, "trees16.csv"
    ),
    "trees.parquet": Layout(_parquet, {"label": "kind"}, "trees.parquet"),
    "trees.feather": Layout(_feather, {"label": "kind", "columns": ["age"]}, "trees.feather"),
    "trees.npz": Layout(_npz, {}, "trees.npz"),
    "trees.npy": Layout(_npy, {}, "trees.npy"),
    "trees": Layout(_folder, {}, ""),
    "parted": Layout(_split_folder, {}, ""),
}


def opened(name: str, path: Path | str) -> Samples:
    return open_samples(path, standardize=False, **LAYOUTS[name].read)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, links as what they lead to."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
