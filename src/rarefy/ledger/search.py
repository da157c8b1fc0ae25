"""Find claims as a person asks for them: by id, paper, figure or theorem, or a few words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from textwrap import shorten

from rarefy.core.errors import UsageError
from rarefy.core.papers import PAPERS
from rarefy.ledger.claims import ID, OWN, Claim

KINDS = {
    "figure": "fig",
    "figures": "fig",
    "figs": "fig",
    "tables": "table",
    "tab": "table",
    "theorem": "thm",
    "theorems": "thm",
    "proposition": "prop",
    "section": "sec",
    "appendix": "app",
    "lemmas": "lemma",
    "remarks": "remark",
}
_PLACE = re.compile(
    r"\b(fig(?:ure)?s?|tab(?:le)?s?|thm|theorems?|lemmas?|prop(?:osition)?|remarks?|sec(?:tion)?"
    r"|app(?:endix)?)\.? *((?:[a-z]\.)?\d[\d.]*[a-z]?(?:(?:-|, (?:and )?| and )(?:[a-z]\.)?\d[\d.]*"
    r"[a-z]?)*)",
    re.IGNORECASE,
)
_SMALL = set("a al an and at by claim come doe et figure for hold i in of on or out".split())
_SMALL |= set("paper the to what with".split())
"""Words that tell no claim from another, without a last s."""


def places(text: str) -> set[tuple[str, str]]:
    """("fig", "3") of "Fig. 3a, 3b", ("fig", "2") and ("fig", "3") of "Fig. 2-3"."""
    found = set()
    for kind, numbers in _PLACE.findall(text):
        word = kind.lower().rstrip(".")
        word = KINDS.get(word, word)
        for part in re.split(r",|\band\b", numbers):
            first, _, last = part.strip().rstrip(".").partition("-")
            ends = [re.sub(r"[a-z]$", "", end.lower()) for end in (first, last or first)]
            if all(end.isdecimal() for end in ends) and int(ends[1]) - int(ends[0]) in range(50):
                ends = [str(one) for one in range(int(ends[0]), int(ends[1]) + 1)]
            found |= {(word, end) for end in ends}
    return found


def find(claims: Sequence[Claim], text: str = "", paper: str = "", figure: str = "") -> list[Claim]:
    """The claims meant, best first; raises with the nearest three where none is."""
    left = list(claims)
    if paper:
        left = _of_paper(left, paper)
    if figure:
        wanted = places(figure) or places(f"Fig. {figure}")
        known = {claim.id: claim.where for claim in left}
        left = [claim for claim in left if wanted & places(claim.where)]
        if not left:
            raise UsageError(f"figure={figure!r}: no claim stands there{_nearest(figure, known)}")
    if text:
        left = _by_words(left, text)
    return left


def _of_paper(claims: list[Claim], paper: str) -> list[Claim]:
    words = set(_words(paper))
    names = {key: f"{one.short} {one.authors} {one.title}" for key, one in PAPERS.items()}
    names |= {OWN: "our own questions"}
    keys = [key for key, name in names.items() if paper == key or words <= set(_words(name))]
    found = [claim for claim in claims if set(claim.papers) & set(keys)]
    if not found:
        raise UsageError(f"paper={paper!r} is not one of ours{_nearest(paper, names)}")
    return found


def _by_words(claims: list[Claim], text: str) -> list[Claim]:
    by_id = {claim.id.lower(): claim for claim in claims}
    named = [word.partition(".")[0] for word in re.findall(r"[a-z0-9.]+", text.lower())]
    if named and all(name in by_id for name in named):
        return [by_id[name] for name in dict.fromkeys(named)]
    asked, about = places(text), {claim.id: set(_words(_described(claim))) for claim in claims}
    words = _spelt(text, sorted(set().union(*about.values())), placed=bool(asked))
    scores = {}
    for claim in claims:
        if asked and not asked & places(claim.where):
            continue
        hits = sum(_means(word, about[claim.id]) for word in words)
        if hits == len(words) or (hits and hits >= len(words) - 1 and not asked):
            scores[claim.id] = hits
    if not scores:
        near = {one.id: f"{one.where} {one.line}" for one in claims}
        said = shorten(text, 80, placeholder=" ...")
        raise UsageError(f"no claim is called or about {said!r}{_nearest(text[:80], near)}")
    best = max(scores.values())
    return [claim for claim in claims if scores.get(claim.id) == best]


def _spelt(text: str, known: list[str], placed: bool) -> list[str]:
    """The words that tell claims apart, as claims spell them. Once a place is given, a word that
    nobody uses tells nothing."""
    found = []
    for word in _words(_PLACE.sub(" ", text)):
        if word in _SMALL:
            continue
        near = [] if len(word) < 4 else get_close_matches(word, known, 1, 0.82)
        if _means(word, known) or not (near or placed):
            found.append(word)
        else:
            found += near
    return found


def _means(word: str, known: Iterable[str]) -> bool:
    """Is a word, or how one begins ("tail" of "tailed"), among these?"""
    known = set(known)
    return word in known or (len(word) >= 4 and any(one.startswith(word) for one in known))


def _described(claim: Claim) -> str:
    papers = " ".join(f"{key} {PAPERS[key]}" for key in claim.papers if key in PAPERS)
    rooms = " ".join(one.study.partition("-")[0] for one in claim.primaries)
    return f"{papers} {claim.where} {claim.statement} {claim.setting} {claim.line} {rooms}"


def _words(text: str) -> list[str]:
    # a plural asks for the same thing
    return [word.rstrip("s") for word in re.findall(r"[a-z0-9]+", text.lower())]


def _nearest(text: str, known: dict[str, str]) -> str:
    """The nearest three, for an error message."""

    asked = _words(text) or [text.lower()]

    def closeness(item: tuple[str, str]) -> float:
        words = [item[0].lower(), *_words(item[1])]
        alike = [max(SequenceMatcher(None, one, word).ratio() for word in words) for one in asked]
        # an id is asked for by its letter and number, whatever the texts have in common with it
        mine = SequenceMatcher(None, text.lower(), item[0].lower()).ratio()
        return sum(alike) / len(alike) + (mine if ID.fullmatch(text) else 0)

    best = sorted(known.items(), key=closeness, reverse=True)[:3]
    return f"; nearest: {', '.join(_shown(*item) for item in best)}" if best else ""


def _shown(name: str, about: str) -> str:
    short = PAPERS[name].short if name in PAPERS else shorten(about, 50, placeholder=" ...")
    return f"{name} ({short})"


def families(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """Claims by their first paper, under a heading a person reads."""
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        key = claim.papers[0]
        found.setdefault(str(PAPERS[key]) if key in PAPERS else "Our own questions", []).append(
            claim
        )
    return found
