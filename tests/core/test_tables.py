"""Tables for a terminal: numbers whole at any width, words folded, no markup read."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.text import Text

from rarefy.core.tables import make_table

COLUMNS = {"class": "", "all of them": ",", "share": ".1f"}
ROWS = [
    ("[bold]a very long name of a class that nobody can copy[/]", 1_134_000, 12.34),
    (Text("b", "red"), "dense", None),
    ("c", 7, float("nan")),
]


def drawn(width: int) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as shown:
        console.print(make_table(COLUMNS, ROWS, "[title]", "below"), crop=False)
    return shown.get()


def test_values_are_written_by_the_format_of_their_column() -> None:
    lines = [line.rstrip() for line in drawn(100).splitlines()]
    name = "[bold]a very long name of a class that nobody can copy[/]"
    assert lines[0] == "[title]" and lines[-1] == "below"
    assert lines[1] == f"{'class':{len(name)}}  all of them  share"
    assert lines[3:6] == [
        f"{name}    1,134,000   12.3",
        f"{'b':{len(name)}}        dense      -",
        f"{'c':{len(name)}}            7      -",
    ]


@pytest.mark.parametrize("width", [80, 40, 30, 10])
def test_numbers_are_never_cut_and_words_fold(width: int) -> None:
    shown = drawn(width)
    assert "1,134,000 " in shown and "12.3" in shown and "share" in shown and "…" not in shown
    words = "".join(line[:-18].strip() for line in shown.splitlines()[3:])
    assert width < 30 or "averylongnameofaclass" in words.replace(" ", "")
    assert width < 30 or max(map(len, shown.splitlines())) <= width


def test_a_row_has_a_value_per_column() -> None:
    with pytest.raises(ValueError, match="zip"):
        make_table(COLUMNS, [("a", 1)])
