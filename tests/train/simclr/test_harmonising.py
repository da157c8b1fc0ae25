"""Geometric harmonisation: its directions, its transport, its weight, its memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pretrainings import BATCH, IMAGES, STEPS, batches, differences, pretraining
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.train.simclr.boosted_memory import BoostedMemory
from rarefy.train.simclr.harmonising import SHARPNESS, Harmony, simplex, transport
from rarefy.train.simclr.objective import Contrast, contrast, nt_xent

CPU = torch.device("cpu")


def harmony(epochs: int = 60, targets: int = 4, count: int = 10) -> Harmony:
    return Harmony(count, targets, 5, epochs, 17, CPU)


@settings(deadline=None, max_examples=20)
@given(corners=st.integers(2, 101), more=st.integers(0, 30), seed=st.integers(0, 99))
def test_the_directions_are_as_far_from_each_other_as_can_be(
    corners: int, more: int, seed: int
) -> None:
    found = simplex(corners, corners - 1 + more, torch.Generator().manual_seed(seed)).double()
    wanted = torch.full((corners, corners), -1 / (corners - 1), dtype=torch.float64)
    wanted.fill_diagonal_(1)
    torch.testing.assert_close(found @ found.T, wanted, atol=1e-5, rtol=0)


def test_too_many_directions() -> None:
    with pytest.raises(UsageError) as error:
        pretraining("simclr+harmonise")
    assert str(error.value) == (
        "method='simclr+harmonise': 100 directions need a projection (head_out) of at least 99, "
        "not 5; harmonise:6 would do"
    )
    assert pretraining("simclr+harmonise:6").remembering.harmony is not None
    with pytest.raises(UsageError, match="7 directions need .* at least 6, not 5"):
        pretraining("simclr+harmonise:7")


def clustered(count: int, tight: float, seed: int) -> tuple[Tensor, Tensor]:
    """Directions of points around 100 long-tailed corners, and the shares of these."""
    draws = torch.Generator().manual_seed(seed)
    corners = simplex(100, 128, draws)
    shares = 0.01 ** (torch.arange(100) / 99)
    shares = shares / shares.sum()
    nearest = torch.multinomial(shares, 2 * count, True, generator=draws)
    noise = torch.nn.functional.normalize(torch.randn(2 * count, 128, generator=draws), dim=1)
    points = tight * corners[nearest] + (1 - tight) * noise
    found = torch.nn.functional.normalize(points @ corners.T, dim=1)
    return found.unflatten(0, (2, count)), shares


@pytest.mark.quick("as they are-1.0", "equal-0.8", "as they are-0.5", "equal-0.0")
@pytest.mark.parametrize("tight", [0.0, 0.5, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("sizes", ["as they are", "equal", "some empty"])
def test_the_transport_has_the_sums_that_it_should(tight: float, sizes: str) -> None:
    for seed in range(3):
        directions, wanted = clustered(512, tight, seed)
        if sizes == "equal":
            wanted = torch.full_like(wanted, 0.01)
        elif sizes == "some empty":
            wanted = wanted.clone()
            wanted[::7] = 0
            wanted /= wanted.sum()
        found = transport(directions, wanted)
        torch.testing.assert_close(found.sum(dim=2), torch.ones(2, 512), atol=1e-4, rtol=0)
        assert (found.mean(dim=1) - wanted).abs().max() < 1e-3
        assert found[:, :, wanted == 0].sum() < 1e-3


def test_the_transport_is_that_of_many_plain_steps() -> None:
    """Sinkhorn and Knopp's own steps, in float64, until nothing moves."""
    directions, sizes = clustered(64, 0.5, 1)
    near = torch.exp(directions.double() / SHARPNESS)
    rows = torch.ones(2, 64, 1, dtype=torch.float64)
    for _ in range(20_000):
        targets = (sizes * 64)[None, :, None] / (near.transpose(1, 2) @ rows)
        before, rows = rows, 1 / (near @ targets)
        if (rows / before - 1).abs().max() < 1e-6:
            break
    wanted = near * rows * targets.transpose(1, 2)
    found = transport(directions, sizes)
    torch.testing.assert_close(found.double(), wanted, atol=5e-3, rtol=0)


@given(
    count=st.integers(2, 40),
    targets=st.integers(2, 20),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.01, 1.0, 100.0]),
)
def test_the_transport_is_finite_whatever_it_sees(
    count: int, targets: int, seed: int, scale: float
) -> None:
    draws = torch.Generator().manual_seed(seed)
    points = scale * torch.randn(2, count, targets, generator=draws)
    directions = torch.nn.functional.normalize(points.pow(3), dim=2)
    sizes = torch.rand(targets, generator=draws).pow(8)
    found = transport(directions, sizes / sizes.sum())
    assert bool(torch.isfinite(found).all()) and found.min() >= 0
    torch.testing.assert_close(found.sum(dim=2), torch.ones(2, count), atol=1e-3, rtol=0)


