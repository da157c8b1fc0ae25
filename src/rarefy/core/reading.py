"""Files of strangers: wrong ones are one kind of error, and small ones take little memory."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarefy.core.errors import UsageError

if TYPE_CHECKING:
    import torch

MOST_BYTES, MOST_PARTS, LONGEST_NAME = 1 << 28, 1_000_000, 100
"""What a tensor may take beyond what the file has of it; lists and dictionaries in one file;
letters of a function's name."""


UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""The marks with which spreadsheets begin a text of two bytes per letter."""


def read_text(path: Path | str) -> str:
    """A text about files and classes, whose names may hold bytes that are no text."""
    try:
        content = Path(path).read_bytes()
        wide = content[:2] in UTF16
        text = content.decode("utf-16") if wide else content.decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise UsageError(f"cannot read {path} ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is no text in UTF-16, though marked so") from None
    if "\0" in text:
        raise UsageError(f"{path}: holds zero bytes, as no text in UTF-8 does")
    return text


def read_json(path: Path | str) -> Any:
    """What a JSON file holds; ``OSError`` if it cannot be opened, ``ValueError`` in few words if it
    is no JSON."""
    content = Path(path).read_bytes()
    try:
        return json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError:
        raise
    except UnicodeDecodeError:
        raise ValueError("is no text in UTF-8") from None
    except ValueError:  # (which says how to let Python read on)
        raise ValueError("holds a number of thousands of digits") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


@contextmanager
def quietly() -> Iterator[None]:
    """NumPy and PyTorch warn of an odd file before they refuse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_tensors(path: Path | str, device: torch.device | str = "cpu") -> Any:
    """What ``torch.save`` wrote, without running anything that it names. Wrong bytes fail in
    whatever meets them first; so do files that would take far more memory than they are large."""
    import torch

    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        packed = any(member.compress_type for member in members)
        packed |= sum(member.file_size for member in members) > os.path.getsize(path)
        file.seek(0)
        # (a tar file with a zip file at its end is both, and PyTorch unpacks the former)
        if packed or file.read(4) != b"PK\x03\x04":
            raise ValueError("is packed as PyTorch packs no file")
        for member in members:
            if member.filename.endswith("data.pkl"):
                with quietly():
                    _check_names(archive.read(member))
    try:
        with quietly():
            found = torch.load(path, map_location=device, weights_only=True)
    except pickle.UnpicklingError:  # (whose text says how to run what is in it)
        raise ValueError("holds more than tensors and plain data, which is not loaded") from None
    _check_parts(found)
    return found


def _check_names(content: bytes) -> None:
    """In a complaint about a name PyTorch searches for as long as the cube of its letters."""
    for code, argument, _ in pickletools.genops(content):
        if code.name in ("GLOBAL", "INST") and len(str(argument)) > LONGEST_NAME:
            raise ValueError("names what no file of PyTorch does")


def _check_parts(found: Any) -> None:
    """A tensor may repeat one number without end, and a list of two lists of two lists ... is
    written in a few bytes: nobody could copy the one or look at all of the other."""
    import torch

    waiting, parts = [found], 0
    while waiting:
        part = waiting.pop()
        if isinstance(part, torch.Tensor) and part.layout is torch.strided:
            spread = part.numel() * part.element_size()
            if spread > max(MOST_BYTES, part.untyped_storage().nbytes()):
                raise ValueError("holds a tensor that is larger than its bytes")
        elif isinstance(part, torch.TypedStorage | torch.UntypedStorage):
            raise ValueError("holds bytes without a tensor")
        elif isinstance(part, dict | list | tuple | set):
            parts += 1
            waiting += part.values() if isinstance(part, dict) else part
            if parts > MOST_PARTS:
                raise ValueError("holds lists in lists without end")
