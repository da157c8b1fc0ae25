"""docs/faults.md: what can go wrong, what happens then and what is lost, from the tests that do it.

A test says so of itself in its mark, ``@pytest.mark.fault(when="...", then="...", lost="...")``,
wherever it stands. The docstring of its file is the chapter, unless the mark has a ``theme``.
``named`` is one of ``NAMED``, the faults that the page begins with.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pages import ROOT
from pages.markdown import table

TESTS = ROOT / "tests"
LAST = TESTS / "heavy" / "last.json"
"""What heavy tests gave when they were last run."""
OPENING = """# What can go wrong, and what happens then

Every line is a test of this project that makes the fault happen: `pytest -m "" -k NAME` runs it (a
heavy one with `-m heavy`, as [`make test-heavy`](heavy.md) does). After each of them the numbers
are right, or the same command finishes the work; nothing is wrong or missing without a word. Made
by `python docs/make.py faults`.

"""
NAMED = {
    "a worker killed in mid-batch": (
        "the run ends with one line, or (on a cluster) another worker takes its batch over",
        "the batches in flight",
    ),
    "the scheduler of a cluster lost": (
        "the run ends with one line that says how to go on",
        "the batches in flight",
    ),
    "a parent killed at random moments: SIGKILL, SIGTERM, Ctrl-C twice": (
        "the same command finishes it, to the same bits",
        "the batches in flight; of a training at most a minute",
    ),
    "disk full": (
        "one line names file and reason, exit code 1; with space again, the same command finishes",
        "what was being written; older files stay whole",
    ),
    "read-only folder": ("one line names it, exit code 1 or 2; it can still be read", "nothing"),
    "truncated or garbled chunk": (
        "every verb names it and its cells; `rarefy check --repair`, then the same run, mends it",
        "the cells in it",
    ),
    "truncated or garbled JSON": ("it is named, nothing is judged by it", "that file"),
    "truncated or garbled result Parquet": ("its hash says so, it is refused by name", "that file"),
    "truncated or garbled checkpoint": (
        "a note says so, and that training starts over",
        "that training so far",
    ),
    "garbled lock": ("it is taken over: what counts is the system's lock on the file", "nothing"),
    "two parents on one store": (
        "the second says who holds it (pid, host, since when), exit code 3",
        "nothing",
    ),
    "clock going backwards": ("no run looks at that clock: it ends in time", "nothing"),
    "out of memory in a batch": ("it is halved and tried again; the numbers are equal", "time"),
    "no C++ compiler": ("a note, and the run goes on with uncompiled kernels", "speed"),
    "no cache folder": ("a note where it matters, and the run goes on without it", "speed"),
    "closed pipe": ("the command ends without a word (`rarefy studies \\| head -1`)", "nothing"),
    "a path with spaces, quotes, unicode and a leading dash": (
        "every verb takes it, and the commands that are printed can be pasted",
        "nothing",
    ),
    "an object store that cannot be reached": (
        "one line names it; the same command goes on when it is back",
        "the batches in flight",
    ),
    "power cut": ("what is said to be done was flushed to the disk first", "the batches in flight"),
}
"""What happens, and what is lost; the tests that show it carry the name."""


@dataclass(frozen=True)
class Fault:
    """What one test says of itself."""

    test: str
    theme: str
    when: str
    then: str
    lost: str = ""
    named: str = ""
    heavy: str = ""
    """The name of its file, where it is one."""


def page() -> str:
    """The whole page: what was asked for by name, then a table per theme."""
    found = list(faults())
    named: dict[str, list[str]] = {name: [] for name in NAMED}
    themes: dict[str, list[Fault]] = {}
    for fault in found:
        if fault.named:
            named[fault.named].append(f"`{fault.test}`")
        themes.setdefault(fault.theme, []).append(fault)
    first = [
        (name, *NAMED[name], ", ".join(dict.fromkeys(tests)))
        for name, tests in named.items()
        if tests
    ]
    columns = ("fault", "what happens", "what is lost", "test")
    chapters = [f"{OPENING}{table(columns, first)}\n"]
    last = json.loads(LAST.read_text("utf-8")) if LAST.exists() else {}
    for theme, some in themes.items():
        rows = [(f.when, f.then, f.lost, f"`{f.test}`{_came_out(f, last)}") for f in some]
        chapters.append(f"\n## {theme}\n\n{table(columns, rows)}\n")
    return "".join(chapters)


def faults() -> Iterator[Fault]:
    """Of all tests, those of tests/faults first and heavy ones last."""
    order = {"faults": 0, "heavy": 2}
    paths = sorted(
        TESTS.rglob("test_*.py"), key=lambda path: (order.get(path.parent.name, 1), path)
    )
    for path in paths:
        text = path.read_text("utf-8")
        if "mark.fault(" not in text:
            continue
        tree = ast.parse(text)
        heading = (ast.get_docstring(tree) or path.stem).split("\n\n")[0].rstrip(".")
        heavy = path.stem if path.parent.name == "heavy" else ""
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and (said := _said(node)):
                yield Fault(node.name, said.pop("theme", heading), heavy=heavy, **said)


def _said(test: ast.FunctionDef) -> dict[str, str]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
            said = {str(word.arg): ast.literal_eval(word.value) for word in mark.keywords}
            # (a name is looked for, not shown)
            return {k: v if k == "named" else v.replace("|", "\\|") for k, v in said.items()}
    return {}


def _came_out(fault: Fault, last: dict[str, Any]) -> str:
    """What a heavy test gave when it was last run."""
    if not fault.heavy:
        return ""
    name = f"{fault.heavy}::{fault.test}"
    runs = [run for key, run in last.items() if key.partition("[")[0] == name]
    if not runs:
        return " (heavy, not run yet)"
    outcomes = Counter(run["outcome"] for run in runs)
    words = ", ".join(f"{count} {word}" for word, count in sorted(outcomes.items()))
    return f" (heavy; {words}, last on {max(run['date'] for run in runs)[:10]})"
