"""The dense network of a seed is trained once for all update rules, and the file may be damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rarefy.core.contracts import Context
from rarefy.studies import get_study
from rarefy.sweep.cached import cached_npz, hash_of
from rarefy.sweep.grid import grid_of
from rarefy.tools import sparse_experiment as _sparse


def test_one_dense_training_serves_both_rules_and_progress_adds_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = get_study("sparse-mnist").at(
        "tiny", seeds=1, update=("project", "dense"), keep=(1.0, 0.5), samples=80
    )
    grid = grid_of(study)
    trained = []
    real = _sparse.train_one

    def counted(*args: object) -> object:
        trained.append(args[4])
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(_sparse, "train_one", counted)
    done: list[float] = []
    cells = grid.cells(np.arange(len(grid)))
    found = study.simulate(cells, Context(scratch=tmp_path / "scratch", advance=done.append))
    assert len(trained) == 3 and len(grid) == 4
    assert sum(done) == pytest.approx(4 * study.cost().steps_per_cell)
    dense = [row for row, keep in enumerate(cells.values["keep"]) if keep == 1]
    for values in found.values():
        np.testing.assert_array_equal(values[dense[0]], values[dense[1]])
    alone = study.simulate(cells, Context())  # without a folder each is trained
    for name, values in alone.items():
        np.testing.assert_array_equal(values, found[name])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"text"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"{hash_of('some', 1)}.npz"
    path.write_bytes(content)
    told: list[float] = []
    for expected in ([], [5]):
        found = cached_npz(path, lambda: {"a": np.arange(3)}, told.append, 5)
        assert found["a"].tolist() == [0, 1, 2] and told == expected
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
