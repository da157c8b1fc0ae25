"""BatchNorm's running statistics estimated anew: values, weights of batches, nothing else moved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.pruning.finishing.batchnorm import Reestimation, reestimate


@pytest.fixture(autouse=True)
def same_weights() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 + 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)


def network() -> nn.Sequential:
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Dropout(0.5),
        nn.Flatten(), nn.Linear(27, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 2),
    )  # fmt: skip
    return model.double()


def statistics(model: nn.Module) -> dict[str, Tensor]:
    return {name: values.clone() for name, values in model.named_buffers()}


# --------------------------------------------------------------------------------------- the values


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(2, 7), min_size=1, max_size=5))
def test_every_value_counts_alike_whatever_the_sizes_of_the_batches(sizes: list[int]) -> None:
    layer = nn.BatchNorm1d(3).double()
    batches = [drawn(size, 3, 5, seed=size) for size in sizes]
    done = reestimate(layer, batches)
    weights = torch.tensor(sizes, dtype=torch.float64) * 5
    means = torch.stack([batch.mean((0, 2)) for batch in batches])
    variances = torch.stack([batch.var((0, 2)) for batch in batches])
    torch.testing.assert_close(layer.running_mean, weights @ means / weights.sum())
    torch.testing.assert_close(layer.running_var, weights @ variances / weights.sum())
    assert done == Reestimation(("",), len(sizes))
    assert layer.num_batches_tracked is not None and int(layer.num_batches_tracked) == len(sizes)


def test_the_mean_is_that_of_all_samples_though_the_last_batch_is_smaller() -> None:
    data = drawn(21, 3)
    layer = nn.BatchNorm1d(3).double()
    reestimate(layer, data.split(8))  # 8, 8 and 5
    torch.testing.assert_close(layer.running_mean, data.mean(0))


def test_equal_batches_give_what_batchnorm_gives_without_momentum() -> None:
    model, reference = network(), network()
    reference.load_state_dict(model.state_dict())
    batches = [drawn(6, 2, 5, 5, seed=seed) for seed in range(4)]
    reestimate(model, batches)
    reference.eval()
    for layer in (reference[1], reference[6]):
        layer.train()
        layer.reset_running_stats()
        layer.momentum = None
    with torch.no_grad():
        for batch in batches:
            reference(batch)
    for name, values in statistics(reference).items():
        torch.testing.assert_close(statistics(model)[name], values)


def test_old_statistics_leave_no_trace_even_if_they_are_broken() -> None:
    model, broken = network(), network()
    broken.load_state_dict(model.state_dict())
    broken[1].running_var.fill_(torch.nan)
    batches = [drawn(6, 2, 5, 5)]
    reestimate(model, batches)
    reestimate(broken, batches)
    torch.testing.assert_close(statistics(broken), statistics(model))


def test_a_filter_that_comes_back_is_scaled_right_at_evaluation() -> None:
    """The trap: a zero filter's running variance decays by 0.9 a step."""
    model = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3)).double()
    data, weight = drawn(64, 2, 5, 5), model[0].weight.detach().clone()
    with torch.no_grad():
        model[0].weight[1] = 0.0
        for _ in range(100):
            model(data)
        model[0].weight.copy_(weight)
        model.eval()
        assert float(model(data)[:, 1].std()) > 50
        reestimate(model, [data])
        torch.testing.assert_close(
            model(data)[:, 1].std(), torch.tensor(1.0).double(), atol=0.01, rtol=0
        )


def test_a_layer_called_twice_averages_over_both_calls() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2).double()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.norm(x) + self.norm(x + 4)
            return out

    model, data = Twice(), drawn(8, 2)
    reestimate(model, [data])
    torch.testing.assert_close(model.norm.running_mean, data.mean(0) + 2)


# -------------------------------------------------------------------------- what is left as it was


