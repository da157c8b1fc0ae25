"""Tables for a terminal. Texts are what they are: a folder named ``[bold]`` changes no colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
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


def without_marks(markup: str) -> str:
    """The words of a help text, which alone is written with marks."""
    return Text.from_markup(markup).plain


def make_table(
    columns: Mapping[str, str],
    rows: Iterable[Sequence[Any]],
    title: str = "",
    caption: str = "",
) -> Table:
    """A table of values: ``columns`` are heads with their formats, ``{"class": "", "n": ","}``.

    One with a format holds numbers: they stand to the right and are never cut or broken, if need be
    the table is wider than the terminal. Others hold words, which fold. None and NaN are ``-``;
    texts stay as they are."""
    table = Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    lines = [
        [_cell(value, form) for value, form in zip(row, columns.values(), strict=True)]
        for row in rows
    ]
    for place, (head, form) in enumerate(columns.items()):
        words = [*map(Text, head.split()), *(line[place] for line in lines)]
        table.add_column(
            head,
            justify="right" if form else "left",
            overflow="fold",
            min_width=max((word.cell_len for word in words), default=0) if form else None,
        )
    for line in lines:
        table.add_row(*line)
    return table


def _cell(value: Any, form: str) -> Text:
    if isinstance(value, (str, Text)):
        return _plain(value)
    return Text("-" if value is None or value != value else format(value, form))


def _plain(cell: Cell) -> Text:
    return Text(cell) if isinstance(cell, str) else cell
