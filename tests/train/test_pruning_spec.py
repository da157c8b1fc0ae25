"""What is left out of a network, said in words, and the pruner that comes of it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from small_trainings import STEPS, batches, training
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.train.pruning_spec import FURTHER, GRANULARITIES, PruningSpec


def three_layers() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(54, 8), nn.ReLU(), nn.Linear(8, 3)
    )


def masks(spec: PruningSpec, model: nn.Module | None = None, steps: int = 4) -> dict[str, Tensor]:
    model = model or three_layers()
    pruner = spec.attach(model, torch.optim.SGD(model.parameters(), 0.1), steps)
    assert pruner is not None
    return pruner.masks


# -------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("project", PruningSpec(0.3)),
        ("dense", PruningSpec(0.3, "dense")),
        ("masked", PruningSpec(0.3, "masked")),
        ("project+global", PruningSpec(0.3, granularity="global")),
        ("project+layer", PruningSpec(0.3, granularity="layer")),
        ("masked+neuron", PruningSpec(0.3, "masked", "neuron")),
        ("project+epoch", PruningSpec(0.3, every=0)),
        ("project+inner", PruningSpec(0.3, inner=True)),
        ("masked+once", PruningSpec(0.3, "masked", once=True)),
        ("dense+layer+inner+once", PruningSpec(0.3, "dense", "layer", inner=True, once=True)),
        ("dense+once+inner+layer", PruningSpec(0.3, "dense", "layer", inner=True, once=True)),
    ],
)
def test_words_say_what_differs(words: str, expected: PruningSpec) -> None:
    assert PruningSpec.parse(words, 0.3) == expected


def test_words_go_before_what_the_rest_has() -> None:
    assert PruningSpec.parse("project", 0.3, "layer", 7) == PruningSpec(0.3, "project", "layer", 7)
    found = PruningSpec.parse("project+global+epoch", 0.3, "layer", 7)
    assert found == PruningSpec(0.3, "project", "global", 0)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("projct", "update='projct': must be one of dense, masked, project"),
        ("", "update='': must be one of"),
        ("global", "update='global': must be one of"),  # the rule stands first
        ("project+globl", "update='project+globl': after a + there can be filter, layer, global"),
        (
            "project+",
            "update='project+': after a + there can be filter, layer, global, neuron, inner, epoch",
        ),
        ("project+once", "update='project': masks chosen once need update masked or dense"),
    ],
)
def test_wrong_words_are_told_in_one_line(words: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        PruningSpec.parse(words, 0.3)
    assert str(caught.value).startswith(complaint) and "\n" not in str(caught.value)


def test_every_word_changes_something() -> None:
    for word in (*GRANULARITIES, *FURTHER):
        given = "layer" if word == "filter" else "filter"
        plain = PruningSpec.parse("masked", 0.3, given)
        assert PruningSpec.parse(f"masked+{word}", 0.3, given) != plain


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"keep": 0.0}, "keep=0.0: must be a share, above 0 and at most 1"),
        ({"keep": 1.1}, "keep=1.1: must be a share"),
        ({"keep": math.nan}, "keep=nan: must be a share"),
        ({"every": -1}, "every=-1: must be at least 1, or 0 for once per epoch"),
        ({"update": "mask"}, "update='mask': must be one of dense, masked, project"),
        ({"granularity": "filtr"}, "granularity='filtr': must be one of filter, layer"),
        ({"granularity": "2:4"}, "granularity='2:4': N:M has its own share, use Pruner"),
        ({"once": True}, "update='project': masks chosen once need update masked or dense"),
    ],
)
def test_what_cannot_be_is_told(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        PruningSpec(**wrong)


# --------------------------------------------------------------------------------------- the pruner


def test_all_of_a_network_needs_no_pruner() -> None:
    model = three_layers()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for spec in (
        PruningSpec(),
        PruningSpec(1.0, "masked", once=True),
        PruningSpec(1.0, inner=True),
    ):
        assert spec.attach(model, optimizer, 4) is None


@pytest.mark.parametrize(
    ("words", "pruned"),
    [
        ("project", ["0.weight", "3.weight", "5.weight"]),
        ("project+global", ["0.weight", "3.weight", "5.weight"]),
        ("project+inner", ["3.weight"]),
        ("project+layer+inner", ["3.weight"]),
        ("masked+neuron", ["0.weight", "3.weight"]),  # no class is left out
        ("masked+neuron+inner", ["3.weight"]),
    ],
)
def test_which_layers_are_pruned(words: str, pruned: list[str]) -> None:
    assert list(masks(PruningSpec.parse(words, 0.5))) == pruned


def test_the_share_is_that_of_a_filter_a_layer_or_the_network() -> None:
    by_filter = masks(PruningSpec(0.5))["3.weight"]
    assert set(by_filter.flatten(1).sum(1).tolist()) == {27}
    by_layer = masks(PruningSpec(0.5, granularity="layer"))
    assert int(by_layer["3.weight"].sum()) == 216
    assert len(set(by_layer["3.weight"].sum(1).tolist())) > 1
    whole = masks(PruningSpec(0.5, granularity="global"))
    assert sum(int(mask.sum()) for mask in whole.values()) == (54 + 432 + 24) // 2
    # PyTorch's first weights are larger where a unit has fewer inputs
    assert whole["0.weight"].double().mean() > 0.6 > 0.5 > whole["3.weight"].double().mean()


def chosen_at(spec: PruningSpec, epochs: int = 3) -> list[int]:
    """Updates after which the support is another one; rates so high that it always is."""
    made = training(spec, model=three_layers(), epochs=epochs, learning_rate=0.5)
    assert made.pruner is not None
    found: list[int] = []
    supports = [mask.clone() for mask in made.pruner.masks.values()]
    for epoch in range(epochs):
        for x, y in batches().epoch(epoch):
            made.advance((x, y))
            now = [mask.clone() for mask in made.pruner.masks.values()]
            if not all(torch.equal(a, b) for a, b in zip(now, supports, strict=True)):
                found.append(made.step)
            supports = now
    return found


def test_masks_are_chosen_every_so_many_updates_once_an_epoch_or_once() -> None:
    assert chosen_at(PruningSpec(0.4, "dense", every=4)) == [4, 8, 12]
    assert chosen_at(PruningSpec(0.4, "dense", every=0)) == [STEPS, 2 * STEPS, 3 * STEPS]
    assert chosen_at(PruningSpec(0.4, "dense", once=True)) == []


def test_chosen_once_masks_are_those_of_the_first_weights() -> None:
    first = masks(PruningSpec(0.4, "masked"))
    made = training(PruningSpec(0.4, "masked", once=True), model=three_layers())
    made.run(Context())
    assert made.pruner is not None
    for name, mask in made.pruner.masks.items():
        assert torch.equal(mask, first[name])
    assert not bool(made.model[3].weight[~first["3.weight"]].any())
    assert made.evaluation_model() is made.model


@pytest.mark.parametrize("steps", [1, 5])
def test_when_a_network_is_dense_between_two_choices(steps: int) -> None:
    assert not PruningSpec(0.4).dense_between(steps)
    assert PruningSpec(0.4, every=2).dense_between(steps)
    # one update per epoch: once per epoch is after every update
    assert PruningSpec(0.4, every=0).dense_between(steps) == (steps > 1)
    for update in ("dense", "masked"):
        assert not PruningSpec(0.4, update, every=3).dense_between(steps)
        assert not PruningSpec(0.4, update, once=True).dense_between(steps)


def test_it_is_one_text_in_a_file_and_back() -> None:
    """A saved network says how it was pruned."""
    given = PruningSpec(0.3, "dense", "layer", 2, inner=True, once=True)
    assert PruningSpec(**dataclasses.asdict(given)) == given
