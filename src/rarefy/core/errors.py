"""Errors and their exit codes: 1 a failure on the way, 2 wrong use, 3 unfinished, 130 stopped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from rarefy.core.text import one_line

LONGEST, VALUE = 1500, 300
"""Letters of a message and of a value in it, before the middle is left out."""


class RarefyError(Exception):
    """Base of every error that rarefy raises on purpose; its text is one line for a person, which a
    terminal can show whatever name or file it quotes.

    Attributes:
        exit_code: with which a command ends.

    Example:
        >>> try:
        ...     rarefy.run("contrast-init", scale="huge")
        ... except rarefy.RarefyError as error:
        ...     error.exit_code
        2
    """

    exit_code = 1

    def __str__(self) -> str:
        return shortened(one_line(re.sub(r"\s*[\r\n]\s*", " ", super().__str__().strip())), LONGEST)


class UsageError(RarefyError, ValueError):
    """The caller asked for something impossible: names the argument, the value, what is allowed.

    Example:
        >>> rarefy.run("contrast-int")
        Traceback (most recent call last):
        ...
        rarefy.core.errors.UsageError: unknown study 'contrast-int'; did you mean ...
    """

    exit_code = 2


class Busy(UsageError):
    """Another process is at it: not a failure, the same command can be tried again."""

    exit_code = 3


class RunError(RarefyError, RuntimeError):
    """Something failed on the way (disk full, lost device); what was stored is still good.

    Example:
        >>> rarefy.load("absent.parquet")
        Traceback (most recent call last):
        ...
        rarefy.core.errors.RunError: cannot read results absent.json: No such file or directory
    """


class WentAway(RunError):
    """A service that a run needs is not there: what is stored is good, the same command goes on."""

    exit_code = 3


class SchedulerLost(WentAway):
    """A cluster went away in mid-run."""


class OutOfTime(RarefyError):
    """The deadline of ``--max-seconds`` passed: not a failure, the same command goes on.

    Example:
        >>> images = torch.zeros(64, 1, 8, 8, dtype=torch.uint8)
        >>> try:
        ...     rarefy.pretrain(images, "lenet", epochs=9, max_seconds=1e-9, progress=False)
        ... except rarefy.OutOfTime as error:
        ...     error.exit_code
        3
    """

    exit_code = 3


class Interrupted(RarefyError, KeyboardInterrupt):
    """Ctrl-C or SIGTERM reached a run; its text says how to go on. Still a KeyboardInterrupt."""

    exit_code = 130


class Terminated(KeyboardInterrupt):
    """SIGTERM: not a person who wants it to stop but a machine that takes its time back. What can
    go on is then unfinished, as after ``OutOfTime``, and has that exit code."""


def bad_value(argument: str, value: object, allowed: str) -> UsageError:
    """The one form of complaint about a value: ``sigma=-1: must be at least 0``."""
    return UsageError(f"{argument}={shortened(repr(value), VALUE)}: {allowed}")


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Complain about a name that is not in a list, and suggest the nearest one."""
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    asked = shortened(repr(name), VALUE)
    return UsageError(f"unknown {kind} {asked}{hint} (known: {', '.join(known)})")


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and its end."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} ... {text[-most // 3 + 5 :]}"
