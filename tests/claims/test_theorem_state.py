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
from rarefy.measure.alignment import inside_fraction, projections, squared_cosines
from rarefy.studies._contrastive import Experiment
from rarefy.studies._theorem_state import own_feature, theorem_state
from rarefy.studies.contrast_alignment import ContrastAlignment
from rarefy.sweep.grid import grid_of

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
    of: ContrastAlignment, cells: Cells, context: Context, eps: Tensor | None = None
) -> Experiment:
    made = of.setup(
        cells,
        context,
        eps=of.eps(cells.column("eps_min", context)),
        sigma=cells.column("sigma", context),
        bias_scale=cells.column("bias_scale", context),
    )
    eps = made.data.eps if eps is None else eps
    return replace(made, parameters=theorem_state(made, context, eps, RELAX))


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
    # copies of a feature agree, and features differ by what a few batches sample
    along = projections(balanced.weights, balanced.data.dictionary).abs().amax(dim=1)
    assert (along.std(dim=1) / along.mean(dim=1) < 0.2).all()
    assert torch.allclose(balanced.weights[:, :9], balanced.weights[:, 9:18])


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


def test_a_run_gives_the_same_alone_and_in_a_batch_and_training_draws_as_ever() -> None:
    of = study()
    cells = everyone(of)
    made = at_t4(of, cells, FLOAT64)
    together = made.train(FLOAT64, {}, ()).parameters["weights"]
    for run in (0, len(cells) - 1):
        alone = at_t4(of, some(cells, [run]), FLOAT64)
        assert torch.allclose(alone.weights[0], made.weights[run], rtol=1e-10, atol=1e-12)
        final = alone.train(FLOAT64, {}, ()).parameters["weights"]
        assert torch.allclose(final[0], together[run], rtol=1e-10, atol=1e-12)


def test_progress_and_what_is_refused() -> None:
    of = study()
    cells = everyone(of)
    done: list[float] = []
    made = at_t4(of, cells, Context(advance=done.append))
    assert sum(done) == RELAX * len(cells)
    with pytest.raises(ValueError, match="has been trained"):
        theorem_state(made, Context(), made.data.eps, RELAX)
    few = study(neurons=8)
    with pytest.raises(UsageError, match="neurons=8: a neuron a feature: at least 9"):
        at_t4(few, everyone(few), Context())
