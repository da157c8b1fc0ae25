"""Every figure and theorem family is a study: a folder ``<laboratory>/<study>/`` with ``study.py``,
``claims.py``, ``charts.py`` and what else it needs. Putting a folder there registers it.

What a study is about is read from the source of ``study.py``: listing the studies imports none of
them, and using one imports that one. Studies of other packages are found through the entry-point
group ``rarefy.studies``.
"""

from __future__ import annotations

import ast
import inspect
import logging
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarefy.core.errors import RunError, unknown

if TYPE_CHECKING:
    from rarefy.core.contracts import Study

ENTRY_POINT_GROUP = "rarefy.studies"
_FIELDS = ("name", "title", "papers", "shows", "claims", "needs", "headline")
_log = logging.getLogger("rarefy")


@dataclass(frozen=True)
class Entry:
    """A study as it is listed."""

    module: str
    kind: str
    """name of its class"""
    lab: str
    """the laboratory that it belongs to, or the package that it comes from"""
    name: str
    title: str
    papers: tuple[str, ...] = ()
    shows: str = ""
    claims: tuple[str, ...] = ()
    needs: str = "nothing but a CPU"
    headline: bool = False
    loaded: type[Study] | None = None
    """the study, where it was imported already"""

    @classmethod
    def of(cls, kind: type[Study]) -> Entry:
        """A study that is there already, of another package."""
        told = {name: getattr(kind, name) for name in _FIELDS if hasattr(kind, name)}
        lab = kind.__module__.partition(".")[0]
        return cls(kind.__module__, kind.__qualname__, lab, loaded=kind, **told)

    def load(self) -> type[Study]:
        found: type[Study] = self.loaded or getattr(import_module(self.module), self.kind)
        return found


@cache
def listed() -> dict[str, Entry]:
    """Every study there is, by name. A broken study of another package gives a warning line."""
    found = {}
    for path in Path(__file__).parent.glob("*/*/study.py"):
        lab, folder = path.parts[-3:-1]
        module = f"{__name__}.{lab}.{folder}.study"
        try:
            for kind in ast.parse(path.read_text("utf-8")).body:
                told = _told(kind) if isinstance(kind, ast.ClassDef) else {}
                if isinstance(kind, ast.ClassDef) and "name" in told:
                    if told["name"] in found:
                        raise ValueError(f"a study {told['name']!r} exists already")
                    found[told["name"]] = Entry(module, kind.name, lab, **told)
        except (SyntaxError, ValueError, TypeError) as error:
            raise RunError(
                f"cannot read what {lab}/{folder}/study.py says of its study (name, title and the "
                f"like must be plain texts): {error}"
            ) from error
    for entry in _foreign():
        if entry.name in found:
            _log.warning("entry point %s: a study %r exists already", entry.module, entry.name)
        else:
            found[entry.name] = entry
    return dict(sorted(found.items()))


def _told(kind: ast.ClassDef) -> dict[str, Any]:
    """What a study says of itself in plain texts."""
    found = {}
    for line in kind.body:
        if not isinstance(line, ast.AnnAssign | ast.Assign):
            continue
        target: ast.expr = line.target if isinstance(line, ast.AnnAssign) else line.targets[0]
        if isinstance(target, ast.Name) and target.id in _FIELDS and line.value is not None:
            found[target.id] = ast.literal_eval(line.value)
    return found


def _foreign() -> list[Entry]:
    found = []
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            kind = entry.load()
        except Exception as error:
            # anything may happen while a stranger's module is imported; ours must go on
            reason = f"{type(error).__name__}: {error}"
            _log.warning("study %r cannot be loaded: %s", entry.name, reason)
            continue
        if not _is_study(kind):
            _log.warning("entry point %r is not a study: %r", entry.name, kind)
            continue
        found.append(Entry.of(kind))
    return found


def _is_study(found: object) -> bool:
    from rarefy.core.contracts import Study

    if not inspect.isclass(found) or not issubclass(found, Study):
        return False
    # a shared base class without a name is not a study of its own
    return not inspect.isabstract(found) and hasattr(found, "name")


def get_study(name: str) -> type[Study]:
    """The study of this name; no other is imported."""
    if name not in listed():
        raise unknown("study", name, listed())
    return listed()[name].load()


def load_studies() -> dict[str, type[Study]]:
    """Every study by name, all imported."""
    return {name: entry.load() for name, entry in listed().items()}
