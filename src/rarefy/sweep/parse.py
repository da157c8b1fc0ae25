"""Parameters from the command line: ``--set name=v1,v2,...`` becomes values of the field's type."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from rarefy.core.contracts import Study
from rarefy.core.errors import UsageError, bad_value, unknown

LARGEST = 2**63
"""Whole numbers that a tensor can hold are below it."""
MAX_RANGE = 100_000
"""More values than this in one ``a:b:step`` is a slip of the pen."""


def parse_settings(kind: type[Study], assignments: Iterable[str]) -> dict[str, Any]:
    """Texts such as ``lr=0.1`` or ``sigma=0,0.5,1:4:1`` as parameters of a study."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    settled: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not name or not text:
            raise bad_value("--set", assignment, "must be name=value or name=v1,v2,...")
        if name not in fields:
            raise unknown(f"parameter of {kind.name}", name, fields)
        if name in settled:
            raise bad_value("--set", assignment, f"{name} is set twice; separate values by commas")
        settled[name] = _value(kind, fields[name], text)
    return settled


def _value(kind: type[Study], field: dataclasses.Field[Any], text: str) -> Any:
    annotation = field.type if isinstance(field.type, str) else str(field.type)
    words = re.findall(r"[A-Za-z_]\w*", annotation)
    many = field.name in kind.axes or "tuple" in words
    if words.count("tuple") > 1:
        raise bad_value(field.name, text, "holds lists of lists; set it from Python")
    if text.lower() == "none" and "None" in words:
        return None
    convert = _converter(field.name, words)
    if not many:
        if "," in text and convert is not _text:
            raise bad_value(field.name, text, f"takes one value; those with many are {_many(kind)}")
        return convert(field.name, text)
    values: list[Any] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        ranged = ":" in part and convert is not _text  # a text may have a colon of its own
        values += _range(field.name, part, convert) if ranged else [convert(field.name, part)]
    if not values:
        raise bad_value(field.name, text, "needs at least one value")
    return tuple(values)


def _many(kind: type[Study]) -> str:
    return ", ".join(kind.axes) or "none"


def _converter(name: str, words: list[str]) -> Callable[[str, str], Any]:
    for word, convert in (("bool", _truth), ("float", _number), ("int", _whole), ("str", _text)):
        if word in words:
            return convert
    raise UsageError(f"{name}: can only be set from Python (its type is {' '.join(words)})")


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
