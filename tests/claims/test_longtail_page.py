"""The page of 000 Table 2, made of made-up results."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from made_up_longtail import Gains, found_of, page_of

from pages.longtail.answers import (
    ALL_GAIN,
    ALL_LOSE,
    HELPS,
    HURTS,
    LOOKS_BAD,
    LOOKS_GOOD,
    OPEN,
    TOO_FEW,
    word_of,
)
from pages.longtail.methods import controls_table, mask_answer
from pages.longtail.rows import BASELINE, Found, committed
from rarefy.ledger.claims import load_claims
from rarefy.measure.order_pairs import over_orders
from rarefy.studies.longtail.table.study import BRANCHES

DOCS = Path(__file__).parents[2] / "docs"
JUDGES = ("linear", "long-tail", "few", "knn")


def row_of(page: str, name: str) -> list[str]:
    """Cells of the first line of a table that begins with a name."""
    line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_shows_what_was_run_and_says_what_was_not() -> None:
    page = page_of({"cifar10-rho100-500": {"branches:0.1": 0.04, "pruned:0.5": -0.02}})
    assert row_of(page, "CIFAR10-LT, rho 100") == [
        *("CIFAR10-LT, rho 100", "500", "74.24 ± 0.82 → 81.31 ± 0.94 (+7.07)", "51.33", "55.33"),
        *("+4.00 [+3.75, +4.25]", "-2.00 [-2.25, -1.75]", "3 pairs"),
    ]
    assert row_of(page, "CIFAR10-LT, rho 50")[1] == "not run yet"
    assert row_of(page, "ImageNet-LT, rho 256")[1] == "out of reach"
    helps = "looks like a gain at rho 100, 500 epochs: +4.00 [+3.75, +4.25] (3 pairs)."
    assert f"- **P6, CIFAR10-LT, two branches, 0.1 kept**: {helps}" in page
    hurts = "looks like a loss at rho 100, 500 epochs: -2.00"
    assert f"**P6, CIFAR10-LT, Algorithm 1, 0.5 kept**: {hurts}" in page
    assert "**P6, CIFAR100-LT, two branches, 0.1 kept**: not run yet." in page
    assert "**P8, CIFAR10-LT, two branches, 0.1 kept**: not run: it takes two imbalances" in page
    assert "`branches:0.1` (two branches, 0.1 kept) for trainings of 500 epochs or more" in page
    few = "seems to gain, in too few orders of the classes to decide"
    assert f"it {few} (CIFAR10-LT, rho 100, 500 epochs: +4.00 [" in page
    assert "gains on this page are of the last networks; `rarefy pretrain` keeps the best" in page
    assert "`cifar10-rho100-500`: 2026-01-02, a machine" in page


def test_few_orders_show_all_their_gains() -> None:
    gains: Gains = {"cifar10-rho100-500": {"branches:0.1": 0.04, "pruned:0.5": 0.0}}
    page = page_of(gains, lambda found: found.isel(seed=slice(0, 3)))
    cells = row_of(page, "CIFAR10-LT, rho 100")
    assert cells[5:] == ["+3.90, +3.90, +4.00", "-0.10, -0.10, +0.00", "1 pair + 1 order"]
    assert "a gain in every order, too few to be certain at rho 100, 500 epochs: +3.90" in page
    assert "it seems to gain, in too few orders of the classes to decide (CIFAR10-LT" in page
    assert "Algorithm 1, 0.5 kept**: no certain difference at rho 100" in page
    page = page_of(gains, lambda found: found.isel(seed=slice(0, 2)))
    assert "too few orders to say at rho 100, 500 epochs: +3.90, +3.90 (1 pair)." in page
    assert "Plain `simclr`: no pruned method gains" in page


def test_a_method_that_helps_here_and_hurts_there_is_not_recommended() -> None:
    page = page_of(
        {
            "cifar10-rho100-500": {"branches:0.1": 0.04},
            "cifar10-rho10-500": {"branches:0.1": -0.04},
        }
    )
    assert "Plain `simclr`: no pruned method" in page
    assert "P8, CIFAR10-LT, two branches, 0.1 kept**: it seems to grow (gain by rho: -4.00" in page


def test_the_gain_by_rho_counts_pairs_that_all_rows_have() -> None:
    """Four imbalances, the gain growing with them in every pair: it looks so, with three pairs."""
    rising: Gains = {
        f"cifar10-rho{rho}-500": {"branches:0.1": gain, "pruned:0.5": -gain}
        for rho, gain in ((1, 0.01), (10, 0.02), (50, 0.03), (100, 0.04))
    }
    page = page_of(rising)
    gains = "+1.00 at 1, +2.00 at 10, +3.00 at 50, +4.00 at 100"
    grown = "from the smallest to the largest +3.00 [+3.00, +3.00] (3 pairs); 500 epochs"
    grows = f"it seems to grow (gain by rho: {gains}; {grown})."
    assert f"- **P8, CIFAR10-LT, two branches, 0.1 kept**: {grows}" in page
    assert "P8, CIFAR10-LT, Algorithm 1, 0.5 kept**: it seems to fall (" in page
    looks = iter(rising)

    def shorter(found: xr.Dataset) -> xr.Dataset:
        return found.isel(seed=slice(0, 3)) if "rho1-" in next(looks) else found

    few = "it grows in every order, too few to be certain (gain by rho: +0.95 at 1"
    assert few in (page := page_of(rising, shorter))
    assert "+3.00, +3.00, +3.00 (1 pair + 1 order); 500 epochs)" in page


def test_a_method_without_a_gain_has_none_that_could_grow() -> None:
    page = page_of({"cifar10-rho100-500": {"pruned:0.5": 0.0, "branches:0.1": 0.04}})
    assert "Algorithm 1, 0.5 kept**: not asked: no certain gain at rho 100" in page
    assert "two branches, 0.1 kept**: not run: it takes two imbalances at one length" in page


def test_a_loss_after_a_shorter_training_is_a_condition_and_after_a_longer_one_an_objection() -> (
    None
):
    helps, hurts = {"branches:0.1": 0.04}, {"branches:0.1": -0.04}
    page = page_of({"cifar10-rho100-100": hurts, "cifar10-rho100-500": helps})
    assert "for trainings of 500 epochs or more" in page
    by_length = "100 epochs -4.00 [-4.25, -3.75] (3 pairs), 500 epochs +4.00 [+3.75, +4.25]"
    assert f"CIFAR10-LT, linear probe, gain by length: {by_length} (3 pairs)." in page
    page = page_of({"cifar10-rho100-500": helps, "cifar10-rho100-1000": hurts})
    assert "Plain `simclr`: no pruned method" in page


def test_of_one_row_the_run_with_most_orders_is_told() -> None:
    looks = iter((True, False, False))

    def one_order(found: xr.Dataset) -> xr.Dataset:
        return found.isel(seed=slice(0, 1)) if next(looks) else found

    both: Gains = {
        "cifar10-branches-500": {"branches:0.1": 0.01},
        "cifar10-rho100-500": {"branches:0.1": 0.04},
        "cifar10-branches-2000": {"branches:0.1": 0.05, "pruned:0.5": None},
    }
    page = page_of(both, one_order)
    rows = [line for line in page.splitlines() if line.startswith("| CIFAR10-LT, rho 100 | ")]
    assert [row.split(" | ")[1] for row in rows if "74.24" in row] == ["500", "2000"]
    assert "+4.00 [+3.75, +4.25]" in rows[0] and " | - | 3 pairs |" in rows[1]


def test_a_row_without_a_method_leaves_its_columns_open() -> None:
    page = page_of({"cifar10-rho100-500": {"pruned:0.5": None, "branches:0.1": 0.04}})
    assert row_of(page, "CIFAR10-LT, rho 100")[5:] == ["+4.00 [+3.75, +4.25]", "-", "3 pairs"]
    page = page_of({"cifar10-rho100-500": {"pruned:0.5": 0.04, "branches:0.1": None}})
    assert row_of(page, "CIFAR10-LT, rho 100")[4:6] == ["-", "-"]


def test_the_control_stands_beside_its_row_and_is_no_row() -> None:
    page = page_of({"cifar10-rho100-500": {"branches:0.1": 0.04}, "cifar10-control-500": {}})
    delta = page.split("<summary>Delta_20")[1]
    assert row_of(delta, "CIFAR10-LT, rho 100")[-1] == "8.89"
    page = page_of({"cifar10-rho100-500": {"branches:0.1": 0.04}, "cifar10-rho10-500": {}})
    delta = page.split("<summary>Delta_20")[1]
    assert row_of(delta, "CIFAR10-LT, rho 10")[-1] == "-"
    assert row_of(delta, "CIFAR10-LT, rho 100")[-1] == "not run yet"


def test_stopped_trainings_are_left_out_in_pairs() -> None:
    def spoilt(found: xr.Dataset) -> xr.Dataset:
        bad = (found["algorithm"] == "branches:0.1") & (found["seed"] > 0)
        return found.assign(accuracy=found["accuracy"].where(~bad))

    page = page_of({"cifar10-rho100-500": {"branches:0.1": 0.04}}, spoilt)
    assert "nan" not in page
    assert row_of(page, "CIFAR10-LT, rho 100")[5] == "+3.90"  # of seed 0 alone

    def all_spoilt(found: xr.Dataset) -> xr.Dataset:
        return found.assign(accuracy=found["accuracy"].where(found["algorithm"] == "simclr"))

    page = page_of({"cifar10-rho100-500": {"branches:0.1": 0.04}}, all_spoilt)
    assert "stopped, not finite at rho 100, 500 epochs." in page and "nan" not in page
    assert "Plain `simclr`" in page


def test_many_rows_need_more_than_a_lucky_one() -> None:
    """+0.3 points is told from 0 with 95 % in one row alone, not as the best of many."""
    one: Gains = {"cifar10-rho100-500": {"branches:0.1": 0.003, "pruned:0.5": None}}
    assert "`branches:0.1` (two branches, 0.1 kept) for trainings" in page_of(one)
    others: Gains = {
        f"{data}-rho{rho}-{epochs}": {"pruned:0.5": 0.0, "branches:0.1": 0.0}
        for data, rho in (("cifar10", 10), ("cifar10", 50), ("cifar100", 10), ("cifar100", 100))
        for epochs in (500, 1000)
    }
    assert "Plain `simclr`: no pruned method" in page_of({**one, **others})


def test_methods_stand_beside_what_is_published_of_them() -> None:
    page = page_of({"cifar100-methods-500": {"branches:0.1": 0.04}, "cifar100-decay-500": {}})
    part = page.split("## Methods under one protocol")[1]
    assert row_of(part, "method")[1:] == [
        *("weight decay", "published, CIFAR100-LT, 2,000 epochs"),
        *("CIFAR100-LT, 500 epochs", "gain over SimCLR"),
        *("CIFAR10-LT, 500 epochs", "gain over SimCLR"),
    ]
    assert row_of(part, "SimCLR")[1:5] == ["0.0001", "-", "51.33", "(3 pairs)"]
    shown = ["0.0001", "55.0 (SDCLR)", "55.33", "+4.00 [+3.75, +4.25] (3 pairs)", "not run yet", ""]
    assert row_of(part, "two branches, 0.1 kept")[1:] == shown
    row = row_of(part, "two branches, 0.1 kept + boost")
    assert row[1:4] == ["0.0001", "58.7 (BCL-D)", "not run yet"]
    stronger = part[part.index("| 0.0005 |") - len("| SimCLR ") :]
    row = row_of(stronger, "SimCLR")
    assert row[1:5] == ["0.0005", "50.7 (SimCLR)", "51.33", "(3 pairs)"]
    assert row_of(stronger, "SimCLR + boost")[1:4] == ["0.0005", "55.7 (BCL-I)", "not run yet"]
    assert "(SDCLR, BCL-D) have SDCLR's settings, three layers in the head" in part


def test_five_pairs_or_orders_decide_and_three_or_four_look_like_it() -> None:
    for sign, sure, looks in ((1, HELPS, LOOKS_GOOD), (-1, HURTS, LOOKS_BAD)):
        gains = sign * np.array([2.0, 2.1, 2.2, 2.3, 2.4])
        words = [word_of(over_orders(gains[:n], range(n))) for n in (1, 2, 3, 4, 5)]
        assert words == [TOO_FEW, TOO_FEW, looks, looks, sure]
        assert word_of(over_orders(gains[:4], (0, 0, 1, 1))) in (ALL_GAIN, ALL_LOSE)  # two pairs
    assert word_of(over_orders([-1.0, 1.0, 2.0, -2.0, 0.0], range(5))) == OPEN


def test_tables_take_what_stands_in_other_runs_of_the_same_training() -> None:
    scales: Gains = {
        # (in the order of names, in which results are read)
        "cifar10-branches-500": {"simclr": 0.1, "branches:0.1": 0.1, "pruned:0.5": None},
        "cifar10-rho100-500": {"branches:0.1": 0.04, "pruned:0.5": 0.01},
        "cifar100-methods-500": {"branches:0.1": 0.03, "pruned:0.5": None},
        "cifar100-rho100-500": {"branches:0.1": 0.02},
        "cifar100-rho100-1000": {"branches:0.1": 0.05},
    }
    page = page_of(scales)
    mask, methods = page.split("## What is it about the mask?")[1].split("## Methods")[:2]
    two, one = "+2.00 [+1.75, +2.25] (3 pairs)", "+4.00 [+3.75, +4.25] (3 pairs)"
    assert row_of(mask, "SimCLR")[2:] == ["51.33", "(3 pairs)"] * 2
    assert row_of(mask, "`branches:0.1`")[2:] == ["53.33", two, "55.33", one]
    assert row_of(mask, "`branches:1`")[2:] == ["not run yet", ""] * 2
    own = "+3.00 [+2.75, +3.25] (3 pairs)"  # what the table has itself comes first
    assert row_of(methods, "two branches, 0.1 kept")[3:] == ["54.33", own, "55.33", one]
    pruned = row_of(methods, "Algorithm 1, 0.7 and 0.5 kept")
    assert pruned[2:] == ["-", "not run yet", "", "52.33", "+1.00 [+0.75, +1.25] (3 pairs)"]


def test_without_masks_the_control_stands_with_the_lengths() -> None:
    found = found_of({"cifar10-branches-500": {"branches:0.1": 0.04}, "cifar10-rho100-500": {}})
    free = found["cifar10-branches-500"]
    names = ["simclr", "pruned:0.5", "branches:1"]
    found["cifar10-branches-500"] = Found(
        free.study, free.scale, free.results.assign_coords(algorithm=names)
    )
    assert row_of(controls_table(found), "`branches:1`")[4] == "55.33"


def test_noise_and_mask_are_told_by_every_judge() -> None:
    found = found_of({"cifar100-controls-500": {"branches:0.1": 0.04, "pruned:0.5": 0.03}})
    one = found["cifar100-controls-500"]
    names = ["simclr", "branches:0.1+noise", "branches:0.1"]
    results = one.results.assign_coords(algorithm=names)
    knn = results.assign_coords(protocol=["knn"])
    more = xr.where(knn["algorithm"] == "branches:0.1+noise", 0.02, 0.0)
    knn["accuracy"] = knn["accuracy"] + more
    both = xr.concat([results, knn], "protocol", data_vars="minimal")

    def said(orders: int) -> tuple[str, str]:
        part = both.isel(seed=slice(0, orders))
        return mask_answer({one.scale: Found(one.study, one.scale, part)})

    assert "CIFAR100-LT, 500 epochs (1 order: a hint). By the linear probe the mask" in said(1)[0]
    answer, judged = said(6)
    assert "gains +4.00 over SimCLR. Of this gain have: `branches:0.1+noise` 75%." in answer
    assert judged.splitlines()[0].strip("| ").split(" | ") == [
        "CIFAR100-LT",
        "gain, linear probe, all labels",
        "gain, nearest neighbours",
    ]
    mask, noise = row_of(judged, "`branches:0.1`"), row_of(judged, "`branches:0.1+noise`")
    assert mask[1:] == ["+4.00 [+3.75, +4.25]"] * 2
    assert [each.split(" ")[0] for each in noise[1:]] == ["+3.00", "+5.00"]
    assert mask_answer({}) == ("", "")


def test_guide_and_ledger_say_the_numbers_of_the_committed_results() -> None:
    found = committed(DOCS.parent / "results")
    guide = " ".join((DOCS / "longtail.md").read_text("utf-8").split())
    claims = {claim.id: claim for claim in load_claims()}

    def gains(scale: str, way: str = BRANCHES, digits: int = 1) -> list[str]:
        one = found[scale]
        return [f"{one.gain(way, protocol=judge).mean:.{digits}f}" for judge in JUDGES]

    def orders(scale: str, digits: int = 1) -> list[str]:
        return [f"{gain:+.{digits}f}" for gain in found[scale].gain(BRANCHES).values]

    ten, hundred = (", ".join(orders(f"{data}-rho100-500")) for data in ("cifar10", "cifar100"))
    other = " and ".join(orders(f"{data}-rho10-500")[0] for data in ("cifar10", "cifar100"))
    assert f"CIFAR10-LT {ten}; CIFAR100-LT {hundred}; at imbalance 10 {other} |" in guide
    assert f"has {orders('cifar10-branches-100')[0]} (CIFAR10-LT)" in guide
    lost = found["cifar10-rho100-500"].at([0]).mean(BASELINE)
    lost -= found["cifar10-branches-2000"].mean(BASELINE)
    assert f"{orders('cifar10-branches-2000')[0]}: `simclr` has trained" in guide
    assert f"lost {lost:.1f} points since epoch 500" in guide
    boosted, plain = (gains("cifar100-methods-500", way) for way in (f"{BRANCHES}+boost", BRANCHES))
    assert f"CIFAR100-LT +{boosted[0]}, and better than `branches:0.1` by all four" in guide
    assert all(float(one) > float(two) for one, two in zip(boosted, plain, strict=True))
    assert f"{found['cifar100-decay-500'].mean(f'{BRANCHES}+boost'):.1f} % are right" in guide
    free, noise, mask = (
        gains("cifar100-controls-500", way) for way in ("branches:1", f"{BRANCHES}+noise", BRANCHES)
    )
    assert f"(without masks {free[0]} points where the mask gains {mask[0]})" in guide
    frozen, dropout, both, random = (
        gains("cifar100-controls-further-500", f"{BRANCHES}+{word}")
        for word in ("frozen", "dropout", "both", "random")
    )
    shown = f"as the mask, gain {dropout[0]}; those that were smallest at first {frozen[0]}; "
    assert f"{shown}Gaussian noise of that strength {noise[0]})" in guide
    stronger = f"a far stronger disturbance costs {-float(random[0]):.0f}"
    assert f"masks for both views gain {both[0]}, {stronger}" in guide
    assert f"gain nothing where the mask gains {mask[2]} and {mask[3]}, so" in guide
    assert all(float(gain) < 0 for way in (dropout, frozen) for gain in way[2:])

    said = "two branches {}, {} and {} in three".format(*orders("cifar100-rho100-500", 2))
    assert said in claims["P6"].so
    long = (
        gains("cifar10-branches-free-2000", "branches:1", 2),
        gains("cifar10-branches-2000", digits=2),
    )
    shown = "{} and {} points, where masks gain {} and {}".format(*long[0][2:], *long[1][2:])
    assert f"nothing by the linear probe (by few labels and neighbours {shown})" in claims["P6"].so
    noise, mask = (gains("cifar100-controls-500", f"{BRANCHES}{end}", 2) for end in ("+noise", ""))
    known = f"noise gained {noise[0]} points over SimCLR by the linear probe, the mask {mask[0]}."
    assert known in claims["Q7"].choices
    least, most = (orders(f"cifar100-rho{rho}-500", 2)[0][1:] for rho in (10, 100))
    assert f"it is {least} points at imbalance 10" in claims["P8"].so
    assert f"and {most} at 100 (CIFAR10-LT {orders('cifar10-rho10-500', 2)[0][1:]} and" in (
        claims["P8"].so
    )


@pytest.mark.slow
def test_the_committed_page_is_that_of_the_committed_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(DOCS / "make.py")
    monkeypatch.setattr(sys, "argv", [script, "longtail-table", "--out", str(tmp_path)])
    runpy.run_path(script, run_name="__main__")  # as Python runs it, but torch is there already
    page = (tmp_path / "longtail-table.md").read_text("utf-8")
    assert page == (DOCS / "longtail-table.md").read_text("utf-8")
