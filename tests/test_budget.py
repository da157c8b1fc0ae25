"""No room of the house grows: lines of code and text, and tokens per line, against budget.toml.

``python tests/test_budget.py`` lowers its numbers to what is there. It raises none.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUDGET = ROOT / "budget.toml"
GOALS, ROOMS = tomllib.loads(BUDGET.read_text()).values()
OTHER = (".toml", ".js", ".css", ".j2", ".h", ".cpp")
"""Text written by hand; a verdict's JSON is not."""
LAYOUT = {"NL", "INDENT", "DEDENT", "COMMENT", "ENCODING", "ENDMARKER"}
Numbers = dict[str, dict[str, float]]
"""By room and by what is counted."""


def tokens_and_lines(code: str) -> tuple[int, int]:
    """Python's tokens, ends of statements among them, without comments and docstrings, and the
    lines that are not blank. An f-string is one token, as before Python 3.12 looked into it."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, documented)]
    first = [node.body[0] for node in nodes if ast.get_docstring(node, clean=False) is not None]
    docstrings = {(statement.lineno, statement.col_offset) for statement in first}
    tokens, nested = 0, 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        name = tokenize.tok_name[token.type]
        nested += (name == "FSTRING_START") - (name == "FSTRING_END")
        tokens += not nested and name not in LAYOUT and token.start not in docstrings
    return tokens, sum(bool(line.strip()) for line in code.splitlines())


def sizes() -> Numbers:
    house = ROOT / "src" / "rarefy"
    rooms = {path.name: [*path.rglob("*")] for path in sorted(house.iterdir()) if path.is_dir()}
    rooms = {"rarefy": [*house.glob("*.*")], **rooms}
    rooms |= {name: [*(ROOT / name).rglob("*")] for name in ("docs/pages", "tests")}
    numbers: Numbers = {}
    for room, paths in rooms.items():
        code = [path.read_text("utf-8") for path in paths if path.suffix == ".py"]
        if code:  # (not __pycache__)
            other = [path.read_text("utf-8") for path in paths if path.suffix in OTHER]
            tokens, lines = map(sum, zip(*map(tokens_and_lines, code), strict=True))
            python, text = (sum(part.count("\n") for part in parts) for parts in (code, other))
            numbers[room] = {"python": python, "other": text, "density": tokens / lines}
    source = sum(numbers[room]["python"] for room in numbers if "/" not in room and room != "tests")
    return {**numbers, "whole": {"source": source, "tests": numbers["tests"]["python"]}}


def wrong(budget: Numbers, there: Numbers) -> list[str]:
    """What is above its number, and what has a number far above it; none is asked below a goal."""
    messages = []
    for room in dict.fromkeys([*budget, *there]):
        for what in {**budget.get(room, {}), **there.get(room, {})}:
            limit, size = (numbers.get(room, {}).get(what, 0) for numbers in (budget, there))
            least = max(size, GOALS.get(what, 0))
            named = f"{room}, {what}: {size:g} where budget.toml has {limit:g}"
            if size > limit:
                messages.append(f"{named}. Delete or merge there, or raise it by hand and say why")
            elif limit > 1.02 * least and (what == "density" or limit > least + 30):
                messages.append(f"{named}. Lower it with this: python tests/test_budget.py")
    return messages


def lowered(budget: Numbers, there: Numbers) -> Numbers:
    """Every number as low as it may be; a room that is new comes in as it is."""
    result: Numbers = {}
    for room, numbers in there.items():
        least = {what: max(size, GOALS.get(what, 0)) for what, size in numbers.items()}
        limits = {what: math.ceil(100 * limit) / 100 for what, limit in least.items()}
        before = budget.get(room, limits)
        result[room] = {what: min(limit, before[what]) for what, limit in limits.items()}
    return result


def test_every_room_keeps_to_its_budget() -> None:
    assert not (messages := wrong(ROOMS, sizes())), "\n".join(messages)


@pytest.mark.parametrize(
    ("what", "limit", "size", "told"),
    [
        ("python", 99, 100, "room, python: 100 where budget.toml has 99. Delete or merge"),
        ("density", 11.0, 11.01, "room, density: 11.01 where budget.toml has 11. Delete"),
        ("source", 84100, 84101, "room, source: 84101 where .* Delete"),
        ("python", 1031, 1000, "room, python: 1000 where budget.toml has 1031. Lower"),
        ("density", 11.3, 11.0, "room, density: 11 where budget.toml has 11.3. Lower"),
        ("python", 1030, 1000, "$"),
        ("python", 10200, 10000, "$"),
        ("density", 10.5, 6.0, "$"),
        ("source", 84000, 60000, "$"),
    ],
)
def test_what_is_wrong_is_named(what: str, limit: float, size: float, told: str) -> None:
    """And numbers are only lowered, to a goal at least."""
    budget, there = {"room": {what: limit}, "gone": {"python": 0}}, {"room": {what: size}}
    assert re.match(told, "".join(wrong(budget, there)))
    least = max(size, GOALS.get(what, 0))
    assert lowered(budget, there) == {"room": {what: min(limit, least)}}


def test_tokens_are_counted_without_text_for_people() -> None:
    code = '"""Module."""\n\n\ndef half(x):  # of it\n    """Text."""\n    return f"{x / 2}"\n'
    # def half ( x ) : / return f"", the ends of these two statements and of two docstrings
    assert tokens_and_lines(code) == (12, 4)


if __name__ == "__main__":
    text = [
        f'"{room}" = {{ {", ".join(f"{what} = {limit:g}" for what, limit in limits.items())} }}\n'
        for room, limits in lowered(ROOMS, sizes()).items()
    ]
    head, rooms, _ = BUDGET.read_text().partition("[rooms]\n")
    BUDGET.write_text(head + rooms + "".join(text))
