"""The page docs/faults.md is what tests say of themselves, and docs/heavy.md what came out."""

from __future__ import annotations

import ast

from pages import DOCS, faults, heavy
from pages.faults import NAMED, TESTS


def test_the_pages_are_made_from_the_tests() -> None:
    for name, page in (("faults", faults.page()), ("heavy", heavy.page())):
        held = (DOCS / f"{name}.md").read_text("utf-8")
        assert held == page, f"run: python docs/make.py {name}"


def test_every_test_of_a_fault_says_when_what_then_and_what_is_lost() -> None:
    told = list(faults.faults())
    assert not [fault.test for fault in told if not (fault.when and fault.then and fault.lost)]
    silent = [
        f"{path.name}: {node.name}"
        for path in (TESTS / "faults").glob("test_[!0]*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name not in {fault.test for fault in told}
    ]
    assert not silent
    # (those of clusters and object stores stand in files of their own)
    there = {fault.named for fault in told if fault.named}
    assert there <= {*NAMED} and len({*NAMED} - there) <= 2
