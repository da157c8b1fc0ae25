"""The page docs/faults.md is what the tests in this folder say of themselves."""

from __future__ import annotations

import ast

from pages import DOCS
from pages.faults import TESTS, page


def test_the_page_is_made_from_the_tests() -> None:
    assert (DOCS / "faults.md").read_text("utf-8") == page(), "run: python docs/make.py faults"


def test_every_test_of_a_fault_says_when_and_what_then() -> None:
    silent = [
        f"{path.name}: {node.name}"
        for path in TESTS.glob("test_[!0]*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and f"`{node.name}`" not in page()
    ]
    assert not silent
