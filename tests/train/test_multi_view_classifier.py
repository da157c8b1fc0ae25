"""Update (16) and bias rule (18) of 004 by hand against automatic differentiation, in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.multi_view import MultiView
from rarefy.train.multi_view_classifier import (
    MultiViewBatch,
    MultiViewClassifier,
    initial_neurons,
    side_scores,
)

MODEL = MultiView(d=12, patches=9, plus=2, minus=2, feature_patches=2, spread=0.2, sigma=0.15)


def batch(runs: int = 3, n: int = 8, outputs: int = 4, first: int = 0) -> MultiViewBatch:
    draws = Draws(range(first, first + runs), dtype=torch.float64)
    views = MODEL.sample(draws, MODEL.balanced(n)[None])
    target = torch.nn.functional.one_hot(views.subclass % outputs, outputs)
    return MultiViewBatch(views, target.transpose(1, 2).double())


def neurons(runs: int = 3, outputs: int = 4, m: int = 5, first: int = 0) -> dict[str, Tensor]:
    draws = Draws(range(first, first + runs), dtype=torch.float64)
    # large and with a low threshold: many neurons are awake, on features and on noise
    return initial_neurons(draws, outputs, m, MODEL.d, 0.5, 0.3)


def plain_scores(parameters: dict[str, Tensor], data: MultiViewBatch, linear: bool) -> Tensor:
    """(14), patch by patch."""
    views = data.views
    patches = torch.cat([views.patches, views.noise()], dim=2)
    assert patches.shape[2] == MODEL.patches
    seen = torch.einsum("rcmd,rnpd->rcmnp", parameters["weights"], patches)
    seen = seen + parameters["bias"][..., None, None]
    return (seen if linear else torch.relu(seen)).sum(dim=(2, 4))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("coarse", [False, True])
def test_the_update_is_the_gradient_of_cross_entropy_over_p(linear: bool, coarse: bool) -> None:
    side = torch.tensor([0, 0, 1, 1])
    problem = MultiViewClassifier(
        MODEL.patches, bias_rate=0.1, linear=linear, coarse=side if coarse else None
    )
    parameters, data = neurons(), batch(outputs=2 if coarse else 4)
    free = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    scores = plain_scores(free, data, linear)
    torch.testing.assert_close(problem.scores(parameters, data.views), scores.detach())
    if coarse:
        scores = torch.stack([scores[:, :2].amax(dim=1), scores[:, 2:].amax(dim=1)], dim=1)
    expected = -(data.target * torch.log_softmax(scores, dim=1)).sum(dim=1).mean(dim=1)
    (slope,) = torch.autograd.grad(expected.sum(), free["weights"])
    loss, found = problem.gradients(parameters, data)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(found["weights"], slope / MODEL.patches, rtol=1e-9, atol=1e-14)
    norms = torch.linalg.vector_norm(slope / MODEL.patches, dim=3)
    torch.testing.assert_close(found["bias"], 0.1 * norms)


def test_loss_is_differentiable_and_agrees() -> None:
    problem = MultiViewClassifier(MODEL.patches)
    parameters, data = neurons(), batch()
    free = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    loss = problem.loss(free, data)
    (slope,) = torch.autograd.grad(loss.sum(), free["weights"])
    by_hand, found = problem.gradients(parameters, data)
    torch.testing.assert_close(loss.detach(), by_hand)
    torch.testing.assert_close(slope / MODEL.patches, found["weights"])


def test_a_batch_gives_what_single_runs_give() -> None:
    problem = MultiViewClassifier(MODEL.patches, bias_rate=0.1)
    _, together = problem.gradients(neurons(), batch())
    for run in range(3):
        _, alone = problem.gradients(neurons(1, first=run), batch(1, first=run))
        for name, value in alone.items():
            torch.testing.assert_close(value[0], together[name][run], rtol=1e-10, atol=1e-14)


def test_biases_follow_a_schedule_or_stand_still() -> None:
    parameters, data = neurons(), batch()
    rates = {"scheduled": 0.1 * 0.4, "still": 0.0}
    for kind, rate in rates.items():
        problem = MultiViewClassifier(MODEL.patches, kind, bias_rate=0.1, scheduled=0.4)
        _, found = problem.gradients(parameters, data)
        assert bool((found["bias"] == rate).all())


def test_a_side_answers_with_its_largest_output() -> None:
    scores = torch.tensor([[[1.0], [3.0], [2.0], [-1.0]]])
    values, index = side_scores(scores, torch.tensor([0, 0, 1, 1]))
    assert values.flatten().tolist() == [3.0, 2.0]
    assert index.flatten().tolist() == [1, 2]


def test_neurons_begin_as_the_paper_says() -> None:
    draws = Draws(range(50), dtype=torch.float64)
    found = initial_neurons(draws, 3, 20, 30, 0.01, 1.5)
    assert found["weights"].shape == (50, 3, 20, 30)
    assert abs(float(found["weights"].std()) / 0.01 - 1) < 0.02
    assert bool((found["bias"] == -0.01 * 1.5 * math.sqrt(math.log(30))).all())
    fewer = initial_neurons(draws, 2, 20, 30, 0.01, 1.5)
    torch.testing.assert_close(fewer["weights"], found["weights"][:, :2])


def test_an_unknown_bias_is_refused() -> None:
    with pytest.raises(UsageError, match="bias='fast': must be one of following, scheduled, still"):
        MultiViewClassifier(9, "fast")
