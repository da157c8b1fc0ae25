"""What the studies of 003 share: stopping, shared draws, training against a plain loop, errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from small_noise import eigenvalues_for
from torch import Tensor
from torch.nn import functional

from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import UsageError
from rarefy.data.class_noise import ClassNoise, rotation
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.nets.patch_cnn import initial_filters
from rarefy.studies import get_study

BenignCorrelation: Any = get_study("benign-correlation")
BenignMajority: Any = get_study("benign-majority")

FLOAT64 = Context(dtype=torch.float64)
SMALL: dict[str, Any] = {"seeds": 1, "classes": 3, "d": 12, "filters": 4, "test_samples": 60}


def study(**parameters: Any) -> Any:
    """Any of the studies would do."""
    usual = {"law": ("gaussian",), "stop_loss": 0.01, "combine": "mean", **SMALL}
    return BenignCorrelation.at("tiny", **{**usual, **parameters})


def training(lr: float, steps: int, stop_loss: float = 0.0) -> Any:
    usual = study().training("carried on")
    return dataclasses.replace(usual, lr=lr, steps=steps, stop_loss=stop_loss)


def ready(
    keys: list[int], gamma: list[float], strength: list[float], law: str = "gaussian", **more: Any
) -> Any:
    options = {name: more.pop(name) for name in ("zeta_axes", "schedule") if name in more}
    plain = study(**more)
    return plain.setup(
        Cells({"seed": np.zeros(len(keys))}, np.array(keys, dtype=np.int64)),
        FLOAT64,
        spectrum=spectrum_for(torch.tensor(gamma), plain.d, plain.classes),
        strength=torch.tensor(strength, dtype=torch.float64),
        sizes=torch.full((1, plain.classes), 5),
        law=law,
        **options,
    )


# ----------------------------------------------------------------------------------------- training


def plain_descent(experiment: Any, run: int, lr: float, steps: int) -> tuple[Tensor, list[float]]:
    """One run by autograd, sample by sample patch by patch: filters, and losses before each
    update and after the last."""
    samples, data = experiment.samples, experiment.data
    weights = experiment.initial[run].clone().requires_grad_(True)
    noise = samples.noise[run if len(samples.noise) > 1 else 0]
    labels = samples.labels[0]
    patches = torch.stack([data.strength[run, labels, None] * samples.features[0][labels], noise])
    losses = []
    for step in range(steps + 1):
        seen = torch.relu(torch.einsum("kmd,pnd->pnkm", weights, patches))
        loss = functional.cross_entropy(experiment.scale * seen.sum(dim=(0, 3)), labels)
        losses.append(float(loss.detach()))
        if step < steps:
            (slope,) = torch.autograd.grad(loss, weights)
            weights = (weights - lr * slope).detach().requires_grad_(True)
    return weights.detach(), losses


@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_training_is_plain_gradient_descent(combine: str) -> None:
    experiment = ready([9, 9, 9], [1.0, 3.0, 50.0], [0.1, 1.0, 2.0], combine=combine)
    found = experiment.fit(FLOAT64, training(0.3, 25))
    loss, _ = experiment.on_training_samples(found.filters)
    for run in range(3):
        weights, losses = plain_descent(experiment, run, 0.3, 25)
        torch.testing.assert_close(found.filters[run], weights, rtol=1e-9, atol=1e-12)
        assert float(loss[run]) == pytest.approx(losses[-1], rel=1e-9)
    assert found.stopped_at.tolist() == [-1] * 3


def test_a_run_stops_after_the_update_whose_loss_was_small() -> None:
    """In blocks, each run by itself; every step is counted."""
    experiment = ready([3] * 4, [1.0, 10.0, 1400.0, 1.0], [0.1, 1.0, 2.0, 3.8], d=40, filters=6)
    for steps in (130, 7):
        done: list[float] = []
        context = Context(dtype=torch.float64, advance=done.append)
        found = experiment.fit(context, training(20.0, steps, 0.05))
        for run in range(4):
            _, losses = plain_descent(experiment, run, 20.0, steps)
            small = [place for place, loss in enumerate(losses[:-1]) if loss <= 0.05]
            made = small[0] + 1 if small else steps
            weights, _ = plain_descent(experiment, run, 20.0, made)
            torch.testing.assert_close(found.filters[run], weights, rtol=1e-9, atol=1e-11)
            assert found.stopped_at[run] == (made if small else -1)
        assert found.nonfinite_step.tolist() == [-1] * 4
        assert sum(done) == 4 * steps
    assert (found.stopped_at < 0).any() and (found.stopped_at > 0).any()


@pytest.mark.parametrize(("law", "axes"), [("gaussian", "rotated"), ("uniform", "original")])
def test_rotated_coordinates_change_nothing(law: str, axes: str) -> None:
    """The same samples and filters written in the axes of the space give the same losses."""
    experiment = ready([4], [10.0], [1.5], law=law, zeta_axes=axes)
    draws, plain = experiment.draws, study()
    basis = rotation(draws, plain.d)
    here = dataclasses.replace(experiment.data, rotation=basis, coordinates="original")
    there = dataclasses.replace(
        experiment,
        data=here,
        samples=here.sample(draws, experiment.samples.labels),
        initial=initial_filters(draws, plain.classes, plain.filters, plain.d, "default"),
    )
    both = (experiment, there)
    ends = [each.fit(FLOAT64, training(1.0, 40)).filters for each in both]
    losses = [each.on_training_samples(end)[0] for each, end in zip(both, ends, strict=True)]
    torch.testing.assert_close(*losses)
    seen = [each.test(end, FLOAT64, 300) for each, end in zip(both, ends, strict=True)]
    torch.testing.assert_close(seen[0].loss, seen[1].loss)


def test_a_run_that_stops_being_finite_is_left_out_and_has_no_error() -> None:
    whole = ready([3, 3], [10.0, 10.0], [1.0, 1e200])
    done: list[float] = []
    found = whole.fit(Context(dtype=torch.float64, advance=done.append), training(20.0, 120, 0.01))
    assert found.nonfinite_step[0] == -1 and found.nonfinite_step[1] >= 0
    known = found.known(whole.test(found.filters, FLOAT64, 60).error)
    assert torch.isnan(known).tolist() == [False, True]
    assert sum(done) == 240


def test_equal_classes_have_the_eigenvalues_of_the_closed_form() -> None:
    gamma = torch.tensor([1.0, 1.2, 10.0, 1400.0], dtype=torch.float64)
    torch.testing.assert_close(study(d=40).spectrum(gamma).table(), eigenvalues_for(gamma, 40, 3))
    # in float32 the cell's ratio is that of the rounded value, not of float32 arithmetic
    assert study(d=40).spectrum(gamma.float()).eigenvalues.dtype == torch.float64
    # noise in 17 common and 3 special directions
    common = BenignMajority.at("tiny", d=40, minority=7, majority=(7,))
    some = common.noise(10.0, "as stated", 7).table()[..., :23]
    torch.testing.assert_close(some, eigenvalues_for(10.0, 40, 3, 0.5, 20)[..., :23])


# ------------------------------------------------------------------------------------------- set-up


def test_cells_with_one_key_share_zeta_and_initial_filters() -> None:
    experiment = ready([7, 7], [1.0, 40.0], [0.0, 2.0])
    assert len(experiment.draws) == 1 and experiment.initial.shape == (2, 3, 4, 12)
    assert torch.equal(experiment.initial[0], experiment.initial[1])
    own = experiment.data.eigenvalues[:, experiment.samples.labels[0]]
    there = own[0] > 0
    zeta = experiment.samples.noise[:, there] / own[:, there]
    torch.testing.assert_close(zeta[0], zeta[1])


def test_cells_with_other_keys_draw_afresh_and_the_same_alone() -> None:
    both = ready([7, 8], [40.0, 40.0], [1.0, 1.0])
    assert len(both.draws) == 2
    assert not torch.equal(both.initial[0], both.initial[1])
    assert not torch.equal(both.samples.noise[0], both.samples.noise[1])
    for place, key in enumerate((7, 8)):
        alone = ready([key], [40.0], [1.0])
        torch.testing.assert_close(both.initial[place], alone.initial[0])
        torch.testing.assert_close(both.samples.noise[place], alone.samples.noise[0])


def test_a_rotation_is_made_only_where_something_notices_it() -> None:
    assert ready([1], [1.0], [1.0], initialisation="gaussian").data.rotation is None
    assert ready([1], [1.0], [1.0]).data.rotation is not None
    assert (
        ready([1], [1.0], [1.0], law="uniform", initialisation="gaussian").data.rotation is not None
    )


def test_initial_filters_have_their_law() -> None:
    drawn = ready([3], [1.0], [1.0], initialisation="gaussian", sigma_0=0.3, d=60, filters=80)
    assert drawn.initial.std().item() == pytest.approx(0.3, rel=0.03)
    default = ready([3], [1.0], [1.0], d=60, filters=80)
    assert default.initial.std().item() == pytest.approx(1 / np.sqrt(3 * 60), rel=0.03)
    assert default.data.rotation is not None
    back = torch.einsum("rkme,rde->rkmd", default.initial, default.data.rotation)
    assert back.abs().max().item() <= 1 / np.sqrt(60) + 1e-12


def test_a_class_may_have_a_feature_of_its_own_strength() -> None:
    plain = study()
    experiment = plain.setup(
        Cells({"seed": np.zeros(1)}, np.array([1])),
        FLOAT64,
        spectrum=spectrum_for(2.0, plain.d, plain.classes),
        strength=torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64),
        sizes=torch.tensor([[2, 3, 4]]),
    )
    assert experiment.samples.strength.tolist() == [[1, 2, 3]]
    assert experiment.samples.class_sizes().tolist() == [[2, 3, 4]]


def test_test_samples_are_balanced_and_not_the_training_ones() -> None:
    experiment = ready([2], [3.0], [1.0])
    fresh = experiment.fresh(30, 0)
    assert fresh.class_sizes().tolist() == [[10, 10, 10]]
    assert not torch.equal(fresh.noise, experiment.fresh(30, 1).noise)
    assert not torch.equal(fresh.noise[0, :15], experiment.samples.noise[0])
    # a network that says nothing is not right
    seen = experiment.test(torch.zeros_like(experiment.initial), FLOAT64, 90)
    assert seen.error.item() == 1 and seen.loss.item() == pytest.approx(np.log(3))


def test_the_setting_knows_its_trainings() -> None:
    plain = study(lr=0.1, steps=7, trained_lr=3.0, trained_steps=9, stop_loss=0.2)
    assert plain.training("printed") == training(0.1, 7)
    assert plain.training("carried on") == training(0.1, 9, 0.2)
    relative = dataclasses.replace(training(3.0, 9, 0.2), relative=True)
    assert plain.training("trained") == relative
    assert plain.scale == 0.25 and study(combine="sum").scale == 1.0
    assert "m=4" in plain.setting
    more = dataclasses.replace(plain, d=24).cost_of(30, 9)
    assert more.bytes_per_cell > plain.cost_of(15, 9).bytes_per_cell > 0
    assert more.steps_per_cell == 9


def test_the_mean_over_filters_is_the_sum_with_smaller_initial_weights() -> None:
    """At a rate m^2 times smaller: the scores are the same, and so is every loss."""
    there = {name: ([5, 5], [1.0, 30.0], [0.5, 2.0]) for name in ("sum", "mean")}
    summed = ready(*there["sum"], combine="sum", schedule="trained")
    meant = ready(*there["mean"], combine="mean", schedule="trained")
    torch.testing.assert_close(4 * summed.initial, meant.initial)
    ends = [
        trial.fit(FLOAT64, training(rate, 30)).filters
        for trial, rate in ((summed, 0.05), (meant, 16 * 0.05))
    ]
    torch.testing.assert_close(4 * ends[0], ends[1])
    both = [
        trial.on_training_samples(end)[0] for trial, end in zip((summed, meant), ends, strict=True)
    ]
    torch.testing.assert_close(*both)
    for name in ("printed", "carried on"):
        untouched = ready(*there["sum"], combine="sum", schedule=name)
        torch.testing.assert_close(untouched.initial, meant.initial)


def test_a_relative_rate_moves_every_sample_s_own_score_alike() -> None:
    plan = study().training("trained")
    trial = ready([5, 5], [1.0, 30.0], [0.5, 2.0], combine="sum")
    trace = trial.spectrum.table().square().sum(dim=2).mean(dim=1)
    torch.testing.assert_close(trial.rates(plan), 2.5 * 15 / (4 * trace))
    mean = ready([5, 5], [1.0, 30.0], [0.5, 2.0], combine="mean")
    torch.testing.assert_close(mean.rates(plan), 16 * trial.rates(plan))
    assert trial.rates(training(0.3, 5)).tolist() == [0.3, 0.3]


def test_the_axes_of_features_and_special_directions() -> None:
    """Features on the first axes, special directions on the next."""
    data = ready([2], [3.0], [1.0]).data
    assert isinstance(data, ClassNoise)
    assert data.special_axes().tolist() == [3, 4, 5]
    assert (data.eigenvalues[:, :, :3] == 0).all() and (data.eigenvalues[:, :, 3:] > 0).all()


# ------------------------------------------------------------------------------------------- errors


def test_an_unknown_training_is_named() -> None:
    with pytest.raises(
        UsageError, match="training='half': must be one of printed, trained, carried on"
    ):
        study().training("half")


def test_a_training_is_told_in_words() -> None:
    assert study(steps=7, lr=0.5).words("printed") == "as printed, 7 steps of rate 0.5"
    assert study(stop_loss=0.02).words("trained") == "trained to a loss of 0.02"
    assert study(stop_loss=0.02).words("carried on") == "carried on to a loss of 0.02"
    never = study(stop_loss=0.0, trained_steps=9, trained_lr=3.0)
    assert never.words("trained") == "trained, 9 steps of rate 3"
