"""The machine: which device, how much memory, whether a compiler is there."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import sys
from functools import cache

import torch

from rarefy.core.errors import UsageError, unknown

DEVICES = ("auto", "cpu", "cuda")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def resolve_device(name: str = "auto") -> torch.device:
    """``auto`` takes the GPU when there is one; asking for an absent GPU is an error."""
    if name not in DEVICES:
        raise unknown("device", name, DEVICES)
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("device='cuda': no CUDA device here; use 'cpu' or 'auto'")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def resolve_dtype(name: str = "float32") -> torch.dtype:
    if name not in DTYPES:
        raise unknown("dtype", name, DTYPES)
    return DTYPES[name]


def compiler_present() -> bool:
    """Whether ``torch.compile`` can build CPU kernels here (it needs a C++ compiler)."""
    if os.environ.get("RAREFY_COMPILE") == "0":
        return False
    return sys.platform != "win32" and shutil.which(os.environ.get("CXX", "g++")) is not None


def can_compile(device: torch.device) -> bool:
    """Whether ``torch.compile`` has what it needs for a device."""
    if device.type == "cuda":
        return importlib.util.find_spec("triton") is not None
    return compiler_present()


def free_memory(device: torch.device) -> int:
    """Bytes that a batch may use: what the device has free now."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    # no /proc (macOS): half of physical memory is a cautious guess
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def peak_memory(device: torch.device) -> int:
    """Most bytes that this process has used on a device so far; on a CPU with all it imported."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    import resource  # (not on Windows)

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def prepare_cpu() -> None:
    """Dying weights become denormal numbers, which are many times slower on most CPUs."""
    torch.set_flush_denormal(True)


@cache
def keep_freed_memory() -> None:
    """Ask glibc to reuse large freed blocks instead of returning them to the system.

    A training step allocates and frees the same megabytes again and again; fetched anew each time,
    every page is cleared by the kernel first, which costs as much as filling it with noise.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another C library
        return
    arena_max, mmap_max, trim_threshold = -8, -4, -1
    # threads' own arenas cannot hold blocks of many megabytes: all share the main one
    mallopt(arena_max, 1)
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)
