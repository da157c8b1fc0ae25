"""What one operation does to channels that hold a constant each: rule by rule.

A filter whose weights are all zero gives the same number everywhere, its bias. A channel-wise
operation turns that number into another one, which is computed here by applying the operation to
it. What is not known for certain is ``UnsupportedOperation``: the channels have to stay.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

CONVOLUTIONS: dict[type, int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
"""Kinds of convolution and the number of their spatial axes."""
NORMALISATIONS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
# fmt: off
_IDENTITIES = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout,
               nn.FeatureAlphaDropout)
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.RReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU,
                nn.SiLU, nn.Mish, nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.Softplus, nn.Softsign,
                nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Tanhshrink, nn.Hardshrink,
                nn.Softshrink, nn.Threshold)
_FUNCTIONS = {F.relu, torch.relu, F.relu6, F.leaky_relu, F.elu, F.selu, F.celu, F.gelu, F.silu,
              F.mish, F.sigmoid, torch.sigmoid, F.logsigmoid, F.tanh, torch.tanh, F.softplus,
              F.softsign, F.hardtanh, F.hardswish, F.hardsigmoid, torch.abs, torch.square,
              torch.clamp, torch.neg, operator.neg, operator.pow}
# ``x += 1`` is traced as a sum, so a sum may be in place
_ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv,
               torch.add, torch.sub, torch.mul, torch.div}
_METHODS = {"relu", "relu_", "sigmoid", "sigmoid_", "tanh", "tanh_", "abs", "square", "clamp",
            "clamp_", "neg", "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow"}
_SAME = {torch.clone, "contiguous", "clone", "detach"}
_DROPOUTS = {F.dropout, F.dropout1d, F.dropout2d, F.dropout3d}
_POOLS: dict[Any, tuple[int, bool]] = {  # number of spatial axes, whether zeros may be averaged in
    getattr(owner, f"{kind}{axes}d"): (axes, kind in ("AvgPool", "avg_pool"))
    for axes in (1, 2, 3)
    for owner, kinds in (
        (nn, ("MaxPool", "AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool")),
        (F, ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool")),
    )
    for kind in kinds
}
_POOLS |= {torch.max_pool1d: (1, False), torch.max_pool2d: (2, False), torch.max_pool3d: (3, False)}
_AVERAGE_ARGUMENTS = ("input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
                      "divisor_override")
# fmt: on


class UnsupportedOperation(Exception):
    """The channels cannot be followed through an operation; the text, if any, says why."""


@dataclass(frozen=True)
class Flow:
    """The channels at one place of the graph: along ``dim`` of a tensor of ``shape``, position p
    belongs to channel ``origin[p]`` and, if that is a zero filter, holds ``constants[p]``."""

    constants: Tensor
    origin: Tensor
    dim: int
    shape: tuple[int, ...]
    branched: bool = False
    """Somebody else reads these channels too, so that a change in place reaches him."""
    lost: dict[int, str] = field(default_factory=dict)
    """Channels that must stay, with the reason."""

    def losing(self, positions: Tensor, reason: str) -> Flow:
        new = dict.fromkeys(self.origin[positions].tolist(), reason)
        return replace(self, lost=new | self.lost)

    def losing_nonzero(self, where: str) -> Flow:
        return self.losing(self.constants != 0, f"is a constant other than zero {where}")


def through_layer(layer: nn.Module, flow: Flow) -> Flow:
    """Through a layer without parameters for each channel."""
    kind, made = type(layer), vars(layer)
    if kind in _IDENTITIES:
        return flow
    if kind in _ACTIVATIONS or (kind is nn.PReLU and made["num_parameters"] == 1):
        return _elementwise(layer, flow, bool(made.get("inplace", False)))
    if kind in _POOLS:
        return _pool(*_POOLS[kind], made, flow)
    if kind is nn.Flatten:
        return _flatten(made["start_dim"], made["end_dim"], flow)
    raise UnsupportedOperation


def through_function(user: fx.Node, flow: Flow, shapes: dict[fx.Node, tuple[int, ...]]) -> Flow:
    """Through a function or method that is called in a ``forward``."""
    target: Any = user.target
    name = target if isinstance(target, str) else ""
    if target in ("view", "reshape", torch.reshape):
        return _view(user, flow, shapes)
    if len(user.all_input_nodes) != 1:
        raise UnsupportedOperation
    if target in _FUNCTIONS or target in _ARITHMETIC or name in _METHODS:
        may_write = target in _ARITHMETIC or name.endswith("_") or user.kwargs.get("inplace")

        def call(constants: Tensor) -> Any:
            given, named = fx.map_arg((user.args, user.kwargs), lambda node: constants)
            return (getattr(Tensor, name) if name else target)(*given, **named)

        return _elementwise(call, flow, bool(may_write))
    if target in _SAME or (target in _DROPOUTS and _argument(user, 2, "training", True) is False):
        return flow
    if target in _POOLS:
        made = dict(zip(_AVERAGE_ARGUMENTS, user.args, strict=False)) | dict(user.kwargs)
        return _pool(*_POOLS[target], made, flow)
    if target in (torch.flatten, "flatten"):
        return _flatten(_argument(user, 1, "start_dim", 0), _argument(user, 2, "end_dim", -1), flow)
    if target in (torch.mean, "mean"):
        return _mean(user, flow)
    raise UnsupportedOperation


def through_channelwise(layer: Any, flow: Flow) -> Flow:
    """Through a layer with parameters of its own for each channel (see ``is_channelwise``)."""
    constants = flow.constants
    if is_depthwise(layer):
        after = constants * layer.weight.flatten(1).sum(1)
        after = after if layer.bias is None else after + layer.bias
    elif isinstance(layer, nn.PReLU):
        after = F.prelu(constants[None], layer.weight)[0]
    elif layer.running_mean is None:
        raise UnsupportedOperation  # normalised by the statistics of each batch
    else:
        statistics = (layer.running_mean, layer.running_var, layer.weight, layer.bias)
        after = F.batch_norm(constants[None], *statistics, False, 0.0, layer.eps)[0]
    return replace(flow, constants=after)


def is_channelwise(layer: Any) -> bool:
    kind = type(layer)
    return (
        kind in NORMALISATIONS
        or is_depthwise(layer)
        or kind is nn.PReLU
        and layer.weight.numel() > 1
    )


def is_depthwise(layer: Any) -> bool:
    """One filter per channel: it neither mixes nor adds channels."""
    if type(layer) not in CONVOLUTIONS:
        return False
    return 1 < layer.groups == layer.in_channels == layer.out_channels


def pads_with_zeros(convolution: Any) -> bool:
    if convolution.padding_mode != "zeros" or convolution.padding == "valid":
        return False  # all other ways of padding repeat what is there
    if convolution.padding == "same":
        return any(size > 1 for size in convolution.kernel_size)
    return _some(convolution.padding)


def reads_shape_only(user: fx.Node, flow: Flow) -> bool:
    """Whether a user wants to know the tensor's form, and not the number of its channels."""
    axes = range(len(flow.shape))

    def other(axis: Any) -> bool:
        taken = axes[axis] if isinstance(axis, int | slice) else flow.dim
        return taken != flow.dim if isinstance(taken, int) else flow.dim not in taken

    if user.op == "call_method" and user.target == "size":
        asked = _argument(user, 1, "dim", None)
        if asked is not None:
            return other(asked) or not user.users
    elif user.target is getattr:
        if user.args[1] != "shape":
            return user.args[1] in ("ndim", "dtype", "device", "is_cuda", "requires_grad")
    else:
        return user.op == "call_method" and user.target == "dim"
    # the whole shape: what is taken of it and used?
    parts = [part for part in user.users if part.users or part.target is not operator.getitem]
    return all(part.target is operator.getitem and other(part.args[1]) for part in parts)


