"""Tables for a terminal. Texts are what they are: a folder named ``[bold]`` changes no colours."""

from __future__ import annotations

from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

Cell = str | Text


class Table(RichTable):
    """A rich table that reads no markup in what it is given; colours come as ``Text``."""

    def __init__(self, *, title: str = "", caption: str = "", **style: Any) -> None:
        super().__init__(
            title=Text(title, "table.title") if title else None,
            caption=Text(caption, "table.caption") if caption else None,
            **style,
        )

    def add_column(self, header: Cell = "", *args: Any, **style: Any) -> None:  # type: ignore[override]
        super().add_column(_plain(header), *args, **style)

    def add_row(self, *cells: Cell, **style: Any) -> None:  # type: ignore[override]
        super().add_row(*map(_plain, cells), **style)


def _plain(cell: Cell) -> Text:
    return Text(cell) if isinstance(cell, str) else cell
