"""Where the channels of a layer go: the model as a graph, and a walk along it.

The graph comes from torch.fx: a model whose ``forward`` decides by the values of tensors has none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, fx, nn

from rarefy.core.errors import bad_value
from rarefy.pruning.finishing.channel_rules import (
    CONVOLUTIONS,
    Flow,
    UnsupportedOperation,
    is_channelwise,
    pads_with_zeros,
    reads_shape_only,
    through_channelwise,
    through_function,
    through_layer,
)

_JOINS = {
    "add": "an addition",
    "iadd": "an addition",
    "sub": "a difference",
    "mul": "a product",
    "cat": "a concatenation",
    "concat": "a concatenation",
    "stack": "a concatenation",
    "scaled_dot_product_attention": "attention",
    "getattr": "code that asks for its shape",
    "size": "code that asks for its shape",
}


@dataclass(frozen=True)
class TracedModel:
    """A model as a graph, with what an example showed. Layers go by their names in the model."""

    layers: dict[str, nn.Module]
    calls: dict[str, list[fx.Node]]
    shapes: dict[fx.Node, tuple[int, ...]]
    """Of every tensor in the graph."""
    tied: frozenset[int]
    """Ids of the parameters that are used in more than one place."""

    def why_fixed(self, name: str) -> str | None:
        """Why a layer must keep its shape, whatever comes before and after it."""
        layer = self.layers[name]
        if len(self.calls[name]) > 1:
            return "is called more than once"
        if any(id(parameter) in self.tied for parameter in layer.parameters()):
            return "has a parameter that is used elsewhere too"
        return "has hooks" if _has_hooks(layer) else None


class _Call(nn.Module):
    """The model called with as many inputs as the example has: other arguments keep defaults."""

    def __init__(self, model: nn.Module, inputs: int) -> None:
        super().__init__()
        self.model, self.inputs = model, inputs

    def forward(self, given: Any) -> Any:
        return self.model(*[given[place] for place in range(self.inputs)])


class _Tracer(fx.Tracer):
    """Takes the user's own kinds of convolution and linear layer as one operation each."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        own = isinstance(m, nn.Linear | nn.modules.conv._ConvNd)
        return own or super().is_leaf_module(m, module_qualified_name)


class _Shapes(fx.Interpreter):
    """Runs the graph and remembers the form of every tensor in it."""

    def __init__(self, module: nn.Module, graph: fx.Graph) -> None:
        super().__init__(module, graph=graph)
        self.shapes: dict[fx.Node, tuple[int, ...]] = {}

    def run_node(self, n: fx.Node) -> Any:
        found = super().run_node(n)
        if isinstance(found, Tensor):
            self.shapes[n] = tuple(found.shape)
        return found


def trace(model: nn.Module, example: tuple[Any, ...]) -> TracedModel:
    """The graph of a model at evaluation; one line of complaint if it has none."""
    called = _Call(model, len(example))
    try:
        graph = _Tracer().trace(called)
        running = _Shapes(called, graph)
        running.run(example)
    except Exception as error:
        allowed = (
            f"must be traceable by torch.fx, without control flow by value ({first_line(error)})"
        )
        raise bad_value("model", type(model).__name__, allowed) from error
    calls: dict[str, list[fx.Node]] = {name: [] for name, _ in model.named_modules()}
    for node in graph.find_nodes(op="call_module"):
        calls[_name(node)].append(node)
    read = {_attribute(called, str(node.target)) for node in graph.find_nodes(op="get_attr")}
    return TracedModel(dict(model.named_modules()), calls, running.shapes, _tied(model) | read)


def first_line(error: Exception) -> str:
    """The first line of an error's text: other people's errors are long."""
    return (str(error).strip().splitlines() or [""])[0][:160] or type(error).__name__


@dataclass
class Walk:
    """Everything that the channels of one layer reach."""

    traced: TracedModel
    kept: dict[int, str] = field(default_factory=dict)
    """Channels that must stay, with the reason (of those that are no zero filters: any)."""
    passes: list[tuple[str, Tensor]] = field(default_factory=list)
    """Layers that get narrower with the channels: name, and channel of each position."""
    readers: list[tuple[str, Flow]] = field(default_factory=list)
    """Layers in which the channels end: name, and what arrives there."""

    def follow(self, node: fx.Node, flow: Flow) -> None:
        users = [user for user in node.users if not reads_shape_only(user, flow)]
        flow = replace(flow, branched=flow.branched or len(users) > 1)
        for user in users:
            try:
                after = self._through(user, flow)
            except UnsupportedOperation as stop:
                reason = str(stop) or f"feeds {self._description(user)}"
                everything = torch.ones_like(flow.origin, dtype=torch.bool)
                self._keep(flow.losing(everything, reason))
            else:
                if after is not None:
                    self.follow(user, replace(after, shape=self.traced.shapes[user]))

    def _keep(self, flow: Flow) -> None:
        self.kept = flow.lost | self.kept

    def _through(self, user: fx.Node, flow: Flow) -> Flow | None:
        """What leaves an operation; nothing leaves a layer that reads the channels."""
        if user.op == "output":
            raise UnsupportedOperation("feeds the model's output")
        if user not in self.traced.shapes:
            raise UnsupportedOperation
        if user.op != "call_module":
            return through_function(user, flow, self.traced.shapes)
        name = _name(user)
        layer: Any = self.traced.layers[name]
        if len(user.all_input_nodes) != 1 or user.kwargs or layer.training or _has_hooks(layer):
            raise UnsupportedOperation
        channelwise, axes = is_channelwise(layer), CONVOLUTIONS.get(type(layer))
        if not channelwise and axes is None and type(layer) is not nn.Linear:
            return through_layer(layer, flow)
        fixed = self.traced.why_fixed(name)
        if fixed:
            raise UnsupportedOperation(f"feeds {name}, which {fixed}")
        rank = len(flow.shape)
        if flow.dim != (rank - 1 if type(layer) is nn.Linear else 1):
            raise UnsupportedOperation
        if axes is not None:
            if rank != axes + 2 or (layer.groups > 1 and not channelwise):
                raise UnsupportedOperation
            if pads_with_zeros(layer):
                flow = flow.losing_nonzero(f"at the zero padding of {name}")
        if channelwise:
            after = through_channelwise(layer, flow)
            self.passes.append((name, flow.origin))
            return after
        self.readers.append((name, flow))
        self._keep(flow.losing(~flow.constants.isfinite(), f"is not a finite number at {name}"))
        return None

    def _description(self, user: fx.Node) -> str:
        if user.op == "call_module":
            what = f"{_name(user)} ({type(self.traced.layers[_name(user)]).__name__})"
        else:
            target: Any = user.target
            what = (target if isinstance(target, str) else target.__name__).rstrip("_")
        return _JOINS.get(what, f"{what}, through which channels are not followed")


def _name(node: fx.Node) -> str:
    return str(node.target).removeprefix("model").removeprefix(".")


def _has_hooks(layer: nn.Module) -> bool:
    """Whether calling the layer does more than its class says."""
    return bool(layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer))


def _attribute(owner: Any, path: str) -> int:
    for part in path.split("."):
        owner = getattr(owner, part)
    return id(owner)


def _tied(model: nn.Module) -> frozenset[int]:
    """Parameters with two names."""
    named = Counter(id(p) for _, p in model.named_parameters(remove_duplicate=False))
    return frozenset(place for place, names in named.items() if names > 1)
