"""TopK against cheap remedies: the arms, a plain loop beside the batch, the pictures and tables."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
import xarray as xr
from made_up_results import fabricated
from torch import Tensor

from rarefy.core.contracts import Context, Verdict
from rarefy.core.picture import Lines
from rarefy.measure.generalisation import CHUNK
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

TopKBaselines: Any = get_study("topk-baselines")

FLOAT64 = Context(dtype=torch.float64)
OUTPUTS = ("validation_loss", "test_loss", "test_error", "train_loss")


# ----------------------------------------------------------------------------------------- the arms


def test_dense_training_is_run_once_whatever_the_number_of_knobs() -> None:
    assert TopKBaselines.at("tiny").arm == (
        "dense",
        *(f"{way}-{k}" for way in ("revive", "revive0", "fixed", "random") for k in (3, 10)),
        "decay-0.01",
        "decay-0.3",
    )


# ------------------------------------------------------------------------------------ a second look


def forward(
    filters: Tensor, noise: Tensor, labels: Tensor, mu: float, slope_at_zero: int = 1
) -> Tensor:
    """Scores (sample, class) of filters (class, filter, d), written without the laboratory."""
    signal = torch.zeros_like(noise)
    signal[torch.arange(len(labels)), labels] = mu
    both = torch.stack([signal, noise], dim=1)  # (sample, patch, d)
    seen = torch.einsum("npd,krd->nkrp", both, filters)
    if slope_at_zero == 0:
        return torch.relu(seen).sum(dim=(2, 3))
    return torch.where(seen >= 0, seen, 0.0).sum(dim=(2, 3))


def kept(filters: Tensor, keep: int) -> Tensor:
    mask = torch.zeros_like(filters)
    return mask.scatter_(-1, filters.abs().topk(keep, dim=-1).indices, 1.0)


def plain_run(study: Any, row: int) -> dict[str, list[float]]:
    """One cell by autograd and a loop: the study's numbers come from one product for all cells."""
    cells = grid_of(study).cells(np.array([row]))
    method, _, knob = str(cells.values["arm"][0]).partition("-")
    decay = float(knob) if method == "decay" else 0.0
    sigma = float(cells.values["sigma"][0])
    trial = study.setup(cells, FLOAT64)
    draws = trial.draws

    def stream(name: str, count: int) -> tuple[Tensor, Tensor]:
        parts = [
            trial.data.sample(draws, min(CHUNK, count - start), name, chunk)
            for chunk, start in enumerate(range(0, count, CHUNK))
        ]
        noise = torch.cat([part.noise[0] for part in parts]) * sigma
        return noise, torch.cat([part.labels[0] for part in parts])

    noise, labels = stream("train", study.samples)
    fresh = stream("test", study.test_samples)
    validation = stream("validation", study.validation_samples)
    filters, support = trial.initial[0].clone(), None
    if method == "random":
        shape = (study.classes, study.filters, study.d)
        support = kept(draws.uniform("random support", shape)[0], int(knob))
    found: dict[str, list[float]] = {name: [] for name in OUTPUTS}
    loss = torch.nn.functional.cross_entropy
    for step in range(1, study.steps + 1):
        leaf = filters.clone().requires_grad_(True)
        train = loss(forward(leaf, noise, labels, study.mu, int(method != "revive0")), labels)
        (slope,) = torch.autograd.grad(train, leaf)
        filters = filters - study.lr * (slope + decay * filters)
        if method.startswith("revive"):
            filters = filters * kept(filters, int(knob))
        if method == "fixed" and support is None:
            support = kept(filters, int(knob))
        if support is not None:
            filters = filters * support
        if step in study.reads:
            scores = forward(filters, *fresh, study.mu)
            found["test_loss"].append(float(loss(scores, fresh[1])))
            found["test_error"].append(float((scores.argmax(dim=1) != fresh[1]).double().mean()))
            known = forward(filters, *validation, study.mu)
            found["validation_loss"].append(float(loss(known, validation[1])))
            found["train_loss"].append(float(train.detach()))
    return found


def test_each_method_in_a_batch_is_what_a_plain_loop_gives() -> None:
    words = ("dense", "revive-3", "revive0-3", "fixed-5", "random-10", "decay-0.3")
    study = TopKBaselines.at("tiny", arm=words, sigma=(0.3, 1.5), seeds=1, test_samples=300)
    grid = grid_of(study)
    together = study.simulate(grid.cells(np.arange(len(grid))), FLOAT64)
    for row in range(len(grid)):
        alone = plain_run(study, row)
        for name in OUTPUTS:
            np.testing.assert_allclose(together[name][row], alone[name], rtol=1e-9, atol=1e-12)
    # as many different ends as methods: no two arms were mistaken for each other
    ends = together["test_loss"][grid.values["sigma"] == 1.5, -1]
    assert len(np.unique(ends)) == len(words)


