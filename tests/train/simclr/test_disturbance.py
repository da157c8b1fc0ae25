"""Controls of the mask: what each changes and what it leaves alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pretrainings import STEPS, batches, encoder, pretraining
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.train.simclr.disturbance import Disturbance
from rarefy.train.simclr.pretraining import Pretraining

KERNELS = ("backbone.network.0.weight", "backbone.network.4.weight")
KINDS = ("dropout", "noise")


def disturbed(method: str, width: int = 8) -> tuple[Pretraining, Disturbance]:
    made = pretraining(method, encoder(width=width))
    assert made.disturbance is not None
    return made, made.disturbance


def removed(made: Pretraining) -> Tensor:
    """Of every layer's squared norm, what the mask leaves out."""
    assert made.pruner is not None
    found = []
    for name, mask in made.pruner.masks.items():
        squares = made.model.get_parameter(name).detach().double() ** 2
        found.append(squares[~mask].sum() / squares.sum())
    return torch.stack(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [0.05, 0.1, 0.3])
def test_every_layer_is_disturbed_as_much_as_by_the_mask(kind: str, keep: float) -> None:
    """In the mean over 400 draws |w - w f|^2 / |w|^2 is the mask's, within 5 standard errors."""
    made, found = disturbed(f"branches:{keep}+{kind}", width=64)
    wanted = removed(made)
    shares = []
    for step in range(400):
        found.draw(step)
        weights = [made.model.get_parameter(name).detach() for name in found.branch.factors]
        moved = zip(weights, found.branch.factors.values(), strict=True)
        shares.append(
            torch.stack(
                [((w - w * f).square().sum() / w.square().sum()).double() for w, f in moved]
            )
        )
    seen = torch.stack(shares)
    error = seen.std(dim=0) / len(seen) ** 0.5
    # the share of weights left out, say, would be told from the share of their squares
    assert bool(((wanted - (1 - keep)).abs() > 20 * error).all())
    assert bool((error < 0.1 * wanted).all())
    assert bool(((seen.mean(dim=0) - wanted).abs() < 5 * error).all())
    values = torch.cat([one.flatten() for one in found.branch.factors.values()]).unique()
    assert (values.tolist() == [0, 1]) == (kind == "dropout")


@settings(max_examples=25, deadline=None)
@given(
    keep=st.floats(0.01, 0.99),
    scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e6]),
    layers=st.sampled_from(["+layer", ""]),
    zero=st.booleans(),
)
def test_strengths_are_shares_of_the_squared_norm(
    keep: float, scale: float, layers: str, zero: bool
) -> None:
    own = encoder()
    with torch.no_grad():  # the second layer far smaller: masks may leave out all of it
        own.get_parameter(KERNELS[1]).mul_(scale)
        if zero:
            own.get_parameter(KERNELS[0]).zero_()
    made = pretraining(f"branches:{keep}{layers}+noise", own)
    assert made.disturbance is not None
    found = made.disturbance.strengths()
    assert bool(((found >= 0) & (found <= 1)).all())
    torch.testing.assert_close(found[1].double(), removed(made)[1], rtol=0, atol=1e-5)
    for step in range(3):
        made.disturbance.draw(step)
        factors = made.disturbance.branch.factors.values()
        assert all(bool(torch.isfinite(one).all()) for one in factors)


