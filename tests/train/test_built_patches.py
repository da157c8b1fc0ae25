"""What C++ does to active patches is what torch does to all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.core.settings import compiler_present
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView
from rarefy.data.multi_view_sets import FreshSamples, StoredSamples
from rarefy.train.active_patches import ActivePatches, find_active_patches
from rarefy.train.built_patches import BuiltPatches
from rarefy.train.multi_view_classifier import MultiViewBatch, MultiViewClassifier, initial_neurons

pytestmark = pytest.mark.skipif(not compiler_present(), reason="needs a C++ compiler")

# no number here is a multiple of a vector's length, or of how much is done at once
MODEL = MultiView(d=19, patches=40, plus=3, minus=3, feature_patches=5, spread=0.2, sigma=0.05)
KINDS = (BuiltPatches, BuiltPatches, BuiltPatches)


def neurons(runs: int, first: int = 0, m: int = 35) -> dict[str, Tensor]:
    found = initial_neurons(Draws(range(first, first + runs)), 6, m, MODEL.d, 0.5, 1.2)
    found["weights"][:, :, ::7] *= 8  # a few have grown: noise wakes them
    return found


def batch(runs: int, first: int = 0, samples: int = 0) -> MultiViewBatch:
    draws, labels = Draws(range(first, first + runs)), Labels(MODEL, 3)
    if samples:
        found = StoredSamples(MODEL, labels, draws, samples, 12)(4)
    else:
        found = FreshSamples(MODEL, labels, draws, 12)(0)
    target = torch.nn.functional.one_hot(found.label, 6).transpose(1, 2)
    return MultiViewBatch(found.views, target.float())


@pytest.mark.parametrize("samples", [0, 5])
@torch.no_grad()
def test_loss_and_gradients_are_those_of_all_patches_shown_to_all(samples: int) -> None:
    parameters, data = neurons(3), batch(3, samples=samples)
    plain = MultiViewClassifier(MODEL.patches, bias_rate=0.1)
    by_cpp = replace(plain, compile_kernels=True)
    given = parameters["weights"], parameters["bias"], data.views
    assert tuple(map(type, find_active_patches(*given, False, True))) == KINDS
    whole = MultiViewBatch(replace(data.views, grouped=0), data.target)
    torch.testing.assert_close(
        by_cpp.gradients(parameters, data), plain.gradients(parameters, whole)
    )


@torch.no_grad()
def test_hard_samples_have_a_patch_for_all() -> None:
    views = MODEL.grouped(MODEL.sample(Draws(range(2)), MODEL.balanced(12)[None], hard=True))
    parameters = neurons(2)
    given = parameters["weights"], parameters["bias"], views
    assert ActivePatches in map(type, find_active_patches(*given, False, True))
    plain = MultiViewClassifier(MODEL.patches)
    found = replace(plain, compile_kernels=True).scores(parameters, views)
    expected = plain.scores(parameters, replace(views, grouped=0))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("threads", [1, 3])
@torch.no_grad()
def test_a_batch_gives_the_bits_of_single_runs(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarefy.train.built_patches._WORTH_A_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    problem = MultiViewClassifier(MODEL.patches, bias_rate=0.1, compile_kernels=True)
    loss, together = problem.gradients(neurons(4), batch(4))
    for run in range(4):
        own, alone = problem.gradients(neurons(1, run), batch(1, run))
        assert torch.equal(own[0], loss[run])
        for name, value in alone.items():
            assert torch.equal(value[0], together[name][run])


@torch.no_grad()
def test_a_run_that_is_lost_is_seen_to_be() -> None:
    problem = MultiViewClassifier(MODEL.patches, compile_kernels=True)
    parameters = neurons(3)
    parameters["weights"][0] = torch.nan
    loss, found = problem.gradients(parameters, batch(3))
    assert bool(loss[0].isnan()) and bool(found["weights"][0].isnan().any())
    assert bool(loss[1:].isfinite().all()) and bool(found["weights"][1:].isfinite().all())


def test_autograd_and_float64_keep_to_torch() -> None:
    parameters, data = neurons(2), batch(2)
    given = parameters["weights"], parameters["bias"], data.views
    assert set(map(type, find_active_patches(*given, False, True))) == {ActivePatches}
    with torch.no_grad():
        double = parameters["weights"].double(), parameters["bias"].double()
        noise = data.views.noise().double()
        views = replace(data.views, patches=data.views.patches.double(), noise=lambda: noise)
        assert set(map(type, find_active_patches(*double, views, False, True))) == {ActivePatches}