def test_a_pruned_signal_coordinate_comes_back_only_with_a_slope_at_zero() -> None:
    """The one thing that tells "revive0" from "revive", in the smallest case: a filter without its
    signal coordinate sees exactly 0 where its class's signal is."""
    filters = torch.zeros(2, 1, 3, dtype=torch.float64)
    filters[:, 0, 2] = 0.1  # noise alone was kept
    noise, labels = torch.zeros(2, 3, dtype=torch.float64), torch.tensor([0, 1])
    slopes = []
    for at_zero in (0, 1):
        leaf = filters.clone().requires_grad_(True)
        scores = forward(leaf, noise, labels, 1.0, at_zero)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        slopes.append(torch.autograd.grad(loss, leaf)[0][:, 0, :2].diagonal())
    assert (slopes[0] == 0).all() and (slopes[1] < 0).all()


def test_validation_samples_are_neither_those_of_training_nor_of_the_test() -> None:
    study = TopKBaselines.at("tiny", seeds=1, validation_samples=200, test_samples=200)
    cells = grid_of(study).cells(np.arange(1))
    trial = study.setup(cells, FLOAT64)
    streams = [
        trial.data.sample(trial.draws, 40, name).noise[0]
        for name in ("train", "validation", "test")
    ]
    for place, first in enumerate(streams):
        for second in streams[place + 1 :]:
            assert torch.cdist(first, second).min() > 1
    found = study.simulate(cells, FLOAT64)
    assert (found["validation_loss"] != found["test_loss"]).all()


# --------------------------------------------------------------------------- what a reader is shown


@cache
def made_up() -> tuple[Any, xr.Dataset]:
    arms = ("dense", "revive-4", "revive-8", "random-4", "decay-0.1")
    study = TopKBaselines.at("tiny", arm=arms, seeds=3)
    losses = (
        ("arm", "sigma", "seed", "read"),
        np.random.default_rng(0).uniform(1, 2, (5, 2, 3, 3)),
    )
    return study, fabricated(study, 3, dict.fromkeys(OUTPUTS, losses))


def test_methods_without_arms_are_left_out_of_the_picture() -> None:
    study, results = made_up()
    (picture,) = study.picture(results)
    for panel in picture.panels:
        assert isinstance(panel, Lines)
        assert [curve.label for curve in panel.curves] == [
            "dense",
            "early stopping",
            "weight decay",
            "random mask",
            "TopK revive",
            "guessing",
        ]


def test_the_table_of_knobs_says_where_the_list_was_too_short() -> None:
    study, results = made_up()
    told = results.copy(deep=True)
    told["validation_loss"].loc[{"arm": "revive-4"}] = 0.1
    told["validation_loss"].loc[{"arm": "dense", "read": 20}] = 0.2
    told["validation_loss"].loc[{"arm": "dense", "read": 5, "seed": 0}] = 0.1
    rows = study.tables(told)[0].rows
    knobs = {row[1]: row[2] for row in rows if row[0] == "1.5"}
    assert knobs["TopK revive"] == "K 4*"
    assert knobs["early stopping"] == "steps 20 (5 to 20)"
    assert knobs["dense"] == "none"


# ------------------------------------------------------------------------------------- the verdicts


ARMS = (
    "dense",
    "revive-2",
    "revive-8",
    "revive0-2",
    "revive0-8",
    "fixed-2",
    "fixed-8",
    "random-2",
    "random-8",
    "decay-0.1",
)
SIGMA, READS, SEEDS = (0.5, 1.0, 1.5), (5, 50, 500), 8
STUDY = TopKBaselines.at(
    "quick", arm=ARMS, sigma=SIGMA, steps=500, reads=READS, seeds=SEEDS, test_samples=1000
)


def results(levels: dict[str, float], spread: float = 0.01) -> xr.Dataset:
    """Losses at the end of training by method, the same at all noise levels but the first, where
    nothing fails; ``early``: the dense run's loss half-way. The error is a tenth of the loss."""
    generator = np.random.default_rng(1)
    found = {}
    for name in ("validation_loss", "test_loss", "test_error", "train_loss"):
        values = generator.normal(0, spread, (len(ARMS), len(SIGMA), SEEDS, len(READS)))
        for place, word in enumerate(ARMS):
            method = word.partition("-")[0]
            level = levels.get(method, 2.5)
            if name == "test_error":
                level, values[place] = level / 10, values[place] / 10
            values[place] += level
            if method == "dense" and name != "test_error":
                values[place, :, :, 1] += levels.get("early", level) - level
            if word.endswith("-8"):
                values[place] += 0.5  # the worse of two knobs
        values[:, 0] = 0.3 + 0.1 * (name == "test_error")
        found[name] = (("arm", "sigma", "seed", "read"), values)
    return fabricated(STUDY, SEEDS, found)


def row(data: xr.Dataset, method: str, sigma: str = "1") -> tuple[str, ...]:
    """Of the table of choices: knob, validation loss, test loss, test error."""
    (one,) = [each for each in STUDY.tables(data)[0].rows if list(each[:2]) == [sigma, method]]
    return tuple(str(value) for value in one[2:])


def against(data: xr.Dataset, rival: str) -> Verdict:
    (one,) = [v for v in STUDY.verdicts(data, "quick") if v.setting.startswith(f"{rival}: ")]
    return one


# ----------------------------------------------------------------------------------------- choosing


