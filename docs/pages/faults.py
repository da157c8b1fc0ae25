"""docs/faults.md: what can go wrong and what happens then, from the tests in tests/faults.

A test there says of itself, in its mark, when something goes wrong and what happens then:
``@pytest.mark.fault(when="...", then="...")``. A file is a chapter, its docstring the heading.
"""

from __future__ import annotations

import ast
from pathlib import Path

from pages import ROOT

TESTS = ROOT / "tests" / "faults"

OPENING = """# What can go wrong, and what happens then

Each line is a test of this project that makes it happen; its name is in the last column
(`pytest -k NAME` runs it). Made by `python docs/make.py faults`.
"""


def page() -> str:
    """The whole page, a table per file of tests."""
    return OPENING + "".join(_chapter(path) for path in sorted(TESTS.glob("test_*.py")))


def _chapter(path: Path) -> str:
    tree = ast.parse(path.read_text("utf-8"))
    rows = [
        "| {} | {} | `{}` |\n".format(*told, node.name)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and (told := _told(node)) is not None
    ]
    heading = (ast.get_docstring(tree) or path.stem).split("\n\n")[0].rstrip(".")
    table = "| when | then | test |\n|---|---|---|\n" + "".join(rows)
    return f"\n## {heading}\n\n{table}" if rows else ""


def _told(test: ast.FunctionDef) -> tuple[str, str] | None:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
            said = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
            return said["when"].replace("|", "\\|"), said["then"].replace("|", "\\|")
    return None
