"""Where numbers come from: versions, machine, date. Nothing that names a person or a path."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

from rarefy.core.version import __version__


def provenance(device: torch.device, dtype: str, wall_seconds: float) -> dict[str, Any]:
    """What is written beside every result."""
    return {
        "rarefy": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "machine": device_name(device),
        "cores": usable_cores(),
        "device": device.type,
        "dtype": dtype,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_seconds": round(wall_seconds, 2),
    }


def device_name(device: torch.device) -> str:
    """The name on the chip: of the GPU when it computes, else of the CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    # a container is often given fewer cores than the machine has
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
