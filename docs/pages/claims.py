"""docs/claims.md: every claim of the ledger, and what was measured for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pages.markdown import plain, table, verdict_table
from rarefy.core.contracts import Verdict
from rarefy.core.papers import PAPERS
from rarefy.ledger.verdicts import load_claims, load_verdicts


def page() -> str:
    """Every claim, and what was measured for it; a claim without a verdict says so."""
    claims, verdicts = load_claims(), load_verdicts()
    measured = {verdict.claim for verdict in verdicts}
    done = sum(claim["id"] in measured for claim in claims)
    parts = [
        "<!-- made by docs/make.py from src/rarefy/ledger; do not edit -->",
        "# The claims",
        "Every statement of the papers that can be checked by running something, and the verdicts "
        "last measured for it. A claim that fails is listed as failing, with its setting. Where a "
        "paper hides constants, the verdict is about the shape: sign, order, exponent. A claim is "
        "often judged in several settings and readings; its line opens to show them all.",
        f"{done} of {len(claims)} claims have been measured.",
        table(["paper", ""], [[number, plain(str(paper))] for number, paper in PAPERS.items()]),
    ]
    for family in dict.fromkeys(claim["family"] for claim in claims):
        own = [claim for claim in claims if claim["family"] == family]
        parts.append(f"## {family[0].upper()}{family[1:]}")
        rows = [
            [
                claim["id"],
                plain(claim["where"]),
                plain(claim["statement"]),
                _standing(claim["id"], verdicts),
            ]
            for claim in own
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
    summary = _counted(verdict.outcome for verdict in larger)
    rows = verdict_table(larger, "study", "scale", "setting")
    opened = f'<details markdown="1">\n<summary>{claim}: {summary}</summary>'
    return f"{opened}\n\n{rows}\n\n</details>"


def _standing(claim: str, verdicts: Iterable[Verdict]) -> str:
    """One line per scale: how many settings came out how."""
    outcomes: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.claim == claim:
            outcomes.setdefault(verdict.scale, []).append(verdict.outcome)
    lines = [f"{scale}: {_counted(each)}" for scale, each in sorted(outcomes.items())]
    return "<br>".join(lines) or "not yet measured"


def _counted(outcomes: Iterable[str]) -> str:
    return ", ".join(f"{outcome} {n}" for outcome, n in sorted(Counter(outcomes).items()))
