"""Neurons are spared patches that they would sleep through: nothing changes by that."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView
from rarefy.data.multi_view_sets import FreshSamples, StoredSamples
from rarefy.train import active_patches
from rarefy.train.active_patches import ActivePatches, find_active_patches
from rarefy.train.multi_view_classifier import MultiViewBatch, MultiViewClassifier, initial_neurons

MODEL = MultiView(d=14, patches=9, plus=3, minus=3, feature_patches=2, spread=0.2, sigma=0.05)


def batch(runs: int = 3, first: int = 0, model: MultiView = MODEL, n: int = 12) -> MultiViewBatch:
    draws = Draws(range(first, first + runs), dtype=torch.float64)
    found = FreshSamples(model, Labels(model, model.plus), draws, n)(0)
    target = torch.nn.functional.one_hot(found.label, model.subclasses).transpose(1, 2)
    return MultiViewBatch(found.views, target.double())


def neurons(
    runs: int = 3, first: int = 0, m: int = 40, threshold: float = 1.2, grown: float = 8.0
) -> dict[str, Tensor]:
    draws = Draws(range(first, first + runs), dtype=torch.float64)
    found = initial_neurons(draws, 6, m, MODEL.d, 0.5, threshold)
    found["weights"][:, :, ::7] *= grown  # a few have grown: noise wakes them
    return found


def shares(shown: list[ActivePatches], rows: int) -> list[float]:
    """The part of all neurons that each kind of patches is shown to."""
    return [1.0 if each.neurons is None else each.neurons.shape[2] / rows for each in shown]


def test_grouped_patches_shown_to_some_are_all_patches_shown_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = MultiViewClassifier(MODEL.patches, bias_rate=0.1)
    parameters, data = neurons(), batch()
    monkeypatch.setattr(active_patches, "PICKING", -math.inf)  # it always pays
    shown = find_active_patches(parameters["weights"], parameters["bias"], data.views, linear=False)
    common, own, noise = shares(shown, 6 * 40)
    assert max(common, own, noise) < 0.5 and min(common, own, noise) > 0.1
    some = problem.gradients(parameters, data)
    some_scores = problem.scores(parameters, data.views)
    plain = MultiViewBatch(replace(data.views, grouped=0), data.target)
    torch.testing.assert_close(problem.gradients(parameters, plain), some)
    monkeypatch.setattr(active_patches, "AWAKE", math.inf)
    monkeypatch.setattr(active_patches, "PICKING", 0)
    shown = find_active_patches(parameters["weights"], parameters["bias"], data.views, linear=False)
    assert shares(shown, 6 * 40) == [1.0, 1.0, 1.0]
    torch.testing.assert_close(problem.gradients(parameters, data), some)
    torch.testing.assert_close(problem.scores(parameters, data.views), some_scores)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("picking", [math.inf, -math.inf])
def test_scores_are_sums_over_neurons_and_patches(
    linear: bool, picking: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(14), patch by patch, whether neurons are picked out or not."""
    monkeypatch.setattr(active_patches, "PICKING", picking)
    parameters, data = neurons(), batch()
    patches = torch.cat([data.views.patches, data.views.noise()], dim=2)
    seen = torch.einsum("rcmd,rnpd->rcmnp", parameters["weights"], patches)
    seen = seen + parameters["bias"][..., None, None]
    expected = (seen if linear else torch.relu(seen)).sum(dim=(2, 4))
    problem = MultiViewClassifier(MODEL.patches, linear=linear)
    torch.testing.assert_close(problem.scores(parameters, data.views), expected)
    residual = torch.softmax(expected, dim=1) - data.target
    weight = residual[:, :, None, :, None].expand_as(seen)
    parts = weight if linear else weight * (seen > 0)
    combination = torch.einsum("rcmnp,rnpd->rcmd", parts, patches) / (12 * MODEL.patches)
    _, found = problem.gradients(parameters, data)
    torch.testing.assert_close(found["weights"], combination)


def test_scores_are_differentiable_through_neurons_that_are_picked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(active_patches, "PICKING", -math.inf)
    problem = MultiViewClassifier(MODEL.patches)
    parameters, data = neurons(), batch()
    free = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    loss = problem.loss(free, data)
    (slope,) = torch.autograd.grad(loss.sum(), free["weights"])
    _, found = problem.gradients(parameters, data)
    torch.testing.assert_close(slope / MODEL.patches, found["weights"])


