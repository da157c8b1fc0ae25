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
made of that file by `python docs/make.py heavy`; times are of the machine named below, which may
have been busy with other things.

"""
ADDED = ("kills", "asked seconds", "runs", "findings")
"""What cases of one test have measured is added up; all else is in the file."""


def page() -> str:
    """One row per heavy test; of one with several cases what they gave together."""
    last: dict[str, dict[str, Any]] = json.loads(LAST.read_text("utf-8")) if LAST.exists() else {}
    told = _docstrings()
    cases: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in told}
    for name, run in last.items():
        test, _, case = name.partition("[")
        if test in cases:
            cases[test][case.rstrip("]")] = run
    rows = []
    for test, runs in cases.items():
        facts = ["not run yet", "", "", ""]
        if runs:
            seconds = sum(run["seconds"] for run in runs.values())
            date = max(run["date"] for run in runs.values())[:10]
            facts = [_outcome(runs), plain(_measured(runs)), f"{seconds:,.0f}", date]
        rows.append((plain(told[test]), *facts, f"`{test.partition('::')[2]}`"))
    columns = ("what it does", "outcome", "measured", "seconds", "date", "test")
    machines = sorted({f"{run['machine']}, {run['cores']} cores" for run in last.values()})
    return f"{OPENING}{table(columns, rows)}\n\nMachine: {plain('; '.join(machines))}.\n"


def _outcome(runs: dict[str, dict[str, Any]]) -> str:
    if len(runs) == 1:
        ((case, run),) = runs.items()  # (of a test with cases, the others were not run)
        return f"{run['outcome']}" + (f", of its cases only {plain(case)}" if case else "")
    wrong = [case for case, run in runs.items() if run["outcome"] != "passed"]
    return f"{len(runs) - len(wrong)} of {len(runs)} passed" + (
        f"; not: {plain(', '.join(wrong))}" if wrong else ""
    )


def _measured(runs: dict[str, dict[str, Any]]) -> str:
    if len(runs) == 1:
        (run,) = runs.values()
        return "; ".join(f"{what} {_short(value)}" for what, value in run["measured"].items())
    found = []
    for what in ADDED:
        values = [run["measured"][what] for run in runs.values() if what in run["measured"]]
        found += [f"{what} {sum(values):,}"] if values else []
    return "; ".join(found)


def _docstrings() -> dict[str, str]:
    """The first line of each test, by file and name."""
    found = {}
    for path in sorted(LAST.parent.glob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                words = (ast.get_docstring(node) or node.name[5:].replace("_", " ")).splitlines()[0]
                found[f"{path.stem}::{node.name}"] = words.rstrip(".")
    return found


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
