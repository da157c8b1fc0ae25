"""The page of 000 Table 2, made of made-up results."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import xarray as xr
from made_up_longtail import Gains, page_of

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_shows_what_was_run_and_says_what_was_not() -> None:
    page = page_of({"cifar10-rho100-500": {"branches:0.3": 0.04, "pruned:0.5": -0.02}})
    row = next(line for line in page.splitlines() if line.startswith("| CIFAR10-LT, rho 100 | 74"))
    assert "74.24 ± 0.82 → 81.31 ± 0.94 (+7.07) | 500 |" in row and row.endswith("| 3 |")
    assert "-2.00 [-2.25, -1.75] | -12.00" in row and "+4.00 [+3.75, +4.25]" in row
    assert page.count("not run yet |  |") == 8 - 2  # rows of the table
    assert page.count("out of reach |  |") == 1
    assert (
        "**Algorithm 1 (one masked branch)**: CIFAR10-LT, rho 100, 500 epochs: hurts, -2.00" in page
    )
    assert "**Two branches (SDCLR)**: CIFAR10-LT, rho 100, 500 epochs: helps, +4.00" in page
    assert "`branches:0.3` (two branches, 0.3 kept) where a linear probe will follow" in page
    assert (
        "in 1 of 1 rows (`cifar10-rho100-500` +4.00 points) and loses more than luck in none"
        in page
    )
    assert "(Delta_20) grows" not in page  # the same fall for all methods
    assert "`cifar10-rho100-500`: 2026-01-02, a machine" in page
    assert "51.33 → 55.33 here, 74.24 → 81.31 published" in page
    assert "SimCLR is 22.91 points below the published baseline" in page
    assert "| linear probe, all labels | Algorithm 1, 0.5 kept | -2.00 [-2.25, -1.75] |" in page


def test_a_method_that_helps_here_and_hurts_there_is_not_recommended() -> None:
    page = page_of(
        {
            "cifar10-rho100-500": {"branches:0.3": 0.04},
            "cifar10-rho10-500": {"branches:0.3": -0.04},
        }
    )
    assert "Plain `simclr`: no pruned method" in page
    assert "CIFAR10-LT, 500 epochs, Two branches (SDCLR): inconclusive (Spearman +" in page


def test_a_loss_after_a_shorter_training_is_a_condition_and_after_a_longer_one_an_objection() -> (
    None
):
    helps, hurts = {"branches:0.3": 0.04}, {"branches:0.3": -0.04}
    page = page_of({"cifar10-rho100-100": hurts, "cifar10-rho100-500": helps})
    assert "in 1 of 2 rows (`cifar10-rho100-500` +4.00 points) and loses" in page
    assert "loses more than luck in 1 (`cifar10-rho100-100` -4.00)" in page
    lengths = [line for line in page.splitlines() if "two branches, 0.3 kept" in line]
    lengths = [line for line in lengths if line.endswith("| 3 orders |")]
    assert [line.split(" | ")[1] for line in lengths] == ["100", "500"]
    page = page_of({"cifar10-rho100-500": helps, "cifar10-rho100-1000": hurts})
    assert "Plain `simclr`: no pruned method" in page
    # trainings that are there to explain are no rows, and say when a gain comes
    page = page_of({"cifar10-branches-100": {"branches:0.3": 0.0}, "cifar10-rho100-500": helps})
    assert "in 1 of 1 rows" in page
    by_length = "100 epochs +0.00 [-0.25, +0.25] (3 orders); 500 epochs +4.00 [+3.75, +4.25]"
    assert f"By length, on CIFAR10-LT: {by_length} (3 orders)." in page


def test_a_row_without_a_method_leaves_its_columns_open() -> None:
    page = page_of({"cifar10-rho100-500": {"pruned:0.5": None, "branches:0.3": 0.04}})
    row = next(line for line in page.splitlines() if line.startswith("| CIFAR10-LT, rho 100 | 74"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 9 and cells[4:6] == ["not run yet"] * 2
    assert cells[7].startswith("+4.00") and cells[8] == "3"


def test_the_control_stands_beside_its_row_and_is_no_row() -> None:
    rows: Gains = {"cifar10-rho100-500": {"branches:0.3": 0.04}, "cifar10-control-500": {}}
    page = page_of(rows)
    line = next(line for line in page.split("## Delta_20")[1].splitlines() if "rho 100" in line)
    assert line.endswith("| 8.89 [8.89, 8.89] |")
    assert "in 1 of 1 rows" in page
    without = page_of({"cifar10-rho100-500": {"branches:0.3": 0.04}, "cifar10-rho10-500": {}})
    delta = without.split("## Delta_20")[1]
    ends = [line[-15:] for line in delta.splitlines() if line.startswith("| CIFAR10-LT, rho 1")]
    assert [end.rsplit("|", 2)[1].strip() for end in ends][:2] == ["-", "not run yet"]


def test_stopped_trainings_are_left_out_in_pairs() -> None:
    def spoilt(found: xr.Dataset) -> xr.Dataset:
        bad = (found["algorithm"] == "branches:0.3") & (found["seed"] > 0)
        return found.assign(
            {name: found[name].where(~bad) for name in ("accuracy", "masked_accuracy")}
        )

    page = page_of({"cifar10-rho100-500": {"branches:0.3": 0.04}}, spoilt)
    # seed 0 alone, of both: not the mean of all orders of SimCLR
    assert "50.00 → 53.90 here" in page and "nan" not in page
    assert "open, +3.90 points" in page

    def all_spoilt(found: xr.Dataset) -> xr.Dataset:
        return found.assign(accuracy=found["accuracy"].where(found["algorithm"] == "simclr"))

    page = page_of({"cifar10-rho100-500": {"branches:0.3": 0.04}}, all_spoilt)
    assert "500 epochs: stopped, not finite." in page and "nan" not in page
    assert "No row of the table has 3 orders of the classes yet" in page


def test_rows_of_another_share_are_named_with_their_own_method() -> None:
    rows = {
        "cifar10-rho100-500": {"pruned:0.5": 0.03, "branches:0.3": -0.01},
        "cifar100-rho100-500": {"pruned:0.5": 0.02, "branches:0.3": -0.01},
    }
    page = page_of(rows)
    assert "`pruned:0.5` (Algorithm 1, 0.5 kept) where a linear probe will follow" in page
    assert "in 2 of 2 rows (`cifar10-rho100-500` +3.00, `cifar100-rho100-500` +2.00" in page


def test_many_rows_need_more_than_a_lucky_one() -> None:
    """+0.3 points is told from 0 with 95 % in one row alone, not as the best of many."""
    one = {"cifar10-rho100-500": {"branches:0.3": 0.003, "pruned:0.5": None}}
    assert "`branches:0.3` (two branches, 0.3 kept) where" in page_of(one)
    others = {
        f"{data}-rho{rho}-{epochs}": {"pruned:0.5": 0.0, "branches:0.3": 0.0}
        for data, rho in (("cifar10", 10), ("cifar10", 50), ("cifar100", 10), ("cifar100", 100))
        for epochs in (500, 1000)
    }
    assert "Plain `simclr`: no pruned method" in page_of({**one, **others})


def test_other_judges_are_heard_whatever_they_say() -> None:
    def heard(found: xr.Dataset) -> xr.Dataset:
        worse = found.assign(accuracy=found["accuracy"].copy())
        worse["accuracy"].loc[{"algorithm": "branches:0.3"}] -= 0.1
        both = xr.concat([found, worse], "protocol", data_vars="minimal")
        return both.assign_coords(protocol=["linear", "knn"])

    page = page_of({"cifar10-rho100-500": {"branches:0.3": 0.04}}, heard)
    said = "Other judges of `cifar10-rho100-500`: a loss by nearest neighbours -6.00 [-6.25, -5.75]"
    assert said in page


def test_the_committed_page_is_that_of_the_committed_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(DOCS / "make.py")
    monkeypatch.setattr(sys, "argv", [script, "longtail-table", "--out", str(tmp_path)])
    runpy.run_path(script, run_name="__main__")  # as Python runs it, but torch is there already
    page = (tmp_path / "longtail-table.md").read_text("utf-8")
    assert page == (DOCS / "longtail-table.md").read_text("utf-8")
