"""Do the words of an answer still agree with what was measured?"""

from __future__ import annotations

import math
import re

from rarefy.ledger.answers import Answer

_NUMERAL = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\.?\d)( ?%| points)?")
_PLACES = re.compile(r"(?:Fig|Figs|Table|Theorem|Lemma|Sec|App|Eq)[.s]* *\(?[A-Z]?[.\d]+[a-z]?\)?")


def unfounded(answer: Answer) -> list[str]:
    """What ``line`` and ``saw`` say that the verdicts do not: another answer, or numerals that are
    none of the primaries' numbers, to the digits shown."""
    claim = answer.claim
    wrong = []
    if claim.answer != answer.state:
        why = f" ({answer.why})" if answer.why else ""
        wrong.append(f"it says {claim.answer}, the rule gives {answer.state}{why}")
    if claim.answer == "not run":
        return wrong
    known = _known(answer)
    for name in ("line", "saw"):
        for found in _NUMERAL.finditer(_PLACES.sub("", getattr(claim, name))):
            if not _is_known(found.group(0), known):
                wrong.append(f"{name} quotes {found.group(0).strip()}, which no primary measured")
    return wrong


def _known(answer: Answer) -> list[float]:
    """Every number of the primaries' verdicts, and the robustness fraction."""
    known: list[float] = [answer.agree, len(answer.others), len(answer.exceptions)]
    for part in answer.parts:
        if (verdict := part.verdict) is None:
            continue
        ends = (*(verdict.interval or ()), *(verdict.allowed or ()))
        known += [verdict.n, *ends]
        known += [one for one in (verdict.value, verdict.published, verdict.p) if one is not None]
        text = " ".join((verdict.measured, verdict.note, verdict.setting, verdict.predicted))
        known += [_number(found.group(0)) for found in _NUMERAL.finditer(text)]
    return [abs(one) for one in known if math.isfinite(one)]


def _is_known(numeral: str, known: list[float]) -> bool:
    """To the digits shown; a share may be quoted in per cent."""
    value = abs(_number(numeral))
    mantissa, _, power = numeral.rstrip(" %points").partition("e")
    half = 0.5000001 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    scales = (1.0, 100.0) if numeral.endswith(("%", "points")) else (1.0,)
    return any(abs(scale * one - value) <= half for scale in scales for one in known)


def _number(numeral: str) -> float:
    bare = numeral.replace(",", "").replace("−", "-")
    return float(re.sub(r"[^\d.e+-].*$", "", bare.strip()))
