"""docs/reference.md: every public name, from its docstring.

A docstring has a first paragraph, and then the parts ``Arguments:``, ``Attributes:``, ``Returns:``
and ``Example:``, as far as there is something to say. A test runs every example.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import rarefy

PARTS = ("Arguments", "Attributes", "Returns", "Example")
ROOMS = ("pruning", "lab")
"""Names of ``rarefy`` that are modules: their own names are listed."""
METHODS = {
    "Pruner": (
        *("table", "plot", "dense", "masked", "copy_of", "export", "detach"),
        *("state_dict", "load_state_dict"),
    ),
    "LabelCheck": ("fit", "fit_predict"),
    "InfluenceScorer": ("fit", "fit_predict"),
    "PretrainedBackbone": ("features", "export"),
    "PretrainRun": ("features",),
}
"""What else is called by name; properties stand among the attributes of their class."""
OPENING = """# Reference

Every public name of `import rarefy`, with an example that a test runs. Examples take for granted

```python
import rarefy
import torch
from sklearn.datasets import load_digits, load_wine
```

and the folder `results/` of the repository. Made by `python docs/make.py reference`.
"""


@dataclass(frozen=True)
class Entry:
    """A public name: ``rarefy.Pruner``, ``rarefy.Pruner.export``, ``rarefy.lab.descend``."""

    heading: str
    name: str
    what: Any

    @property
    def parts(self) -> dict[str, str]:
        """Of its docstring: the text before all parts under the empty name."""
        text = inspect.getdoc(self.what) or ""
        pieces = re.split(rf"^({'|'.join(PARTS)}):\n", text, flags=re.MULTILINE)
        found = {"": pieces[0].strip()}
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            found[name] = textwrap.dedent(body).strip()
        return found

    @property
    def signature(self) -> inspect.Signature | None:
        """As it is called; none of what nobody calls."""
        if inspect.isclass(self.what) and (
            issubclass(self.what, Exception) or inspect.isabstract(self.what)
        ):
            return None
        found = inspect.signature(self.what)
        kept = [one for one in found.parameters.values() if one.name != "self"]
        return found.replace(parameters=kept)


def entries() -> Iterator[Entry]:
    """In the order of the page."""
    for heading, names in rarefy.SURFACE.items():
        for name, home in names.items():
            if name in ROOMS:
                room = import_module(f"rarefy.{name}")
                for one in room.__all__:
                    yield Entry(heading, f"rarefy.{name}.{one}", getattr(room, one))
                continue
            what = getattr(import_module(home), name)
            yield Entry(heading, f"rarefy.{name}", what)
            for method in METHODS.get(name, ()):
                yield Entry(heading, f"rarefy.{name}.{method}", getattr(what, method))


def page() -> str:
    """The whole page."""
    found = [OPENING]
    last = ""
    for entry in entries():
        if entry.heading != last:
            found.append(f"## {entry.heading}\n")
            last = entry.heading
        found.append(_section(entry))
    return "\n".join(found)


def _section(entry: Entry) -> str:
    parts = entry.parts
    lines = [f"### {entry.name}\n"]
    if entry.signature is not None:
        lines.append(f"```\n{_called(entry.name, entry.signature)}\n```\n")
    lines.append(_text(parts[""]) + "\n")
    for name in PARTS[:2]:
        if name in parts:
            lines.append(f"*{name}*\n\n{_listed(parts[name])}\n")
    if "Returns" in parts:
        lines.append(f"*Returns*: {_text(parts['Returns'])}\n")
    lines.append(f"```pycon\n{parts['Example']}\n```\n")
    return "\n".join(lines)


def _called(name: str, signature: inspect.Signature) -> str:
    """On one line, or one line per argument; types are left to the editor."""
    plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    words = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    # (a default that is made anew, or a long one, is not worth its words)
    words = re.sub(r"=<factory>", "=...", words)
    line = f"{name}{words}"
    return textwrap.fill(line, 96, subsequent_indent="    ", break_on_hyphens=False)


def items(text: str) -> list[tuple[str, str]]:
    """``names: what they are``, each with indented lines that go on."""
    found = []
    for item in re.split(r"\n(?=\S)", text):
        names, _, rest = " ".join(item.split()).partition(": ")
        found.append((names, rest))
    return found


def _listed(text: str) -> str:
    return "\n".join(f"- `{names}`: {_text(rest)}" for names, rest in items(text))


def _text(text: str) -> str:
    """Markdown has one backtick where docstrings have two; lines that are set off stay so."""
    paragraphs = re.split(r"\n\s*\n", text)
    joined = [
        textwrap.indent(one, "    ")
        if one.startswith("  ")
        else " ".join(line.strip() for line in one.splitlines())
        for one in paragraphs
    ]
    return "\n\n".join(joined).replace("``", "`")
