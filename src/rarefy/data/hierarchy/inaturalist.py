"""iNaturalist 2021: ranks of its categories, from the annotations or from names of class folders.

``categories`` of COCO have a ``supercategory`` only; they are read alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.attaching import Annotations, put_once
from rarefy.data.hierarchy.levels import CLASS

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")
TAXON_CLASS = "taxon-class"
"""The level of the rank between phylum and order: ``class`` is the level of a set's own labels."""
SUPER = "supercategory"
"""Eleven groups that people know: the target of Hong et al. (004)."""
KEYS = ("image_dir_name", "name")
FOLDER = re.compile(r"\d+" + len(RANKS) * r"_([^_]+)" + r"_.+")
Ranks = dict[str, dict[str, str]]
"""Taxon by class, by rank."""


def from_categories(
    categories: Sequence[dict[str, Any]], where: str, classes: Sequence[str]
) -> Annotations:
    """Ranks of each category; a class is called by ``image_dir_name``, or else by ``name``."""
    known = {key for one in categories for key in one}
    ranks = [rank for rank in (SUPER, *RANKS) if rank in known]
    if not ranks:
        raise UsageError(f"{where}: categories have neither {SUPER!r} nor {', '.join(RANKS)}")
    fitting = (key for key in KEYS if {_text(one, key) for one in categories} & {*classes})
    key = next(fitting, KEYS[0])
    found: Ranks = {rank: {} for rank in ranks}
    for one in categories:
        for rank in ranks:
            put_once(found[rank], _text(one, key), _text(one, rank), where, rank)
    return _annotations(found, where)


def from_folder_names(classes: Sequence[str], where: str) -> Annotations | None:
    """Of ``00000_Animalia_Annelida_Clitellata_Haplotaxida_Lumbricidae_Lumbricus_terrestris`` and
    its like; None where a class is not called so."""
    found: Ranks = {rank: {} for rank in RANKS}
    for name in classes:
        match = FOLDER.fullmatch(name)
        if match is None:
            return None
        for rank, taxon in zip(RANKS, match.groups(), strict=True):
            found[rank][name] = taxon
    return _annotations(found, where)


def _annotations(found: Ranks, where: str) -> Annotations:
    """Taxa by name; with all above it where two share a name (Prunella is a bird and a herb)."""
    levels: Ranks = {}
    for rank in found:
        above = [one for one in found if one != SUPER or rank == SUPER]
        above = above[: above.index(rank) + 1]
        lineages = {name: tuple(found[one][name] for one in above) for name in found[rank]}
        names = [lineage[-1] for lineage in {*lineages.values()}]
        shared = {name for name, count in Counter(names).items() if count > 1}
        levels[TAXON_CLASS if rank == CLASS else rank] = {
            name: "/".join(lineage) if lineage[-1] in shared else lineage[-1]
            for name, lineage in lineages.items()
        }
    return Annotations(where, levels)


def _text(category: dict[str, Any], key: str) -> str:
    return str(category.get(key, "")).strip()
