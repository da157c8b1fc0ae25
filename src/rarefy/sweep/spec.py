"""The spec of a store: everything that decides its numbers, spelled as JSON.

Study, its version, dtype and parameters. Two specs that differ only in ``seeds`` fit one store.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rarefy.core.contracts import Experiment
from rarefy.core.errors import UsageError
from rarefy.sweep.renames import Renamed, with_former_names, with_names_of_today

Spec = dict[str, Any]
E = TypeVar("E", bound=Experiment)
Find = Callable[[str], type[E]]
"""Gives the experiment of a name."""


def spec_of(study: Experiment, dtype: str) -> Spec:
    parameters = {name: _plain(value) for name, value in study.parameters().items()}
    return {
        "study": study.name,
        "version": study.version,
        "dtype": dtype,
        "parameters": parameters,
    }


def experiment_of(spec: Spec, find: Find[E]) -> E:
    """The experiment that a spec was made of, with its parameters; ``find`` knows it by name."""
    return with_parameters(find(spec["study"]), spec["parameters"])


def with_parameters(kind: type[E], parameters: Mapping[str, Any]) -> E:
    """The experiment with parameters as JSON spells them."""
    known = {field.name for field in dataclasses.fields(kind)}
    parameters = with_names_of_today(kind.renamed, parameters)
    for name, value in parameters.items():
        if name not in known:
            raise UsageError(
                f"was made with {name}={_short(value)}, which is no parameter of {kind.name} now"
            )
    return kind(**{name: _tuples(value) for name, value in parameters.items()})


def spec_kind(spec: Any) -> str:
    """What is wrong with the form of something that was read as a spec; nothing if it is one."""
    if not isinstance(spec, dict):
        return "spec is missing"
    kinds = {"study": str, "version": int, "dtype": str, "parameters": dict}
    for name, kind in kinds.items():
        if not isinstance(spec.get(name), kind):
            return f"spec.{name} is {_short(spec.get(name, 'missing'))}"
    seeds = spec["parameters"].get("seeds")
    return "" if type(seeds) is int and seeds > 0 else f"spec.parameters.seeds is {_short(seeds)}"


def spec_hash(spec: Spec, renamed: Renamed | None = None) -> str:
    """The same for specs that fit one store; ``renamed``: of the experiment."""
    parameters = with_former_names(renamed or {}, spec["parameters"])
    parameters.pop("seeds", None)
    text = json.dumps(_canonical({**spec, "parameters": parameters}), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def differences(stored: Spec, study: Experiment, dtype: str) -> list[str]:
    """What keeps a stored spec from being that of ``study``, each as ``was made with lr=0.5, not
    0.1``; seeds do not count.

    A parameter that is younger than the stored spec has its default there: one whose default
    changes results must raise the study's version.
    """
    asked = spec_of(study, dtype)
    if stored["study"] != asked["study"]:
        return [f"was made by study {stored['study']!r}, not {asked['study']!r}"]
    parts: list[str] = []
    if stored["version"] != asked["version"]:
        parts.append(
            f"was made by version {stored['version']} of {asked['study']!r}, "
            f"not version {asked['version']}"
        )
    usual = {field.name: _plain(field.default) for field in dataclasses.fields(study)}
    old, new = (
        dict(with_names_of_today(study.renamed, spec["parameters"]), dtype=spec["dtype"])
        for spec in (stored, asked)
    )
    for name in sorted((old.keys() | new.keys()) - {"seeds"}):
        if name not in new:
            parts.append(f"was made with {name}={_short(old[name])}, which is no parameter now")
        elif name not in old:
            if _canonical(new[name]) != _canonical(usual[name]):
                parts.append(f"was made before there was {name}={_short(new[name])}")
        elif _canonical(old[name]) != _canonical(new[name]):
            parts.append(f"was made with {name}={_short(old[name])}, not {_short(new[name])}")
    return parts


def _plain(value: Any) -> Any:
    """What JSON can hold: tuples as lists, NumPy scalars as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _canonical(value: Any) -> Any:
    # 1 and 1.0 are the same setting and must be the same text
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _short(value: Any) -> str:
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