def test_the_weight_rises_in_ten_epochs_after_half_of_the_training() -> None:
    made = harmony(epochs=60)
    found = []
    for epoch in (0, 29, 30, 34, 39, 40, 59):
        made.at_epoch(epoch)
        found.append(made.weight.item())
    assert found == pytest.approx([0, 0, 0.1, 0.5, 1, 1, 1])


def test_the_loss_is_the_cross_entropy_with_the_other_view() -> None:
    made = harmony()
    draws = torch.Generator().manual_seed(1)
    points = torch.randn(2, 12, 5, generator=draws).requires_grad_()
    nothing = Contrast(*(torch.zeros(()) for _ in range(3)))
    assert made.added_to(nothing, *points).loss == 0  # (not yet)
    made.weight.fill_(0.3)
    found = made.added_to(nothing, *points)
    both = torch.stack(
        [torch.nn.functional.normalize(one @ made.corners.T, dim=1) for one in points]
    ).detach()
    shares = transport(both, made.sizes)
    wanted = 0.0
    for own, other in ((0, 1), (1, 0)):
        for image in range(12):
            named = torch.log_softmax(both[own, image] / 0.1, dim=0)
            wanted -= 0.3 * float(shares[other, image] @ named) / 12
    assert found.loss.item() == pytest.approx(wanted, rel=1e-5)
    assert found.directions is not None and torch.equal(found.directions, both[0])
    found.loss.backward()
    assert points.grad is not None and bool(points.grad.any())


def test_directions_are_averaged_from_the_first_one_on_and_counted_when_it_is_time() -> None:
    made = harmony(epochs=50, count=5)
    first, second = torch.eye(4)[[0, 0, 2]], torch.eye(4)[[1, 1, 3]]
    rows = torch.tensor([4, 2, 0])
    made.see(rows, first, epoch=0)
    made.see(rows, second, epoch=1)
    made.see(rows, second, epoch=25)
    assert made.begin == 25 and made.seen.tolist() == [True, False, True, False, True]
    after_two = 0.9 * first + 0.1 * second
    wanted = 0.999 * after_two + 0.001 * second
    torch.testing.assert_close(made.directions[rows], wanted)
    even = [0.25] * 4
    for epochs, sizes in ((20, even), (24, even), (25, [2 / 3, 0, 1 / 3, 0])):
        made.refresh(epochs)
        assert made.sizes.tolist() == pytest.approx(sizes), epochs
    made.directions[4] = torch.tensor([0.0, 0.0, 0.0, 1.0])
    for epochs, sizes in ((39, [2 / 3, 0, 1 / 3, 0]), (40, [1 / 3, 0, 1 / 3, 1 / 3])):
        made.refresh(epochs)
        assert made.sizes.tolist() == pytest.approx(sizes), epochs


def test_until_half_of_the_training_nothing_is_another_way() -> None:
    plain, made = (pretraining(words, epochs=4) for words in ("simclr", "simclr+harmonise:4"))
    plain.run(Context())
    made.run(Context())
    assert plain.history.loss[:2] == made.history.loss[:2]
    assert made.history.loss[2] > plain.history.loss[2]
    found = made.remembering.harmony
    assert found is not None and found.sizes.sum().item() == pytest.approx(1)
    assert found.seen.sum() > IMAGES // 2
    again = pretraining("simclr+harmonise:4", epochs=4).remembering.harmony
    assert again is not None and torch.equal(again.corners, found.corners)


# -------------------------------------------------------------------------------- boosted by memory


def test_losses_are_averaged_from_the_first_one_on() -> None:
    memory = BoostedMemory(5, CPU)
    memory.see(torch.tensor([3, 1]), torch.tensor([2.0, 4.0]))
    memory.see(torch.tensor([1, 0]), torch.tensor([5.0, 1.0]))
    wanted = torch.tensor([1.0, 0.97 * 4 + 0.03 * 5, 0.0, 2.0, 0.0])
    torch.testing.assert_close(memory.losses, wanted)
    assert memory.seen.tolist() == [True, True, False, True, False]
    assert not memory.boost.any()  # not before the epoch is over


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0.125, 9, width=32), min_size=2, max_size=12))
def test_the_boost_is_the_formula_of_the_paper(losses: list[float]) -> None:
    memory = BoostedMemory(len(losses) + 2, CPU)
    found = torch.tensor(losses)
    memory.see(torch.arange(len(losses)), found)
    memory.refresh()
    assert memory.boost[len(losses) :].tolist() == [0, 0]  # (never seen)
    boost = memory.boost[: len(losses)]
    assert boost.min() >= 0 and boost.max() <= 1
    if found.double().std() > 1e-3:
        away = (found.double() - found.double().mean()) / found.double().std()
        wanted = away / away.abs().max() / 2 + 0.5
        torch.testing.assert_close(boost.double(), wanted, atol=1e-3, rtol=0)
    elif len(set(losses)) == 1:
        assert boost.tolist() == pytest.approx([0.5] * len(losses), abs=0.5)


