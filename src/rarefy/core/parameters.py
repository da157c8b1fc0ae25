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
        """Kind, rules and size; ``is_axis``: a point may also be a tuple of its own."""
        if value is None and self.optional:
            return
        if not self.many:
            self._check_one(value)
        elif not isinstance(value, tuple):
            raise bad_value(self.name, value, "must be a list of values")
        else:
            for one in value:
                if not (isinstance(one, tuple) and (is_axis or self.nested)):
                    self._check_one(one)

    def _check_one(self, value: Any) -> None:
        if self.kind in _KINDS and not (value is None and self.optional):
            allowed, complaint = _KINDS[self.kind]
            truth = isinstance(value, bool | np.bool_) and self.kind is not bool
            if not isinstance(value, allowed) or truth:
                raise bad_value(self.name, value, complaint)
        if isinstance(value, int) and abs(value) >= 2**63:
            raise bad_value(self.name, f"{str(value)[:40]}...", "must be below 2^63")
        for rule in self.rules:
            if not rule.holds(value):
                raise bad_value(self.name, value, rule.allowed)
        if isinstance(value, float) and not math.isfinite(value):
            raise bad_value(self.name, value, "must be finite")


@cache
def parameters_of(cls: type) -> Mapping[str, Parameter]:
    """The parameters of an experiment, a frozen dataclass, in the order of its fields."""
    hints, meanings = get_type_hints(cls, include_extras=True), _meanings(cls)
    found = {}
    for field in fields(cls):
        unit, rules, shape = "", [], {"many": False, "optional": False, "nested": False}
        hint, depth = hints[field.name], 0
        while True:
            origin = get_origin(hint)
            if origin is Annotated:
                hint, *notes = get_args(hint)
                rules += [note for note in notes if isinstance(note, Rule)]
                unit = next((note.name for note in notes if isinstance(note, Unit)), unit)
            elif origin in (Union, types.UnionType):
                shape["optional"] = True
                hint = next(one for one in get_args(hint) if one is not type(None))
            elif origin is tuple:
                depth += 1
                hint = get_args(hint)[0]
            else:
                break
        shape |= {"many": depth > 0, "nested": depth > 1}
        found[field.name] = Parameter(
            field.name,
            hint if hint in _KINDS else None,
            default=field.default,
            meaning=meanings.get(field.name, ""),
            unit=unit,
            rules=tuple(rules) or _inherited_rules(cls, field.name),
            **shape,
        )
    return found


def _inherited_rules(cls: type, name: str) -> tuple[Rule, ...]:
    """A field that is only given another default keeps the rules of the class above."""
    for base in cls.__mro__[1:]:
        if name in base.__dict__.get("__annotations__", {}):
            return parameters_of(base)[name].rules
    return ()


def _meanings(cls: type) -> dict[str, str]:
    """The texts below the fields of a class and of those it inherits from."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if "__annotations__" not in vars(one):
            continue
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
        except (OSError, TypeError, SyntaxError):  # made without a file
            continue
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for entry, below in zip(statements, statements[1:], strict=False):
            text = below.value if isinstance(below, ast.Expr) else None
            if not isinstance(entry, ast.AnnAssign) or not isinstance(entry.target, ast.Name):
                continue
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[entry.target.id] = " ".join(text.value.split())
    return found


def check_parameters(experiment: Any, names: Iterable[str] | None = None) -> None:
    """Raise ``UsageError`` for the first value that its field does not allow."""
    kind: type = type(experiment)
    known = parameters_of(kind)
    for name in known if names is None else names:
        known[name].check(getattr(experiment, name), name in experiment.axes)
