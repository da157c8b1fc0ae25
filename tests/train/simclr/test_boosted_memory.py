"""BCL-I: what is remembered of images, and what it does to their views."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_pretrainings import BATCH, IMAGES, STEPS, batches, differences, pretraining

from rarefy.core.contracts import Context
from rarefy.train.simclr.boosted_memory import BoostedMemory
from rarefy.train.simclr.objective import contrast, nt_xent

CPU = torch.device("cpu")


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
