"""Errors and their exit codes: 1 a failure on the way, 2 wrong use, 3 unfinished, 130 stopped."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RarefyError(Exception):
    """Base of every error that rarefy raises on purpose; its text is one line for a person."""

    exit_code = 1


class UsageError(RarefyError, ValueError):
    """The caller asked for something impossible: names the argument, the value, what is allowed."""

    exit_code = 2


class Busy(UsageError):
    """Another process is at it: not a failure, the same command can be tried again."""

    exit_code = 3


class RunError(RarefyError, RuntimeError):
    """Something failed on the way (disk full, lost device); what was stored is still good."""


class SchedulerLost(RunError):
    """A cluster went away in mid-run: what is stored is good, the same command goes on."""

    exit_code = 3


class OutOfTime(RarefyError):
    """The deadline of ``--max-seconds`` passed: not a failure, the same command goes on."""

    exit_code = 3


class Interrupted(RarefyError, KeyboardInterrupt):
    """Ctrl-C or SIGTERM reached a run; its text says how to go on. Still a KeyboardInterrupt."""

    exit_code = 130


def bad_value(argument: str, value: object, allowed: str) -> UsageError:
    """The one form of complaint about a value: ``sigma=-1: must be at least 0``."""
    return UsageError(f"{argument}={value!r}: {allowed}")


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Complain about a name that is not in a list, and suggest the nearest one."""
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UsageError(f"unknown {kind} {name!r}{hint} (known: {', '.join(known)})")
