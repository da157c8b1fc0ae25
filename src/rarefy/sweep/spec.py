"""The spec of a store: everything that decides its numbers, spelled as JSON.

Study, its version, dtype and parameters. Two specs that differ only in ``seeds`` fit one store.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rarefy.core.contracts import Study
from rarefy.studies import get_study

Spec = dict[str, Any]


def spec_of(study: Study, dtype: str) -> Spec:
    parameters = {name: _plain(value) for name, value in study.parameters().items()}
    return {
        "study": study.name,
        "version": study.version,
        "dtype": dtype,
        "parameters": parameters,
    }


def study_of(spec: Spec) -> Study:
    """The study a spec was made of, with its parameters."""
    return with_parameters(get_study(spec["study"]), spec["parameters"])


def with_parameters(kind: type[Study], parameters: Mapping[str, Any]) -> Study:
    """The study with parameters as JSON spells them; those it no longer has are left out."""
    known = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: _tuples(value) for name, value in parameters.items() if name in known})


def spec_hash(spec: Spec) -> str:
    """The same for specs that fit one store."""
    parameters = {name: value for name, value in spec["parameters"].items() if name != "seeds"}
    text = json.dumps(_canonical({**spec, "parameters": parameters}), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def differences(stored: Spec, asked: Spec) -> list[str]:
    """What keeps two specs apart, each as ``was made with lr=0.5, not 0.1``; seeds do not count."""
    if stored["study"] != asked["study"]:
        return [f"was made by study {stored['study']!r}, not {asked['study']!r}"]
    parts: list[str] = []
    if stored["version"] != asked["version"]:
        parts.append(
            f"was made by version {stored['version']} of {asked['study']!r}, "
            f"not version {asked['version']}"
        )
    old, new = (dict(spec["parameters"], dtype=spec["dtype"]) for spec in (stored, asked))
    for name in sorted(old.keys() | new.keys() - {"seeds"}):
        if name == "seeds":
            continue
        if name not in new:
            parts.append(f"was made with {name}={_short(old[name])}, which is no parameter now")
        elif name not in old:
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