@pytest.mark.parametrize("picking", [math.inf, -math.inf])
def test_a_batch_gives_what_single_runs_give(
    picking: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of neurons picked out is that of the run with most."""
    monkeypatch.setattr(active_patches, "PICKING", picking)
    problem = MultiViewClassifier(MODEL.patches, bias_rate=0.1)
    _, together = problem.gradients(neurons(4), batch(4))
    for run in range(4):
        _, alone = problem.gradients(neurons(1, first=run), batch(1, first=run))
        for name, value in alone.items():
            torch.testing.assert_close(value[0], together[name][run], rtol=1e-10, atol=1e-14)


def test_samples_of_a_stored_set_come_in_groups_too(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws(range(2), dtype=torch.float64)
    labels = Labels(MODEL, 3)
    problem = MultiViewClassifier(MODEL.patches)
    monkeypatch.setattr(active_patches, "PICKING", -math.inf)
    for each in (2, 5):
        stored = StoredSamples(MODEL, labels, draws, each, 12)(4)
        assert stored.views.grouped == 8
        scores = problem.scores(neurons(2), stored.views)
        plain = problem.scores(neurons(2), replace(stored.views, grouped=0))
        torch.testing.assert_close(scores, plain)


@pytest.mark.parametrize("patches", [9, 60])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("counts", ["fixed", "drawn"])
def test_test_samples_come_in_groups_too(
    patches: int, hard: bool, counts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 9 patches a count that is drawn may be more than there is room for: not grouped then."""
    monkeypatch.setattr(active_patches, "PICKING", -math.inf)
    model = replace(MODEL, counts=counts, patches=patches)
    draws, grouped = Draws(range(2), dtype=torch.float64), set()
    problem = MultiViewClassifier(model.patches)
    parameters = neurons(2)
    for step in range(16):
        views = model.grouped(model.sample(draws, model.balanced(6)[None], hard, step=step))
        grouped.add(views.grouped)
        plain = problem.scores(parameters, replace(views, grouped=0))
        torch.testing.assert_close(problem.scores(parameters, views), plain)
    assert grouped == ({0, 8} if patches == 9 and counts == "drawn" else {8})


def test_subclasses_that_are_not_equally_many_are_not_grouped() -> None:
    model = MultiView(d=14, patches=9, plus=1, minus=3, feature_patches=2)
    draws = Draws([0], dtype=torch.float64)
    found = FreshSamples(model, Labels(model, 1), draws, 6)(0)
    assert found.views.grouped == 0


def test_nothing_is_shown_while_everyone_sleeps() -> None:
    draws = Draws(range(2), dtype=torch.float64)
    parameters = initial_neurons(draws, 6, 5, MODEL.d, 0.01, 9.0)
    data = batch(2)
    assert (
        find_active_patches(parameters["weights"], parameters["bias"], data.views, linear=False)
        == []
    )
    problem = MultiViewClassifier(MODEL.patches)
    loss, found = problem.gradients(parameters, data)
    assert bool((found["weights"] == 0).all())
    assert torch.allclose(loss, torch.full_like(loss, math.log(6)))


def test_noise_is_drawn_only_for_those_it_may_wake() -> None:
    data = batch(2)
    called = []

    def noise() -> Tensor:
        called.append(1)
        return data.views.noise()

    views = replace(data.views, noise=noise)
    asleep = neurons(2, threshold=3.0, grown=1.0)
    shown = find_active_patches(asleep["weights"], asleep["bias"], views, linear=False)
    assert shown and not called  # someone is open on a feature, nobody on noise
    awake = neurons(2)
    find_active_patches(awake["weights"], awake["bias"], views, linear=False)
    assert called


def test_a_run_that_is_lost_is_seen_to_be() -> None:
    """Weights that are no numbers reach no threshold, and must not pass for sleep."""
    problem = MultiViewClassifier(MODEL.patches)
    for runs in (1, 3):
        parameters = neurons(runs)
        parameters["weights"][0] = torch.nan
        loss, found = problem.gradients(parameters, batch(runs))
        assert bool(loss[0].isnan()) and bool(found["weights"][0].isnan().any())
        assert bool(loss[1:].isfinite().all()) and bool(found["weights"][1:].isfinite().all())
