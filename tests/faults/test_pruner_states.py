"""States, copies and odd weights of a Pruner."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from typing import Any

import pytest
import torch
from small_networks import cnn, mlp, mlp_batch, pruned, update
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.core.errors import UsageError
from rarefy.pruning.models import foreach_ops
from rarefy.pruning.models.pruned_parameter import PrunedParameter

GONE = object()


def plain(state: Any) -> Any:
    """In numbers and words, to compare."""
    if isinstance(state, dict):
        return {key: plain(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, Tensor) else state


def changed(state: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a state with another entry."""
    state = inside = copy.deepcopy(state)
    *way, last = path.split("/")
    for key in way:
        inside = inside[key]
    if value is GONE:
        del inside[last]
    else:
        inside[last] = value
    return state


DAMAGE: list[tuple[str, Any, str]] = [
    ("generator", GONE, "generator is missing, it must be a Tensor"),
    ("generator", [1, 2], "generator is a list, it must be a Tensor"),
    ("generator", torch.zeros(3), "generator is no state of a random generator"),
    ("generator", torch.zeros(3, dtype=torch.uint8), "generator is no state of a random generator"),
    ("step", -1, "step is -1, it must be a whole number"),
    ("step", "7", "step is '7', it must be a whole number"),
    ("settings", None, "settings is a NoneType, it must be a Mapping"),
    ("layers", [], "layers is a list, it must be a Mapping"),
    ("layers/0.weight", None, "0.weight is a NoneType, it must be a Mapping"),
    ("layers/0.weight/mask", GONE, "0.weight is no tensor: NoneType"),
    ("layers/6.weight/mask", torch.ones(3, 16), "mask of 6.weight is torch.float32, not bool"),
    (
        "layers/6.weight/waiting",
        torch.ones(2, 2),
        "of another model: dense weights of 6.weight are (2, 2), not (3, 16)",
    ),
    ("trajectory", GONE, "trajectory is missing, it must be a Mapping"),
    ("trajectory/every", None, "every is None, it must be a whole number"),
    ("trajectory/choices", True, "choices is True, it must be a whole number"),
    ("trajectory/steps", [], "steps of the trajectory must be whole numbers"),
    ("trajectory/steps", [None], "steps of the trajectory must be whole numbers"),
    (
        "trajectory/counts",
        torch.ones(1, 1, 4),
        "of another model: the trajectory is (1, 1, 4), not (2, 3, 4)",
    ),
    ("trajectory/last", None, "the last choice of masks is no tensor: NoneType"),
    ("branch", GONE, "branch is missing, it must be a Mapping"),
    ("branch/1.running_mean", GONE, "of another branch: only the branch has 1.running_mean"),
    ("branch/9.mean", torch.ones(4), "of another branch: only the state has 9.mean"),
    ("branch/1.running_mean", 0.5, "1.running_mean of the branch is no tensor: float"),
    (
        "branch/1.running_mean",
        torch.ones(5),
        "of another model: 1.running_mean of the branch is (5,), not (4,)",
    ),
]


@pytest.mark.fault(
    when="a pruner's state that lacks something, or has something of another kind or shape",
    then="one line says what; weights, masks, generator and records are as before",
    lost="nothing",
)
def test_lower_a_state_that_does_not_fit_changes_nothing() -> None:
    states = []
    for seed in (1, 2):
        model = cnn()
        for parameter in model.parameters():
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(seed))
        optimizer, pruner = pruned(model, keep=0.5, score="random", seed=seed, branches=True)
        (model(torch.ones(2, 2, 6, 6)) + pruner.masked_branch(torch.ones(2, 2, 6, 6))).sum()
        optimizer.step()
        states.append(pruner.state_dict())
    before = plain({**model.state_dict(), "pruner": pruner.state_dict()})
    for path, value, message in DAMAGE:
        with pytest.raises(UsageError) as error:
            pruner.load_state_dict(changed(states[0], path, value))
        assert str(error.value) == f"pruner state: {message}"
        assert plain({**model.state_dict(), "pruner": pruner.state_dict()}) == before, path
    pruner.load_state_dict(states[0])
    assert plain(pruner.state_dict()) == plain(states[0])


