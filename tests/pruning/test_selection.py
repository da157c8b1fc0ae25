"""Which weights each granularity keeps, against plain loops: exact counts, ties by index."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.pruning.filters import Filters
from rarefy.pruning.selection import Granularity, count_to_keep

# few different values: most scores are equal to another one
TIED = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def layouts(draw: st.DrawFn) -> Filters:
    """Ordinary, and transposed with groups."""
    kernel = draw(st.lists(st.integers(1, 3), max_size=2))
    first, second = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        groups = draw(st.integers(1, 3))
        return Filters((first * groups, second, *kernel), transposed_groups=groups)
    return Filters((first, second, *kernel))


@st.composite
def models(draw: st.DrawFn) -> tuple[dict[str, Filters], dict[str, Tensor]]:
    layers = {str(place): draw(layouts()) for place in range(draw(st.integers(1, 3)))}
    scores = {}
    for name, filters in layers.items():
        size = math.prod(filters.shape)
        values = draw(st.lists(TIED, min_size=size, max_size=size))
        scores[name] = torch.tensor(values).reshape(filters.shape)
    return layers, scores


def first_largest(values: list[float], keep: int) -> list[bool]:
    """Sort by score, then by index; nothing clever."""
    order = sorted(range(len(values)), key=lambda place: (-values[place], place))
    return [place in order[:keep] for place in range(len(values))]


def number(share: float, candidates: int) -> int:
    """The pruned number is the nearest whole one, a half rounded up; at least one stays."""
    return max(1, candidates - math.floor((1 - share) * candidates + 0.5 + 1e-6))


def loop(filters: Filters, rows: list[list[bool]]) -> Tensor:
    return filters.weights(torch.tensor(rows))


# -------------------------------------------------------------------------- every granularity

SHARES = st.sampled_from([0.01, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 1.0])


@given(models(), SHARES)
def test_filter_keeps_the_first_largest_of_every_filter(
    model: tuple[dict[str, Filters], dict[str, Tensor]], share: float
) -> None:
    layers, scores = model
    found = Granularity("filter").masks(layers, scores, dict.fromkeys(layers, share))
    for name, filters in layers.items():
        keep = number(share, filters.size)
        rows = [first_largest(row, keep) for row in filters.rows(scores[name]).tolist()]
        assert torch.equal(found[name], loop(filters, rows))


@given(models(), SHARES)
def test_layer_keeps_the_first_largest_of_every_layer(
    model: tuple[dict[str, Filters], dict[str, Tensor]], share: float
) -> None:
    layers, scores = model
    found = Granularity("layer").masks(layers, scores, dict.fromkeys(layers, share))
    for name, filters in layers.items():
        flat = filters.rows(scores[name]).flatten().tolist()
        kept = first_largest(flat, number(share, len(flat)))
        assert torch.equal(found[name], filters.weights(torch.tensor(kept)))


@given(models(), SHARES)
def test_global_is_one_layer_made_of_all_put_side_by_side(
    model: tuple[dict[str, Filters], dict[str, Tensor]], share: float
) -> None:
    layers, scores = model
    found = Granularity("global").masks(layers, scores, dict.fromkeys(layers, share))
    flat = [each for name in layers for each in layers[name].rows(scores[name]).flatten().tolist()]
    kept = first_largest(flat, number(share, len(flat)))
    for name, filters in layers.items():
        size = math.prod(filters.shape)
        own, kept = kept[:size], kept[size:]
        assert torch.equal(found[name], filters.weights(torch.tensor(own)))
    assert kept == []


@given(models(), SHARES)
def test_neuron_keeps_whole_filters_of_largest_norm(
    model: tuple[dict[str, Filters], dict[str, Tensor]], share: float
) -> None:
    layers, scores = model
    found = Granularity("neuron").masks(layers, scores, dict.fromkeys(layers, share))
    for name, filters in layers.items():
        kept = first_largest(filters.norms(scores[name]).tolist(), number(share, filters.count))
        assert torch.equal(found[name], loop(filters, [[each] * filters.size for each in kept]))


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([(), (1, 1), (3, 2)]),
    st.data(),
)
def test_n_of_m_keeps_n_of_every_m_consecutive_inputs(
    n: int, more: int, sizes: tuple[int, int], kernel: tuple[int, ...], data: st.DataObject
) -> None:
    """At each place of a kernel, if there is one."""
    m = n + more
    filters = Filters((sizes[0], m * sizes[1], *kernel))
    count = math.prod(filters.shape)
    values = data.draw(st.lists(TIED, min_size=count, max_size=count))
    scores = torch.tensor(values).reshape(filters.shape)
    granularity = Granularity.parse(f"{n}:{m}")
    granularity.check({"w": filters}, {"w": 0.5})
    mask = granularity.masks({"w": filters}, {"w": scores}, {"w": 0.123})["w"]
    blocks = scores.movedim(1, -1).reshape(-1, m).tolist()
    kept = mask.movedim(1, -1).reshape(-1, m).tolist()
    assert kept == [first_largest(block, n) for block in blocks]


@given(models(), st.integers(1, 4), st.sampled_from(["filter", "layer", "neuron"]))
def test_counts_are_exact(
    model: tuple[dict[str, Filters], dict[str, Tensor]], count: int, kind: str
) -> None:
    layers, scores = model
    granularity = Granularity(kind)
    room = {
        name: {"filter": each.size, "neuron": each.count}.get(kind, math.prod(each.shape))
        for name, each in layers.items()
    }
    keep = {name: min(count, most) for name, most in room.items()}
    granularity.check(layers, keep)
    for name, mask in granularity.masks(layers, scores, keep).items():
        rows = layers[name].rows(mask)
        if kind == "filter":
            assert rows.sum(dim=1).tolist() == [keep[name]] * len(rows)
        elif kind == "neuron":
            assert sorted(rows.sum(dim=1).unique().tolist())[-1] == layers[name].size
            assert int(rows.all(dim=1).sum()) == keep[name] == int(rows.any(dim=1).sum())
        else:
            assert int(rows.sum()) == keep[name]


def test_ties_are_broken_by_index_and_the_count_stays_exact() -> None:
    """Eight equal scores, three to keep: a threshold would keep all or none."""
    filters = Filters((1, 8))
    mask = Granularity("filter").masks({"w": filters}, {"w": torch.ones(1, 8)}, {"w": 3})["w"]
    assert mask.tolist() == [[True] * 3 + [False] * 5]


# ------------------------------------------------------------------------------------ counts


@pytest.mark.parametrize(("share", "stay"), [(0.8, 7), (0.5, 4), (0.3, 3), (0.1, 1), (0.01, 1)])
def test_counts_of_a_three_by_three_kernel(share: float, stay: int) -> None:
    assert count_to_keep(share, 9) == stay


@given(st.integers(1, 2**33), st.data())
def test_a_count_is_kept_as_it_is_however_many_there_are(
    candidates: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, candidates))
    assert count_to_keep(count, candidates) == count


@given(st.integers(1, 2**30), st.sampled_from([1, 3, 7, 9, 13]))
def test_a_share_of_very_many_is_exact(blocks: int, part: int) -> None:
    """part/16 is a binary number: there is nothing to round."""
    assert count_to_keep(part / 16, 16 * blocks) == part * blocks


def test_a_gradual_way_counts_between_everything_and_keep() -> None:
    """keep 0.2 of 100: 0.2 + 0.8 way."""
    found = [count_to_keep(0.2, 100, way) for way in (1.0, 27 / 64, 1 / 8, 1 / 64, 0.0)]
    assert found == [100, 54, 30, 21, 20]  # 53.75, 30, 21.25
    assert [count_to_keep(20, 100, way) for way in (1.0, 1 / 8, 0.0)] == [100, 30, 20]


def test_the_way_goes_into_every_granularity() -> None:
    layers = {"w": Filters((4, 8))}
    scores = {"w": torch.rand(4, 8)}
    for kind, expected in (("filter", 24), ("layer", 24), ("global", 24), ("neuron", 24)):
        mask = Granularity(kind).masks(layers, scores, {"w": 0.5}, way=0.5)["w"]
        assert int(mask.sum()) == expected, kind
    mask = Granularity.parse("2:4").masks(layers, scores, {"w": 0.5}, way=0.5)["w"]
    assert int(mask.sum()) == 24


# ------------------------------------------------------------------------------------ errors


def test_parse_reads_names_and_patterns() -> None:
    for kind in ("filter", "layer", "global", "neuron"):
        assert Granularity.parse(kind) == Granularity(kind)
    assert Granularity.parse("2:4") == Granularity("n:m", 2, 4)


KINDS = "must be one of filter, layer, global, neuron, or N:M such as '2:4'"


@pytest.mark.parametrize(
    ("word", "allowed"),
    [
        *((word, KINDS) for word in ("channel", "2-4", "2:4:8", "", "a:b", "-1:4")),
        *((word, "N:M needs 1 <= N <= M") for word in ("0:4", "5:4")),
    ],
)
def test_an_unknown_granularity_is_named(word: str, allowed: str) -> None:
    with pytest.raises(UsageError) as error:
        Granularity.parse(word)
    assert str(error.value) == f"granularity={word!r}: {allowed}"


@pytest.mark.parametrize(
    ("kind", "count", "message"),
    [
        ("filter", 10, "keep=10: b.weight has filters of 9 weights"),
        ("layer", 28, "keep=28: b.weight has 27 weights"),
        ("neuron", 4, "keep=4: b.weight has 3 filters"),
        ("global", 68, "keep=68: all layers together have 67 weights"),
    ],
)
def test_a_count_that_a_layer_does_not_have_names_the_layer(
    kind: str, count: int, message: str
) -> None:
    layers = {"a.weight": Filters((4, 10)), "b.weight": Filters((3, 1, 3, 3))}
    granularity = Granularity(kind)
    with pytest.raises(UsageError) as error:
        granularity.check(layers, dict.fromkeys(layers, count))
    assert str(error.value) == message
    granularity.check(layers, dict.fromkeys(layers, count - 1))
    granularity.check(layers, dict.fromkeys(layers, 1.0))


def test_n_of_m_names_the_layer_that_has_no_multiple_of_m() -> None:
    layers = {"a.weight": Filters((4, 8)), "b.weight": Filters((3, 1, 3, 3))}
    with pytest.raises(UsageError) as error:
        Granularity.parse("2:4").check(layers, dict.fromkeys(layers, 0.5))
    assert str(error.value) == (
        "granularity 2:4: b.weight has 1 inputs per filter, not a multiple of 4; "
        "leave it out with layers="
    )
