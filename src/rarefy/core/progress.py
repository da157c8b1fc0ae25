"""Progress of a long run: a bar with the time left on a terminal, a line a minute elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

LINE_EVERY_SECONDS = 60.0
"""Without a terminal: no more than one line in this time (besides the first and the last)."""
BAR_EVERY_SECONDS = 0.2


class Pace:
    """Work per second of this process, from which the time left is told.

    Work found in a resumed store took no time here and must not count. Nor must the warm-up: until
    ``settle`` the clock starts at the first report of work (compilation lies before it), after
    ``settle``, called when the first batch is through, it starts there.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._origin: tuple[float, float] | None = None
        self._fallback = 0.0
        self._settled = False
        self.work = 0.0

    def add(self, amount: float) -> None:
        self.work += amount
        if self._origin is None:
            self._origin = (self._clock(), self.work)

    def settle(self) -> None:
        if not self._settled:
            self._settled = True
            # kept until the second batch has something to say
            self._fallback = self.per_second()
            self._origin = (self._clock(), self.work)

    def per_second(self) -> float:
        """0 while nothing is known."""
        now = self._clock()
        if self._origin is not None:
            since, before = self._origin
            if self.work > before and now > since:
                return (self.work - before) / (now - since)
        if self._fallback:
            return self._fallback
        return self.work / (now - self._begun) if now > self._begun else 0.0

    def seconds_left(self, remaining: float) -> float | None:
        rate = self.per_second()
        return remaining / rate if rate > 0 else None


class Progress:
    """Reports on ``total`` run-steps, of which ``before`` were done by an earlier run.

    ``with Progress("study", total, before) as progress: progress.advance(steps)``
    """

    def __init__(
        self,
        title: str,
        total: float,
        before: float = 0.0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.total, self.before = title, max(total, 1.0), before
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._lock = threading.Lock()
        self._pace = Pace(clock)
        self._begun = self._shown = clock()
        self._bar = _Bar(title, self.total, self._stream) if self._stream.isatty() else None
        self._said = ""

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        else:
            part = f" ({self._percent()} done before)" if self.before else ""
            self._line(f"start{part}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop(self._done(), None)
        else:
            word = "finished" if kind is None else "stopped"
            took = spell_seconds(self._clock() - self._begun)
            self._line(f"{word} at {self._percent()} after {took}")

    def advance(self, amount: float) -> None:
        """Some run-steps were just done; workers call this from their threads."""
        with self._lock:
            self._advance(amount)

    def _advance(self, amount: float) -> None:
        self._pace.add(amount)
        now = self._clock()
        every = LINE_EVERY_SECONDS if self._bar is None else BAR_EVERY_SECONDS
        if now - self._shown < every:
            return
        self._shown = now
        left = self.seconds_left()
        if self._bar is not None:
            self._bar.show(self._done(), left, self._said)
        else:
            told = f", about {spell_seconds(left)} left" if left is not None else ""
            said = f"; {self._said}" if self._said else ""
            self._line(f"{self._percent()}{told}{said}")

    def say(self, text: str) -> None:
        """A few words (the accuracy so far) to show beside the next report."""
        with self._lock:
            self._said = text

    def batch_done(self, work: float) -> None:
        """At least ``work`` run-steps of this process are through (a study need not report on the
        way; other workers may be ahead of it)."""
        with self._lock:
            if work > self._pace.work:
                self._advance(work - self._pace.work)
            self._pace.settle()

    def seconds_left(self) -> float | None:
        return self._pace.seconds_left(self.total - self._done())

    def _done(self) -> float:
        return min(self.before + self._pace.work, self.total)

    def _percent(self) -> str:
        return f"{100 * self._done() / self.total:.0f}%"

    def _line(self, text: str) -> None:
        print(f"{self.title}: {text}", file=self._stream, flush=True)


class _Bar:
    """The bar on a terminal; the time left is ours, rich only draws it."""

    def __init__(self, title: str, total: float, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._rich = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(file=stream),
        )
        self._task = self._rich.add_task(title, total=total, left="")

    def start(self) -> None:
        self._rich.start()

    def show(self, done: float, left: float | None, said: str = "") -> None:
        time_left = f"about {spell_seconds(left)} left" if left is not None else ""
        text = "  ".join(part for part in (time_left, said) if part)
        self._rich.update(self._task, completed=done, left=text, refresh=True)

    def stop(self, done: float, left: float | None) -> None:
        self.show(done, left)
        self._rich.stop()


def spell_seconds(seconds: float) -> str:
    """``45 s``, ``3 min 20 s``, ``2 h 05 min``: as exact as a person cares."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 90:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
