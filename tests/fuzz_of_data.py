"""Readers of images, hierarchies, tables and arrays as fuzz targets."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
from fuzz_files import (
    COLUMNS,
    CSV,
    NESTED,
    NUMBERED,
    PARENTS,
    PIXELS,
    TABLE,
    cifar_batch,
    cifar_files,
    cifar_tar,
    gz,
    idx,
    images,
    npy,
    npz_of,
    pictures,
    with_checksums,
    written,
)
from fuzzing import Target, file
from PIL import Image
from pyarrow import feather, parquet

from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images.cifar import CIFAR10, load_cifar
from rarefy.data.images.folders import load_folder
from rarefy.data.images.mnist import read_idx
from rarefy.tools.samples.opening import open_samples

CPU = __import__("torch").device("cpu")


# ------------------------------------------------------------------------------------------- images


def _photos(folder: Path) -> None:
    for name, more in (("cat", 0), ("dog", 9)):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(3):
            Image.fromarray(PIXELS + more + number).save(folder / f"photos/{name}/{number}.png")


def _cifar(folder: Path) -> None:
    (folder / CIFAR10.folder).mkdir()
    for name, content in cifar_files(b"").items():
        (folder / CIFAR10.folder / name).write_bytes(content)


def _batches() -> list[bytes]:
    old = pickle.dumps({key.encode(): held for key, held in cifar_batch().items()}, protocol=2)
    return [pickle.dumps(cifar_batch(), protocol=2), pickle.dumps(cifar_batch(), protocol=4), old]


IMAGES = [
    file(
        "image", "photos/cat/x.png", lambda p: load_folder(p.parents[1]), pictures, beside=_photos
    ),
    file(
        "image with checksums",
        "photos/cat/x.png",
        lambda p: load_folder(p.parents[1]),
        lambda: [one for one in pictures() if one[1:4] == b"PNG"],
        with_checksums,
        _photos,
    ),
    file("idx", "train-images", lambda p: read_idx(p, 3), lambda: [idx()]),
    file("idx in gzip", "labels.gz", lambda p: read_idx(p, 1), lambda: [gz(idx(1))]),
    file(
        "CIFAR pickle",
        f"{CIFAR10.folder}/{CIFAR10.train[0]}",
        lambda p: load_cifar(CIFAR10, p.parents[1]),
        _batches,
        beside=_cifar,
    ),
    file(
        "CIFAR archive",
        CIFAR10.archive,
        lambda p: load_cifar(CIFAR10, p.parent),
        lambda: [cifar_tar()],
        gz,
    ),
]


def _levels(name: str, ending: str, seeds: list[bytes]) -> Target:
    read = lambda path: with_hierarchy(images(), path)  # noqa: E731
    return file(f"hierarchy, {name}", f"levels.{ending}", read, lambda: seeds)


LEVELS = [
    _levels("parents", "csv", [PARENTS, COLUMNS]),
    _levels("nested", "json", [NESTED]),
]

# -------------------------------------------------------------------------------- tables and arrays


def _tables() -> list[bytes]:
    table = pa.Table.from_pandas(TABLE)
    lists = pa.table({"v": [[1.0, 2.0]] * 5, "label": pa.array(list("xyxyx")).dictionary_encode()})
    how = ({"compression": "zstd"}, {"compression": "none", "use_dictionary": False})
    return [
        written(lambda s, one=one, kind=kind: parquet.write_table(one, s, **kind))
        for one in (table, lists)
        for kind in how
    ]


def _feathers() -> list[bytes]:
    table = pa.Table.from_pandas(TABLE)
    return [
        written(lambda s, how=how: feather.write_feather(table, s, compression=how))
        for how in ("uncompressed", "lz4")
    ]


def _arrays() -> list[bytes]:
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    objects = npy(np.array([[1, "a"]] * 5, dtype=object), allow_pickle=True)
    return [npy(values), npy(np.asfortranarray(values)), npy(values.astype(np.uint8)), objects]


def _labels(folder: Path) -> None:
    (folder / "labels.npy").write_bytes(npy(np.array(list("xyxyx"))))


TABLES = [
    file(
        "CSV",
        "t.csv",
        open_samples,
        lambda: [CSV, NUMBERED, b"\xff\xfe" + CSV.decode().encode("utf-16-le")],
    ),
    file("TSV in gzip", "t.tsv.gz", open_samples, lambda: [gz(CSV.replace(b",", b"\t"))]),
    file("Parquet", "t.parquet", open_samples, _tables),
    file("Feather", "t.feather", open_samples, _feathers),
    file("npy", "features.npy", open_samples, _arrays, beside=_labels),
    file("npz", "a.npz", open_samples, lambda: [npz_of(one) for one in _arrays()]),
    file("array in npz", "a.npz", open_samples, _arrays, npz_of),
]
