"""The study of detectors: its simulation against a plain loop, its parameters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from small_granularity import AS_CHOSEN, FLOAT64, cells_at, plain_network
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")
STUDY = get_study("granularity-detectors")


# --------------------------------------------------------------------------------------- simulation


def plain_run(of: Any, k: int, per_side: int, seed: int) -> list[tuple[Tensor, Tensor, float]]:
    """One network by autograd over full tensors: weights, biases and last loss at every read."""
    draws = cells_at(of, seed=seed).draws(FLOAT64)
    labels = Labels(of.model(k), per_side)
    batches = FreshSamples(labels.data, labels, draws, of.batch)
    wide = of.of("coarse" if per_side == 1 else "fine")
    networks = []
    for read in of.reads:
        here = replace(wide, steps=read, reads=(0, read) if read else (0,))
        networks.append(plain_network(here, draws, batches, labels.outputs))
    return networks


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
    of: Any = STUDY.at(
        "tiny", seeds=2, variation=AS_CHOSEN, subclasses=2, steps=12, reads=(0, 1, 12), sigma=0.02
    )
    k, seed = 2, 1
    found = of.simulate(grid_of(of).cells(np.arange(2)), FLOAT64)
    log = math.log(of.d)
    for place, per_side in enumerate((1, k)):
        states = plain_run(of, k, per_side, seed)
        outputs = range(2 * per_side)
        losses = [loss for *_, loss in states]
        assert np.allclose(found["loss"][seed, place], losses, equal_nan=True)
        first, level = states[0][0], -float(states[0][1][0, 0])
        for read, (weights, bias, _) in enumerate(states):
            for kind in ("common", "subclass"):
                pairs = [(o, v) for o in outputs for v in own_features(k, per_side, o)[kind]]
                seen = found[f"{kind}_response"][seed, place, read]
                assert np.isclose(seen, mean_answer(weights, bias, pairs), rtol=1e-8)
                # growth of detectors, by the definition; NaN pairs are left out
                growths = []
                for o, v in pairs:
                    moved = []
                    for r in range(len(first[o])):
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
    of = STUDY.at("tiny", seeds=1, steps=5, reads=(0, 1, 5))
    grid = grid_of(of)
    done = []
    context = Context(advance=done.append)
    found = of.simulate(grid.cells(np.arange(len(grid))), context)
    for row in range(len(grid)):
        there = np.isfinite(found["common_response"][row]).all()
        varied = grid.values["variation"][row] != AS_CHOSEN
        assert there == (not varied or grid.values["subclasses"][row] == 2)
    assert sum(done) == len(grid) * of.cost().steps_per_cell


def test_its_own_variations_change_counts_noise_and_strengths() -> None:
    of: Any = STUDY.at("paper")
    assert of.varied("patch counts fixed").counts == "fixed"
    loose = of.varied("strengths and noise as in granularity-errors")
    assert (loose.sigma, loose.spread) == (0.002, 0.1)
    assert of.varied(AS_CHOSEN) == of


def test_widths_and_thresholds_are_the_papers() -> None:
    """App. B.3, 6, with c_0 = 0.05."""
    of: Any = STUDY.at("paper")
    assert of.of("fine").threshold ** 2 == pytest.approx(2.1)
    assert of.of("coarse").threshold ** 2 == pytest.approx(4.1)
    assert of.of("coarse").neurons == of.d * of.neurons
