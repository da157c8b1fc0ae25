"""Split files: there and back, damaged, foreign; and lists of file names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from folders import seen_in

from rarefy.core.errors import RunError, UsageError
from rarefy.data.images import ImageSet
from rarefy.data.longtail import LongTailSplit, control, load_split, make_split, save_split
from rarefy.data.longtail.split_file import read_list, split_from_list

COUNTS = {"cat": 4, "dog": 2, "owl": 3}


def _images(start: str = "train/") -> ImageSet:
    random = np.random.default_rng(0)
    names = [f"{start}{name}/{number}.JPEG" for name in COUNTS for number in range(4)]
    pixels = random.integers(0, 256, (len(names), 1, 2, 2), dtype=np.uint8)
    labels = torch.arange(3).repeat_interleave(4)
    return ImageSet(torch.from_numpy(pixels), labels, tuple(COUNTS), tuple(names))


def _lines(start: str = "train/") -> list[tuple[str, int]]:
    return [
        (f"{start}{name}/{number}.JPEG", label)
        for label, (name, count) in enumerate(COUNTS.items())
        for number in range(count)
    ]


@pytest.fixture
def split() -> LongTailSplit:
    return make_split(_images(), (4, 2, 1), (2, 0, 1), 7)


def test_there_and_back(tmp_path: Path, split: LongTailSplit) -> None:
    path = tmp_path / "new" / "split.json"
    save_split(split, path)
    found = load_split(str(path))
    assert found == split and found.about == split.about
    edited = tmp_path / "edited.json"
    edited.write_text("\ufeff" + path.read_text("utf-8"), "utf-8")  # as some editors save it
    assert load_split(edited) == split
    assert torch.equal(found.take(_images()).images, split.take(_images()).images)
    save_split(control(split, _images()), path)
    assert load_split(path).counts == (2, 2, 2)
    assert [file.name for file in seen_in(path.parent)] == ["split.json"]


def test_names_that_are_no_text_survive(tmp_path: Path, split: LongTailSplit) -> None:
    odd = LongTailSplit(split.ids, split.counts, split.order, {"classes": ["caf\udce9", "ü"]})
    save_split(odd, tmp_path / "split.json")
    assert load_split(tmp_path / "split.json") == odd


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, split: LongTailSplit, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "split.json"
    save_split(split, path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(RunError, match=r"cannot write .*split.json: No space left on device"):
        save_split(control(split, _images()), path)
    assert path.read_bytes() == before and seen_in(tmp_path) == [path]
    with pytest.raises(RunError, match="cannot write"):
        save_split(split, path / "below" / "a file.json")
    unwritable = LongTailSplit(split.ids, split.counts, split.order, {"what": {1, 2}})
    with pytest.raises(UsageError, match="about=.*: cannot be written as JSON: .*set"):
        save_split(unwritable, path)
    assert path.read_bytes() == before


def _drop_an_id(held: dict[str, Any]) -> None:
    held["classes"][0]["ids"].pop()


def _drop_an_id_and_count(held: dict[str, Any]) -> None:
    held["classes"][0]["ids"].pop()
    held["classes"][0]["count"] -= 1


def _repeat_an_id(held: dict[str, Any]) -> None:
    held["classes"][0]["ids"][1] = held["classes"][0]["ids"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.update(format="other"), 'is no split file: it has no "format"'),
        (
            lambda held: held.update(version=2),
            "version 2 of the format; this rarefy reads version 1",
        ),
        (lambda held: held.pop("version"), "is of version None"),
        (lambda held: held.update(about=[]), "is damaged: 'about' must be an object"),
        (lambda held: held.update(classes=[]), "'classes' must be a list of at least one class"),
        (lambda held: held.pop("classes"), "'classes' must be a list"),
        (lambda held: held["classes"].insert(1, 3), r"classes\[1\] must be an object"),
        (lambda held: held["classes"][1].update({"class": "0"}), r"classes\[1\] has the class '0'"),
        (lambda held: held["classes"][1].pop("ids"), r"classes\[1\] has no list of ids"),
        (lambda held: held["classes"][2]["ids"].append(17), r"classes\[2\] has 17, which is no"),
        (
            lambda held: held["classes"][2]["ids"].append("x" * 99),
            r"classes\[2\] has 'x{59}, which",
        ),
        (_drop_an_id, r"classes\[0\] says 4 ids and has 3"),
        (_drop_an_id_and_count, "does not fit its fingerprint"),
        (_repeat_an_id, "is damaged: ids='7 ids': must differ, 1 stand twice"),
        (lambda held: held["classes"].reverse(), r"counts\[1\]=2: must be at most 1"),
        (lambda held: held["classes"][1].update({"class": 2}), "order=.* different classes"),
        (lambda held: held.update(fingerprint="0"), "does not fit its fingerprint"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(
    tmp_path: Path, split: LongTailSplit, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "split.json"
    save_split(split, path)
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))
    with pytest.raises(UsageError, match=message) as caught:
        load_split(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_of_another_program_needs_no_fingerprint(
    tmp_path: Path, split: LongTailSplit
) -> None:
    save_split(split, tmp_path / "split.json")
    held = json.loads((tmp_path / "split.json").read_text())
    for key in ("fingerprint", "about"):
        del held[key]
    for block in held["classes"]:
        del block["count"]
    (tmp_path / "split.json").write_text(json.dumps(held))
    assert load_split(tmp_path / "split.json").fingerprint == split.fingerprint


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\xff", b"[" * 100_000, b"[]", b"null", b"7"])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="photo.png is no split file"):
        load_split(path)


def test_a_file_that_is_cut_short(tmp_path: Path, split: LongTailSplit) -> None:
    path = tmp_path / "split.json"
    save_split(split, path)
    whole = path.read_text()
    for length in range(1, len(whole.rstrip()), 37):
        path.write_text(whole[:length])
        with pytest.raises(UsageError, match=r"cut short: not JSON \(.*: line \d+ "):
            load_split(path)
    with pytest.raises(UsageError, match=r"cannot read .*none.json \(No such file"):
        load_split(tmp_path / "none.json")


# --------------------------------------------------------------------------------- lists of files


def test_a_list_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ImageNet_LT_train.txt"
    lines = "\ufefftrain/n01/n01_190.JPEG 0\r\n\n  train/n02/a b.JPEG\t12 \ntrain/caf\udce9.JPEG 3"
    path.write_bytes(lines.encode("utf-8", "surrogateescape"))
    assert read_list(path) == [
        ("train/n01/n01_190.JPEG", 0),
        ("train/n02/a b.JPEG", 12),
        ("train/caf\udce9.JPEG", 3),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a/b.JPEG 1\na/b.JPEG\n", "line 2: must be a file name and a label .*, not 'a/b.JPEG'"),
        (b"a/b.JPEG -1\n", "line 1: must be a file name and a label from 0 on"),
        (b"a/b.JPEG 1.0\n", "line 1"),
        ("a/b.JPEG ²\n".encode(), "line 1"),
        (b"12\n", "line 1"),
        (b"\xff\xd8\xff\xe0\x10JFIF", r"line 1: .* not '\\\\xff"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "holds zero bytes"),
        (b" \n\n", "lists no images"),
    ],
)
def test_a_wrong_list_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_list(path)
    assert "\n" not in str(caught.value) and "list.txt" in str(caught.value)
    with pytest.raises(UsageError, match="cannot read"):
        read_list(tmp_path)


@pytest.mark.parametrize("theirs", ["train/", "", "data/ILSVRC/train/", "/abs/train/", "./train/"])
@pytest.mark.parametrize("ours", ["train/", "", "imagenet/train/"])
def test_a_list_is_matched_by_the_ends_of_names(theirs: str, ours: str) -> None:
    if ours == "imagenet/train/" and theirs not in ("train/", ""):
        with pytest.raises(UsageError, match="that fit no file of this set: 9 of 9: "):
            split_from_list(_lines(theirs), _images(ours))
        return
    images = _images(ours)
    split = split_from_list(_lines(theirs), images)
    assert split.counts == (4, 3, 2) and split.order == (0, 2, 1)
    assert split.about["classes"] == ["cat", "owl", "dog"]
    part = split.take(images)
    assert part.files is not None
    assert {file.removeprefix(ours) for file in part.files} == {name for name, _ in _lines("")}
    assert control(split, images).counts == (3, 3, 3)


def test_an_exact_name_comes_before_its_ends() -> None:
    pixels = torch.arange(4, dtype=torch.uint8).reshape(4, 1, 1, 1)
    files = ("a/x.png", "b/a/x.png", "x.png", "y.png")
    images = ImageSet(pixels, torch.tensor([0, 0, 1, 1]), ("p", "q"), files)
    split = split_from_list([("a/x.png", 0), ("x.png", 1)], images)
    assert split.take(images).files == ("a/x.png", "x.png")
    message = r"that fit several files of this set: 1 of 1: z/b/a/x.png \(3 files\)"
    with pytest.raises(UsageError, match=message):
        split_from_list([("z/b/a/x.png", 0)], images)


def test_labels_may_be_numbered_otherwise_but_not_grouped_otherwise() -> None:
    images = _images()
    renamed = [(name, {0: 70, 1: 3, 2: 0}[label]) for name, label in _lines()]
    assert split_from_list(renamed, images) == split_from_list(_lines(), images)
    swapped = [*_lines()[:-1], (_lines()[-1][0], 0)]
    message = "the list groups the images otherwise: its label 0 is 'cat' and 'owl' here; our 'owl'"
    with pytest.raises(UsageError, match=message + " has its labels 0 and 2"):
        split_from_list(swapped, images)


def test_what_a_list_and_a_set_do_not_share_is_told() -> None:
    images = _images()
    more = [*_lines(), *((f"train/cat/new{number}.JPEG", 0) for number in range(5))]
    message = r"that fit no file of this set: 5 of 14: .*new0.*new2.JPEG; and 2 more \(images taken"
    with pytest.raises(UsageError, match=message):
        split_from_list(more, images)
    with pytest.raises(UsageError, match="1 file listed twice: train/cat/0.JPEG"):
        split_from_list([*_lines(), ("cat/0.JPEG", 0)], images)
    with pytest.raises(UsageError, match="at least one image is needed"):
        split_from_list([], images)
    nameless = ImageSet(images.images, images.labels, images.classes)
    with pytest.raises(UsageError, match="have no file names, which a list is matched by"):
        split_from_list(_lines(), nameless)
