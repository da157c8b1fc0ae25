"""More seeds for committed results: old cells are taken, new ones are run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from toy_study import Toy, only

from rarefy.cli import app
from rarefy.sweep.growing import begin_with_results
from rarefy.sweep.results import write_results
from rarefy.sweep.runner import execute


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    study = Toy.at("tiny", seeds=2)
    found = execute(study, "tiny", out=tmp_path / "first").dataset
    write_results(study, "tiny", found, tmp_path / "results")
    return tmp_path / "results"


def test_only_new_seeds_are_run(committed: Path, tmp_path: Path) -> None:
    study, store = Toy.at("tiny", seeds=4), tmp_path / "grown"
    taken = begin_with_results(study, "tiny", "float32", committed, store)
    assert taken == 2 * len(study.drift) * len(study.sigma)
    grown = execute(study, "tiny", out=store)
    whole = execute(study, "tiny", out=tmp_path / "whole").dataset
    for name in whole.data_vars:
        np.testing.assert_allclose(grown.dataset[name], whole[name], rtol=1e-4)
        # those that were run are the very same
        np.testing.assert_array_equal(
            grown.dataset[name].sel(seed=[2, 3]), whole[name].sel(seed=[2, 3])
        )
    (earlier,) = json.loads(grown.dataset.attrs["provenance"])["earlier"]
    assert {"machine", "date", "wall_seconds"} <= earlier.keys()
    # and grown results grow again, with both in their provenance
    write_results(study, "tiny", grown.dataset, tmp_path / "more")
    third = Toy.at("tiny", seeds=5)
    assert begin_with_results(third, "tiny", "float32", tmp_path / "more", tmp_path / "third")
    told = json.loads(execute(third, "tiny", out=tmp_path / "third").dataset.attrs["provenance"])
    assert len(told["earlier"]) == 2 and all("earlier" not in one for one in told["earlier"])


@pytest.mark.parametrize(
    "study",
    [
        Toy.at("tiny", seeds=4, steps=5),
        Toy.at("quick", seeds=40),
    ],
    ids=["other parameters", "another scale with others"],
)
def test_nothing_is_taken(study: Toy, committed: Path, tmp_path: Path) -> None:
    scale = "quick" if study.seeds == 40 else "tiny"
    assert not begin_with_results(study, scale, "float32", committed, tmp_path / "grown")
    assert not (tmp_path / "grown").exists()


def test_cells_of_other_scales_and_values_are_taken(committed: Path, tmp_path: Path) -> None:
    old = Toy.at("tiny", seeds=2)
    drift = (*old.drift[1:], old.drift[0] + 0.125)  # one is new, one is not asked for
    study, store = Toy.at("tiny", seeds=3, drift=drift), tmp_path / "mixed"
    taken = begin_with_results(study, "quick", "float32", committed, store)
    assert taken == 2 * (len(drift) - 1) * len(study.sigma)
    mixed = execute(study, "quick", out=store).dataset
    whole = execute(study, "quick", out=tmp_path / "whole").dataset
    for name in whole.data_vars:
        np.testing.assert_allclose(mixed[name], whole[name], rtol=1e-4)


def test_a_store_that_is_there_goes_on(committed: Path, tmp_path: Path) -> None:
    study = Toy.at("tiny", seeds=3)
    assert not begin_with_results(study, "tiny", "float32", committed, tmp_path / "first")


def test_the_verb_says_what_it_takes(
    committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    only(monkeypatch, Toy)
    options = ["--scale", "tiny", "--seeds", "3", "--results", str(committed)]
    ran = CliRunner().invoke(app, ["run", "toy", *options, "--out", str(tmp_path / "grown")])
    assert ran.exit_code == 0, ran.output
    assert "cells are taken from" in ran.output and "only the others are run" in ran.output
    assert json.loads((committed / "toy-tiny.json").read_text())["spec"]["parameters"]["seeds"] == 3
