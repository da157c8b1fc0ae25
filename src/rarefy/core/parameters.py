"""What a parameter may be, said on its field and checked in one place.

    filters: Count = 100
    combine: Annotated[str, OneOf(COMBINATIONS)] = "mean"
    strength: tuple[Positive, ...] = (0.1, 1.0)
    test_noise: Annotated[float, AtLeast(0), Unit("std of the pixels")] = 0.0

The text below a field is its meaning. What ties two parameters together stays in ``check``.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from rarefy.core.errors import bad_value

MOST = 1e38
"""Networks are trained in float32."""


@dataclass(frozen=True)
class Rule:
    """A condition on one value, and its complaint: ``must be at least 1``."""

    allowed: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Unit:
    """What a number counts or is measured in."""

    name: str


def _number(value: float) -> str:
    return f"{value:.15g}"


def AtLeast(low: float) -> Rule:
    """A number that is finite and not below ``low``."""
    return Rule(f"must be at least {_number(low)}", lambda value: low <= value < math.inf)


def InRange(low: float, high: float) -> Rule:
    """A number between two others, both included."""
    text = f"must be between {_number(low)} and {_number(high)}"
    return Rule(text, lambda value: low <= value <= high)


def OneOf(names: Iterable[Any]) -> Rule:
    """One of several names."""
    known = tuple(names)
    return Rule(f"must be one of {', '.join(map(str, known))}", lambda value: value in known)


Count = Annotated[int, AtLeast(1)]
Whole = Annotated[int, AtLeast(0)]
Positive = Annotated[float, Rule("must be positive and finite", lambda value: 0 < value < math.inf)]
NotNegative = Annotated[
    float, Rule("must be finite and at least 0", lambda value: 0 <= value < math.inf)
]
Share = Annotated[float, InRange(0, 1)]
PositiveShare = Annotated[float, Rule("must be in (0, 1]", lambda value: 0 < value <= 1)]

_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool, np.bool_), "must be true or false"),
    int: ((int, np.integer), "must be a whole number"),
    float: ((int, float, np.integer, np.floating), "must be a number"),
    str: ((str,), "must be a text"),
}


@dataclass(frozen=True)
class Parameter:
    """One field of an experiment: its type, default and meaning, and the rules for a value."""

    name: str
    kind: Any
    """bool, int, float or str, of the value or of each value of a list; None for anything else"""
    many: bool
    """a list of values"""
    optional: bool
    """may be None"""
    default: Any
    meaning: str
    unit: str
    rules: tuple[Rule, ...]
    """for the value, or for each value of a list"""
    nested: bool
    """a list of lists"""

    def check(self, value: Any, is_axis: bool) -> None:
        """Kind and rules; an axis always holds a list."""
        if value is None and self.optional:
            return
        if not self.many and not (is_axis and isinstance(value, tuple)):
            self._check_one(value)
        elif not isinstance(value, tuple):
            raise bad_value(self.name, value, "must be a list of values")
        elif is_axis and not value:
            raise bad_value(self.name, value, "needs at least one value")
        else:
            for one in value:
                for inner in one if self.nested and isinstance(one, tuple) else (one,):
                    self._check_one(inner)

    def _check_one(self, value: Any) -> None:
        if self.kind in _KINDS and not (value is None and self.optional):
            allowed, complaint = _KINDS[self.kind]
            truth = isinstance(value, bool | np.bool_) and self.kind is not bool
            if not isinstance(value, allowed) or truth:
                raise bad_value(self.name, value, complaint)
            if isinstance(value, float) and MOST < abs(value) < math.inf:
                raise bad_value(self.name, value, f"must be below {MOST:g}, as float32 is")
        for rule in self.rules:
            if not rule.holds(value):
                raise bad_value(self.name, value, rule.allowed)


@cache
def parameters_of(cls: type) -> Mapping[str, Parameter]:
    """The parameters of an experiment, a frozen dataclass, in the order of its fields."""
    meanings, found = _meanings(cls), {}
    for field in fields(cls):
        kind, notes, depth, optional = _shape(_hints(cls)[field.name])
        for base in cls.__mro__[1:]:
            # who gives a field another default need not say its rules again
            if not notes and field.name in getattr(base, "__dataclass_fields__", {}):
                notes = _shape(_hints(base)[field.name])[1]
        found[field.name] = Parameter(
            field.name,
            kind,
            many=depth > 0,
            optional=optional,
            default=field.default,
            meaning=meanings.get(field.name, ""),
            unit=next((note.name for note in notes if isinstance(note, Unit)), ""),
            rules=tuple(note for note in notes if isinstance(note, Rule)),
            nested=depth > 1,
        )
    return found


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _shape(hint: Any) -> tuple[Any, list[Any], int, bool]:
    """Kind of value, what the annotation says of it, how deep it is nested, whether None may be."""
    notes: list[Any] = []
    depth, optional = 0, False
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *more = get_args(hint)
            notes += more
        elif origin in (Union, types.UnionType):
            optional = True
            hint = next(one for one in get_args(hint) if one is not type(None))
        elif origin is tuple:
            depth, hint = depth + 1, get_args(hint)[0]
        else:
            return hint if hint in _KINDS else None, notes, depth, optional


def _meanings(cls: type) -> dict[str, str]:
    """The texts below the fields of a class and of those it inherits from."""
    return {
        name: text for one in reversed(cls.__mro__) for name, text in _own_meanings(one).items()
    }


@cache  # many inherit from one, and to find a class Python parses its whole file
def _own_meanings(cls: type) -> dict[str, str]:
    found: dict[str, str] = {}
    if "__annotations__" not in vars(cls):
        return found
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):  # made without a file
        return found
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for entry, below in zip(statements, statements[1:], strict=False):
        text = below.value if isinstance(below, ast.Expr) else None
        if not isinstance(entry, ast.AnnAssign) or not isinstance(entry.target, ast.Name):
            continue
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            found[entry.target.id] = " ".join(text.value.split())
    return found


def check_parameters(experiment: Any) -> None:
    """Raise ``UsageError`` for the first value that its field does not allow."""
    kind: type = type(experiment)
    for name, parameter in parameters_of(kind).items():
        parameter.check(getattr(experiment, name), name in experiment.axes)


def check_size(name: str, value: Any) -> None:
    """What no tensor can hold, or leaves no result a number: where no rule says it better."""
    if isinstance(value, tuple):
        for item in value:
            check_size(name, item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise bad_value(name, value, "must be finite")
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise bad_value(name, f"{str(value)[:40]}...", "must be below 2^63")
