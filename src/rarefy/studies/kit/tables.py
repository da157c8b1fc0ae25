"""Tables whose rows name their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rarefy.core.picture import Table


def table(name: str, title: str, caption: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Each row has the same columns, in the same order; there is at least one."""
    return Table(name, title, caption, list(rows[0]), [list(row.values()) for row in rows])
