"""TopK pruning while training: every reading against a plain loop over one run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.signal_noise import SignalNoise
from rarefy.train.descent import State, descend
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import READINGS, TopKPruning, check_keep, check_schedule

CLASSES, FILTERS, D, SAMPLES, STEPS, LR = 3, 4, 12, 15, 10, 0.5
SHAPE = (CLASSES, FILTERS, D)
EXACT = {"rtol": 1e-10, "atol": 1e-12}


def draws(*seeds: int) -> Draws:
    return Draws([key("topk pruning", seed) for seed in seeds], dtype=torch.float64)


def problem(runs: int) -> PatchClassifier:
    ones = torch.ones(runs, dtype=torch.float64)
    samples = SignalNoise(CLASSES, D, ones, ones * 0.7).sample(draws(0), SAMPLES)
    return PatchClassifier.of(samples, 1.0)


def start(runs: int) -> Tensor:
    return (0.1 * draws(0).normal("filters", SHAPE)).expand(runs, -1, -1, -1)


def trained(pruning: TopKPruning | None, runs: int) -> Tensor:
    """Filters after every number of updates: (run, step, classes, filters, d)."""

    def filters(state: State) -> Tensor:
        return state.parameters["filters"]

    found = descend(
        problem(runs),
        {"filters": start(runs)},
        lambda step: None,
        Sgd(LR),
        STEPS,
        trackers={"filters": filters},
        record=range(STEPS + 1),
        pruning=pruning,
        guard="loss",
    )
    return found.records["filters"]


def batch(
    keep: Sequence[int], reading: str | Sequence[str], first: int = 1, every: int = 1
) -> Tensor:
    runs = len(keep)
    return trained(
        TopKPruning(torch.tensor(keep), reading, SHAPE, first, every, draws(*[0] * runs)), runs
    )


def largest(values: list[float], keep: int) -> set[int]:
    """Places of the ``keep`` largest; of equal ones the first."""
    return set(sorted(range(len(values)), key=lambda place: (-values[place], place))[:keep])


def plain(keep: int, reading: str, first: int, every: int) -> Tensor:
    """One run, filter by filter: what the readings mean, spelled out."""
    model, filters = problem(1), start(1)[0].clone()
    scores = draws(0).uniform("random support", SHAPE)[0]
    support: dict[tuple[int, int], set[int]] = {}
    seen = [filters.clone()]
    for update in range(1, STEPS + 1):
        filters = filters - LR * model.gradients({"filters": filters[None]})[1]["filters"][0]
        for k in range(CLASSES):
            for r in range(FILTERS):
                if update < first or reading == "dense":
                    continue
                if reading == "revive":
                    if (update - first) % every:
                        continue
                    here = largest(filters[k, r].abs().tolist(), keep)
                else:
                    based_on = filters[k, r].abs() if reading == "fixed" else scores[k, r]
                    here = support.setdefault((k, r), largest(based_on.tolist(), keep))
                for place in set(range(D)) - here:
                    filters[k, r, place] = 0.0
        seen.append(filters.clone())
    return torch.stack(seen)


# ----------------------------------------------------------------------------------- what it means


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(("first", "every"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_a_reading_is_what_a_plain_loop_does(reading: str, first: int, every: int) -> None:
    keeps = (1, 4, 11)
    found = batch(keeps, reading, first, every)
    for run, keep in enumerate(keeps):
        expected = plain(keep, reading, first, every)
        torch.testing.assert_close(found[run], expected, **EXACT)
        assert torch.equal(found[run] == 0, expected == 0)


def test_readings_mixed_in_one_batch_are_as_each_alone() -> None:
    words = ("fixed", "revive", "dense", "random", "revive", "fixed", "random")
    keeps = (3, 2, 5, 4, 9, 6, 1)
    together = batch(keeps, words, first=2, every=3)
    for run, (keep, word) in enumerate(zip(keeps, words, strict=True)):
        torch.testing.assert_close(together[run], batch((keep,), word, 2, 3)[0], **EXACT)
    assert len({tuple(run[-1].flatten().tolist()) for run in together}) == len(words)


@pytest.mark.parametrize("reading", ["revive", "fixed", "random"])
def test_every_filter_has_exactly_keep_coordinates_after_a_pruning(reading: str) -> None:
    keeps = tuple(range(1, D + 1))
    held = (batch(keeps, reading)[:, 1] != 0).sum(dim=-1)  # after one update nothing is 0 by chance
    assert torch.equal(held, torch.tensor(keeps)[:, None, None].expand_as(held))
    later = (batch(keeps, reading)[:, 1:] != 0).sum(dim=-1)
    assert (later <= torch.tensor(keeps)[:, None, None, None]).all()


@pytest.mark.parametrize("reading", ["revive", "fixed"])
def test_of_equal_magnitudes_the_first_stay(reading: str) -> None:
    pruning = TopKPruning(torch.tensor([3, 5]), reading, (1, 1, 6))
    filters = torch.tensor([1.0, -1.0, 1.0, -2.0, 1.0, 1.0]).expand(2, 1, 1, 6)
    pruning.before(0, {"filters": filters})
    found = pruning.after({"filters": filters}, {"filters": filters})["filters"]
    assert found[0, 0, 0].tolist() == [1, -1, 0, -2, 0, 0]
    assert found[1, 0, 0].tolist() == [1, -1, 1, -2, 1, 0]


def test_a_coordinate_may_come_back_under_revive_and_never_under_fixed() -> None:
    revived, fixed = batch((3, 3), ("revive", "fixed"))
    pruned = revived[1:] == 0
    came_back = pruned[:-1] & ~pruned[1:]
    assert came_back.any()
    gone = fixed[1] == 0
    assert gone.any() and (fixed[1:][:, gone] == 0).all()
    assert torch.equal(revived[1], fixed[1])  # they part later


@pytest.mark.parametrize("reading", ["revive", "fixed", "random"])
def test_keeping_all_is_dense_training_bit_for_bit(reading: str) -> None:
    assert torch.equal(batch((D, D), reading), trained(None, 2))
    assert torch.equal(batch((D, 2), (reading, "dense")), trained(None, 2))


def test_nothing_is_pruned_before_its_time() -> None:
    dense = trained(None, 1)
    for reading in ("revive", "fixed", "random"):
        found = batch((2,), reading, first=4)
        assert torch.equal(found[:, :4], dense[:, :4])
        assert ((found[:, 4] != 0).sum(dim=-1) == 2).all()


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.sampled_from(READINGS), min_size=1, max_size=5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.data(),
)
def test_what_is_kept_is_kept_as_it_was(
    words: list[str], first: int, every: int, data: st.DataObject
) -> None:
    """Whatever the mixture: a coordinate is either untouched or zero, and dense runs are whole."""
    keeps = data.draw(st.lists(st.integers(1, 7), min_size=len(words), max_size=len(words)))
    pruning = TopKPruning(
        torch.tensor(keeps), words, (2, 3, 7), first, every, draws(*range(len(words)))
    )
    for update in range(8):
        filters = draws(*range(len(words))).normal("any", (2, 3, 7), update)
        before = filters.clone()
        pruning.before(update, {"filters": filters})
        found = pruning.after({"filters": filters}, {"filters": filters})["filters"]
        assert torch.equal(filters, before)
        assert ((found == filters) | (found == 0)).all()
        held = (found != 0).sum(dim=-1)
        for run, word in enumerate(words):
            due = update + 1 >= first and word != "dense"
            due &= word != "revive" or (update + 1 - first) % every == 0
            assert (held[run] == (keeps[run] if due else 7)).all()


# ---------------------------------------------------------------------------------- random supports


def test_a_random_support_looks_at_nothing_but_its_draws() -> None:
    def support(scale: float, *seeds: int) -> Tensor:
        keep = torch.full((len(seeds),), 5)
        pruning = TopKPruning(keep, "random", SHAPE, draws=draws(*seeds))
        filters = scale * draws(9).normal("others", SHAPE).expand(len(seeds), -1, -1, -1)
        pruning.before(0, {"filters": filters})
        return pruning.after({"filters": filters}, {"filters": filters})["filters"] != 0

    together = support(1.0, 1, 2, 3)
    assert torch.equal(together, support(-7.0, 1, 2, 3))
    assert torch.equal(together[1:2], support(1.0, 2))  # alone as in company
    assert not torch.equal(together[0], together[1])
    places = support(1.0, *range(40)).double().mean(dim=(0, 1, 2))
    # 480 filters, chance 5/12: std 0.0225, and no place is preferred by five of them
    assert (places - 5 / D).abs().max() < 5 * 0.0225


def test_runs_that_share_draws_have_nested_random_supports() -> None:
    keeps = torch.tensor([2, 5, 9])
    pruning = TopKPruning(keeps, "random", SHAPE, draws=draws(0))
    filters = torch.ones(3, *SHAPE)
    pruning.before(0, {"filters": filters})
    held = pruning.after({"filters": filters}, {"filters": filters})["filters"] != 0
    assert (held.sum(dim=-1) == keeps[:, None, None]).all()
    assert (held[0] <= held[1]).all() and (held[1] <= held[2]).all()


# ---------------------------------------------------------------------------------------- the edges


def test_the_final_support_can_be_asked_for_once_it_is_chosen() -> None:
    pruning = TopKPruning(torch.tensor([2, 4]), "fixed", SHAPE, first=3)
    assert pruning.support() is None
    filters = trained(pruning, 2)
    support = pruning.support()
    assert support is not None and support.shape == (2, *SHAPE)
    assert torch.equal(support, filters[:, 3] != 0)


def test_other_parameters_are_left_alone() -> None:
    pruning = TopKPruning(torch.tensor([1]), "revive", (1, 1, 3))
    moved = {"filters": torch.ones(1, 1, 1, 3), "coefficients": torch.arange(4.0)}
    pruning.before(0, moved)
    found = pruning.after(moved, moved)
    assert found["coefficients"] is moved["coefficients"]
    assert found["filters"].tolist() == [[[[1.0, 0.0, 0.0]]]] and moved["filters"].all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"keep": [0, 3]}, "^keep=0: coordinates kept of a filter must be in 1..d=12$"),
        ({"keep": [3, 13]}, "^keep=13: coordinates kept of a filter must be in 1..d=12$"),
        ({"first": 0}, "^first=0: pruning begins after at least 1 update$"),
        ({"every": 0}, "^every=0: must be at least 1 update$"),
        ({"reading": "sleep"}, "^reading='sleep': must be one of revive, fixed, random, dense$"),
        ({"reading": ["fixed", "sleep"]}, "^reading='sleep': must be one of"),
        ({"reading": ["fixed"]}, r"^reading=\['fixed'\]: must be one word, or one for each of 2$"),
        ({"reading": "random"}, "^draws=None: random supports need random numbers$"),
        ({"reading": ["random", "fixed"]}, "^draws=None: random supports need random numbers$"),
    ],
)
def test_what_cannot_be_is_named(wrong: dict[str, object], message: str) -> None:
    settled: dict[str, object] = {"keep": [3, 3], "reading": "revive", **wrong}
    keep = torch.tensor(settled.pop("keep"))
    with pytest.raises(UsageError, match=message):
        TopKPruning(keep, shape=SHAPE, **settled)  # type: ignore[arg-type]


def test_the_checks_take_what_is_allowed() -> None:
    for keep in (1, D):
        check_keep(keep, D)
    check_schedule(1, 1)
