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
    found = dict.fromkeys(ALWAYS)
    if entry is not None and (spec := find_spec(entry.module)) is not None and spec.origin:
        sources = [path.read_text("utf-8") for path in Path(spec.origin).parent.glob("*.py")]
        keys = [key for source in sources for key in _scales_in(source)]
        # (some studies put theirs together, or have them from elsewhere: these are imported)
        plain = [key for key in keys if key is not None]
        found |= dict.fromkeys(plain if plain and plain == keys else entry.load().scales)
    return [name for name in found if name.startswith(incomplete)]


def _scales_in(source: str) -> list[str | None]:
    """The keys of ``scales = {...}``, None where one is no plain text: importing the study would
    take seconds."""
    return [
        key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "scales"
        and isinstance(node.value, ast.Dict)
        for key in node.value.keys
    ]


def methods(incomplete: str) -> list[tuple[str, str]]:
    """The last of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [
        (f"{before}{comma}{name}", said) for name, said in METHODS.items() if name.startswith(last)
    ]
