"""The Python door: the answers as they stand, and as fresh verdicts would change them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rarefy.core.papers import paper_names
from rarefy.core.verdict import Verdict
from rarefy.ledger.answers import Answer, compute_answers
from rarefy.ledger.claims import Claim, load_claims
from rarefy.ledger.search import find
from rarefy.ledger.verdicts import load_verdicts

if TYPE_CHECKING:
    import pandas as pd


def current_answers() -> dict[str, Answer]:
    """By the verdicts of the ledger."""
    return compute_answers(load_claims(), load_verdicts())


def answers_with(fresh: Iterable[Verdict]) -> dict[str, Answer]:
    """With the verdicts of a study at a scale in place of the ledger's of that study and scale."""
    fresh = list(fresh)
    judged = {(verdict.study, verdict.scale) for verdict in fresh}
    kept = [v for v in load_verdicts() if (v.study, v.scale) not in judged]
    latest = {verdict.identity: verdict for verdict in kept + fresh}
    return compute_answers(load_claims(), latest.values())


def claims(what: str = "", paper: str = "", figure: str = "") -> pd.DataFrame:
    """What the papers claim, and the answer that our measurements give to each.

    Arguments:
        what: an id (``"B6"``), or words (``"Xu Chen figure 3"``); all claims if not given.
        paper: only those of one paper, by its authors.
        figure: only those about one figure or theorem.

    Returns:
        A DataFrame with a row per claim, by id: ``paper``, ``where``, ``answer``, ``line`` (the
        answer in a sentence), ``review`` (why a referee calls it unfair), ``value`` with its
        interval ``low`` to ``high`` and ``n`` of the reading that decides, and how many of the
        ``others``, readings under other choices, ``agree``.

    Example:
        >>> table = rarefy.claims("Xu Chen figure 3")
        >>> table[["where", "answer"]].to_dict("index")
        {'B6': {'where': 'Fig. 3a, 3b', 'answer': 'supported'}}
    """
    import pandas as pd

    found = current_answers()
    wanted = find(load_claims(), what, paper, figure)
    return pd.DataFrame([in_short(found[claim.id]) for claim in wanted]).set_index("claim")


def in_short(answer: Answer) -> dict[str, Any]:
    """One row of the table of claims."""
    claim = answer.claim
    decisive = deciding(answer)
    low, high = (decisive and decisive.interval) or (None, None)
    return {
        "claim": claim.id,
        "paper": paper_names(claim.papers),
        "where": claim.where,
        "answer": answer.state,
        "line": claim.line,
        "review": claim.review and f"under review: {claim.review}",
        "value": decisive.value if decisive else None,
        "low": low,
        "high": high,
        "n": decisive.n if decisive else 0,
        "agree": answer.agree,
        "others": len(answer.others),
    }


def in_full(answer: Answer) -> dict[str, Any]:
    """Everything that ``rarefy claims ID`` shows, for JSON."""
    from rarefy.ledger.verdicts import verdict_to_json

    claim = answer.claim
    words = ("statement", "setting", "choices", "ran", "saw", "so", "change", "figure")
    primaries = [
        {
            **vars(part.primary),
            "state": part.state,
            "p": part.p,
            "verdict": verdict_to_json(part.verdict) if part.verdict else None,
        }
        for part in answer.parts
    ]
    return {
        **in_short(answer),
        **{word: getattr(claim, word) for word in words},
        "declared": claim.declared.isoformat(),
        "results": f"declared {claim.seen} they were seen",
        "why": answer.why,
        "primaries": primaries,
        "exceptions": [verdict.setting for verdict in answer.exceptions],
        "command": command(claim),
    }


def deciding(answer: Answer) -> Verdict | None:
    """The verdict the answer stands on: the first primary that has the answer's state."""
    parts = [part for part in answer.parts if part.verdict is not None]
    same = [part.verdict for part in parts if part.state == answer.state]
    return (same or [part.verdict for part in parts] or [None])[0]


def command(claim: Claim) -> str:
    """What runs its primary readings."""
    runs = dict.fromkeys(f"rarefy run {one.study} --scale {one.scale}" for one in claim.primaries)
    return " && ".join(runs)
