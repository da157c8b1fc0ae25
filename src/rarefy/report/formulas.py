"""Formulas in our words, such as ``|u|^2/(m n)`` or ``sigma_p sqrt(d)``, typeset.

Studies and claims write them as plain text, so that a terminal can show them too. Here symbols with
their indices and powers are found in a text and given as MathML (pages), as mathtext (matplotlib)
or as the few tags that plotly knows. All else stays the text it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from markupsafe import Markup, escape

_NAMES = (
    "alpha beta gamma delta eps epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi "
    "chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
).split()
_LETTERS = ("α β γ δ ε ε ζ η θ κ λ μ ν ξ π ρ σ τ φ χ ψ ω Γ Δ Θ Λ Ξ Π Σ Φ Ψ Ω").split()
GREEK = dict(zip(_NAMES, _LETTERS, strict=True))
_SIGNS = {">=": "≥", "<=": "≤", "->": "→"}

_SYMBOL = rf"(?:(?:{'|'.join(sorted(_NAMES, key=len, reverse=True))}|SNR|log|[A-Za-zα-ωΑ-Ω])\*?)"
# possessive, here and where terms are repeated: text that is no formula must not take for ever
_TERM = r"(?:[A-Za-z0-9.]++\*?+(?:_[A-Za-z0-9]++)?(?:\^[A-Za-z0-9]++)?|[-+/*,= ])"
_INNER = rf"(?:{_TERM}|\({_TERM}++\))++"
_PART = rf"(?:\({_INNER}\)|-?[0-9]+\.[0-9]+|-?[A-Za-z0-9*]+(?:_[a-z0-9]+)?(?:/[0-9]+)?)"
_FORMULA = re.compile(
    rf"(?<![\w.\\])(?P<symbol>{_SYMBOL})(?![A-Za-z])"
    rf"(?:_(?P<under>[A-Za-z0-9*]+))?(?:\^(?P<over>{_PART}))?(?!\w)"
    rf"|(?<=[|)\d\]])(?:_(?P<under_>[A-Za-z0-9]+))?(?:\^(?P<over_>{_PART}))?"
    rf"|\bsqrt\((?P<root>{_INNER})\)"
    r"|(?<= )(?P<sign>>=|<=|->)(?= )"
)
_TOKEN = re.compile(r"([^\W\d_]+\*?|\d+(?:\.\d+)?|\S)(?:_(\w+))?(?:\^(\w+))?")
"""Within a root, an index or a power."""

Atom = tuple[str, str, str]
"""A symbol with its index and its power, each perhaps empty."""


def mathml(text: str) -> Markup:
    """For pages: everything else is escaped."""
    return Markup(
        _typeset(
            str(text),
            lambda plain: str(escape(plain)),
            lambda atom: f"<math>{_element(*atom)}</math>",
            lambda inner: f"<math><msqrt>{_row(inner)}</msqrt></math>",
        )
    )


def mathtext(text: str) -> str:
    """For matplotlib: a dollar sign of the text's own is escaped."""
    return _typeset(
        text,
        lambda plain: plain.replace("$", r"\$"),
        lambda atom: _dollars(*atom) if any(atom[1:]) else atom[0],
        lambda inner: rf"$\sqrt{{{_upright(inner)}}}$",
    )


def tags(text: str, plain: Callable[[str], str]) -> str:
    """For plotly; ``plain`` escapes what is not a formula."""

    def atom(found: Atom) -> str:
        symbol, *parts = found
        for name, part in zip(("sub", "sup"), parts, strict=True):
            symbol += f"<{name}>{tags(part, plain)}</{name}>" if part else ""
        return symbol

    return _typeset(text, plain, atom, lambda inner: f"√({tags(inner, plain)})")


def _typeset(
    text: str,
    plain: Callable[[str], str],
    atom: Callable[[Atom], str],
    root: Callable[[str], str],
) -> str:
    pieces, end = [], 0
    for found in _FORMULA.finditer(text):
        parts = found.groupdict("")
        under, over = parts["under"] or parts["under_"], parts["over"] or parts["over_"]
        symbol = parts["symbol"]
        if not found.group() or not (symbol in GREEK or under or over or not symbol):
            continue  # a letter alone may be an article
        pieces.append(plain(text[end : found.start()]))
        end = found.end()
        if parts["root"]:
            pieces.append(root(_greek(parts["root"])))
        elif parts["sign"]:
            pieces.append(plain(_SIGNS[parts["sign"]]))
        else:
            over = over[1:-1] if over.startswith("(") else over
            pieces.append(atom((_greek(symbol), _greek(under), _greek(over))))
    return "".join([*pieces, plain(text[end:])])


def _greek(part: str) -> str:
    found = re.sub(r"[A-Za-z]+", lambda word: GREEK.get(word.group(), word.group()), part)
    return found.replace("-", "−")


def _row(part: str) -> str:
    """What stands within a root, an index or a power."""
    return f"<mrow>{''.join(_element(*found) for found in _TOKEN.findall(part))}</mrow>"


def _element(symbol: str, under: str, over: str) -> str:
    # a bracket's power belongs to the text before it
    kind = "mn" if symbol[:1].isdigit() else "mi" if symbol[:1].isalpha() else "mo"
    base = f"<{kind}>{escape(symbol)}</{kind}>" if symbol else "<mrow></mrow>"
    name = ("msub" if under else "m") + ("sup" if over else "")
    parts = "".join(_row(part) for part in (under, over) if part)
    return f"<{name}>{base}{parts}</{name}>" if parts else base


def _dollars(symbol: str, under: str, over: str) -> str:
    parts = "".join(
        f"{sign}{{{_upright(part)}}}" for sign, part in (("_", under), ("^", over)) if part
    )
    return f"${_upright(symbol) or '{}'}{parts}$"


def _upright(part: str) -> str:
    """Words and what they hold, in mathtext's spelling."""
    words = re.sub(r"[A-Za-z]{2,}", lambda word: rf"\mathrm{{{word.group()}}}", part)
    return words.replace("*", r"{\ast}").replace(" ", r"\,").replace("%", r"\%")
