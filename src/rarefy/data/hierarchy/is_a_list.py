"""Is-a lists as WordNet and ImageNet have them: ``PARENT CHILD`` on each line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.attaching import Annotations
from rarefy.data.hierarchy.parent_map import Pair, chain_levels, one_parent_each

SYNSET = re.compile(r"[nvars]\d{8}")
WORDS = "words.txt"
"""Beside the list: ``synset<TAB>names`` on each line."""


def read_is_a(text: str, words: str, where: str, classes: Sequence[str]) -> Annotations:
    """A list of synsets is WordNet's, where several parents are natural and the first is taken;
    in any other list a second parent is an error. ``words``: the text of ``words.txt``, or none."""
    pairs = _pairs(text, where)
    if not all(SYNSET.fullmatch(name) for pair in pairs for name in pair):
        return chain_levels(one_parent_each(pairs, where), classes, where)
    parents: dict[str, str] = {}
    for child, parent in pairs:
        parents.setdefault(child, parent)
    several = sum(count > 1 for count in Counter(child for child, _ in set(pairs)).values())
    found = chain_levels(parents, classes, where)
    note = f"{where}: {several} synsets have several parents, the first in the list was taken"
    names = _readable(words, {*parents, *parents.values()})
    levels = {
        level: {child: names.get(label, label) for child, label in labels.items()}
        for level, labels in found.levels.items()
    }
    return replace(found, levels=levels, notes=(*found.notes, *([note] if several else [])))


def _pairs(text: str, where: str) -> list[Pair]:
    pairs = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        line = line.strip()
        names = line.split("\t") if "\t" in line else line.split()
        if len(names) != 2:
            raise UsageError(f"{where}: line {number} is not PARENT CHILD: {line[:60]!r}")
        pairs.append((names[1].strip(), names[0].strip()))
    return pairs


def _readable(words: str, synsets: set[str]) -> dict[str, str]:
    """The first name of each synset, with its number where two have the same."""
    first = {}
    for line in words.split("\n"):
        synset, _, names = line.partition("\t")
        name = names.partition(",")[0].strip()
        if synset in synsets and name:
            first[synset] = name
    often = Counter(first.values())
    return {key: name if often[name] == 1 else f"{name} ({key})" for key, name in first.items()}