@pytest.mark.fault(
    when="a `Pruner` is pickled",
    then="one line names `state_dict()`; its model can be pickled",
    lost="nothing",
)
def test_lower_a_pruner_is_not_pickled() -> None:
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.5)
    for call in (pickle.dumps, copy.copy):
        with pytest.raises(UsageError) as error:
            call(pruner)
        assert str(error.value) == (
            "pruner: cannot be pickled; save pruner.state_dict() beside the model's"
        )
    other, its_optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    update(other, its_optimizer, mlp_batch())
    other.load_state_dict(mlp().state_dict())
    assert pruner.step == 0 and (other[0].weight != 0).all()


@pytest.mark.fault(
    when="a layer without weights, `Linear(2, 0)` or `Linear(0, 3)`",
    then="it is left alone; a model of nothing else is refused",
    lost="nothing",
)
@pytest.mark.parametrize("granularity", ["filter", "layer", "global", "neuron"])
def test_lower_layers_without_weights(granularity: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: nothing to initialise
        empty = nn.Sequential(nn.Linear(6, 0), nn.Linear(0, 6))
    model = nn.Sequential(empty, nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3))
    optimizer, pruner = pruned(model, keep=0.5, granularity=granularity)
    update(model, optimizer, mlp_batch())
    assert list(pruner.masks) == ["1.weight", "3.weight"]
    assert pruner.keep == pytest.approx(0.5, abs=0.1)
    assert torch.equal(pruner.export()(mlp_batch()[0]), model(mlp_batch()[0]))
    with pytest.raises(UsageError, match="^model: Sequential has no layers that can be pruned"):
        pruned(empty)


@pytest.mark.fault(
    when="a weight that is left out is NaN or infinite",
    then="it is zero in the model and in copies, and no finite number where it waits; NaN scores "
    "count as largest, so that a training that went wrong shows",
    lost="that weight",
)
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "as on a GPU"])
@pytest.mark.parametrize("rule", ["dense", "masked", "project"])
def test_lower_nan_in_a_left_out_weight(
    rule: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if at_once:
        monkeypatch.setattr(
            foreach_ops, "is_batched", lambda each: each.zeroes and each.waiting is not None
        )
        monkeypatch.setattr(
            PrunedParameter, "touched", lambda each: each.parameter._version != each._version
        )
    model = mlp()
    # whatever the weights are, the first of a filter are left out
    order = {"score": lambda name, weight, gradient: torch.arange(weight.numel()).view_as(weight)}
    optimizer, pruner = pruned(model, keep=0.5, update=rule, **order)
    odd = torch.tensor([math.nan, math.inf, -math.inf])
    with torch.no_grad():
        (model[0].weight if rule == "project" else pruner.pruned["0.weight"].waiting)[0, :3] = odd
    if rule == "project":
        with pytest.warns(UserWarning, match="0.weight written by somebody else"):
            assert pruner.keep == 0.5
    for _ in range(2):
        update(model, optimizer, mlp_batch())
        mask = pruner.masks["0.weight"]
        for found in (model, pruner.copy_of("masked"), pruner.copy_of("projected")):
            weight = found[0].weight
            assert weight.isfinite().all() and torch.equal(weight != 0, mask)
        if rule != "project":
            assert not pruner.pruned["0.weight"].dense()[0, :3].isfinite().any()


@pytest.mark.parametrize("granularity", ["filter", "global"])
@pytest.mark.fault(
    when="a score is NaN",
    then="it counts as largest; counts stay exact, nothing crashes",
    lost="that weight",
)
def test_lower_nan_among_scores(granularity: str) -> None:
    def score(name: str, weight: Tensor, gradient: Tensor | None) -> Tensor:
        return torch.full_like(weight, math.nan).where(weight > 0, weight.abs())

    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    pruner = Pruner(model, optimizer, 3, granularity=granularity, score=score)
    update(model, optimizer, mlp_batch())
    kept = torch.cat([mask.flatten() for mask in pruner.masks.values()])
    assert int(kept.sum()) == (3 if granularity == "global" else 3 * 11)
