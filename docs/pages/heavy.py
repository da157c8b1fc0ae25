"""docs/heavy.md: the tests that take minutes or hours, and what they gave when last run."""

from __future__ import annotations

import ast
import json
from typing import Any

from pages.faults import LAST
from pages.markdown import plain, table

OPENING = """# Heavy tests

Kills, fuzzing and load take minutes to hours: `make test-heavy` runs them, one at a time, and keeps
what came out in `tests/heavy/last.json`; `make test-heavy ONLY="-k kills"` runs some. This page is
made of that file by `python docs/make.py heavy`; times are of the machine named beside them, which
may have been busy with other things.

"""


def page() -> str:
    """One row per heavy test."""
    last: dict[str, dict[str, Any]] = json.loads(LAST.read_text("utf-8")) if LAST.exists() else {}
    told = _docstrings()
    rows = []
    for name, run in last.items():
        test, _, case = name.partition("[")
        measured = "; ".join(f"{what} {_short(value)}" for what, value in run["measured"].items())
        does = told.get(test, "(no longer there)") + (f" ({case.rstrip(']')})" if case else "")
        machine = f"{run['machine']}, {run['cores']} cores"
        facts = (plain(measured), f"{run['seconds']:g}", run["date"][:10], plain(machine))
        rows.append((plain(does), run["outcome"], *facts, f"`{test.partition('::')[2]}`"))
    missing = sorted(told.keys() - {name.partition("[")[0] for name in last})
    rows += [
        (plain(told[name]), "not run yet", "", "", "", "", f"`{name.partition('::')[2]}`")
        for name in missing
    ]
    columns = ("what it does", "outcome", "measured", "seconds", "date", "machine", "test")
    return f"{OPENING}{table(columns, rows)}\n"


def _docstrings() -> dict[str, str]:
    """The first line of each test, by file and name."""
    found = {}
    for path in sorted(LAST.parent.glob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                words = (ast.get_docstring(node) or node.name.replace("_", " ")).splitlines()[0]
                found[f"{path.stem}::{node.name}"] = words.rstrip(".")
    return found


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
