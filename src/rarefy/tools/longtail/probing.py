"""Judge backbones that were trained already: files of ``rarefy pretrain``, or anybody's network."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.core.settings import resolve_device
from rarefy.data.images.catalog import SETS
from rarefy.measure.representation.groups import Summary, summary
from rarefy.nets.backbones import Features, build_backbone
from rarefy.tools.image_data import split_options
from rarefy.tools.longtail.evaluation import Evaluation, Quality, evaluate_features
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL
from rarefy.tools.longtail.sets import AS_IS, Parts, Tail, parts_of
from rarefy.tools.saved_networks import load_backbone
from rarefy.train.image_batches import Scaling
from rarefy.train.precision import resolve_precision


@dataclass(frozen=True)
class ProbeResult:
    """One backbone and what it is worth."""

    name: str
    method: str
    """As ``rarefy pretrain`` named it; empty for others."""
    order: int
    """Seed of the order of classes; -2: by the number of images of each class."""
    images: str
    quality: Quality
    parts: Parts
    seed: int = 0
    """Of the pre-training: methods are compared seed by seed."""
    setting: str = ""
    """What else was the same for networks that are compared: network, epochs, rho."""
    conditions: tuple[tuple[str, str], ...] = ()
    """Further ones, which are named where they differ; those that a file does not say are not in
    it."""

    @property
    def saw_all(self) -> bool:
        """All training images were seen in pre-training."""
        return len(self.parts.seen) == len(self.parts.labelled)

    def told(self, protocol: str) -> Summary:
        """Accuracies are shares here."""
        return summary(self.quality.accuracy[protocol].numpy(), self.parts.counts)


BY_COUNTS = -2
PIXELS = "pixels"


def probe_file(
    path: Path, data: str | None, how: Evaluation, device: str = "auto", network: str | None = None
) -> ProbeResult:
    """A file of ``rarefy pretrain --save``, on the set it was trained for or another one."""
    place = resolve_device(device)
    backbone, about, parts, order = open_file(path, data, place, network)
    _need_labels(parts)
    scaling = Scaling(tuple(about["mean"]), tuple(about["std"]))
    quality = judge_backbone(backbone, parts, scaling, how, place)
    images = BALANCED if about["tail"]["balanced"] else LONG_TAIL
    return ProbeResult(
        path.stem,
        str(about["way"]),
        order,
        images,
        quality,
        parts,
        int(about["class_order_seed"]),
        _setting(about),
        _conditions(about),
    )


def check_file(
    path: Path, data: str | None, device: str = "auto", network: str | None = None
) -> None:
    """Complain about a file, or about its images, without judging it: a bad one among many is told
    before the others have taken their minutes. (Nothing is kept: many networks are large.)"""
    _need_labels(open_file(path, data, resolve_device(device), network)[2])


def open_file(
    path: Path, data: str | None, device: torch.device, network: str | None
) -> tuple[nn.Module, dict[str, Any], Parts, int]:
    """The backbone, what is known about it, the parts it is judged on and their order."""
    backbone, about = load_backbone(path, network)
    if data is None or data == about["data"]:
        try:
            tail, order = Tail(**about["tail"]), int(about["class_order_seed"])
        except TypeError as error:
            raise UsageError(f"{path}: its long tail has other fields than today's") from error
        try:
            parts = parts_of(str(about["data"]), tail, order, device)
        except UsageError as error:
            if data is not None:
                raise
            raise UsageError(
                f"{path} was trained on {about['data']}: {error}; name labelled images with "
                "--on DATA"
            ) from error
    else:
        order = BY_COUNTS
        parts = parts_of(data, Tail(AS_IS), 0, device)
    _need_shape(path, about, parts, data)
    return backbone, about, parts, order


def _need_shape(path: Path, about: dict[str, Any], parts: Parts, data: str | None) -> None:
    channels, size = parts.seen.images.shape[1:3]
    if (channels, size) == (about["channels"], about["size"]):
        return
    name, _ = split_options(data or str(about["data"]))
    if channels != about["channels"]:
        remedy = "it cannot be judged on another number of channels, name other images with --on"
    elif name in SETS:
        remedy = "name other images with --on (--size is for folders)"
    else:
        again = "" if data else f"--on {shlex.quote(name)} "
        remedy = f"{again}--size {about['size']} makes them so"
    raise UsageError(
        f"{path} wants images of {about['channels']} x {about['size']} x {about['size']}, "
        f"those of {name} are {channels} x {size} x {size}: {remedy}"
    )


def _conditions(about: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    recipe = {name: value for name, value in about["recipe"].items() if name != "epochs"}
    further = ("temperature", "batch", "head", "smallest_crop")
    # (older files lack some; a smallest crop of None is said: the usual one)
    told = {**recipe, **{name: about[name] for name in further if name in about}}
    return tuple((name.replace("_", " "), str(value)) for name, value in told.items())


def _setting(about: dict[str, Any]) -> str:
    tail = about["tail"]
    words = [str(about["network"]), f"{about['epochs']} epochs"]
    if tail["shape"] != AS_IS:
        usual = Tail()
        if not Tail(**tail).from_file:  # (whose imbalance is its own)
            words.append(f"rho {tail['rho']:g}")
        words += [tail[name] for name in ("shape", "head") if tail[name] != getattr(usual, name)]
    return ", ".join([str(about["data"]), *words])


def probe_network(
    network: str | nn.Module,
    data: str,
    how: Evaluation | None = None,
    tail: Tail | None = None,
    order: int = -1,
    device: str = "auto",
    name: str = "",
) -> ProbeResult:
    """Anybody's network, ``module:callable`` or a module: images scaled to mean 0 and std 1 a
    channel go in, what comes out are features. ``tail``: which classes are head and tail, and whose
    labels the protocol ``long-tail`` has; by the images of each class if not given. ``name``: what
    to call it, if not what it is."""
    place = resolve_device(device)
    parts = parts_of(data, tail or Tail(AS_IS), order if tail else 0, place)
    if isinstance(network, str):
        backbone = _built(network, parts)
        name = name or network
    else:
        backbone = network if isinstance(network, Features) else Features(network)
        name = name or type(network).__name__
    scaling = Scaling(parts.mean, parts.std)
    quality = judge_backbone(backbone, parts, scaling, how or Evaluation(), place)
    return ProbeResult(name, "", order if tail else BY_COUNTS, AS_IS, quality, parts)


CHEAP = 20_000_000
"""Numbers in a set of training images up to which raw pixels are judged beside its networks."""


def with_pixels(probed: Sequence[ProbeResult], how: Evaluation) -> list[ProbeResult]:
    """Raw pixels beside the networks of each setting and seed, where that is cheap: what features
    have to beat."""
    found: dict[tuple[str, int], ProbeResult] = {}
    known: dict[tuple[str, tuple[int, ...]], Quality] = {}
    for one in probed:
        parts = one.parts
        if one.images == BALANCED or parts.labelled.images.numel() > CHEAP:
            continue
        which = one.setting, parts.order
        if which not in known:
            asked = replace(how, protocols=tuple(one.quality.accuracy))
            scaling, place = Scaling(parts.mean, parts.std), parts.labelled.images.device
            known[which] = judge_backbone(nn.Flatten(), parts, scaling, asked, place)
        pixels = replace(one, name=PIXELS, method=PIXELS, quality=replace(known[which], notes=()))
        found.setdefault((one.setting, one.seed), pixels)
    return [*probed, *found.values()]


def open_network(network: str, data: str, device: str = "auto", judged: bool = True) -> Features:
    """``module:callable`` made for the images of a set; complains as ``check_file`` does, about
    labels that are not there only if it is to be judged."""
    parts = parts_of(data, Tail(AS_IS), 0, resolve_device(device))
    if judged:
        _need_labels(parts)
    return _built(network, parts)


def _built(network: str, parts: Parts) -> Features:
    channels, size = parts.seen.images.shape[1:3]
    return build_backbone(network, channels, size)[0]


def judge_backbone(
    backbone: nn.Module, parts: Parts, scaling: Scaling, how: Evaluation, device: torch.device
) -> Quality:
    _need_labels(parts)
    precision = resolve_precision("auto", device, torch.float32)
    backbone = backbone.to(device)

    def features(images: Tensor) -> Tensor:
        return features_of(backbone, images, scaling, precision)

    return evaluate_features(features, parts, how)


def _need_labels(parts: Parts) -> None:
    if not parts.has_labels:
        raise UsageError(
            "a probe needs labelled images, these have no classes: name some with --on"
        )
