"""Both CIFAR layouts: pickles with keys of bytes or text, unpacked or in the archive, damaged."""

from __future__ import annotations

import io
import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarefy.core.errors import UsageError
from rarefy.data.images import load_images
from rarefy.data.images.cifar import CIFAR10, CIFAR100, Layout, noun_of

Files = dict[str, dict[Any, Any]]
LAYOUTS = {layout.name: layout for layout in (CIFAR10, CIFAR100)}
NOUNS = ("fire_engine", "tabby", "automobile")


def _batch(layout: Layout, seed: int, count: int = 6) -> dict[Any, Any]:
    random = np.random.default_rng(seed)
    entries: dict[Any, Any] = {
        b"data": random.integers(0, 256, (count, 3072), dtype=np.uint8),
        layout.labels.encode(): [place % 3 for place in range(count)],
        b"filenames": [f"{NOUNS[place % 3]}_s_{place:06}.png".encode() for place in range(count)],
        b"batch_label": b"a batch",
    }
    if layout.coarse is not None:
        entries[layout.coarse[0].encode()] = [place % 2 for place in range(count)]
    return entries


def _files(layout: Layout) -> Files:
    names = (*layout.train, *layout.test)
    files: Files = {name: _batch(layout, seed) for seed, name in enumerate(names)}
    files[layout.meta] = {layout.classes.encode(): [b"truck", b"cat", b"car"], b"num_vis": 3072}
    if layout.coarse is not None:
        files[layout.meta][layout.coarse[1].encode()] = [b"things", b"beings"]
    return files


def _as_text(entries: dict[Any, Any]) -> dict[Any, Any]:
    texts = dict(entries)
    for key, value in texts.items():
        if isinstance(value, list) and value and isinstance(value[0], bytes):
            texts[key] = [one.decode() for one in value]
    return {key.decode(): value for key, value in texts.items()}


def _write(folder: Path, layout: Layout, files: Files, protocol: int = 2) -> Path:
    place = folder / layout.folder
    place.mkdir(parents=True)
    for name, entries in files.items():
        (place / name).write_bytes(pickle.dumps(entries, protocol=protocol))
    return place


def _pack(
    folder: Path, layout: Layout, files: Files, extra: tuple[tarfile.TarInfo, ...] = ()
) -> Path:
    archive = folder / layout.archive
    with tarfile.open(archive, "w:gz") as packed:
        for info in extra:
            packed.addfile(info, io.BytesIO(b"x" * info.size) if info.isfile() else None)
        for name, entries in reversed(files.items()):
            content = pickle.dumps(entries, protocol=2)
            info = tarfile.TarInfo(f"{layout.folder}/{name}")
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    return archive


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("text", [True, False])
def test_both_layouts_are_read(tmp_path: Path, name: str, protocol: int, text: bool) -> None:
    layout = LAYOUTS[name]
    files = _files(layout)
    written = {key: _as_text(value) for key, value in files.items()} if text else files
    place = _write(tmp_path, layout, written, protocol)
    data = load_images(name, tmp_path)
    whole = np.concatenate([files[batch][b"data"] for batch in layout.train])
    assert np.array_equal(data.train.images.numpy(), whole.reshape(-1, 3, 32, 32))
    assert data.train.labels.tolist() == [0, 1, 2] * 2 * len(layout.train)
    assert data.classes == ("truck", "cat", "car")
    assert data.test.files is not None and data.test.files[0] == "fire_engine_s_000000.png"
    assert data.source == str(place)
    nouns, names = data.test.levels["noun"]
    assert names == ("truck/fire_engine", "cat/tabby", "car/automobile")
    assert nouns.tolist() == [0, 1, 2, 0, 1, 2]
    if layout.coarse is None:
        assert "coarse" not in data.train.levels
    else:
        assert data.train.levels["coarse"][1] == ("things", "beings")
        assert data.train.levels["coarse"][0].tolist() == [0, 1] * 3


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_archive_is_read_where_it_lies(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    unpacked = tmp_path / "unpacked"
    _write(unpacked, layout, _files(layout))
    packed = tmp_path / "packed"
    packed.mkdir()
    outside = tarfile.TarInfo("../../escaped")
    outside.size = 3
    link = tarfile.TarInfo(f"{layout.folder}/{layout.test[0]}")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    _pack(packed, layout, _files(layout), (outside, link))
    before = sorted(tmp_path.rglob("*"))
    one, other = load_images(name, unpacked), load_images(name, packed)
    assert one.fingerprint == other.fingerprint
    assert other.source.endswith(".tar.gz")
    assert sorted(tmp_path.rglob("*")) == before  # nothing was written


def test_an_incomplete_folder_gives_way_to_the_archive(tmp_path: Path) -> None:
    place = _write(tmp_path, CIFAR10, _files(CIFAR10))
    (place / "data_batch_3").unlink()
    with pytest.raises(UsageError, match="data_batch_3 missing; unpack cifar-10-python.tar.gz"):
        load_images("cifar10", tmp_path)
    _pack(tmp_path, CIFAR10, _files(CIFAR10))
    assert load_images("cifar10", tmp_path).source.endswith(".tar.gz")


def _changed(name: str, key: str, value: Any) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        if value is None:
            del files[name][key.encode()]
        else:
            files[name][key.encode()] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_changed("train", "fine_labels", None), "train: labels missing.*'fine_labels'"),
        (_changed("train", "fine_labels", [0, 1]), "2 fine_labels for 6 images"),
        (_changed("train", "fine_labels", [0, 1, 2, 3, 0, 0]), "has 3 at position 3; .* 0 to 2"),
        (_changed("test", "fine_labels", [0, -1, 2, 0, 0, 0]), "test: fine_labels has -1"),
        (_changed("test", "fine_labels", [0, "x", 2, 0, 0, 0]), "has x at position 1"),
        (_changed("test", "fine_labels", [0, True, 2, 0, 0, 0]), "has True at position 1"),
        (_changed("train", "coarse_labels", [5] * 6), "coarse_labels has 5 .* 0 to 1"),
        (_changed("train", "filenames", [b"x.png"]), "1 filenames for 6 images"),
        (_changed("train", "filenames", [1] * 6), "filenames: has a int"),
        (_changed("train", "data", None), "'data' must be bytes"),
        (_changed("train", "data", [1, 2]), "'data' must be bytes .* not list"),
        (_changed("train", "data", np.zeros((6, 9), np.uint8)), r"not \(6, 9\)"),
        (_changed("train", "data", np.zeros((0, 3072), np.uint8)), "no images in it"),
        (_changed("meta", "fine_label_names", None), "class names missing"),
        (_changed("meta", "coarse_label_names", None), "class names missing"),
    ],
)
def test_wrong_content_is_one_line_with_the_file(
    tmp_path: Path, change: Callable[[Files], None], words: str
) -> None:
    files = _files(CIFAR100)
    change(files)
    place = _write(tmp_path, CIFAR100, files)
    with pytest.raises(UsageError, match=words) as caught:
        load_images("cifar100", tmp_path)
    assert str(place) in str(caught.value) and "\n" not in str(caught.value)


