"""JSON: ``{child: parent}``, or nested with the children inside their parents."""

from __future__ import annotations

import json
from typing import Any

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.parent_map import Pair


def parse_json(text: str, where: str) -> dict[str, Any]:
    """The object in a file; a name that stands twice in one is an error, as no reader can tell
    which is meant."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if found.setdefault(name, value) != value:
                raise UsageError(f"{where}: {name!r} stands twice, with different content")
        return found

    try:
        held = json.loads(text, object_pairs_hook=once)
        # half a character, which no file's name leaves, can be written nowhere
        json.dumps(held, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: is no JSON ({error})") from None
    if not isinstance(held, dict) or not held:
        raise UsageError(f"{where}: must be a JSON object, as {{child: parent}}")
    return held


def json_pairs(held: dict[str, Any], where: str) -> list[Pair]:
    """(child, parent) pairs of either form."""
    if all(_is_name(value) for value in held.values()):
        return [(name.strip(), str(value).strip()) for name, value in held.items()]
    pairs: list[Pair] = []
    # a stack of its own: files may be nested deeper than Python calls itself
    waiting = [(name.strip(), below) for name, below in held.items()]
    while waiting:
        parent, below = waiting.pop()
        for name, further in _entries(parent, below, where):
            pairs.append((name, parent))
            waiting.append((name, further))
    return pairs


def _entries(parent: str, below: Any, where: str) -> list[tuple[str, Any]]:
    """The children of an object or a list (of names and objects), each with what is below it."""
    if below is None:
        return []
    if not isinstance(below, dict | list):
        raise UsageError(f"{where}: {parent!r} must hold an object or a list, not {below!r:.40}")
    items = [below] if isinstance(below, dict) else below
    entries: list[tuple[str, Any]] = []
    for item in items:
        if isinstance(item, dict):
            entries += [(name.strip(), further) for name, further in item.items()]
        elif _is_name(item):
            entries.append((str(item).strip(), None))
        else:
            raise UsageError(f"{where}: {parent!r} holds {item!r:.40}, which is no name")
    return entries


def _is_name(value: Any) -> bool:
    return isinstance(value, str) or type(value) is int
