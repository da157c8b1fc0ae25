"""Who is whose parent, and the levels that chains of parents make.

Level k of a class is its k-th ancestor, or the last one where its branch is shorter (as Hong et
al., 004, take WordNet's ancestors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.attaching import Annotations, note_of_ignored, put_once
from rarefy.data.hierarchy.levels import CLASS

Pair = tuple[str, str]
"""Child, parent."""


def level_name(above: int) -> str:
    """``parent``, ``grandparent``, ``ancestor-3``, ..."""
    return {1: "parent", 2: "grandparent"}.get(above, f"ancestor-{above}")


def one_parent_each(pairs: Iterable[Pair], where: str) -> dict[str, str]:
    """Parent by child; an error names a child with two parents, or with an empty one."""
    parents: dict[str, str] = {}
    for child, parent in pairs:
        put_once(parents, child, parent, where, "parent")
    return parents


def chain_levels(parents: Mapping[str, str], classes: Sequence[str], where: str) -> Annotations:
    """As many levels as the longest chain above a class has links."""
    _check_no_cycle(parents, where)
    chains = {one: _ancestors(one, parents) for one in classes if one in parents}
    depth = max(map(len, chains.values()), default=1)
    used = {*chains, *(one for chain in chains.values() for one in chain)}
    return Annotations(
        where,
        {
            level_name(above): {
                one: chain[min(above, len(chain)) - 1] for one, chain in chains.items()
            }
            for above in range(1, depth + 1)
        },
        notes=tuple(note_of_ignored(parents.keys() - used, CLASS, where)),
    )


def _ancestors(name: str, parents: Mapping[str, str]) -> list[str]:
    chain = []
    while name in parents:
        name = parents[name]
        chain.append(name)
    return chain


def _check_no_cycle(parents: Mapping[str, str], where: str) -> None:
    safe: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        name = start
        while name in parents and name not in safe:
            if name in path:
                names = list(path)
                cycle = " > ".join([*names[names.index(name) :][:5], name])
                raise UsageError(f"{where}: {name!r} is its own ancestor ({cycle})")
            path[name] = None
            name = parents[name]
        safe.update(path)