def test_files_without_names_have_no_nouns(tmp_path: Path) -> None:
    files = _files(CIFAR10)
    del files["test_batch"][b"filenames"]
    _write(tmp_path, CIFAR10, files)
    data = load_images("cifar10", tmp_path)
    assert data.test.files is None and not data.test.levels
    assert data.train.files is not None


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_truncated_files_are_told(tmp_path: Path, share: float) -> None:
    place = _write(tmp_path, CIFAR10, _files(CIFAR10))
    batch = place / "data_batch_2"
    batch.write_bytes(batch.read_bytes()[: int(share * batch.stat().st_size)])
    with pytest.raises(UsageError, match="data_batch_2: [^\n]*$"):
        load_images("cifar10", tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_truncated_archives_are_told(tmp_path: Path, share: float) -> None:
    archive = _pack(tmp_path, CIFAR100, _files(CIFAR100))
    archive.write_bytes(archive.read_bytes()[: int(share * archive.stat().st_size)])
    with pytest.raises(UsageError, match="cifar-100-python.tar.gz: [^\n]*$"):
        load_images("cifar100", tmp_path)


def test_an_archive_of_something_else_is_told(tmp_path: Path) -> None:
    files = _files(CIFAR100)
    del files["meta"]
    _pack(tmp_path, CIFAR100, files)
    with pytest.raises(UsageError, match="meta missing in it"):
        load_images("cifar100", tmp_path)


class _Evil:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def test_an_evil_batch_is_refused_and_not_run(tmp_path: Path) -> None:
    files = _files(CIFAR10)
    files["data_batch_4"][b"data"] = _Evil(f"touch {tmp_path / 'run'}")
    _write(tmp_path, CIFAR10, files)
    with pytest.raises(UsageError, match=r"data_batch_4: refused, .*\.system"):
        load_images("cifar10", tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("file", "noun"),
    [
        ("automobile_s_000124.png", "automobile"),
        ("fire_engine_s_001.png", "fire_engine"),
        ("manual-skunk044.png", "skunk"),
        ("manual2-skunk06.png", "skunk"),
        ("plain.png", "plain"),
        ("noending", "noending"),
    ],
)
def test_nouns(file: str, noun: str) -> None:
    assert noun_of(file) == noun
