"""What ``rarefy --version`` says: the versions that a report of a fault should name. Nothing is
imported for it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

from rarefy.core.version import __version__

PACKAGES = ("torch", "numpy", "xarray", "zarr", "scikit-learn")


def versions() -> str:
    """One line each."""
    found = {"Python": f"{platform.python_version()} ({platform.python_implementation()})"}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    found["device"] = f"{os.cpu_count()} CPU cores, {_gpus()}"
    found["system"] = platform.platform()
    lines = [f"{name:<13}{text}" for name, text in found.items()]
    return "\n".join([f"rarefy {__version__}", *lines])


def _gpus() -> str:
    """What the driver says; whether torch can use it, its version tells."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "no NVIDIA GPU"
    asked = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        ran = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return "nvidia-smi does not answer"
    return "; ".join(line.strip() for line in ran.stdout.splitlines()) or "no NVIDIA GPU"
