"""Parameters from the command line: ``--set name=v1,v2,...`` becomes values of the field's type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from rarefy.core.contracts import Experiment
from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.core.parameters import Parameter, parameters_of

LARGEST = 2**63
"""Whole numbers that a tensor can hold are below it."""
MAX_RANGE = 100_000
"""More values than this in one ``a:b:step`` is a slip of the pen."""


def parse_settings(kind: type[Experiment], assignments: Iterable[str]) -> dict[str, Any]:
    """Texts such as ``lr=0.1`` or ``sigma=0,0.5,1:4:1`` as parameters of a study."""
    known = parameters_of(kind)
    settled: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not name or not text:
            raise bad_value("--set", assignment, "must be name=value or name=v1,v2,...")
        if name in kind.renamed:
            raise bad_value(name, text, f"is called {kind.renamed[name]} now")
        if name not in known:
            raise unknown(f"parameter of {kind.name}", name, known)
        if name in settled:
            raise bad_value("--set", assignment, f"{name} is set twice; separate values by commas")
        settled[name] = _value(kind, known[name], text)
    return settled


def _value(kind: type[Experiment], parameter: Parameter, text: str) -> Any:
    name = parameter.name
    if parameter.nested:
        raise bad_value(name, text, "holds lists of lists; set it from Python")
    if text.lower() == "none" and parameter.optional:
        return None
    if parameter.kind is None:
        raise UsageError(f"{name}: can only be set from Python")
    convert = _CONVERT[parameter.kind]
    if not parameter.many:
        if "," in text and convert is not _text:
            many = ", ".join(kind.axes) or "none"
            raise bad_value(name, text, f"takes one value; those with many are {many}")
        return convert(name, text)
    values: list[Any] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        ranged = ":" in part and convert is not _text  # a text may have a colon of its own
        values += _range(name, part, convert) if ranged else [convert(name, part)]
    if not values:
        raise bad_value(name, text, "needs at least one value")
    return tuple(values)


def _truth(name: str, text: str) -> bool:
    word = text.lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0"):
        return False
    raise bad_value(name, text, "must be true or false")


def _whole(name: str, text: str) -> int:
    try:
        value = float(text)  # so that 1e4 is a whole number too
        if value.is_integer() and abs(value) < LARGEST:
            return int(text) if text.lstrip("+-").isdigit() else int(value)
    except ValueError:
        pass
    raise bad_value(name, text, "must be a whole number below 2^63")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise bad_value(name, text, "must be a number") from None


def _text(name: str, text: str) -> str:
    return text


_CONVERT: dict[type, Callable[[str, str], Any]] = {
    bool: _truth,
    float: _number,
    int: _whole,
    str: _text,
}


def _range(name: str, text: str, convert: Callable[[str, str], Any]) -> list[Any]:
    """``a:b`` or ``a:b:step``, both ends included."""
    parts = text.split(":")
    if convert not in (_number, _whole) or len(parts) not in (2, 3):
        raise bad_value(name, text, "a range is first:last:step, of numbers")
    first, last, step = (convert(name, part) for part in (*parts, "1")[:3])
    if not all(map(math.isfinite, (first, last, step))):
        raise bad_value(name, text, "a range has a first, a last and a step that are finite")
    if step == 0 or (last - first) / step < 0:
        raise bad_value(name, text, "this range is empty; it is first:last:step, both included")
    count = int((last - first) / step + 1e-9) + 1
    if count > MAX_RANGE:
        raise bad_value(name, text, f"this range has {count} values, at most {MAX_RANGE} are taken")
    # rounding keeps 0:1:0.1 from holding 0.30000000000000004
    values = [first + step * place for place in range(count)]
    return [value if isinstance(value, int) else round(value, 12) for value in values]