def test_chance_and_strength_go_by_the_boost() -> None:
    memory = BoostedMemory(3, CPU)
    memory.boost.copy_(torch.tensor([0.0, 0.5, 1.0]))
    rows = torch.arange(3).repeat(400)
    drawn = memory.augment(rows, torch.Generator().manual_seed(0))
    assert len(drawn.strength) == 2 * len(rows)  # each view has its own
    of_image = [drawn.happens.unflatten(0, (-1, 3, 2))[:, image].double() for image in range(3)]
    assert of_image[0].mean() == 0 and of_image[2].mean() == 1
    assert abs(of_image[1].mean() - 0.5) < 5 * 0.5 / 800**0.5
    assert drawn.strength[:6].tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3, 1, 1])
    assert not torch.equal(drawn.operation[0::2], drawn.operation[1::2])


def test_the_losses_of_images_come_out_of_the_loss() -> None:
    draws = torch.Generator().manual_seed(4)
    first, second = torch.randn(2, 6, 5, generator=draws)
    tau = torch.tensor(0.2)
    plain, found = contrast(first, second, tau), contrast(first, second, tau, "nt-xent", True)
    assert found.each is not None and plain.each is None
    assert found.loss == plain.loss and found.each.mean() == pytest.approx(found.loss.item())
    a, b = (torch.nn.functional.normalize(one, dim=1) for one in (first, second))
    points = torch.cat([a, b])
    for image in range(6):
        wanted = 0.0
        for own, other in ((image, image + 6), (image + 6, image)):
            near = points @ points[own] / tau
            others = torch.cat([near[:own], near[own + 1 :]])
            wanted += float(torch.logsumexp(others, 0) - near[other]) / 2
        assert found.each[image].item() == pytest.approx(wanted, abs=1e-5)
    assert nt_xent(a, b, tau).item() == pytest.approx(found.loss.item())


def test_views_are_the_usual_ones_until_something_is_remembered() -> None:
    plain, shown = batches(), batches()
    shown.memory = BoostedMemory(IMAGES, CPU)
    pairs = zip(plain.epoch(0), shown.epoch(0), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    shown.memory.boost.fill_(1)
    changed = [
        (one != other).flatten(2).any(dim=2).double().mean()
        for one, other in zip(plain.epoch(0), shown.epoch(0), strict=True)
    ]
    # (of fifteen operations some change nothing in a grey image, or a dark one)
    assert sum(changed) / STEPS > 0.6
    again = [torch.equal(*pair) for pair in zip(shown.epoch(0), shown.epoch(0), strict=True)]
    assert all(again)


def test_only_images_that_are_remembered_are_changed() -> None:
    plain, shown = batches(), batches()
    shown.memory = BoostedMemory(IMAGES, CPU)
    shown.memory.boost[shown.order(0)[1]] = 1.0  # the second image of the first batch
    for step, (one, other) in enumerate(zip(plain.epoch(0), shown.epoch(0), strict=True)):
        same = (one == other).flatten(2).all(dim=2).all(dim=0)
        assert same.sum() >= BATCH - 1 and (same[1] or step == 0)


def test_a_training_remembers_the_images_it_saw() -> None:
    made = pretraining("simclr+boost", epochs=1)
    seen = torch.zeros(IMAGES, dtype=torch.bool)
    for step, batch in enumerate(made.batches.epoch(0)):
        rows = made.batches.order(0)[step * BATCH : (step + 1) * BATCH]
        with torch.no_grad():
            made.model.train()
            wanted = made.loss_of(batch).each
        made.advance(batch)
        memory = made.remembering.boost
        assert memory is not None and wanted is not None
        torch.testing.assert_close(memory.losses[rows], wanted)
        seen[rows] = True
        assert torch.equal(memory.seen, seen)


def test_the_first_epoch_is_that_of_the_method_without() -> None:
    plain, made = pretraining("branches:0.3", epochs=1), pretraining("branches:0.3+boost", epochs=1)
    plain.run(Context())
    made.run(Context())
    assert plain.history.loss == made.history.loss
    for one, other in zip(plain.model.parameters(), made.model.parameters(), strict=True):
        assert torch.equal(one, other)
    longer = [pretraining(words, epochs=3) for words in ("branches:0.3", "branches:0.3+boost")]
    for one in longer:
        one.run(Context())
    assert longer[0].history.loss[0] == longer[1].history.loss[0]
    assert longer[0].history.loss[2] != longer[1].history.loss[2]


def test_what_is_compared_has_the_memory() -> None:
    made, other = pretraining("simclr+boost", epochs=2), pretraining("simclr+boost", epochs=2)
    made.run(Context())
    other.run(Context())
    assert differences(made, other) == []
    assert other.remembering.boost is not None
    other.remembering.boost.losses[0] += 1
    assert differences(made, other) == ["boost losses"]
