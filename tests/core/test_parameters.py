"""Rules on the fields of an experiment: kinds, ranges, choices, meanings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.core.parameters import (
    AtLeast,
    Count,
    InRange,
    NotNegative,
    OneOf,
    Positive,
    PositiveShare,
    Share,
    Unit,
    Whole,
    check_parameters,
    check_size,
    parameters_of,
)


@dataclass(frozen=True, kw_only=True)
class Base:
    axes: ClassVar[tuple[str, ...]] = ("rate", "pair")

    count: Count = 3
    """how many
    there are"""
    share: Share = 0.5


@dataclass(frozen=True, kw_only=True)
class Made(Base):
    rate: tuple[Positive, ...] = (0.1, 1.0)
    """learning rate"""
    pair: tuple[tuple[float, ...], ...] = ((0.1, 0.2),)
    floor: NotNegative = 0.0
    whole: Whole = 0
    kept: PositiveShare = 1.0
    rule: Annotated[str, OneOf(("dense", "masked"))] = "dense"
    noise: Annotated[float, AtLeast(0), Unit("std of the pixels")] = 0.0
    level: Annotated[int, InRange(2, 4)] = 2
    seed: int | None = None
    flag: bool = False
    free: float = 1.0


def test_what_a_field_says() -> None:
    known = parameters_of(Made)
    assert list(known)[:2] == ["count", "share"], "in the order of the fields"
    assert known["count"].meaning == "how many there are"
    assert known["rate"].many and known["rate"].kind is float
    assert known["rate"].rules[0].allowed == "must be positive and finite"
    assert known["pair"].nested and not known["pair"].rules
    assert known["noise"].unit == "std of the pixels"
    assert known["seed"].optional and known["seed"].kind is int


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"count": 0}, "count=0: must be at least 1"),
        ({"count": 1.5}, "count=1.5: must be a whole number"),
        ({"count": True}, "count=True: must be a whole number"),
        ({"share": 1.1}, "share=1.1: must be between 0 and 1"),
        ({"share": math.nan}, "share=nan: must be between 0 and 1"),
        ({"rate": 0.1}, "rate=0.1: must be a list of values"),
        ({"rate": ()}, "rate=(): needs at least one value"),
        ({"rate": ((0.1, 0.2),)}, "rate=(0.1, 0.2): must be a number"),
        ({"pair": ((0.1, "x"),)}, "pair='x': must be a number"),
        ({"rate": (0.1, -1.0)}, "rate=-1.0: must be positive and finite"),
        ({"rate": (0.1, "x")}, "rate='x': must be a number"),
        ({"floor": math.inf}, "floor=inf: must be finite and at least 0"),
        ({"whole": -1}, "whole=-1: must be at least 0"),
        ({"kept": 0.0}, "kept=0.0: must be in (0, 1]"),
        ({"rule": "thin"}, "rule='thin': must be one of dense, masked"),
        ({"rule": 1}, "rule=1: must be a text"),
        ({"noise": -0.5}, "noise=-0.5: must be at least 0"),
        ({"level": 5}, "level=5: must be between 2 and 4"),
        ({"flag": 1}, "flag=1: must be true or false"),
        ({"seed": "a"}, "seed='a': must be a whole number"),
    ],
)
def test_wrong_values_are_named(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as error:
        check_parameters(Made(**wrong))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("value", "told"), [(math.nan, "free=nan: must be finite"), (2**63, "must be below 2^63")]
)
def test_what_no_tensor_can_hold(value: float, told: str) -> None:
    for one in (value, (1.0, value)):
        with pytest.raises(UsageError, match=told.replace("^", r"\^")):
            check_size("free", one)


def test_a_new_default_keeps_the_rules() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other(Made):
        count: int = 7

    with pytest.raises(UsageError, match="count=0: must be at least 1"):
        check_parameters(Other(count=0))


def test_right_values_pass() -> None:
    check_parameters(Made())
    check_parameters(Made(seed=None, count=2**62, share=0, pair=((1.0,), (2.0, 3.0)), flag=True))


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_positive_number_is_positive_and_finite(value: float) -> None:
    if 0 < value <= 1e38:
        check_parameters(Made(rate=(value,)))
    else:
        with pytest.raises(UsageError, match="must be (positive and finite|below 1e)"):
            check_parameters(Made(rate=(value,)))
