"""Parameters and axes that got another name: what was stored under the former one is still read.

Which they are an experiment says itself: ``renamed = {"way": "algorithm"}``. Hashes of specs are
made with the former names, so that they stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import pyarrow as pa

Renamed = Mapping[str, str]
"""Former name -> name today."""
V = TypeVar("V")


def with_names_of_today(renamed: Renamed, values: Mapping[str, V]) -> dict[str, V]:
    return {renamed.get(name, name): value for name, value in values.items()}


def with_former_names(renamed: Renamed, values: Mapping[str, V]) -> dict[str, V]:
    former = {name: before for before, name in renamed.items()}
    return {former.get(name, name): value for name, value in values.items()}


def description_of_today(renamed: Renamed, described: dict[str, Any]) -> dict[str, Any]:
    """Of committed results (``sweep.results``)."""

    def parameters(holder: dict[str, Any]) -> dict[str, Any]:
        found = with_names_of_today(renamed, holder["parameters"])
        return {**holder, "parameters": found}

    return {
        **described,
        "spec": parameters(described["spec"]),
        "attributes": parameters(described["attributes"]),
        "cell_dims": [renamed.get(name, name) for name in described["cell_dims"]],
        "coordinates": with_names_of_today(renamed, described["coordinates"]),
    }


def table_of_today(renamed: Renamed, table: pa.Table) -> pa.Table:
    return table.rename_columns([renamed.get(name, name) for name in table.column_names])
