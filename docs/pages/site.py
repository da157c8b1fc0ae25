"""The site: pages written by hand copied, and a page for every study, which is run for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import rarefy
from pages import DOCS
from pages.markdown import plain, table, verdict_table
from rarefy.core.contracts import Study
from rarefy.core.papers import paper_names
from rarefy.core.parameters import parameters_of
from rarefy.report import save_pictures
from rarefy.studies import listed, load_studies

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


def study_page(kind: type[Study], folder: Path) -> str:
    """Run a study at tiny scale and describe it; its pictures go into ``folder``."""
    study = kind.at(SCALE)
    results = rarefy.run(kind, scale=SCALE)
    saved = save_pictures(study, results, folder)
    pictures = [
        f"![{plain(picture.title)}]({folder.name}/{path.name})\n\n{plain(picture.caption)}"
        for picture, path in zip(study.picture(results), saved, strict=True)
    ]
    entry, paper = listed()[kind.name], kind.at("paper").parameters()
    parameters = [
        [
            f"`{one.name}`" + (" (axis)" if one.name in kind.axes else ""),
            plain(_short(paper[one.name])),
            plain(_short(getattr(study, one.name))),
            plain(". ".join(filter(None, (one.meaning, *(rule.allowed for rule in one.rules))))),
        ]
        for one in parameters_of(kind).values()
    ]
    outputs = [
        [f"`{output.name}`", plain(", ".join(output.dims)), plain(output.meaning), output.unit]
        for output in study.outputs()
    ]
    answered = ", ".join(f"[{name}](../claims/{name}.md)" for name in kind.claims)
    verdicts = rarefy.judge(study, results, SCALE)
    parts = [
        f"# {plain(kind.title)}",
        f"`{kind.name}`: {plain(paper_names(entry.papers))}, {plain(entry.shows)}; laboratory: "
        f"{plain(entry.lab)}; claims {answered}; "
        f"needs {plain(kind.needs)}.",
        "## What the paper says",
        plain(kind.paper_says),
        "## What comes out",
        f"At scale `{SCALE}`, which is for checking that everything works, not for conclusions. "
        "What the published size says is with [the claims](../claims.md).",
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
