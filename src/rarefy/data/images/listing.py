"""Long lists in one line, and numbers in words."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 10


def listed(items: Sequence[str], shown: int = SHOWN) -> str:
    """The first ones by name, then a count: ``a, b, c and 4 more``."""
    rest = len(items) - shown
    return "; ".join(items[:shown]) + (f"; and {rest} more" if rest > 0 else "")


def counted(count: int, what: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def spell_bytes(count: float) -> str:
    """``512 bytes``, ``28.9 kB``, ``170.5 MB``, in thousands as disks are sold."""
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} GB"
