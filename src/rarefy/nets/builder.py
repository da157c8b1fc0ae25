"""Networks for images by name, also of timm and torchvision, or anybody's by ``module:callable``,
and what one costs."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.nets.image_cnn import ImageCNN
from rarefy.nets.lenet import LeNet
from rarefy.nets.named import (
    current_folder_importable,
    in_a_line,
    is_library,
    library_maker,
    library_version,
    named_callable,
)
from rarefy.nets.resnet import ResNet18
from rarefy.nets.resnet9 import ResNet9
from rarefy.nets.vit import ViT

NETWORKS: dict[str, Callable[[int, int, int], nn.Module]] = {
    "lenet": LeNet,
    "cnn": ImageCNN,
    "cnn-small": partial(ImageCNN, width=16),
    "resnet9": ResNet9,
    "resnet18": ResNet18,
    "vit": ViT,
}
"""Called with channels, size (height = width) and classes."""
SMALLEST = 8
"""Pixels per side that all of them can take."""
SYNONYMS: dict[str, tuple[str, ...]] = {
    "channels": ("channels", "in_channels", "num_channels", "in_chans"),
    "size": ("size", "image_size", "img_size"),
    "classes": ("classes", "num_classes", "n_classes"),
}
"""What a person's callable may call them."""
_TRIED = 2


def build(name: str, channels: int, size: int, classes: int, any_width: bool = False) -> nn.Module:
    """A new network for images (channels, size, size) and so many classes, its first weights drawn
    from PyTorch's global generator.

    name: one of ``NETWORKS``; ``timm:NAME`` or ``torchvision:NAME`` where these are installed, with
    weights drawn anew and the layers that it has there (made for large images, most begin by making
    an image 4 times smaller); or ``module:callable``, the module being installed or in the current
    folder; the callable gets those of channels, size and classes that it has a parameter for.
    any_width: it may answer anything, not only a number per class.
    """
    smallest = 1 if ":" in name else SMALLEST
    for argument, value, least in (
        ("channels", channels, 1),
        ("size", size, smallest),
        ("classes", classes, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise bad_value(argument, value, f"must be a whole number, at least {least}")
    if ":" in name:
        return _somebodys(name, channels, size, None if any_width else classes, classes)
    if name not in NETWORKS:
        raise _unknown(name)
    return NETWORKS[name](channels, size, classes)


def _unknown(name: str) -> UsageError:
    others = "your own: module:callable, others: timm:NAME, torchvision:NAME"
    return UsageError(f"{unknown('network', name, NETWORKS)}; {others}")


# ------------------------------------------------------------------------------- somebody's network


def _somebodys(name: str, channels: int, size: int, width: int | None, classes: int) -> nn.Module:
    given = {"channels": channels, "size": size, "classes": classes}
    with current_folder_importable():  # also for what the callable itself imports
        maker = library_maker(name) if is_library(name) else named_callable(name)
        positional, named = _arguments(name, maker, given)
        try:
            model = maker(*positional, **named)
        except (Exception, SystemExit) as error:
            passed = ", ".join(f"{key}={value}" for key, value in named.items())
            raise bad_value(
                "network", name, f"called with ({passed}) it raised {in_a_line(error)}"
            ) from error
        if not isinstance(model, nn.Module):
            kind = type(model).__name__
            raise bad_value("network", name, f"must return a torch.nn.Module, not {kind}")
        _try_out(name, model, (channels, size, size), width)
    return model


def _arguments(
    name: str, maker: Callable[..., object], given: dict[str, int]
) -> tuple[list[int], dict[str, int]]:
    """Those that the callable has a parameter for: without and with names."""
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError) as error:
        raise bad_value(
            "network", name, "its parameters cannot be read: write a function around it"
        ) from error
    meaning = {word: given[key] for key, words in SYNONYMS.items() for word in words}
    positional: list[int] = []
    named: dict[str, int] = {}
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if each.name in meaning and each.kind is each.POSITIONAL_ONLY:
            positional.append(meaning[each.name])
        elif each.name in meaning:
            named[each.name] = meaning[each.name]
        elif each.default is each.empty:
            known = "; ".join(" or ".join(words) for words in SYNONYMS.values())
            raise bad_value(
                "network", name, f"needs {each.name!r}, but what can be given is: {known}"
            )
        elif each.kind is each.POSITIONAL_ONLY:  # one that stands before others: its own default
            positional.append(each.default)
    return positional, named


def _try_out(name: str, model: nn.Module, shape: tuple[int, ...], width: int | None) -> None:
    """Complain unless two images give two rows of ``width`` numbers (None: anything)."""
    size = " x ".join(map(str, shape))
    try:
        with preserve_state(model):
            answers = model(_images(model, _TRIED, shape))
    except Exception as error:
        raise bad_value(
            "network", name, f"given images of {size} it raised {in_a_line(error)}"
        ) from error
    if width is None:
        return
    wanted = f"must return ({_TRIED}, {width}) numbers for {_TRIED} images of {size}"
    if not isinstance(answers, Tensor):
        raise bad_value("network", name, f"{wanted}, not {type(answers).__name__}")
    if tuple(answers.shape) != (_TRIED, width):
        raise bad_value("network", name, f"{wanted}, not {tuple(answers.shape)}")
    if not answers.is_floating_point():
        raise bad_value("network", name, f"{wanted} of a floating type, not {answers.dtype}")


# ------------------------------------------------------------------------------------------ looking


def _images(model: nn.Module, count: int, shape: tuple[int, ...]) -> Tensor:
    """Some images where the model is, drawn from no generator."""
    pixels = torch.arange(count * torch.Size(shape).numel(), dtype=torch.float32)
    return torch.sin(pixels).reshape(count, *shape).to(_device(model))


def _device(model: nn.Module) -> torch.device:
    first = next((each for each in (*model.parameters(), *model.buffers())), None)
    return torch.device("cpu") if first is None else first.device


@contextlib.contextmanager
def preserve_state(model: nn.Module) -> Iterator[None]:
    """Evaluate a model and leave no trace: modes, buffers and random state are as before."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if not isinstance(buffer, nn.parameter.UninitializedBuffer)  # gets its shape in this trial
    ]
    fast = torch.backends.mha.get_fastpath_enabled()
    device = _device(model)
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad():
        model.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # one operation, whose cost nobody counts
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for module, training in modes:
                module.training = training
            for module, name, buffer, before in buffers:
                module._buffers[name] = buffer
                if not torch.equal(buffer, before):
                    buffer.copy_(before)


def identity(name: str) -> str:
    """A text that changes when the code of a ``module:callable`` does; empty for our own networks,
    whose code belongs to a version."""
    if ":" not in name:
        return ""
    if is_library(name):
        return f"{name} ({library_version(name)})"
    with current_folder_importable():
        found = named_callable(name)
    # both where it was named and where it is written: a partial has no module of its own
    source = ""
    for module in (sys.modules.get(name.partition(":")[0]), inspect.getmodule(found)):
        with contextlib.suppress(OSError, TypeError):  # made on the fly: nothing to read
            source += inspect.getsource(module) if module is not None else ""
    return f"{name} ({hashlib.blake2b(source.encode(), digest_size=8).hexdigest()})"
