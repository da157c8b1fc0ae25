"""What the callbacks for training frameworks have in common."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rarefy.core.errors import UsageError, unknown
from rarefy.pruning.models.pruner import Pruner

_NOT_SETTINGS = ("self", "model", "optimizer")


def missing(package: str, extra: str) -> UsageError:
    """A framework that is not installed."""
    return UsageError(f"{package} is not installed: pip install 'rarefy[{extra}]'")


def check_settings(settings: Mapping[str, Any]) -> None:
    """Wrong names are said when a callback is made, not when training begins."""
    arguments = inspect.signature(Pruner.__init__).parameters
    known = [name for name in arguments if name not in _NOT_SETTINGS]
    for name in settings:
        if name not in known:
            raise unknown("setting of Pruner", name, known)
