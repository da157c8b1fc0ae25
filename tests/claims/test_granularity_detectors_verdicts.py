"""G3, G4 and G5: the verdicts on detectors on results made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import coordinates_of
from small_granularity import AS_CHOSEN

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study
from rarefy.theory.granularity import first_rates, initial_sets, phase_1_steps

SUBCLASSES = (2, 4, 8, 16)
WIDE = {"d": 40, "neurons": 2560, "ratio": 40}
"""Sizes nearer to the theory than what was run."""


def study(**parameters: Any) -> Any:
    given = {"variation": (AS_CHOSEN,), "subclasses": SUBCLASSES, "seeds": 12, **WIDE}
    return get_study("granularity-detectors").at("paper", **{**given, **parameters})


# ---------------------------------------------------------------------------------- made-up results


def ideal(of: Any) -> xr.Dataset:
    """Results as the paper would have them, each value a per mille or so off."""
    noise = np.random.default_rng(3)
    reads = np.array(of.reads, dtype=float)
    shape = (1, len(SUBCLASSES), of.seeds, 2)
    over = {one.name: np.zeros((*shape, len(reads))) for one in of.outputs() if "read" in one.dims}
    start = {one.name: np.zeros(shape) for one in of.outputs() if "read" not in one.dims}
    s = of.feature_patches
    given = {"lr": of.lr, "feature_patches": s, "patches": of.patches}
    for place, k in enumerate(SUBCLASSES):
        for kind, labels in enumerate(("coarse", "fine")):
            at = (0, place, slice(None), kind)
            per_side = 1 if labels == "coarse" else k
            rates = first_rates(**given, plus=k, minus=k, per_side=per_side, spread=of.spread)
            wide = of.of(labels)
            size = initial_sets(of.d, wide.neurons, wide.threshold).detectors
            # late scores grow with log t, and phase 1 takes as long as the rates have it
            score = np.log(1 + reads / (2 * phase_1_steps(rates, size, s, math.log(1.5))))
            if labels == "coarse":
                common = score / s * k / (k + 1) + 0.001
                own = score / s / (k + 1) + 0.001
            else:
                common, own = score / s / 3 + 0.001, score / s * 2 / 3 + 0.001
            values = {
                "loss": np.log1p(np.exp(-score)),
                "common_response": common,
                "subclass_response": own,
                "other_response": 0.02 * np.exp(-reads / 10),
                "common_growth": rates.common * reads,
                "subclass_growth": rates.subclass * reads,
            }
            for name, share in (("printed", 0.95), ("able", 1.0)):
                values[f"common_by_{name}"] = common * share
                values[f"subclass_by_{name}"] = own * share
            for name, value in values.items():
                over[name][at] = value * (1 + 0.001 * noise.standard_normal((of.seeds, 1)))
            over["loss"][at][:, 0] = np.nan
            sizes = {
                "printed_size": size,
                "start_common": 0.01,
                "start_subclass": 0.01,
                "start_spread": 0.0001,
            }
            for name, value in sizes.items():
                start[name][at] = value * (1 + 0.001 * noise.standard_normal(of.seeds))
    dims = ("variation", "subclasses", "seed", "labels")
    return xr.Dataset(
        {
            **{name: ((*dims, "read"), values) for name, values in over.items()},
            **{name: (dims, values) for name, values in start.items()},
        },
        coords=coordinates_of(of, of.seeds),
    )


def judged(of: Any, results: xr.Dataset) -> dict[str, Verdict]:
    """By claim and what they are about."""
    found = of.verdicts(results, "paper")
    by_words = {f"{each.claim} {each.setting.split(': ', 1)[1]}": each for each in found}
    assert len(by_words) == len(found)  # every setting says something of its own
    return by_words


def scaled(name: str, factor: float, labels: str | None = None) -> Callable[[xr.Dataset], None]:
    """Results with one output multiplied, for one kind of labels or both."""

    def change(results: xr.Dataset) -> None:
        where = results["labels"] == labels if labels else True
        results[name] = xr.where(where, results[name] * factor, results[name]).transpose(
            *results[name].dims
        )

    return change


def against_k(name: str, power: float) -> Callable[[xr.Dataset], None]:
    def change(results: xr.Dataset) -> None:
        k = results["subclasses"].astype(float)
        results[name] = (results[name] * k**power).transpose(*results[name].dims)

    return change


STOP = math.log(1.5)
PRIMARY = ("G3.1", "G3.2", "G3.3", "G4.1", "G4.2", "G5.1", "G5.2", "G5.3")


def primaries(results: xr.Dataset) -> dict[str, Verdict]:
    found = judged(study(), results)
    return {name.split()[0]: each for name, each in found.items() if each.role == "primary"}


def test_results_as_the_paper_has_them_hold() -> None:
    of = study()
    verdicts = judged(of, ideal(of))
    for name, verdict in verdicts.items():
        assert verdict.outcome == "holds", (name, verdict)
        assert verdict.n == of.seeds and verdict.tolerance
        assert verdict.value is not None and verdict.allowed is not None
    assert sorted(name.split()[0] for name, v in verdicts.items() if v.role == "primary") == sorted(
        PRIMARY
    )


Change = Callable[[xr.Dataset], None]
BROKEN: dict[str, tuple[Change, ...]] = {
    "G3.1": (against_k("subclass_growth", 0.5), against_k("common_growth", 0.5)),
    "G3.2": (scaled("common_growth", 10, "fine"), scaled("subclass_growth", 10, "fine")),
    "G3.3": (scaled("common_growth", 1.3, "coarse"), scaled("subclass_growth", 0.6, "coarse")),
    "G4.1": (scaled("common_by_printed", 0.8, "coarse"),),
    "G4.2": (scaled("start_common", 1.3, "fine"),),
    "G5.1": (scaled("common_response", 2, "coarse"),),
    "G5.2": (against_k("subclass_response", 0.5),),
    "G5.3": (scaled("subclass_response", 0.02, "fine"),),
}
"""Changes of each of which one primary is the one that must notice it."""


def test_the_end_is_told_from_phase_1() -> None:
    """Ratios against k are as they should be but for the last read."""
    results = ideal(study())
    last = results["read"] == results["read"][-1]
    bent = results["subclass_growth"] * results["subclasses"].astype(float) ** 0.5
    results["subclass_growth"] = xr.where(last, bent, results["subclass_growth"])
    found = judged(study(), results)
    early = next(v for name, v in found.items() if name.startswith("G3 phase 1, coarse"))
    assert early.outcome == "holds"
    assert primaries(results)["G3.1"].outcome == "fails"


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name in BROKEN for place in range(len(BROKEN[name]))]
)
def test_each_primary_can_fail(name: str, place: int) -> None:
    results = ideal(study())
    BROKEN[name][place](results)
    assert primaries(results)[name].outcome == "fails"


def test_a_steeper_fall_obeys_an_upper_bound() -> None:
    results = ideal(study())
    against_k("subclass_response", -1)(results)
    assert primaries(results)["G5.2"].outcome == "holds"


def test_a_setting_that_is_varied_is_judged_at_one_k() -> None:
    of = study(variation=("as chosen", "patch counts fixed"))
    one = ideal(study())
    both = xr.concat([one, one], "variation").assign_coords(variation=list(of.variation))
    results = both.transpose(*one["loss"].dims)
    found = {v.setting: v for v in of.verdicts(results, "paper") if "fixed" in v.setting}
    assert sorted(v.claim for v in found.values()) == ["G3", "G4", "G5"]
    assert all(name.startswith("patch counts fixed, k=8, ") for name in found)
    assert {v.outcome for v in found.values()} == {"holds"}
    results["common_growth"][{"variation": 1}] *= 10
    assert [v.outcome for v in of.verdicts(results, "paper") if "fixed" in v.setting] == [
        "fails",
        "holds",
        "holds",
    ]


# ------------------------------------------------------------------------------------- missing data


def test_what_the_data_do_not_show_stays_open() -> None:
    """A loss that never becomes small, scores that never reach the stop, intervals too wide."""
    results = ideal(study())
    results["loss"] = results["loss"] + 1
    for kind in ("common", "subclass"):
        results[f"{kind}_response"] = results[f"{kind}_response"] * 1e-4
    wild = np.random.default_rng(0).lognormal(0, 1, results["common_growth"].shape)
    results["common_growth"] = results["common_growth"] * wild
    found = primaries(results)
    assert found["G5.1"].outcome == "premise-not-met"
    for name in ("G3.3", "G5.3"):
        assert found[name].outcome == "inconclusive"
    assert "never" in found["G5.1"].note and "too few values" in found["G5.3"].note


def test_one_k_without_values_keeps_the_others_from_holding_but_not_from_failing() -> None:
    results = ideal(study())
    for kind in ("common", "subclass"):
        results[f"{kind}_response"][{"subclasses": 1, "labels": 1}] *= 1e-4
    results["common_growth"][{"subclasses": 1, "labels": 0}] = np.nan
    results["common_growth"][{"subclasses": 0, "labels": 0, "seed": [1, 2, 5]}] = np.nan
    found = primaries(results)
    lost = "3 of 12 at"
    assert found["G5.3"].outcome == "inconclusive"
    assert "no interval at common, k=4, subclass, k=4" in found["G5.3"].note
    assert found["G3.3"].outcome == "inconclusive" and lost in found["G3.3"].note
    assert found["G3.1"].outcome == "inconclusive" and "no value at k=4" in found["G3.1"].note
    against_k("common_growth", 1)(results)
    assert primaries(results)["G3.1"].outcome == "fails"


def test_times_of_the_stop_lie_between_reads() -> None:
    of = study(seeds=4)
    results = ideal(of)
    s, at = of.feature_patches, {"variation": 0, "subclasses": 0, "labels": 1}
    results["common_response"][at] = 0.0
    own = results["subclass_response"]
    own[at] = 0.0
    own[{**at, "seed": 0}] = np.array(of.reads) * STOP / s / 12  # crosses after 12 updates
    own[{**at, "seed": 1}] = STOP  # above from the start
    own[{**at, "seed": 2, "read": slice(3, None)}] = 2 * STOP / s  # halfway between 10 and 15
    table = {table.name: table for table in of.tables(results)}["detectors"]
    (row,) = (row for row in table.rows if row[1:3] == ["fine", 2])
    assert row[4].startswith("8.167 [")  # mean of 12, 0 and 12.5; one never


def test_growth_is_read_just_before_the_stop() -> None:
    of = study(seeds=2)
    results = ideal(of)
    at = {"variation": 0, "labels": 1}
    results["common_response"][at] = 0.0
    own = results["subclass_response"]
    own[{**at, "subclasses": 0}] = 0.0  # never: all updates
    own[{**at, "subclasses": slice(1, None)}] = STOP  # from the start: none
    own[{**at, "subclasses": 2, "read": slice(0, 4)}] = 0.0
    (note,) = (v.note for v in of.verdicts(results, "paper") if v.claim == "G3.2")
    assert f"updates: {of.steps} at k=2, 0 at k=4, {of.reads[3]} at k=8, 0 at k=16" in note


def test_one_seed_decides_nothing() -> None:
    of = study(seeds=1)
    for verdict in judged(of, ideal(of)).values():
        assert verdict.outcome == "inconclusive" and verdict.interval is None


def test_pictures_and_tables_are_made_from_such_results() -> None:
    of = study()
    pictures = of.picture(ideal(of))
    assert [each.name for each in pictures] == ["responses", "subclasses", "carriers"]
    tables = {each.name: each for each in of.tables(ideal(of))}
    assert list(tables) == ["detectors", "setting", "premises"]
    for table in tables.values():
        assert all(len(row) == len(table.columns) for row in table.rows)
    names = [(row[0], row[1], row[2]) for row in tables["premises"].rows]
    assert len(set(names)) == len(names)  # a line that is the same for both labels comes once