def test_modes_momenta_and_weights_come_back_and_dropout_stays_off() -> None:
    model = network().train()
    model[1].eval()  # frozen by the user
    model[3].eval()
    weights = [p.detach().clone() for p in model.parameters()]
    modes = [module.training for module in model.modules()]
    rng = torch.get_rng_state()
    reestimate(model, [drawn(6, 2, 5, 5)])
    assert torch.equal(torch.get_rng_state(), rng)  # dropout would have drawn
    assert [module.training for module in model.modules()] == modes
    assert (model[1].momentum, model[6].momentum) == (0.1, None)
    assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))
    assert all(p.grad is None for p in model.parameters())
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_after_an_error_everything_is_as_before() -> None:
    model = network().train()
    model(drawn(6, 2, 5, 5))
    before = statistics(model)
    with pytest.raises(RuntimeError):
        reestimate(model, [drawn(6, 2, 5, 5), drawn(6, 3, 5, 5)])
    torch.testing.assert_close(statistics(model), before, rtol=0, atol=0)
    assert all(module.training for module in model.modules())
    assert (model[1].momentum, model[6].momentum) == (0.1, None)


def test_a_layer_that_is_never_reached_keeps_its_statistics() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.BatchNorm1d(2).double(), nn.BatchNorm1d(2).double()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.used(x)
            return out

    model = Unused()
    model.unused(drawn(4, 2))
    before = statistics(model.unused)
    assert reestimate(model, [drawn(8, 2)]) == Reestimation(("used",), 1)
    torch.testing.assert_close(statistics(model.unused), before, rtol=0, atol=0)


def test_without_batchnorm_nothing_is_read_and_nothing_is_done() -> None:
    def never() -> Iterator[Tensor]:
        raise AssertionError("a batch was asked for")
        yield

    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False))
    assert reestimate(model, never()) == Reestimation((), 0)


def test_no_batch_beyond_the_limit_is_drawn() -> None:
    stream = iter([drawn(4, 2, seed=seed) for seed in range(5)])
    layer = nn.BatchNorm1d(2).double()
    assert reestimate(layer, stream, limit=3).batches == 3
    assert len(list(stream)) == 2


def test_a_batch_may_be_a_pair_of_inputs_and_labels() -> None:
    plain, paired, data = nn.BatchNorm1d(2).double(), nn.BatchNorm1d(2).double(), drawn(8, 2)
    reestimate(plain, [data])
    reestimate(paired, torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data, torch.arange(8)), batch_size=8))  # fmt: skip
    torch.testing.assert_close(statistics(paired), statistics(plain))


def test_a_compiled_model_is_estimated_as_written_and_not_compiled_again() -> None:
    graphs = []

    def backend(graph: torch.fx.GraphModule, example: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    model = nn.Sequential(nn.BatchNorm1d(2)).double()
    compiled = torch.compile(model, backend=backend)
    data = drawn(13, 2)
    compiled(data)
    reestimate(compiled, data.split(8))
    torch.testing.assert_close(model[0].running_mean, data.mean(0))
    compiled(data)
    assert len(graphs) == 1


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("batches", "limit", "message"),
    [
        ([], None, r"^batches=\[\]: must hold at least one batch$"),
        ([drawn(4, 2)], 0, "^limit=0: must be at least 1, or None for all batches$"),
        (
            [drawn(4, 2), {"x": 1}],
            None,
            r"^batches\[1\]='dict': must be a tensor, or a tuple whose first entry is one$",
        ),
        (
            [drawn(4, 2), drawn(1, 2)],
            None,
            r"^batches='input of \(1, 2\)': must give at least 2 values per channel at 0"
            r" \(drop a last batch of 1\)$",
        ),
    ],
)
def test_wrong_use_is_one_line_and_changes_nothing(
    batches: list[Tensor], limit: int | None, message: str
) -> None:
    model = nn.Sequential(nn.BatchNorm1d(2)).double()
    before = statistics(model)
    with pytest.raises(UsageError, match=message):
        reestimate(model, batches, limit)
    torch.testing.assert_close(statistics(model), before, rtol=0, atol=0)