@pytest.mark.parametrize("kind", KINDS)
def test_factors_are_drawn_anew_at_every_update_into_the_same_places(kind: str) -> None:
    made, found = disturbed(f"branches:0.3+{kind}")
    places = {name: one.data_ptr() for name, one in found.branch.factors.items()}
    seen: list[dict[str, Tensor]] = []
    for step in range(2 * STEPS):
        made.advance(list(made.batches.epoch(step // STEPS))[step % STEPS])
        seen.append({name: one.clone() for name, one in found.branch.factors.items()})
        assert {name: one.data_ptr() for name, one in found.branch.factors.items()} == places
    for first, second in zip(seen, seen[1:], strict=False):
        assert not any(torch.equal(first[name], second[name]) for name in KERNELS)
    other = pretraining(f"branches:0.3+{kind}", shown=batches(run_key=18))
    other.advance(next(other.batches.epoch(0)))
    assert other.disturbance is not None
    assert not torch.equal(other.disturbance.branch.factors[KERNELS[1]], seen[0][KERNELS[1]])


def test_factors_lie_in_memory_as_the_weights_do() -> None:
    own = encoder().to(memory_format=torch.channels_last)
    made = pretraining("branches:0.3+noise", own)
    assert made.disturbance is not None
    factor = made.disturbance.branch.factors[KERNELS[1]]
    assert factor.stride() == own.get_parameter(KERNELS[1]).stride() != factor.contiguous().stride()


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_pass_through_the_factor(kind: str, straight: bool) -> None:
    made, found = disturbed(f"branches:0.3+{kind}" + "+straight" * straight)
    found.draw(0)
    views = next(made.batches.epoch(0))
    weight, factor = made.model.get_parameter(KERNELS[1]), found.branch.factors[KERNELS[1]]
    found.branch(views[1]).square().sum().backward()
    assert weight.grad is not None
    plain = encoder()
    with torch.no_grad():
        for name, one in found.branch.factors.items():
            plain.get_parameter(name).mul_(one)
    plain(views[1]).square().sum().backward()
    at_the_point = plain.get_parameter(KERNELS[1]).grad
    assert at_the_point is not None
    wanted = at_the_point if straight else at_the_point * factor
    torch.testing.assert_close(weight.grad, wanted)
    if kind == "dropout":
        assert bool((weight.grad[factor == 0] == 0).all()) != straight


def masks_of(method: str) -> list[dict[str, Tensor]]:
    """Before every update of three epochs, and after the last."""
    made = pretraining(method)
    assert made.pruner is not None
    found = [made.pruner.masks]
    for step in range(3 * STEPS):
        made.advance(list(made.batches.epoch(step // STEPS))[step % STEPS])
        found.append(made.pruner.masks)
    return found


def test_random_masks_are_others_in_every_epoch_and_keep_as_many() -> None:
    found = masks_of("branches:0.3+random")
    count = {sum(int(one.sum()) for one in masks.values()) for masks in found}
    assert count == {sum(int(one.sum()) for one in masks_of("branches:0.3")[0].values())}
    for step, (first, second) in enumerate(zip(found, found[1:], strict=False), 1):
        same = all(torch.equal(first[name], second[name]) for name in KERNELS)
        assert same == (step % STEPS != 0)
    # as if of nothing: both keep 0.3, so that 0.09 of all weights are in both
    both = [
        torch.cat([(a[name] & b[name]).flatten() for name in KERNELS]).double().mean()
        for a, b in zip(found[::STEPS], found[STEPS::STEPS], strict=False)
    ]
    assert sum(both) / len(both) == pytest.approx(0.09, abs=0.03)
    other = pretraining("branches:0.3+random", shown=batches(run_key=18))
    assert other.pruner is not None
    assert not torch.equal(other.pruner.masks[KERNELS[1]], found[0][KERNELS[1]])


def test_frozen_masks_are_the_first_ones() -> None:
    first, *later = masks_of("branches:0.3+frozen")
    free = masks_of("branches:0.3")
    assert all(torch.equal(free[0][name], first[name]) for name in KERNELS)
    assert all(torch.equal(one[name], first[name]) for one in later for name in KERNELS)
    assert not torch.equal(free[-1][KERNELS[1]], first[KERNELS[1]])


def test_both_views_through_masks_leave_alone_what_is_left_out() -> None:
    """But for weight decay; the dense network has seen no image, and its statistics show it."""
    made = pretraining("branches:0.3+both", weight_decay=0.0)
    assert made.pruner is not None
    masks = made.pruner.masks
    before = {name: made.model.get_parameter(name).detach().clone() for name in KERNELS}
    made.advance(next(made.batches.epoch(0)))
    for name in KERNELS:
        moved = made.model.get_parameter(name) != before[name]
        assert torch.equal(moved, masks[name])
    assert made.has_foreign_statistics
    assert not made.model.get_buffer("backbone.network.1.running_mean").any()
    seen = made.export_encoder("masked")
    assert bool(seen.get_buffer("backbone.network.1.running_mean").any())
    assert int(seen.get_buffer("backbone.network.1.num_batches_tracked")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_masked_network_to_judge(kind: str) -> None:
    made = pretraining(f"branches:0.3+{kind}")
    made.run(Context())
    assert not made.has_foreign_statistics
    assert bool((made.export_encoder().get_parameter(KERNELS[1]) != 0).all())
    with pytest.raises(UsageError) as error:
        made.export_encoder("masked")
    assert str(error.value) == f"weights='masked': {kind} has no mask: only dense"
