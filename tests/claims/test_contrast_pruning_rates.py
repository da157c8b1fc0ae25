"""P1: growth a step against d, alpha and eps, and verdicts on rates with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import Made, fabricated
from pruning_results import FLOAT64, simulated

from rarefy.core.contracts import Cells
from rarefy.measure.pruning_effect import PruningEffect
from rarefy.studies import get_study
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order
from rarefy.train.neuron_pruning import NeuronPruning

ContrastPruningRates = get_study("contrast-pruning-rates")
pytestmark = pytest.mark.usefixtures("eager")


def rates(**options: Any) -> ContrastPruningRates:
    study = ContrastPruningRates.at("tiny", **options)
    assert isinstance(study, ContrastPruningRates)
    return study


RATES = rates(features=(9, 16, 32), eps_min=(0.2, 0.4, 0.8), pruned=(1, 2, 4))


def rates_results(rare: Made, others: Made, study: ContrastPruningRates = RATES) -> xr.Dataset:
    return fabricated(study, 4, {"rare": rare, "others": others, "fall": lambda c: c["eps_min"]})


def order(name: str, study: ContrastPruningRates = RATES) -> Made:
    """(15) or (16), with the constant of stage 1 at every d."""

    def of(c: xr.Dataset) -> xr.DataArray:
        d, lr = c["features"], study.sized(study.features[0]).lr
        constant = d.copy(data=[study.sized(int(v)).growth_constant for v in d.values])
        share = (c["eps_min"], c["pruned"] / (study.copies * d), lr, constant)
        return minority_rate_order(*share) if name == "rare" else other_rate_order(*share, d)

    return of


def test_rates_as_claimed_hold_and_the_orders_are_those_of_15_and_16() -> None:
    results = rates_results(lambda c: 2 * order("rare")(c), lambda c: order("others")(c) / 2)
    verdicts = RATES.verdicts(results, "tiny")
    assert [verdict.outcome for verdict in verdicts] == ["holds"] * 7
    assert [v.claim for v in verdicts] == ["P1.1", "P1.2", "P1.3", "P1", "P1", "P1", "P5"]
    assert [v.measured for v in verdicts[3:5]] == ["mean 2 [2, 2]", "mean 0.5 [0.5, 0.5]"]


@pytest.mark.parametrize(
    ("rare", "others", "failing"),
    [
        (
            lambda c: order("rare")(c) / 8,
            lambda c: order("others")(c) / 2,
            {"rare growth over (15)"},
        ),
        (order("rare"), lambda c: 8 * order("others")(c), {"other growth over (16)"}),
        (
            order("rare"),
            lambda c: order("rare")(c) / 45,
            {"other over rare growth added: exponent in d"},
        ),
        (
            lambda c: order("rare")(c) * c["pruned"],
            lambda c: order("others")(c) / 2,
            {"rare growth added: exponent in alpha"},
        ),
        # (15) is a lower bound: growth that depends on alpha less than in proportion is allowed
        (lambda c: 4 * order("rare")(c) / c["pruned"], lambda c: order("others")(c) / 2, set()),
        (
            lambda c: 5 * order("rare")(c) * c["eps_min"],
            lambda c: order("others")(c) / 2,
            {"rare growth added: exponent in eps"},
        ),
        # slower than eps^2 is what a lower bound allows
        (lambda c: order("rare")(c) / c["eps_min"], order("others"), set()),
    ],
)
def test_rates_that_differ_in_one_thing_fail_there(
    rare: Made, others: Made, failing: set[str]
) -> None:
    for verdict in RATES.verdicts(rates_results(rare, others), "tiny"):
        expected = "fails" if any(verdict.setting.startswith(f) for f in failing) else "holds"
        assert verdict.outcome == expected, (verdict.setting, verdict.measured)


def test_with_two_biases_the_last_decides_and_the_other_is_a_check() -> None:
    study = rates(features=RATES.features, eps_min=RATES.eps_min, bias_scale=(0.0, 1.0))

    def others(c: xr.Dataset) -> xr.DataArray:
        return order("rare", study)(c) * xr.where(c["bias_scale"] == 0, 2.0, 1e-3 / c["features"])

    found = study.verdicts(rates_results(order("rare", study), others, study), "tiny")
    assert {v.setting.partition(":")[0] for v in found[:3]} == {"no bias"}
    assert [(v.claim, v.outcome) for v in found[:1]] == [("P1", "fails")]
    assert [(v.claim, v.outcome) for v in found[3:6]] == [
        ("P1.1", "holds"),
        ("P1.2", "holds"),
        ("P1.3", "holds"),
    ]


def test_a_fall_of_the_logit_with_the_square_of_eps_is_less_than_the_lemmas() -> None:
    found = rates_results(order("rare"), order("others"))
    found["fall"] = found["fall"] ** 2
    lemma = RATES.verdicts(found, "tiny")[-1]
    assert (lemma.claim, lemma.outcome) == ("P5", "fails")


def test_the_worst_of_the_rates_is_named() -> None:
    def weak_at_one_place(c: xr.Dataset) -> xr.DataArray:
        there = (c["features"] == 16) & (c["pruned"] == 1) & (c["eps_min"] == 0.8)
        return order("rare")(c) * xr.where(there, 0.1, 2.0)

    def strong_at_one_place(c: xr.Dataset) -> xr.DataArray:
        there = (c["features"] == 9) & (c["pruned"] == 2) & (c["eps_min"] == 0.2)
        return order("others")(c) * xr.where(there, 9.0, 1.0)

    results = rates_results(weak_at_one_place, strong_at_one_place)
    least, most = RATES.verdicts(results, "tiny")[3:5]
    assert least.outcome == "fails" and "at d=16, 1 pruned, eps_min=0.8" in least.note
    assert most.outcome == "fails" and "at d=9, 2 pruned, eps_min=0.2" in most.note


def test_rates_without_a_value_hold_nothing_and_are_no_error() -> None:
    results = rates_results(lambda c: np.nan, lambda c: np.nan)
    assert {v.outcome for v in RATES.verdicts(results, "tiny")[:-1]} == {"inconclusive"}


def test_the_count_of_pruned_neurons_is_exact_in_float32() -> None:
    for scale in ContrastPruningRates.scales:
        study = ContrastPruningRates.at(scale)
        assert isinstance(study, ContrastPruningRates)
        for d in study.features:
            neurons = study.sized(d).neurons
            share = torch.tensor([count / neurons for count in study.pruned])
            zero = torch.zeros(len(share), dtype=torch.int64)
            left = neurons - NeuronPruning(share, zero, zero, neurons).count
            assert left.tolist() == list(study.pruned)
            assert study.sized(d).alpha[1:] == tuple(c / neurons for c in study.pruned)


def test_rates_prune_the_rare_features_neurons_and_it_gains_most() -> None:
    study = rates(eps_min=(0.5,), d1=24, batch=16, relax=20)
    grid, found = simulated(study)
    for d in study.features:
        sized = study.sized(d)
        here = grid.values["features"] == d
        cells = grid.cells(np.flatnonzero(here))
        share = np.asarray(cells.values["pruned"]) / sized.neurons
        values = {**cells.values, "alpha": share, "start": np.zeros(len(cells))}
        trial = sized.trial("theorem", Cells(values, cells.keys), FLOAT64)
        assert trial.pruning is not None
        out = ~trial.pruning.mask(trial.weights)
        assert out.sum(dim=1).tolist() == cells.values["pruned"].tolist()
        feature = torch.arange(sized.neurons) % d
        assert (feature.expand_as(out)[out] == d - 1).all()
        # a mask by hand: copies are alike, so that it does not matter which of them it takes
        copy = torch.arange(sized.neurons) // d
        count = torch.as_tensor(cells.values["pruned"])[:, None]
        kept = (feature != d - 1) | (copy >= count)
        effect = PruningEffect(
            trial.problem,
            trial.parameters,
            kept,
            trial.data,
            trial.draws.spawn("effect"),
            torch.tensor([d - 1]),
            sized.batch,
            study.effect_batches,
        )
        own = (feature[:, None] == torch.arange(d)).expand(len(cells), -1, -1)
        growth = effect.extra_growth(sized.lr, own)[:, -1]
        np.testing.assert_allclose(found["rare"][here], growth.numpy(), rtol=1e-9)
        everyone = effect.extra_growth(sized.lr, torch.ones_like(own))[:, :-1].mean(dim=1)
        np.testing.assert_allclose(found["others"][here], everyone.numpy(), rtol=1e-9)
        few, many = (here & (grid.values["pruned"] == count) for count in study.pruned)
        for name in ("rare", "fall"):
            assert (found[name][few] > 0).all()
            assert (found[name][many] > found[name][few]).all()
        assert (found["rare"][here] > found["others"][here]).all()
    assert study.sized(9).activation == pytest.approx(0.3, abs=1e-3)
