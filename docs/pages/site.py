"""The site: pages written by hand copied, and a page for every study, which is run for it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import shutil
import textwrap
from pathlib import Path

import rarefy
from pages import DOCS
from pages.markdown import plain, table, verdict_table
from rarefy.core.contracts import Study
from rarefy.report import save_pictures
from rarefy.studies import load_studies

SCALE = "tiny"


def write(folder: Path) -> None:
    """All pages, into a folder that is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "pages"))
    (folder / "studies").mkdir()
    rows = []
    for name, kind in load_studies().items():
        print(f"{name}: running at {SCALE} scale", flush=True)
        text = study_page(kind, folder / "studies" / name)
        (folder / "studies" / f"{name}.md").write_text(text, encoding="utf-8")
        rows.append([f"[{name}]({name}.md)", plain(kind.title), ", ".join(kind.claims)])
    listing = "# The studies\n\n" + table(["study", "what it is about", "claims"], rows) + "\n"
    (folder / "studies" / "index.md").write_text(listing, encoding="utf-8")


def meanings(kind: type[Study]) -> dict[str, str]:
    """What each parameter means: the text that follows its line in the class."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError):  # no source, as for a class made on the fly
            continue
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = inspect.cleandoc(str(text.value.value))
    return found


def study_page(kind: type[Study], folder: Path) -> str:
    """Run a study at tiny scale and describe it; its pictures go into ``folder``."""
    study = kind.at(SCALE)
    results = rarefy.run(kind, scale=SCALE)
    saved = save_pictures(study, results, folder)
    pictures = [
        f"![{plain(picture.title)}]({folder.name}/{path.name})\n\n{plain(picture.caption)}"
        for picture, path in zip(study.picture(results), saved, strict=True)
    ]
    told = meanings(kind)
    parameters = [
        [
            f"`{field.name}`" + (" (axis)" if field.name in kind.axes else ""),
            plain(_short(kind.at("paper").parameters()[field.name])),
            plain(_short(study.parameters()[field.name])),
            plain(told.get(field.name, "")),
        ]
        for field in dataclasses.fields(kind)
    ]
    outputs = [
        [f"`{output.name}`", plain(", ".join(output.dims)), plain(output.meaning), output.unit]
        for output in study.outputs()
    ]
    verdicts = rarefy.judge(study, results, SCALE)
    parts = [
        f"# {plain(kind.title)}",
        f"`{kind.name}`, laboratory: {plain(kind.lab)}; claims {', '.join(kind.claims)}; "
        f"needs {plain(kind.needs)}.",
        "## What the paper says",
        plain(kind.paper_says),
        "## What comes out",
        f"At scale `{SCALE}`, which is for checking that everything works, not for conclusions. "
        "Verdicts at the published size are with [the claims](../claims.md).",
        *pictures,
        verdict_table(verdicts, "claim", "setting"),
        "## Run it",
        f"```\nrarefy run {kind.name} --scale quick --out runs/{kind.name}\n"
        f"rarefy report runs/{kind.name}\n```",
        "## Parameters",
        table(["parameter", "paper", SCALE, "meaning"], parameters),
        "## Outputs",
        table(["output", "dimensions", "meaning", "unit"], outputs),
    ]
    return "\n\n".join(parts) + "\n"


def _short(value: object) -> str:
    if isinstance(value, tuple) and len(value) > 12:
        return f"{len(value)} values, {value[0]} ... {value[-1]}"
    return ", ".join(str(entry) for entry in value) if isinstance(value, tuple) else str(value)
