"""Labels of every make, and each way in which they can be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.data.images.listing import counted
from rarefy.tools.samples.labels import encode_labels
from rarefy.tools.samples.messages import rows_text


@pytest.mark.parametrize(
    ("given_labels", "codes", "classes"),
    [
        (np.array([3, 1, 3]), [1, 0, 1], ("1", "3")),
        ([3, 1, 3], [1, 0, 1], ("1", "3")),
        (np.array([3.0, 1.0, 3.0]), [1, 0, 1], ("1", "3")),
        (torch.tensor([3, 1, 3]), [1, 0, 1], ("1", "3")),
        (["dog", "cat", "dog"], [1, 0, 1], ("cat", "dog")),
        (np.array(["dog", "cat", "dog"]), [1, 0, 1], ("cat", "dog")),
        (np.array([b"dog", b"cat", b"dog"]), [1, 0, 1], ("cat", "dog")),
        ([b"dog", b"cat", "dog"], [1, 0, 1], ("cat", "dog")),
        (pd.Series(["dog", "cat", "dog"]), [1, 0, 1], ("cat", "dog")),
        (pd.Series(["dog", "cat", "dog"], dtype="category"), [1, 0, 1], ("cat", "dog")),
        (np.array([True, False, True]), [1, 0, 1], ("False", "True")),
        (["10", "2", "10"], [1, 0, 1], ("2", "10")),
        (["10", "2", "a"], [0, 1, 2], ("10", "2", "a")),
        (np.array([1, 2, 2], dtype=object), [0, 1, 1], ("1", "2")),
        (["NA", "DE", "NA"], [1, 0, 1], ("DE", "NA")),
        (torch.tensor([3, 1, 3], dtype=torch.bfloat16), [1, 0, 1], ("1", "3")),
        ([-0.0, 0.0, 2.0**53 - 1], [0, 0, 1], ("0", "9007199254740991")),
        ([2**63, 2**63 + 1, 2**63], [0, 1, 0], ("9223372036854775808", "9223372036854775809")),
        ([-(2**70), 2**70, -(2**70)], [0, 1, 0], (f"-{2**70}", f"{2**70}")),
    ],
)
def test_all_makes_of_labels_give_the_same(
    given_labels: Any, codes: list[int], classes: tuple[str, ...]
) -> None:
    found, names = encode_labels(given_labels, 3)
    assert found.dtype == np.int64
    assert found.tolist() == codes
    assert names == classes


def test_given_classes_are_kept_even_when_empty() -> None:
    assert encode_labels([2, 0], 2, ["a", "b", "c"])[0].tolist() == [2, 0]
    assert encode_labels(["c", "a"], 2, ["a", "b", "c"])[0].tolist() == [2, 0]
    assert encode_labels(["c", "a"], 2, ["a", "b", "c"])[1] == ("a", "b", "c")


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=20))
def test_names_come_back(names: list[str]) -> None:
    if len(set(names)) < 2:
        names = [*names, names[0] + "x"]
    codes, classes = encode_labels(names, len(names))
    assert [classes[code] for code in codes] == names
    assert set(codes.tolist()) == set(range(len(classes)))


@pytest.mark.parametrize(
    ("labels", "classes", "message"),
    [
        ([0, 1], None, r"labels='2 labels': must be 3, one per sample"),
        (np.array([0.0, np.nan, np.nan]), None, r"no label \(NaN\) in rows 1, 2"),
        ([0, 1, None], None, r"no label in row 2"),
        (["a", "b", float("nan")], None, r"no label in row 2"),
        (pd.Series(["a", pd.NA, "b"]), None, r"no label in row 1"),
        (["a", "", "b"], None, r"no label \(empty text\) in row 1"),
        (np.array([0, 0.5, 1]), None, r"labels='0.5 in row 1 .counting from 0.': must be classes"),
        ([1e300, 2e300, 3.0], None, r"labels='1e\+300 in rows 0, 1 .*float64 does not tell whole"),
        ([2**53 + 1, 1.0, 0.0], None, r"9.0072e\+15 in row 0 .*apart; give integers or names"),
        (np.array([2**24 + 1, 1, 0], np.float32), None, r"1.67772e\+07 in row 0 .*: float32 does"),
        (
            np.array([0, np.inf, 1]),
            None,
            r"labels='inf in row 1 .counting from 0.': must be classes",
        ),
        (np.eye(3), None, r"labels='shape \(3, 3\)': must be \(n,\).*argmax"),
        (
            [[1], [2, 3], [4]],
            None,
            r"labels='a list in rows 0, 1, 2 .counting from 0.': must be one",
        ),
        (np.array([1j, 2, 3]), None, r"labels='type complex128': must be names or whole numbers"),
        (["x", "x", "x"], None, r"all 3 samples have the label 'x': at least 2 classes"),
        ([0, 1, 3], ["a", "b"], r"labels='3 in row 2 .counting from 0.': must be from 0 to 1"),
        ([-1, 1, 0], ["a", "b"], r"labels='-1 in row 0 .counting from 0.': must be from 0 to 1"),
        (["a", "b", "z"], ["a", "b"], r"labels='z': is no class \(known: a; b\)"),
        (
            np.array([b"a", b"\xff", b"b"]),
            None,
            r"labels='bytes in row 1 .*': must be text in UTF-8",
        ),
        ([b"a", b"\xff", b"b"], None, r"labels='bytes in row 1 .*': must be text in UTF-8"),
        ([0, 1, 0], ["a", "a"], r"classes=\('a', 'a'\): must be different names"),
    ],
)
def test_bad_labels_are_told(labels: Any, classes: list[str] | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        encode_labels(labels, 3, classes)


def test_no_samples() -> None:
    with pytest.raises(UsageError, match="there are no samples"):
        encode_labels([], 0)


def test_many_rows_are_counted() -> None:
    assert rows_text([4]) == "row 4 (counting from 0)"
    assert rows_text([4, 5]) == "rows 4, 5 (counting from 0)"
    assert rows_text(np.arange(9)) == "rows 0, 1, 2, 3, 4 (9 in all, counting from 0)"
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
