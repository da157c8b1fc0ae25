"""Judge backbones that were trained already: files of ``rarefy pretrain``, or anybody's network."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.core.settings import resolve_device
from rarefy.data.images.catalog import SETS
from rarefy.measure.representation.groups import Summary, summary
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.nets.backbones import Features, build_backbone
from rarefy.tools.image_data import split_options
from rarefy.tools.longtail.evaluation import Evaluation, Quality, evaluate_features
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.readings import BALANCED, LONG_TAIL, PERCENT, READINGS, baseline_of
from rarefy.tools.longtail.sets import AS_IS, Parts, Tail, parts_of
from rarefy.tools.saved_networks import load_backbone
from rarefy.train.image_batches import Scaling
from rarefy.train.precision import resolve_precision


@dataclass(frozen=True)
class Probed:
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

    def told(self, protocol: str) -> Summary:
        """Accuracies are shares here."""
        return summary(self.quality.accuracy[protocol].numpy(), self.parts.counts)


BY_COUNTS = -2


def probe_file(
    path: Path, data: str | None, how: Evaluation, device: str = "auto", network: str | None = None
) -> Probed:
    """A file of ``rarefy pretrain --save``, on the set it was trained for or another one."""
    place = resolve_device(device)
    backbone, about, parts, order = _opened(path, data, place, network)
    scaling = Scaling(tuple(about["mean"]), tuple(about["std"]))
    quality = judged(backbone, parts, scaling, how, place)
    images = BALANCED if about["tail"]["balanced"] else LONG_TAIL
    return Probed(
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
    _opened(path, data, resolve_device(device), network)


def _opened(
    path: Path, data: str | None, device: torch.device, network: str | None
) -> tuple[nn.Module, dict[str, Any], Parts, int]:
    """The backbone, what is known about it, the parts it is judged on and their order."""
    backbone, about = load_backbone(path, network)
    if data is None or data == about["data"]:
        tail, order = Tail(**about["tail"]), int(about["class_order_seed"])
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
    _need_labels(parts)
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


def told_apart(probed: Sequence[Probed]) -> list[Probed]:
    """With a setting that names whatever else differs, so that what was trained differently is
    neither averaged nor compared. What a file does not say (older ones say less) is no difference,
    unless others differ in it among themselves: then nobody knows with whom it belongs."""
    said: dict[str, dict[str, set[str]]] = {}
    for one in probed:
        here = said.setdefault(one.setting, {})
        for name, value in one.conditions:
            here.setdefault(name, set()).add(value)
    found = []
    for one in probed:
        own = dict(one.conditions)
        words = [
            f"{name} {own.get(name, 'not said')}"
            for name, values in said[one.setting].items()
            if len(values) > 1
        ]
        found.append(replace(one, setting=", ".join([one.setting, *words])))
    return found


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
) -> Probed:
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
    quality = judged(backbone, parts, scaling, how or Evaluation(), place)
    return Probed(name, "", order if tail else BY_COUNTS, AS_IS, quality, parts)


def open_network(network: str, data: str, device: str = "auto") -> Features:
    """``module:callable`` made for the images of a set; complains as ``check_file`` does."""
    parts = parts_of(data, Tail(AS_IS), 0, resolve_device(device))
    _need_labels(parts)
    return _built(network, parts)


def _built(network: str, parts: Parts) -> Features:
    channels, size = parts.seen.images.shape[1:3]
    return build_backbone(network, channels, size)[0]


def judged(
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


# ------------------------------------------------------------------------------- beside each other


def by_class(probed: Sequence[Probed]) -> pd.DataFrame:
    """One row a network, protocol and class: for a spreadsheet."""
    rows: list[dict[str, Any]] = []
    for one in probed:
        names = one.parts.labelled.classes
        for protocol, accuracy in one.quality.accuracy.items():
            for rank, value in enumerate(accuracy.tolist()):
                label = one.parts.order[rank]
                rows.append(
                    {
                        "network": one.name,
                        "method": one.method,
                        "images": one.images,
                        "setting": one.setting,
                        "class_order": one.order,
                        "seed": one.seed,
                        "protocol": protocol,
                        "rank": rank + 1,
                        "class": names[label],
                        "images_of_class": one.parts.counts[rank],
                        "accuracy": value,
                    }
                )
    return pd.DataFrame(rows)


def baseline_among(probed: Sequence[Probed]) -> str:
    """The method that others are compared with; empty where none is known."""
    return baseline_of(list(dict.fromkeys(one.method for one in probed if one.method)))


def paired(probed: Sequence[Probed], protocol: str, name: str = "overall") -> dict[str, Interval]:
    """By method: the difference of a reading to the baseline's, in points, over the settings and
    seeds that both have (long-tailed networks alone)."""
    values: dict[str, dict[tuple[str, int], float]] = {}
    for one in probed:
        if one.method and one.images == LONG_TAIL:
            told = PERCENT * getattr(one.told(protocol), name)
            values.setdefault(one.method, {})[one.setting, one.seed] = told
    plain = values.pop(baseline_among(probed), {})
    found = {}
    for method, theirs in values.items():
        both = sorted(plain.keys() & theirs.keys())
        if both:
            found[method] = mean_interval([theirs[pair] - plain[pair] for pair in both])
    return found


def settings_of(probed: Sequence[Probed]) -> list[str]:
    """All settings, in the order in which they come."""
    return list(dict.fromkeys(one.setting for one in probed))


def grouped(probed: Sequence[Probed], protocol: str) -> list[dict[str, Any]]:
    """One row a setting, method and kind of images (or a network that has no method): means over
    the seeds in per cent, Delta_20 of the control, and the difference to the baseline."""
    several = settings_of(probed)
    if len(several) > 1:
        return [
            row
            for setting in several
            for row in grouped([one for one in probed if one.setting == setting], protocol)
        ]
    gains = paired(probed, protocol)
    groups: dict[tuple[str, str], list[Probed]] = {}
    for one in probed:
        groups.setdefault((one.method or one.name, one.images), []).append(one)
    first = baseline_among(probed)
    rows = []
    for (method, images), members in sorted(
        groups.items(), key=lambda item: (item[0][1] != LONG_TAIL, item[0][0] != first)
    ):
        told = [one.told(protocol) for one in members]
        row: dict[str, Any] = {"setting": several[0], "method": method, "images": images}
        row["n"] = len(members)
        row |= {
            name: PERCENT * mean_interval([getattr(one, name) for one in told]).mean
            for name in READINGS
        }
        control = groups.get((method, BALANCED), []) if images == LONG_TAIL else []
        row["control_delta_20"] = (
            PERCENT * mean_interval([one.told(protocol).delta_20 for one in control]).mean
            if control
            else None
        )
        row["gain"] = gains.get(method) if images == LONG_TAIL else None
        rows.append(row)
    return rows
