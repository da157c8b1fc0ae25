"""Units are no information: what is standardised by default, what not, what stays as read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rarefy.core.errors import UsageError
from rarefy.tools.samples import standardizing
from rarefy.tools.samples.opening import as_samples, open_samples

FRAME = pd.DataFrame(
    {
        "age": [1.0, 2, 4],
        "tall": [0.1, 0.3, 0.2],
        "income": [1e4, 5e5, 2e5],
        "same": [0.1, 0.1, 0.1],
        "kind": [0, 1, 1],
    }
)
X, Y = FRAME.drop(columns="kind").to_numpy(), FRAME["kind"].to_numpy()


def test_tables_and_arrays_have_mean_0_and_std_1_by_default(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    for samples in (
        as_samples(FRAME, "kind"),
        as_samples(X, Y),
        as_samples(X.tolist(), Y),
        open_samples(tmp_path / "t.csv", label="kind"),
        open_samples(tmp_path / "a.npz"),
    ):
        assert samples.notes == ()
        np.testing.assert_allclose(samples.features.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(samples.features.std(axis=0), [1, 1, 1, 0], atol=1e-12)
        np.testing.assert_array_equal(samples.as_read, X)
        np.testing.assert_array_equal(samples.take([2, 0]).as_read, X[[2, 0]])


def test_ids_are_those_of_what_was_read() -> None:
    plain = as_samples(X, Y, standardize=False)
    np.testing.assert_array_equal(plain.features, X)
    assert plain.as_read is None and as_samples(X, Y).ids == plain.ids
    assert as_samples(FRAME, "kind").ids == plain.ids


def test_units_that_rule_the_score_are_told_where_nothing_is_standardized() -> None:
    (note,) = as_samples(FRAME, "kind", standardize=False).notes
    assert "'income' varies" in note and "standardize" in note
    assert "column 2 varies" in as_samples(X, Y, standardize=False).notes[0]


def test_images_stay_as_they_are() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    samples = as_samples(pixels, [0, 1])
    assert samples.features.dtype == np.uint8 and samples.as_read is None
    with pytest.raises(UsageError, match="standardize=True: does not fit images"):
        as_samples(pixels, [0, 1], standardize=True)


def test_what_takes_too_much_memory_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standardizing, "MOST", 50)
    samples = as_samples(X, Y)
    np.testing.assert_array_equal(samples.features, X)
    assert samples.notes == ("features are not standardised, which takes 0.0 GB of memory",)
    assert as_samples(X, Y, standardize=True).as_read is not None


def test_columns_that_are_not_finite_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y,kind\n1,2,a\ninf,3,b\n2,5,a\n")
    with pytest.raises(UsageError, match=r"t.csv: column 'x' is NaN or infinite in row 1 \("):
        open_samples(path, label="kind")
    with pytest.raises(UsageError, match=r"arrays: column 1 is NaN or infinite in rows 0, 2 \("):
        as_samples(np.array([[1, np.nan], [2, 1], [3, np.nan]]), Y)
