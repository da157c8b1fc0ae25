"""One file a figure or theorem family, one package a laboratory; putting a file there is enough
to register its study.

Studies of other packages are found through the entry-point group ``rarefy.studies``.
"""

from __future__ import annotations

import inspect
import logging
import pkgutil
from importlib import import_module
from importlib.metadata import entry_points
from typing import TypeGuard

from rarefy.core.contracts import Study
from rarefy.core.errors import unknown

ENTRY_POINT_GROUP = "rarefy.studies"
_log = logging.getLogger("rarefy")


def load_studies() -> dict[str, type[Study]]:
    """Every study there is, by name. A broken study of another package gives a warning line."""
    studies: dict[str, type[Study]] = {}
    for module_info in pkgutil.walk_packages(__path__, f"{__name__}."):
        if module_info.name.rpartition(".")[2].startswith("_"):
            continue  # what several studies share
        module = import_module(module_info.name)
        for found in vars(module).values():
            # studies imported from elsewhere (a base, a sibling) belong to their own file
            if _is_study(found) and found.__module__ == module.__name__:
                studies[found.name] = found
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            found = entry.load()
        except Exception as error:
            # anything may happen while a stranger's module is imported; ours must go on
            _log.warning("study %r cannot be loaded: %s: %s", entry.name, _kind(error), error)
            continue
        if not _is_study(found):
            _log.warning("entry point %r is not a study: %r", entry.name, found)
        elif studies.setdefault(found.name, found) is not found:
            _log.warning("entry point %r: a study %r exists already", entry.name, found.name)
    return dict(sorted(studies.items()))


def get_study(name: str) -> type[Study]:
    studies = load_studies()
    if name not in studies:
        raise unknown("study", name, studies)
    return studies[name]


def _is_study(found: object) -> TypeGuard[type[Study]]:
    if not inspect.isclass(found) or not issubclass(found, Study):
        return False
    # a shared base class without a name is not a study of its own
    return not inspect.isabstract(found) and hasattr(found, "name")


def _kind(error: Exception) -> str:
    return type(error).__name__
