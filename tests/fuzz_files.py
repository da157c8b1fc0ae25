"""Small valid files of every kind that rarefy reads, from which fuzzing starts."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from fuzzing import FOLDER
from PIL import Image
from toy_study import Toy

import rarefy
from rarefy.core.errors import unknown
from rarefy.core.writing import OutputFolder
from rarefy.data.images import ImageData, ImageSet
from rarefy.data.images.cifar import CIFAR10
from rarefy.data.longtail.split import LongTailSplit
from rarefy.data.longtail.split_file import save_split
from rarefy.nets.builder import build
from rarefy.sweep.results import write_results
from rarefy.tools.influence.writing import write_table
from rarefy.tools.saved_networks import save_network

TABLE = pd.DataFrame(
    {"a": [1.0, 3, 5, 2, 1], "b": [2.0, 4, 6.5, 2, 1], "label": ["x", "y", "x", "y", "x"]}
)
CSV = TABLE.to_csv(index=False).encode()
NUMBERED = b"a,b,label\n1,2,3\n2,3,4\n3,4,3\n1,1,4\n"
PIXELS = (np.arange(108).reshape(6, 6, 3) * 2).astype(np.uint8)


def find(name: str) -> type[Toy]:
    """The toy is the only study there is."""
    if name != "toy":
        raise unknown("study", name, ["toy"])
    return Toy


def written(write: Callable[[Any], object]) -> bytes:
    """What something writes into a stream."""
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


@cache
def home() -> Path:
    """One of each of what has to be computed first, made once per process."""
    folder = Path(tempfile.mkdtemp(prefix="rarefy-fuzz-", dir=FOLDER))
    dataset = rarefy.run(Toy, scale="tiny", device="cpu", out=folder / "store", progress=False)
    write_results(Toy.at("tiny"), "tiny", dataset, folder / "results")
    save_network(OutputFolder(folder), "net", build("lenet", 1, 8, 2), images(), ABOUT)
    scored = TABLE[["label"]].assign(id=list("abcde"), influence=TABLE["a"])
    write_table(scored, folder / "scores.csv")
    write_table(scored, folder / "scores.parquet")
    ids = tuple(f"{number:032x}" for number in range(5))
    save_split(LongTailSplit(ids, (3, 2), (1, 0), {"seed": 1}), folder / "split.json")
    return folder


ABOUT = {"network": "lenet", "keep": 0.5}


def images() -> ImageData:
    pixels = torch.arange(6 * 64, dtype=torch.uint8).reshape(6, 1, 8, 8)
    files = tuple(f"{number}.png" for number in range(6))
    one = ImageSet(pixels, torch.arange(6) % 2, ("cat", "dog"), files)
    return ImageData("made up", one, one, "nowhere")


# ------------------------------------------------------------------------------------------- images


def pictures() -> list[bytes]:
    """One in every format, with and without a palette, transparency and notes."""
    image, found = Image.fromarray(PIXELS), []
    for name in ("PNG", "JPEG", "GIF", "BMP", "PPM", "TIFF", "WEBP"):
        found.append(written(lambda stream, kind=name: image.save(stream, kind)))
    exif = Image.Exif()
    exif[0x0112] = 6
    found.append(written(lambda stream: image.save(stream, "JPEG", exif=exif, quality=30)))
    found.append(written(lambda stream: image.convert("P").save(stream, "PNG", transparency=0)))
    for coding in ("tiff_lzw", "tiff_adobe_deflate", "jpeg"):
        found.append(written(lambda s, how=coding: image.save(s, "TIFF", compression=how)))
    return found


def with_checksums(content: bytes) -> bytes:
    """A PNG whose blocks all have the checksum that fits them, so that more than that is read."""
    done, place = bytearray(content[:8]), 8
    while place + 12 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        body = content[place + 4 : place + 8 + length]
        done += content[place : place + 4] + body + struct.pack(">I", zlib.crc32(body))
        place += 12 + length
    return bytes(done) + content[place:]


def idx(dimensions: int = 3) -> bytes:
    sides = (4, 3, 2)[:dimensions]
    return struct.pack(f">4B{dimensions}I", 0, 0, 8, dimensions, *sides) + bytes(range(24))


def cifar_batch() -> dict[str, Any]:
    names = [b"cat_s_1.png", b"dog_s_2.png"]
    return {"data": np.zeros((2, 3072), np.uint8), "labels": [0, 1], "filenames": names}


def cifar_files(batch: bytes) -> dict[str, bytes]:
    """All files of CIFAR-10, the first with this content."""
    usual = pickle.dumps(cifar_batch(), protocol=2)
    meta = pickle.dumps({"label_names": ["cat", "dog"]}, protocol=2)
    found = {name: meta if name == CIFAR10.meta else usual for name in CIFAR10.files}
    return {**found, CIFAR10.train[0]: batch}


def tar_of(files: dict[str, bytes]) -> bytes:
    def write(stream: io.BytesIO) -> None:
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    return written(write)


def cifar_tar() -> bytes:
    files = cifar_files(pickle.dumps(cifar_batch(), protocol=2))
    return tar_of({f"{CIFAR10.folder}/{name}": content for name, content in files.items()})


# ----------------------------------------------------------------------------- zip files and arrays


def npz_of(features: bytes, label: str = "y") -> bytes:
    """With this as the array of features, whatever it is; checksums fit."""

    def write(stream: io.BytesIO) -> None:
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("X.npy", features)
            archive.writestr(f"{label}.npy", npy(np.array([0, 1, 0, 1, 0])))

    return written(write)


def npy(values: Any, **how: Any) -> bytes:
    return written(lambda stream: np.save(stream, values, **how))


def member(path: Path, name: str = "data.pkl") -> bytes:
    """One file of a zip file, by the end of its name."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(one for one in archive.namelist() if one.endswith(name)))


def with_member(path: Path, content: bytes, name: str = "data.pkl") -> bytes:
    """The same zip file with other content there; its checksum fits."""

    def write(stream: io.BytesIO) -> None:
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w") as new:
            for one in old.namelist():
                new.writestr(one, content if one.endswith(name) else old.read(one))

    return written(write)


# --------------------------------------------------------------------------------- texts and ledger

PICKS = json.dumps(
    {
        **{"format": "rarefy picks 1", "data": "t.csv", "fingerprint": "ab", "read": {"size": 8}},
        "picks": [
            {"id": "a", "name": "n", "label": "x", "decision": "relabel", "new_label": "y"},
            {"id": "b", "decision": "drop", "why": "blurred"},
        ],
    }
).encode()
CLEAN = b'{"format": "rarefy clean 1", "files": {"a.png": "00"}, "data": "t", "command": "c"}'
PARENTS = b"child,parent\ncat,pet\ndog,pet\npet,animal\n"
COLUMNS = b"class,kind,size\ncat,pet,small\ndog,pet,large\n"
NESTED = b'{"animal": {"pet": ["cat", "dog"]}}'
LIST = b"cat/1.JPEG 0\ndog/2.JPEG 1\n"


def gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
