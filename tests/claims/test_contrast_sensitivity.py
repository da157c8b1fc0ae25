"""Fig. 2-3 with one thing changed: what is changed is changed, and judged kind by kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made_up_results import fabricated

from rarefy.core.contracts import Context, Verdict
from rarefy.studies import get_study
from rarefy.studies.contrastive.sensitivity.experiment import KINDS, VARIATIONS
from rarefy.sweep.grid import grid_of

ContrastSensitivity = get_study("contrast-sensitivity")
ContrastAlignment = get_study("contrast-alignment")
pytestmark = pytest.mark.usefixtures("eager")
FLOAT64 = Context(dtype=torch.float64)


def test_every_variation_changes_the_setting_of_contrast_alignment() -> None:
    study = ContrastSensitivity()
    chosen = ContrastAlignment.at("paper").parameters()
    for name, changes in VARIATIONS.items():
        found = study.varied(name).parameters()
        same = set(chosen) - set(changes) - {"eps_min", "reads", "figure_read", "steps"}
        assert all(found[one] == chosen[one] for one in same), name
        assert all(found[one] == value for one, value in changes.items()), name
    assert sum(len(kind) for kind in KINDS.values()) == len(VARIATIONS)


def test_trained_attention_and_companions_reach_the_training() -> None:
    study = ContrastSensitivity.at("tiny", variation=tuple(VARIATIONS)[-2:])
    cells = grid_of(study).cells(np.arange(2))
    same = {"sigma": np.full(2, 0.03), "bias_scale": np.ones(2), "eps_min": np.full(2, 0.3)}
    setups = [study.varied(name) for name in study.variation]
    trials = [one.setup(type(cells)(same, cells.keys), FLOAT64) for one in setups]
    assert [set(trial.parameters) for trial in trials] == [{"weights", "query", "key"}, {"weights"}]
    assert trials[0].data.companions is None
    together = trials[1].data.companions
    assert together is not None and together.of == (0, 1, 2, 3, 4, 0, 1, 2, 3)
    # a rare feature is there only where its companion is
    present = trials[1].data.sample(trials[1].draws, 200, 0).present()
    assert present[..., 5:].any() and not (present[..., 5:] & ~present[..., :4]).any()


def judged(rise: dict[str, float]) -> list[Verdict]:
    study = ContrastSensitivity.at("tiny", seeds=20, variation=tuple(rise), eps_min=(0.3, 1.0))
    noise = np.random.default_rng(0).normal(0, 0.01, (len(rise), 2, 20, 2))
    rises = np.outer(list(rise.values()), (0.3, 1.0))[:, :, None, None]
    best = (("variation", "eps_min", "seed", "read"), noise + rises)
    return study.verdicts(fabricated(study, 20, {"best": best}), "tiny")


def test_a_kind_is_judged_by_its_weakest_change() -> None:
    found = judged({"lr 0.1": 0.4, "lr 1": -0.4, "96 neurons": 0.4})
    assert [v.outcome for v in found] == ["fails", "holds"]
    assert "at lr 1, the weakest of 2" in found[0].note
    assert {v.claim for v in found} == {"C10"}
