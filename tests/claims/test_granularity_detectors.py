"""The study of detectors: verdicts on made-up results, simulation against a plain loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import Context, Verdict
from rarefy.core.errors import UsageError
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples
from rarefy.studies.granularity._common import LABELS
from rarefy.studies.granularity._detectors_judging import (
    expected_sets,
    judge_range,
    predicted_rates,
)
from rarefy.studies.granularity._detectors_watch import AT_START, OVER_TIME, SETS
from rarefy.studies.granularity._variations import AS_CHOSEN
from rarefy.studies.granularity.granularity_detectors import FURTHER, GranularityDetectors
from rarefy.sweep.grid import grid_of
from rarefy.train.multi_view_classifier import initial_neurons

pytestmark = pytest.mark.usefixtures("eager")
WIDE = Context(dtype=torch.float64)
SUBCLASSES = (2, 4, 8, 16)


def study(**parameters: Any) -> GranularityDetectors:
    found = GranularityDetectors.at(
        "paper", **{"variation": (AS_CHOSEN,), "subclasses": SUBCLASSES, "seeds": 12, **parameters}
    )
    assert isinstance(found, GranularityDetectors)
    return found


# ---------------------------------------------------------------------------------- made-up results


def ideal(of: GranularityDetectors) -> xr.Dataset:
    """Results as the paper would have them, each value a per mille or so off."""
    noise = np.random.default_rng(3)
    reads = np.array(of.reads, dtype=float)
    shape = (1, len(SUBCLASSES), of.seeds, 2)
    over = {name: np.zeros((*shape, len(reads))) for name in OVER_TIME}
    start = {name: np.zeros(shape) for name in AT_START}
    s = of.feature_patches
    printed, wide = expected_sets(of, True), expected_sets(of, False)
    for place, k in enumerate(SUBCLASSES):
        for kind, labels in enumerate(LABELS):
            at = (0, place, slice(None), kind)
            rates = predicted_rates(of, labels, k)
            score = np.log(1 + reads / 3)
            if labels == "coarse":
                common = score / s * k / (k + 1) + 0.001
                own = score / s / (k + 1) + 0.001
            else:
                common, own = score / s / 3 + 0.001, score / s * 2 / 3 + 0.001
            values = {
                "loss": np.log1p(np.exp(-score)),
                "common_response": common,
                "subclass_response": own,
                "common_growth": rates.common * reads,
                "subclass_growth": rates.subclass * reads,
            }
            for name in SETS:
                values[f"common_by_{name}"] = common * (0.95 if name != "able" else 1.0)
                values[f"subclass_by_{name}"] = own * (0.95 if name != "able" else 1.0)
            for name, value in values.items():
                over[name][at] = value * (1 + 0.001 * noise.standard_normal((of.seeds, 1)))
            over["loss"][at][:, 0] = np.nan
            sizes = {
                "printed_size": printed.detectors,
                "detector_size": of.neurons * wide.detector_among(2 + 2 * k),
                "able_size": wide.able,
                "start_common": 0.01,
                "start_subclass": 0.01,
                "start_spread": 0.0001,
            }
            for name, size in sizes.items():
                start[name][at] = size * (1 + 0.001 * noise.standard_normal(of.seeds))
    dims = ("variation", "subclasses", "seed", "labels")
    return xr.Dataset(
        {
            **{name: ((*dims, "read"), values) for name, values in over.items()},
            **{name: (dims, values) for name, values in start.items()},
        },
        coords={
            "variation": [AS_CHOSEN],
            "subclasses": list(SUBCLASSES),
            "seed": np.arange(of.seeds),
            "labels": list(LABELS),
            "read": list(of.reads),
        },
    )


def judged(of: GranularityDetectors, results: xr.Dataset) -> dict[str, Verdict]:
    found = of.verdicts(results, "paper")
    by_words = {f"{each.claim} {each.setting.split(': ', 1)[1]}": each for each in found}
    assert len(by_words) == len(found)  # every setting says something of its own
    return by_words


def test_results_as_the_paper_has_them_hold() -> None:
    of = study()
    # exclusive neurons carry 0.95 here, which is not what the closed form has
    verdicts = judged(of, ideal(of))
    closed = {name for name in verdicts if "closed form" in name}
    for name, verdict in verdicts.items():
        if name not in closed and "one common patch over log d" not in name:
            assert verdict.outcome == "holds", (name, verdict)
        assert verdict.n == of.seeds and verdict.tolerance
    assert len(closed) == 2


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


Broken = list[tuple[Callable[[xr.Dataset], None], str]]
GROUPS: dict[str, Broken] = {
    "first": [
        (scaled("common_growth", 1.3, "coarse"), "G3 coarse labels, growth a step of common"),
        (scaled("subclass_growth", 1.3, "fine"), "G3 fine labels, growth a step of subclass"),
        (scaled("printed_size", 1.3), "G4 start, neurons a feature over exact expectation: S* to"),
        (scaled("detector_size", 0.7), "G4 start, neurons a feature over exact expectation: dete"),
        (scaled("able_size", 1.3), "G4 start, neurons a feature over exact expectation: S, all"),
        (scaled("start_common", 1.3, "fine"), "G4 fine labels, start, mean response common/subc"),
        (scaled("start_spread", 1000), "G4 start, spread of responses over features in one netw"),
        (scaled("common_by_printed", 0.8, "coarse"), "G4 coarse labels, share of the response: S*"),
        (scaled("common_response", 40, "coarse"), "G5 coarse labels, final response to one common"),
        (scaled("subclass_response", 0.1, "fine"), "G5 fine labels, response to a subclass patch"),
    ],
    "second": [
        (scaled("subclass_growth", 0.7, "coarse"), "G3 coarse labels, growth a step of subclass"),
        (scaled("common_growth", 0.7, "fine"), "G3 fine labels, growth a step of common"),
        (scaled("common_response", 2, "coarse"), "G5 coarse labels, late growth of the common re"),
        (scaled("common_response", 0.1, "fine"), "G5 fine labels, response to a common patch at"),
        (scaled("subclass_response", 40), "G5 coarse labels, final response to a subclass patch k"),
    ],
    "third": [
        (scaled("subclass_by_able", 0.8, "fine"), "G4 fine labels, share of the response: S, all"),
        (scaled("common_growth", 10, "fine"), "G3 fine labels, growth ratio common/subclass is of"),
        (scaled("common_response", 0.01, "coarse"), "G5 coarse labels, final score from common pa"),
        (
            scaled("common_response", 20, "fine"),
            "G5 fine labels, response ratio common/subclass at",
        ),
        # and broken by the same change
        (scaled("common_response", 1, "fine"), "G5 fine labels, response ratio common/subclass wh"),
    ],
    "against k": [
        (against_k("subclass_growth", 0.5), "G3 coarse labels, growth ratio common/subclass agai"),
        (
            against_k("subclass_response", 0.5),
            "G3 coarse labels, final response ratio common/subclass against k",
        ),
        (  # broken by the same change
            against_k("subclass_response", 0),
            "G5 coarse labels, final response to a subclass patch against k",
        ),
    ],
    "against k, fine": [
        (against_k("common_growth", 0.5), "G3 fine labels, growth ratio common/subclass against"),
        (scaled("common_response", 9), "G3 coarse labels, final response ratio common/subclass ov"),
    ],
}
"""Results in which several claims do not hold, and what must be said of each."""


@pytest.mark.parametrize("group", GROUPS.values(), ids=list(GROUPS))
def test_claims_that_do_not_hold_fail(group: Broken) -> None:
    of = study()
    results = ideal(of)
    for change, _ in group:
        change(results)
    verdicts = judged(of, results)
    for _, words in group:
        found = [each for name, each in verdicts.items() if name.startswith(words)]
        assert len(found) == 1, words
        assert found[0].outcome == "fails", found[0]


def test_neurons_that_wake_at_any_read_and_shares_unlike_the_closed_form_are_noticed() -> None:
    of = study()
    results = ideal(of)
    for name in ("woken", "noise_open"):
        results[name][{"read": 4, "labels": 0}] = 0.05
    for name in ("printed", "detector"):
        for kind in ("common", "subclass"):
            results[f"{kind}_by_{name}"] = 0.1 * results[f"{kind}_response"]
    found = judged(of, results)
    for words in ("neurons outside S(v) open on v", "neurons open on a patch of noise"):
        assert found[f"G4 coarse labels, {words}"].outcome == "fails"
        assert found[f"G4 fine labels, {words}"].outcome == "holds"
    closed = [each for name, each in found.items() if "closed form" in name]
    assert [each.outcome for each in closed] == ["fails", "fails"]


def test_one_seed_decides_nothing() -> None:
    of = study(seeds=1)
    for verdict in judged(of, ideal(of)).values():
        assert verdict.outcome == "inconclusive" and verdict.interval is None


def test_what_the_data_do_not_show_stays_open() -> None:
    """A loss that never becomes small, scores that never reach the stop, intervals too wide."""
    of = study()
    results = ideal(of)
    results["loss"] = results["loss"] + 1
    for kind in ("common", "subclass"):
        results[f"{kind}_response"] = results[f"{kind}_response"] * 1e-3
    wild = np.random.default_rng(0).lognormal(0, 1, results["common_growth"].shape)
    results["common_growth"] = results["common_growth"] * wild
    found = judged(of, results)
    late = [each for name, each in found.items() if "late growth" in name]
    assert [each.outcome for each in late] == ["inconclusive"] * 2
    assert all("never" in each.note for each in late)
    words = "G5 fine labels, response ratio common/subclass when own scores reach log(3/2)"
    assert found[words].outcome == "inconclusive"
    assert "no such cases were run" in found[words].note
    words = "G3 coarse labels, growth a step of common detectors at the start"
    assert found[words].outcome == "inconclusive"


def test_a_range_is_judged_by_its_worst_case() -> None:
    identity = ("G3", "s", "paper", "x")
    fine, bad = np.array([1.0, 1.01, 0.99]), np.array([3.0, 3.01, 2.99])
    good = judge_range(identity, {"a": fine, "b": fine}, 0.5, 2, "1", "none")
    assert good.outcome == "holds" and "the worst of 2 cases" in good.note
    assert judge_range(identity, {"a": fine, "b": bad}, 0.5, 2, "1", "none").outcome == "fails"
    nothing = np.array([np.nan, np.nan])
    open_case = judge_range(identity, {"a": fine, "b": nothing}, 0.5, 2, "1", "none")
    assert open_case.outcome == "inconclusive" and "no interval at b" in open_case.note
    assert judge_range(identity, {"a": bad, "b": nothing}, 0.5, 2, "1", "none").outcome == "fails"
    ratio = np.stack([2 * fine, fine], axis=1)
    assert judge_range(identity, {"a": ratio}, 1.9, 2.1, "2", "none").outcome == "holds"


def test_pictures_and_tables_are_made_from_such_results() -> None:
    of = study()
    pictures = of.picture(ideal(of))
    assert [each.name for each in pictures] == ["responses", "subclasses", "carriers"]
    tables = {each.name: each for each in of.tables(ideal(of))}
    assert list(tables) == ["sensitivity", "sets", "premises"]
    for table in tables.values():
        assert all(len(row) == len(table.columns) for row in table.rows)
    names = [(row[0], row[1], row[2]) for row in tables["premises"].rows]
    assert len(set(names)) == len(names)  # a line that is the same for both labels comes once


# ------------------------------------------------------------------------- simulation, a plain loop


def plain_run(of: GranularityDetectors, k: int, per_side: int, seed: int) -> dict[str, Any]:
    """One network by autograd over full tensors, neurons looked at one by one."""
    grid = grid_of(of)
    row = next(i for i in range(len(grid)) if grid.values["seed"][i] == seed)
    draws = grid.cells(np.array([row])).draws(WIDE)
    data = of.model(k)
    labels = Labels(data, per_side)
    batches = FreshSamples(data, labels, draws, of.batch)
    start = initial_neurons(draws, labels.outputs, of.neurons, of.d, of.sigma_0, of.threshold)
    weights, bias = start["weights"][0].clone(), start["bias"][0].clone()
    found: dict[str, Any] = {"loss": [], "weights": [], "bias": []}
    loss = torch.tensor(torch.nan)
    for step in range(of.steps + 1):
        if step in of.reads:
            found["loss"].append(float(loss))
            found["weights"].append(weights.clone())
            found["bias"].append(bias.clone())
        batch = batches(step)
        x = torch.cat([batch.views.patches, batch.views.noise()], dim=2)[0]
        free = weights.clone().requires_grad_()
        seen = torch.relu(torch.einsum("npd,cmd->ncmp", x, free) + bias[:, :, None])
        loss = torch.nn.functional.cross_entropy(seen.sum(dim=(2, 3)), batch.label[0])
        loss.backward()  # type: ignore[no-untyped-call]
        assert free.grad is not None
        moved = of.lr * free.grad / of.patches
        weights = weights - moved
        bias = bias - moved.norm(dim=2) / math.log(of.d) ** 5
        loss = loss.detach()
    return found


def own_features(k: int, per_side: int, output: int) -> dict[str, list[int]]:
    side = output // per_side
    if per_side == 1:
        return {"common": [side], "subclass": [2 + side * k + c for c in range(k)]}
    return {"common": [side], "subclass": [2 + output]}


def mean_answer(weights: Tensor, bias: Tensor, pairs: list[tuple[int, int]]) -> float:
    """Mean over (output, feature) of the sum over neurons of ReLU(w_v + b)."""
    found = []
    for output, feature in pairs:
        total = 0.0
        for w, b in zip(weights[output], bias[output], strict=True):
            total += max(0.0, float(w[feature] + b))
        found.append(total)
    return float(np.mean(found))


def test_simulate_is_a_plain_loop_over_steps() -> None:
    of = GranularityDetectors.at(
        "tiny", seeds=2, variation=AS_CHOSEN, subclasses=2, steps=12, reads=(0, 1, 12), sigma=0.05
    )
    assert isinstance(of, GranularityDetectors)
    k, seed = 2, 1
    found = of.simulate(grid_of(of).cells(np.arange(2)), WIDE)
    log = math.log(of.d)
    for place, per_side in enumerate((1, k)):
        plain = plain_run(of, k, per_side, seed)
        outputs = range(2 * per_side)
        assert np.allclose(found["loss"][seed, place], plain["loss"], equal_nan=True)
        first = plain["weights"][0]
        level = -float(plain["bias"][0][0, 0])
        for read, (weights, bias) in enumerate(zip(plain["weights"], plain["bias"], strict=True)):
            for kind in ("common", "subclass"):
                pairs = [(o, v) for o in outputs for v in own_features(k, per_side, o)[kind]]
                seen = found[f"{kind}_response"][seed, place, read]
                assert np.isclose(seen, mean_answer(weights, bias, pairs), rtol=1e-8)
                # growth of detectors, by the definition; NaN pairs are left out
                growths = []
                for o, v in pairs:
                    moved = []
                    for r in range(of.neurons):
                        w = first[o, r]
                        noise = 3 * of.sigma * float(w.norm())
                        low, high = (level * math.sqrt(1 + sign * log**-6) for sign in (-1, 1))
                        able = [
                            float(w[u]) * math.sqrt(1 + of.spread) + noise >= low
                            for u in range(2 + 2 * k)
                        ]
                        sure = float(w[v]) * math.sqrt(1 - of.spread) - noise >= high
                        if sure and sum(able) == 1:
                            moved.append(float(weights[o, r, v] - w[v]))
                    if moved:
                        growths.append(np.mean(moved))
                expected = np.mean(growths) if growths else np.nan
                got = found[f"{kind}_growth"][seed, place, read]
                assert np.isclose(got, expected, rtol=1e-8, atol=1e-15, equal_nan=True)
    assert np.isfinite(found["common_growth"][seed]).any()


def test_only_the_main_number_of_subclasses_is_varied() -> None:
    of = GranularityDetectors.at("tiny", seeds=1, steps=5, reads=(0, 1, 5))
    grid = grid_of(of)
    done = []
    context = Context(advance=done.append)
    found = of.simulate(grid.cells(np.arange(len(grid))), context)
    for row in range(len(grid)):
        there = np.isfinite(found["common_response"][row]).all()
        varied = grid.values["variation"][row] != AS_CHOSEN
        assert there == (not varied or grid.values["subclasses"][row] == 2)
    assert sum(done) == len(grid) * of.cost().steps_per_cell


def test_its_own_variations_change_noise_and_strengths() -> None:
    of = study(variation=(AS_CHOSEN, *FURTHER))
    assert of.changed("noise as in other studies").sigma == 0.02
    assert of.changed("strengths as in other studies").spread == 0.1
    assert of.changed("c_b 1.3").threshold == 1.3
    assert of.changed(AS_CHOSEN) == of


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subclasses": (0, 2)}, "subclasses=0: must be at least 1 a side"),
        ({"subclasses": (2, 8)}, r"d=12: must be at least 2 \+ k_\+ \+ k_- = 18"),
        ({"feature_patches": 6}, "feature_patches=6: its samples need 12 patches, there are 10"),
        ({"batch": 6}, "batch=6: must be a multiple of 2 k = 4: equal subclasses"),
        ({"main": 7}, r"main=7: must be one of subclasses=\(1, 2\)"),
        ({"first": 3}, "reads=.*: must rise and hold 0, first=3, steps=40"),
        ({"first": 0}, "first=0: must be at least 1"),
        ({"reads": (0, 1)}, "reads=.*: must rise and hold 0, first=1, steps=40"),
        ({"reads": (1, 0, 40)}, "reads=.*: must rise and hold 0, first=1, steps=40"),
        ({"reads": ()}, "reads=.*: must rise and hold"),
        ({"reads": (0, 1, 40, 50)}, r"reads=.*: must lie in 0..steps=40"),
        ({"variation": ("noise x2",)}, "variation=.*must have 'as chosen'"),
        ({"variation": (AS_CHOSEN, "noise x3")}, "unknown variation 'noise x3'; did you mean"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        GranularityDetectors.at("tiny", **wrong)
    assert "\n" not in str(caught.value)
