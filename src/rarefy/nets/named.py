"""What a text names that is no network of ours: ``module:callable``, or one of a library."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch import nn

from rarefy.core.errors import UsageError, bad_value

LIBRARIES = ("timm", "torchvision")
"""Whose networks are made by name, ``timm:resnet34``; imported when one is asked for."""
NEAREST = 3
"""Names that are suggested."""


@contextlib.contextmanager
def current_folder_importable() -> Iterator[None]:
    """Modules of the current folder can be imported, as ``python -m`` lets them."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    importlib.invalidate_caches()  # the file may have been written a moment ago
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def named_callable(name: str) -> Callable[..., object]:
    """What ``module:callable`` names."""
    where, _, what = name.partition(":")
    if where.endswith(".py") or os.sep in where:
        raise bad_value("network", name, "before the colon stands a module (nets.mine), not a file")
    if not all(part.isidentifier() for part in (*where.split("."), *what.split("."))):
        raise bad_value("network", name, "must be module:callable, such as my_nets:small")
    found: Any = _imported(name, where, "neither installed nor in this folder")
    for part in what.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise bad_value("network", name, f"there is no {part!r} in {where!r}{hint}")
        found = getattr(found, part)
    if isinstance(found, nn.Module):  # callable, but one network for all seeds
        raise bad_value("network", name, "is a network; name the class or function that makes one")
    if not callable(found):
        raise bad_value("network", name, f"is not callable, but {type(found).__name__}")
    checked: Callable[..., object] = found
    return checked


def _imported(name: str, where: str, absent: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise _no_import(name, where, error) from error  # it imports something missing
        raise bad_value("network", name, f"no module {error.name!r}, {absent}") from error
    except (Exception, SystemExit) as error:
        raise _no_import(name, where, error) from error


def _no_import(name: str, where: str, error: BaseException) -> UsageError:
    words = f"importing {where!r} raised {in_a_line(error)}"
    fit = f"; it must be one that fits torch {torch.__version__}" if where in LIBRARIES else ""
    return bad_value("network", name, words + fit)


def in_a_line(error: BaseException) -> str:
    """Its kind and the first line of its text."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    return f"{kind}: {lines[0][:200]}" if lines else kind


# ---------------------------------------------------------------------------------------- libraries


def is_library(name: str) -> bool:
    """Whether it is one of timm or torchvision."""
    return name.partition(":")[0] in LIBRARIES


def library_version(name: str) -> str:
    """Of the library that the network is from."""
    return str(getattr(_library(name), "__version__", "version unknown"))


def library_maker(name: str) -> Callable[..., object]:
    """What makes the network: never with weights of somebody's training, nothing is downloaded.
    ``in_chans`` is for timm alone; torchvision's networks take three channels."""
    library, (source, _, model) = _library(name), name.partition(":")
    if source == "timm":
        _need_model(name, model, library.is_model(model), library.list_models)

        def of_timm(in_chans: int, num_classes: int) -> object:
            given = {"in_chans": in_chans, "num_classes": num_classes}
            return library.create_model(model, pretrained=False, **given)

        return of_timm
    names = library.models.list_models(module=library.models)  # (of the others none classifies)
    _need_model(name, model, model in names, lambda: names)

    def of_torchvision(num_classes: int) -> object:
        return library.models.get_model(model, weights=None, num_classes=num_classes)

    return of_torchvision


def _library(name: str) -> Any:
    where = name.partition(":")[0]
    return _imported(name, where, f"which is optional: pip install {where}")


def _need_model(name: str, model: str, known: bool, names: Callable[[], list[str]]) -> None:
    if not known:
        library = name.partition(":")[0]
        near = difflib.get_close_matches(model, names(), n=NEAREST)
        hint = f"nearest: {', '.join(near)}" if near else f"{library}'s list_models() has them all"
        raise bad_value("network", name, f"{library} has no classifier of images {model!r}; {hint}")
