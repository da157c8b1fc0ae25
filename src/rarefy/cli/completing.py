"""What a shell completes behind ``rarefy run``, ``--scale``, ``--method``.

It is asked at every press of the tab key: nothing heavy may be imported."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import typer

ALWAYS = ("tiny", "quick", "paper")
METHODS = {
    "auto": "simclr or branches:0.1, by held-out images",
    "simclr": "without masks",
    "branches:0.1": "a dense and a masked branch",
    "pruned:0.7": "masked forward, all updated",
    "sdclr": "as its authors have it",
    "pixels": "nothing trained",
    "untrained": "nothing trained",
}


def study_names(incomplete: str) -> list[tuple[str, str]]:
    """With their titles."""
    from rarefy.studies import listed

    return [(name, entry.title) for name, entry in listed().items() if name.startswith(incomplete)]


def scales(context: typer.Context, incomplete: str) -> list[str]:
    """Of the study that was typed; those that all have where there is none."""
    from rarefy.studies import listed

    # (a line that is not finished leaves what was typed before in ``args``)
    typed = (str(context.params.get("study")), *context.args)
    entry = next((listed()[one] for one in typed if one in listed()), None)
    found: dict[str, None] = {}
    if entry is not None and (spec := find_spec(entry.module)) is not None and spec.origin:
        for path in sorted(Path(spec.origin).parent.glob("*.py")):
            found |= dict.fromkeys(_scales_in(path.read_text("utf-8")))
        if not found:  # (they stand elsewhere: of few studies, which have to be imported)
            found = dict.fromkeys(entry.load().scales)
    found = dict.fromkeys(ALWAYS) | found
    return [name for name in found if name.startswith(incomplete)]


def _scales_in(source: str) -> list[str]:
    """The keys of ``scales = {...}``: importing the study would take seconds."""
    return [
        key.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "scales"
        and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]


def methods(incomplete: str) -> list[tuple[str, str]]:
    """The last of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [
        (f"{before}{comma}{name}", said) for name, said in METHODS.items() if name.startswith(last)
    ]
