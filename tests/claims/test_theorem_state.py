"""The state of Theorem 3.1 at T4: what it must be like, whatever the frequencies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import UsageError
from rarefy.measure.alignment import inside_fraction, squared_cosines
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies import get_study
from rarefy.studies.contrastive.setting import Trial
from rarefy.studies.contrastive.theorem_state import own_feature, theorem_state
from rarefy.sweep.grid import grid_of
from rarefy.train.neuron_pruning import NeuronPruning

ContrastAlignment = get_study("contrast-alignment")
pytestmark = pytest.mark.usefixtures("eager")
RELAX = 10


def study(**options: object) -> ContrastAlignment:
    made = ContrastAlignment.at(
        "tiny",
        **{"neurons": 20, "d1": 30, "batch": 16, "steps": 4, "reads": (4,), "figure_read": 4}
        | options,
    )
    assert isinstance(made, ContrastAlignment)
    return made


def everyone(of: ContrastAlignment) -> Cells:
    grid = grid_of(of)
    return grid.cells(np.arange(len(grid)))


def some(cells: Cells, runs: list[int]) -> Cells:
    return Cells({name: value[runs] for name, value in cells.values.items()}, cells.keys[runs])


def at_t4(
    of: ContrastAlignment,
    cells: Cells,
    context: Context,
    eps: Tensor | None = None,
    relax: int = RELAX,
    pruning: NeuronPruning | None = None,
) -> Trial:
    made = of.setup(cells, context, pruning=pruning)
    other = made if eps is None else replace(made, data=replace(made.data, eps=eps))
    return replace(made, parameters=theorem_state(other, context, relax))


FLOAT64 = Context(dtype=torch.float64)


def test_every_neuron_carries_its_feature_and_nothing_else() -> None:
    of = study()
    made = at_t4(of, everyone(of), FLOAT64)
    cosines = squared_cosines(made.weights, made.data.dictionary)
    feature = own_feature(of.neurons, of.d)
    assert feature.tolist() == [i % 9 for i in range(20)]
    assert torch.allclose(
        cosines[:, torch.arange(20), feature], torch.ones(len(cosines), 20).double()
    )
    inside = inside_fraction(made.weights, made.data.dictionary)
    assert torch.allclose(inside, torch.ones_like(inside))


def test_weights_are_those_of_balanced_data_times_the_frequency() -> None:
    """(13), with frequencies of more than two kinds; only eps_j/eps_max matters."""
    of = study()
    cells = everyone(of)
    eps = torch.linspace(0.1, 0.5, 9, dtype=torch.float64).expand(len(cells), 9)
    uneven = at_t4(of, cells, FLOAT64, eps)
    balanced = at_t4(of, cells, FLOAT64, torch.ones_like(eps))
    factor = (eps / 0.5)[:, own_feature(20, 9), None]
    assert torch.allclose(uneven.weights, factor * balanced.weights)
    # one scale a run: on balanced data all neurons have the same norm
    norms = balanced.weights.norm(dim=2)
    assert torch.allclose(norms, norms[:, :1].expand_as(norms), rtol=1e-12)
    assert torch.allclose(balanced.weights[:, :9], balanced.weights[:, 9:18])


# ------------------------------------------------------------------------------- the scale at rest


def balanced_scale(relax: int) -> tuple[Trial, Tensor]:
    """An experiment in its balanced state and the scale of it, (run,)."""
    of = study()
    cells = everyone(of)
    made = at_t4(of, cells, FLOAT64, torch.ones(len(cells), 9, dtype=torch.float64), relax)
    return made, made.weights.norm(dim=2)[:, 0]


def norm_change(made: Trial, times: float, batches: range) -> Tensor:
    """Mean over neurons of the change of the norm over the learning rate, beyond and relative to
    what decay takes away, at ``times`` the scale: (run,). The bias is in proportion."""
    weights, value = made.weights, made.bias.value
    unit = weights / weights.norm(dim=2, keepdim=True)
    data = replace(made.data, eps=torch.ones_like(made.data.eps))
    draws = made.draws.spawn("relax")
    made.bias.value = times * value
    growth = torch.zeros(len(weights), dtype=weights.dtype)
    for index in batches:
        batch = data.sample(draws, made.experiment.batch, index)
        gradient = made.problem.gradients({"weights": times * weights}, batch)[1]["weights"]
        growth -= (gradient * unit).sum(dim=2).mean(dim=1) / len(batches)
    made.bias.value = value
    decay = made.experiment.weight_decay * times * weights.norm(dim=2)[:, 0]
    return (growth - decay) / decay


def test_at_its_scale_the_network_neither_grows_nor_shrinks_on_balanced_data() -> None:
    made, scale = balanced_scale(relax=60)
    assert (made.bias.value > 0).any() and (made.bias.value == 0).any()
    same = range(3)  # 60 gradients, 20 bisections
    assert (norm_change(made, 1.0, same).abs() < 3e-3).all()
    assert (norm_change(made, 0.9, same) > 0.03).all()  # a smaller one grows,
    assert (norm_change(made, 1.1, same) < -0.03).all()  # a larger one shrinks
    assert (scale > 0).all()


@pytest.mark.slow
def test_more_batches_agree_and_fewer_bisections_are_coarser() -> None:
    few, many, coarse = (balanced_scale(relax)[1] for relax in (200, 600, 10))
    assert ((few / many).log().abs() < 0.1).all()
    assert float((few / many).log().mean().abs()) < 0.03
    assert ((coarse / many).log().abs() < 0.3).all()


def test_the_pruning_in_force_does_not_matter_for_the_scale() -> None:
    of = study()
    cells = everyone(of)
    runs = len(cells)
    rule = NeuronPruning(
        torch.full((runs,), 0.5),
        torch.zeros(runs, dtype=torch.int64),
        rule_codes(["dense"] * runs),
        of.neurons,
    )
    pruned, plain = at_t4(of, cells, FLOAT64, pruning=rule), at_t4(of, cells, FLOAT64)
    assert torch.equal(pruned.weights, plain.weights)
    assert rule.kept.all()


# ------------------------------------------------------------------------------------------- bias


def test_the_bias_is_the_rules_value_and_follows_the_norm() -> None:
    of = study()
    cells = everyone(of)
    made = at_t4(of, cells, FLOAT64)
    scale = cells.column("bias_scale", FLOAT64)[:, None] * math.sqrt(2 * math.log(9) / 9)
    assert set(scale.flatten().tolist()) != {0.0}
    assert torch.allclose(made.bias.value, scale * made.weights.norm(dim=2))
    assert made.problem.bias is made.bias
    assert (made.bias.t1 == 0).all() and (made.bias.t2 == 0).all()
    after = made.train(FLOAT64, {}, ()).parameters["weights"]
    assert torch.allclose(made.bias.value, scale * after.norm(dim=2))


@pytest.mark.parametrize("until", ["T2", "end"])
def test_relaxing_does_not_let_the_bias_run_ahead(until: str) -> None:
    of = study(bias_until=until)
    made = at_t4(of, everyone(of), FLOAT64)
    same = at_t4(study(), everyone(study()), FLOAT64)
    assert torch.equal(made.bias.value, same.bias.value)


@pytest.mark.parametrize("relax", [RELAX, 45])
def test_a_run_gives_the_same_alone_and_in_a_batch_and_training_draws_as_ever(relax: int) -> None:
    of = study()
    cells = everyone(of)
    made = at_t4(of, cells, FLOAT64, relax=relax)
    together = made.train(FLOAT64, {}, ()).parameters["weights"]
    for run in (0, len(cells) - 1):
        alone = at_t4(of, some(cells, [run]), FLOAT64, relax=relax)
        assert torch.allclose(alone.weights[0], made.weights[run], rtol=1e-10, atol=1e-12)
        final = alone.train(FLOAT64, {}, ()).parameters["weights"]
        assert torch.allclose(final[0], together[run], rtol=1e-10, atol=1e-12)


def test_progress_and_what_is_refused() -> None:
    of = study()
    cells = everyone(of)
    for relax in (1, 19, 20, 45, RELAX):  # with and without a rest after whole bisections
        done: list[float] = []
        made = at_t4(of, cells, Context(advance=done.append), relax=relax)
        assert sum(done) == relax * len(cells)
    with pytest.raises(ValueError, match="has been trained"):
        theorem_state(made, Context(), RELAX)
    few = study(neurons=8)
    with pytest.raises(UsageError, match="neurons=8: a neuron a feature: at least 9"):
        at_t4(few, everyone(few), Context())
