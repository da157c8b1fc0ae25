"""Write the documentation's pages into build/docs: the hand-written ones copied, the others made.

Every registered study gets a page by being run at tiny scale, so a page that is there has worked.
``docs/claims.md`` is made from the ledger, the README's picture from committed results; both are
kept in the repository: ``--claims`` writes them alone.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import html
import inspect
import re
import shutil
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import rarefy
from rarefy.core.contracts import Study, Verdict
from rarefy.core.ledger import load_claims, load_verdicts
from rarefy.report import save_pictures
from rarefy.studies import load_studies
from rarefy.studies.api import read_results

DOCS = Path(__file__).parent
BUILD = DOCS.parent / "build" / "docs"
SCALE = "tiny"

PAPERS = {
    "000": "Liao, Zhou, Zhang, Wang, Zhang: Theoretical Analysis of Contrastive Learning under "
    "Imbalanced Data: From Training Dynamics to a Pruning Solution",
    "001": "Liao, Zhang, Zhou, Zhang: On the Training Dynamics of Contrastive Learning with "
    "Imbalanced Feature Distributions: A Theoretical Study of Feature Learning",
    "002": "a theory of TopK pruning during training in two-layer ReLU CNNs, on the signal-noise "
    "data model",
    "003": "Xu, Chen: Rethinking Benign Overfitting in Two-Layer Neural Networks",
    "004": "Hong, Cui, Fuxman, Chan, Luo: Why Fine-grained Labels in Pretraining Benefit "
    "Generalization?",
}


# ------------------------------------------------------------------------------ markdown


def plain(text: object) -> str:
    """Text as it is: formulas are full of signs that Markdown would take for its own."""
    escaped = html.escape(" ".join(str(text).split()), quote=False)
    # an underscore inside a word is left alone by Markdown
    return re.sub(r"([\\`*|\[\]{}#]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))", r"\\\1", escaped)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(entry) for entry in line) + " |" for line in lines)


def verdict_rows(verdicts: Iterable[Verdict], *heads: str) -> list[list[str]]:
    return [
        [
            *(plain(getattr(verdict, head)) for head in heads),
            plain(verdict.predicted),
            plain(verdict.measured),
            str(verdict.n),
            plain(verdict.tolerance),
            f"**{verdict.outcome}**",
            plain(verdict.note),
        ]
        for verdict in verdicts
    ]


VERDICT_COLUMNS = ("predicted", "measured", "n", "tolerance", "outcome", "note")


# ------------------------------------------------------------------------------ the ledger


def claims_page() -> str:
    """Every claim, and what was measured for it; a claim without a verdict says so."""
    claims, verdicts = load_claims(), load_verdicts()
    measured = {verdict.claim for verdict in verdicts}
    done = sum(claim["id"] in measured for claim in claims)
    parts = [
        "<!-- made by docs/make_pages.py from src/rarefy/ledger; do not edit -->",
        "# The claims",
        "Every statement of the papers that can be checked by running something, and the verdicts "
        "last measured for it. A claim that fails is listed as failing, with its setting. Where a "
        "paper hides constants, the verdict is about the shape: sign, order, exponent. A claim is "
        "often judged in several settings and readings; its line opens to show them all.",
        f"{done} of {len(claims)} claims have been measured.",
        table(["paper", ""], [[number, plain(title)] for number, title in PAPERS.items()]),
    ]
    for family in dict.fromkeys(claim["family"] for claim in claims):
        own = [claim for claim in claims if claim["family"] == family]
        parts.append(f"## {family[0].upper()}{family[1:]}")
        rows = [
            [claim["id"], plain(claim["where"]), plain(claim["statement"]), standing]
            for claim in own
            for standing in [_standing(claim["id"], verdicts)]
        ]
        parts.append(table(["claim", "where", "statement", "standing"], rows))
        if any(claim["id"] in measured for claim in own):
            parts.append(f"### Measured: {family}")
        parts += [_measured(claim["id"], verdicts) for claim in own if claim["id"] in measured]
    return "\n\n".join(parts) + "\n"


def _measured(claim: str, verdicts: Iterable[Verdict]) -> str:
    """All verdicts of one claim, folded away. Those of the quick scale, which are there for
    ``rarefy verify`` to compare with, are left out where larger ones exist."""
    own = [verdict for verdict in verdicts if verdict.claim == claim]
    larger = [verdict for verdict in own if verdict.scale != "quick"] or own
    counts = Counter(verdict.outcome for verdict in larger)
    summary = ", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items()))
    heads = ("study", "scale", "setting")
    rows = table([*heads, *VERDICT_COLUMNS], verdict_rows(larger, *heads))
    opened = f'<details markdown="1">\n<summary>{claim}: {summary}</summary>'
    return f"{opened}\n\n{rows}\n\n</details>"


def _standing(claim: str, verdicts: Iterable[Verdict]) -> str:
    """One line a scale: how many settings came out how."""
    outcomes: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        if verdict.claim == claim:
            outcomes.setdefault(verdict.scale, Counter())[verdict.outcome] += 1
    if not outcomes:
        return "not yet measured"
    return "<br>".join(
        f"{scale}: " + ", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items()))
        for scale, counts in sorted(outcomes.items())
    )


# ------------------------------------------------------------------------------ the studies


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
    pictures = save_pictures(study, results, folder)
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
        *(_figure(study, results, pictures)),
        table(["claim", "setting", *VERDICT_COLUMNS], verdict_rows(verdicts, "claim", "setting")),
        "## Run it",
        f"```\nrarefy run {kind.name} --scale quick --out runs/{kind.name}\n"
        f"rarefy report runs/{kind.name}\n```",
        "## Parameters",
        table(["parameter", "paper", SCALE, "meaning"], parameters),
        "## Outputs",
        table(["output", "dimensions", "meaning", "unit"], outputs),
    ]
    return "\n\n".join(parts) + "\n"


def _figure(study: Study, results: Any, saved: Sequence[Path]) -> list[str]:
    parts = []
    for picture, path in zip(study.picture(results), saved, strict=True):
        parts.append(f"![{plain(picture.title)}]({path.parent.name}/{path.name})")
        parts.append(plain(picture.caption))
    return parts


def _short(value: object) -> str:
    if isinstance(value, tuple) and len(value) > 12:
        return f"{len(value)} values, {value[0]} ... {value[-1]}"
    return ", ".join(str(entry) for entry in value) if isinstance(value, tuple) else str(value)


SHOWN = {
    "headline.png": ("contrast-dynamics", "map", "paper"),
    "topk.png": ("topk-phase", "map", "paper"),
    "scale.png": ("regimes-at-scale", "boundaries", "paper"),
    "granularity.png": ("granularity-detectors", "responses", "paper"),
    "removal-mnist.png": ("influence-removal", "removed", "paper"),
    "removal-cifar10.png": ("influence-removal", "removed", "cifar10"),
    "longtail-gains.png": ("longtail-table", "gains", "cifar10-rho100-500"),
    "longtail-masked-units.png": ("longtail-table", "masked-units", "cifar10-rho100-500"),
}
"""Pictures of the README and of pages: file, study, picture and the scale of its results."""


def shown_pictures() -> None:
    for name, (study_name, picture, scale) in SHOWN.items():
        study, _, results = read_results(DOCS.parent / "results" / f"{study_name}-{scale}.parquet")
        with tempfile.TemporaryDirectory() as folder:
            pictures = {path.stem: path for path in save_pictures(study, results, folder)}
            target = DOCS / "images" / name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(pictures[f"{study_name}-{picture}"], target)
        print(f"docs/images/{name}")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument(
        "--claims", action="store_true", help="write only what is kept in the repository"
    )
    only_claims = reader.parse_args().claims
    (DOCS / "claims.md").write_text(claims_page(), encoding="utf-8")
    print("docs/claims.md")
    shown_pictures()
    if only_claims:
        return
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(DOCS, BUILD, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    folder = BUILD / "studies"
    folder.mkdir()
    rows = []
    for name, kind in load_studies().items():
        print(f"{name}: running at {SCALE} scale", flush=True)
        page = study_page(kind, folder / name)
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
        rows.append([f"[{name}]({name}.md)", plain(kind.title), ", ".join(kind.claims)])
    listing = "# The studies\n\n" + table(["study", "what it is about", "claims"], rows) + "\n"
    (folder / "index.md").write_text(listing, encoding="utf-8")


if __name__ == "__main__":
    main()