def _elementwise(call: Callable[[Tensor], Any], flow: Flow, in_place: bool) -> Flow:
    if in_place and flow.branched:
        raise UnsupportedOperation("is changed in place and read elsewhere too")
    return replace(flow, constants=call(flow.constants.clone()))


def _pool(axes: int, averages: bool, made: dict[str, Any], flow: Flow) -> Flow:
    """The mean or the largest of equal numbers is that number, unless zeros are mixed in."""
    if flow.dim != 1 or len(flow.shape) != axes + 2:
        raise UnsupportedOperation
    padded = _some(made.get("padding", 0)) and made.get("count_include_pad", True)
    if averages and (padded or made.get("divisor_override")):
        return flow.losing_nonzero("at an average that pads or rescales")
    return flow


def _flatten(start: int, end: int, flow: Flow) -> Flow:
    rank = len(flow.shape)
    start, end = start % rank, end % rank
    if end < flow.dim:
        return replace(flow, dim=flow.dim - (end - start))
    if start > flow.dim:
        return flow
    if start == 0:
        raise UnsupportedOperation  # samples and channels in one axis
    before = math.prod(flow.shape[start : flow.dim])
    behind = math.prod(flow.shape[flow.dim + 1 : end + 1])

    def spread(values: Tensor) -> Tensor:
        return values.repeat_interleave(behind).repeat(before)

    return replace(flow, constants=spread(flow.constants), origin=spread(flow.origin), dim=start)


def _view(user: fx.Node, flow: Flow, shapes: dict[fx.Node, tuple[int, ...]]) -> Flow:
    """``x.view(x.size(0), -1)`` is a flattening; a width that is written out is not followed."""
    sizes: Any = user.args[1:]
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    flat = (flow.shape[0], math.prod(flow.shape[1:]))
    if len(sizes) != 2 or sizes[1] != -1 or shapes[user] != flat or user.kwargs:
        raise UnsupportedOperation
    return _flatten(1, -1, flow)


def _mean(user: fx.Node, flow: Flow) -> Flow:
    asked, rank = _argument(user, 1, "dim", None), len(flow.shape)
    axes = [axis % rank for axis in ([asked] if isinstance(asked, int) else asked or ())]
    if not axes or flow.dim in axes:
        raise UnsupportedOperation
    if _argument(user, 2, "keepdim", False):
        return flow
    return replace(flow, dim=flow.dim - sum(axis < flow.dim for axis in axes))


def _argument(user: fx.Node, place: int, name: str, default: Any) -> Any:
    return user.args[place] if len(user.args) > place else user.kwargs.get(name, default)


def _some(padding: Any) -> bool:
    return any(padding) if isinstance(padding, (tuple, list)) else bool(padding)