def test_the_knob_is_chosen_by_validation_and_never_by_the_test() -> None:
    data = results({"revive": 1.0})
    assert row(data, "TopK revive")[0] == row(data, "TopK revive", "1.5")[0] == "K 2*"
    other = data.copy(deep=True)
    other["test_loss"].loc[{"arm": "revive-8"}] = 0.0  # the test would have preferred it
    assert row(other, "TopK revive") == row(data, "TopK revive")
    assert STUDY.verdicts(other, "quick") == STUDY.verdicts(data, "quick")


def test_each_seed_and_noise_level_chooses_for_itself() -> None:
    data = results({})
    data["validation_loss"].loc[{"arm": "fixed-8", "seed": 3, "sigma": 1.0}] = 0.01
    data["test_loss"].loc[{"arm": "fixed-8", "seed": 3, "sigma": 1.0}] = 100.0
    knob, _, loss, _ = row(data, "TopK fixed")
    others = data["test_loss"].sel(arm="fixed-2", sigma=1.0, read=500).drop_sel(seed=3)
    assert knob == "K 2* (2 to 8)" and loss == f"{(float(others.sum()) + 100) / SEEDS:.3g}"
    assert row(data, "TopK fixed", "1.5")[0] == "K 2*"


def test_early_stopping_reads_the_dense_run_where_validation_is_lowest() -> None:
    data = results({"dense": 3.0, "early": 2.0})
    knob, _, loss, _ = row(data, "early stopping")
    half_way = data["test_loss"].sel(arm="dense", read=50, sigma=1.0).mean()
    assert knob == "steps 50" and loss == f"{float(half_way):.3g}"
    knob, _, loss, _ = row(data, "dense")
    assert knob == "none" and float(loss) > 2.9


def test_a_run_that_went_wrong_is_never_chosen_and_of_equals_the_first_is() -> None:
    data = results({})
    data["validation_loss"].loc[{"arm": "revive-2"}] = np.nan
    assert row(data, "TopK revive")[0] == "K 8*"
    data["validation_loss"].loc[{"arm": ["revive-2", "revive-8"]}] = 1.0
    assert row(data, "TopK revive")[0] == "K 2*"
    for name in data:
        data[name].loc[{"arm": ["revive-2", "revive-8"]}] = np.nan
    assert row(data, "TopK revive")[1:] == ("undefined",) * 3
    assert against(data, "dense").n == 0


# ----------------------------------------------------------------------------------------- verdicts


def test_a_rescue_that_nothing_else_brings_holds_and_theorem_4_4_says_nothing_of_it() -> None:
    found = STUDY.verdicts(results({"dense": 3.0, "revive": 0.1}), "quick")
    assert [v.claim for v in found] == ["S4", "", "", ""] and {v.n for v in found} == {SEEDS}
    assert [v.outcome for v in found] == ["premise-not-met", *["holds"] * 3]
    # judged at the loudest noise: SNR = 1/(1.5 sqrt(200)) against 1/200
    assert "SNR is 9.4/n" in found[0].note and all("sigma_p=1.5" in v.setting for v in found)


def test_weight_decay_that_does_better_makes_its_comparison_fail_and_no_other() -> None:
    data = results({"dense": 3.0, "revive": 1.0, "decay": 0.5})
    assert against(data, "weight decay").outcome == "fails"
    assert against(data, "random mask").outcome == "holds"


def test_early_stopping_may_win() -> None:
    data = results({"dense": 3.0, "early": 0.5, "revive": 1.0})
    assert against(data, "early stopping").outcome == "fails"


def test_equal_to_the_last_bit_is_no_effect_and_fails() -> None:
    data = results({"dense": 3.0})
    for name in data:
        for knob in (2, 8):
            same = data[name].sel(arm=f"random-{knob}").values
            data[name].loc[{"arm": f"revive-{knob}"}] = same
    found = against(data, "random mask")
    assert found.outcome == "fails" and "no effect at all" in found.note


def test_differences_lost_in_the_spread_between_seeds_decide_nothing() -> None:
    data = results({"dense": 3.0, "revive": 2.45, "decay": 2.5}, spread=0.4)
    assert against(data, "weight decay").outcome == "inconclusive"


def test_what_seeds_share_cancels_in_a_paired_difference() -> None:
    data = results({"dense": 3.0, "revive": 0.9, "decay": 1.0})
    shift = xr.DataArray(np.linspace(0, 3, SEEDS), dims="seed")  # far more than the difference
    for name in ("test_loss", "validation_loss"):
        data[name] = data[name] + shift
    found = against(data, "weight decay")
    assert found.outcome == "holds" and found.interval is not None
    assert found.interval[1] - found.interval[0] < 0.1


def test_rivals_that_were_not_run_are_not_judged() -> None:
    data = results({"dense": 3.0, "revive": 0.1})
    some = data.sel(arm=["dense", "revive-2", "decay-0.1"])
    assert len(STUDY.verdicts(some, "quick")) == 3  # dense, weight decay, early stopping
    assert STUDY.verdicts(data.sel(arm=["dense", "fixed-2"]), "quick") == []
