"""Splits as files: JSON of content ids, and lists of file names as ImageNet-LT has them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.reading import read_json, read_text
from rarefy.core.text import printable
from rarefy.core.writing import write_output
from rarefy.data.images.ids import DIGEST_BYTES, MARK
from rarefy.data.images.image_set import ImageSet
from rarefy.data.images.listing import counted, listed
from rarefy.data.longtail.order import rank_classes
from rarefy.data.longtail.split import EXAMPLES, LongTailSplit

FORMAT = "rarefy long-tail split"
VERSION = 1
TESTED = " (images taken for testing count as not there: give the folder train/ and test/ parts)"
_ID = re.compile(rf"[0-9a-f]{{{2 * DIGEST_BYTES}}}({MARK}[1-9][0-9]*)?")


def save_split(split: LongTailSplit, path: Path | str, overwrite: bool = False) -> None:
    """Write the file, whole or not at all: one that was there is replaced in one step."""
    path = Path(path)
    classes, start = [], 0
    for label, count in zip(split.order, split.counts, strict=True):
        classes.append({"class": label, "count": count, "ids": split.ids[start : start + count]})
        start += count
    held = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": split.fingerprint,
        "about": dict(split.about),
        "classes": classes,
    }
    try:
        text = json.dumps(held, indent=1)
    except (TypeError, ValueError) as error:
        raise bad_value("about", dict(split.about), f"cannot be written as JSON: {error}") from None
    write_output(path, text + "\n", split.fingerprint, overwrite)


def load_split(path: Path | str) -> LongTailSplit:
    """Read what ``save_split`` wrote. A file without a fingerprint (made by another program) is
    taken as it is; one that does not fit its fingerprint is refused."""
    held = _read(Path(path))
    about = held.get("about", {})
    if not isinstance(about, dict):
        raise _damaged(path, "'about' must be an object")
    blocks = held.get("classes")
    if not isinstance(blocks, list) or not blocks:
        raise _damaged(path, "'classes' must be a list of at least one class")
    ids: list[str] = []
    order, counts = [], []
    for rank, block in enumerate(blocks):
        label, some = _block(path, rank, block)
        order.append(label)
        counts.append(len(some))
        ids += some
    try:
        split = LongTailSplit(tuple(ids), tuple(counts), tuple(order), about)
    except UsageError as error:
        raise _damaged(path, str(error)) from None
    if held.get("fingerprint", split.fingerprint) != split.fingerprint:
        raise _damaged(path, "its content does not fit its fingerprint (edited by hand?)")
    return split


def read_list(path: Path | str) -> list[tuple[str, int]]:
    """File names and labels of a text file with ``relative/path.JPEG label`` on each line."""
    entries = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        name, _, label = line.strip().replace("\t", " ").rpartition(" ")
        if not (name.strip() and label.isascii() and label.isdigit() and len(label) < 19):
            raise UsageError(
                f"{path}, line {number}: must be a file name and a label from 0 on, "
                f"not {printable(line.strip())[:60]!r}"
            )
        entries.append((name.strip(), int(label)))
    if not entries:
        raise UsageError(f"{path} lists no images")
    return entries


def split_from_list(entries: Sequence[tuple[str, int]], images: ImageSet) -> LongTailSplit:
    """The split that a list names, matched by file name.

    A name is matched exactly, or by the end of one path being the whole of the other
    (``train/cat/1.png`` and ``cat/1.png``), if that fits a single file. Labels may be numbered
    otherwise than ours, but must group the images alike. The class with most images is the head.
    """
    if images.files is None:
        raise bad_value("images", repr(images), "have no file names, which a list is matched by")
    if not entries:
        raise bad_value("entries", entries, "at least one image is needed")
    places = _matched([name for name, _ in entries], images.files)
    _check_labels([label for _, label in entries], images.labels[places].tolist(), images.classes)
    members: dict[int, list[str]] = {}
    for place, label in zip(places, images.labels[places].tolist(), strict=True):
        members.setdefault(label, []).append(images.ids[place])
    counts, order = rank_classes(
        [len(members.get(label, ())) for label in range(len(images.classes))]
    )
    return LongTailSplit(
        tuple(identity for label in order for identity in members[label]),
        counts,
        order,
        {"classes": [images.classes[label] for label in order], "from": "a list of files"},
    )


# ------------------------------------------------------------------------------------------- inside


def _matched(names: Sequence[str], files: Sequence[str]) -> list[int]:
    """The place of each name among the files; all that fail are told at once."""
    exact = {file: place for place, file in enumerate(files)}
    ends: dict[str, list[int]] = {}
    for place, file in enumerate(files):
        for end in _ends(file):
            ends.setdefault(end, []).append(place)
    places, missing, unclear = [], [], []
    for name in names:
        fits = [exact[name]] if name in exact else list(ends.get(name, ()))
        if not fits:
            fits = [exact[end] for end in _ends(name) if end in exact]
        if len(fits) == 1:
            places.append(fits[0])
        elif fits:
            unclear.append(f"{printable(name)} ({len(fits)} files)")
        else:
            missing.append(printable(name))
    for what, some in (("fit no file", missing), ("fit several files", unclear)):
        if some:
            raise UsageError(
                f"names of the list that {what} of this set: {len(some)} of {len(names)}: "
                f"{listed(some, EXAMPLES)}" + (TESTED if what == "fit no file" else "")
            )
    twice = [printable(files[place]) for place, times in Counter(places).items() if times > 1]
    if twice:
        raise UsageError(f"{counted(len(twice), 'file')} listed twice: {listed(twice, EXAMPLES)}")
    return places


def _ends(name: str) -> list[str]:
    """``b/c`` and ``c`` of ``a/b/c``."""
    parts = name.split("/")
    return ["/".join(parts[first:]) for first in range(1, len(parts))]


def _check_labels(theirs: list[int], ours: list[int], classes: tuple[str, ...]) -> None:
    pairs = sorted(set(zip(theirs, ours, strict=True)))
    wrong = []
    for label, times in Counter(label for label, _ in pairs).items():
        if times > 1:
            names = " and ".join(repr(classes[mine]) for one, mine in pairs if one == label)
            wrong.append(f"its label {label} is {names} here")
    for mine, times in Counter(mine for _, mine in pairs).items():
        if times > 1:
            labels = " and ".join(str(label) for label, one in pairs if one == mine)
            wrong.append(f"our {classes[mine]!r} has its labels {labels}")
    if wrong:
        raise UsageError(f"the list groups the images otherwise: {listed(wrong, EXAMPLES)}")


def _read(path: Path) -> dict[str, Any]:
    try:
        held = read_json(path)
    except OSError as error:
        raise UsageError(f"cannot read {path} ({error.strerror or error})") from None
    except ValueError as error:
        raise UsageError(f"{path} is no split file, or cut short: not JSON ({error})") from None
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise UsageError(f'{path} is no split file: it has no "format": "{FORMAT}"')
    if held.get("version") != VERSION:
        raise UsageError(
            f"{path} is of version {held.get('version')!r} of the format; "
            f"this rarefy reads version {VERSION}"
        )
    return held


def _block(path: Path | str, rank: int, block: Any) -> tuple[int, list[str]]:
    """The class at one rank and its ids."""
    where = f"classes[{rank}]"
    if not isinstance(block, dict):
        raise _damaged(path, f"{where} must be an object")
    label, some = block.get("class"), block.get("ids")
    if type(label) is not int:
        raise _damaged(path, f"{where} has the class {label!r}, not a whole number")
    if not isinstance(some, list):
        raise _damaged(path, f"{where} has no list of ids")
    for identity in some:
        if not (isinstance(identity, str) and _ID.fullmatch(identity)):
            raise _damaged(path, f"{where} has {identity!r:.60}, which is no content id")
    if block.get("count", len(some)) != len(some):
        raise _damaged(path, f"{where} says {block['count']!r} ids and has {len(some)}")
    return label, some


def _damaged(path: Path | str, why: str) -> UsageError:
    return UsageError(f"{path} is damaged: {why}")
