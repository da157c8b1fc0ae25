"""Words for the progress bar: the latest ones, beside the next report."""

from __future__ import annotations

import io

from rarefy.core.contracts import Context
from rarefy.core.progress import LINE_EVERY_SECONDS, Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_ends_with_the_latest_words() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress("toy", 100, 0, stream, clock) as progress:
        progress.say("epoch 1/4")
        progress.say("epoch 2/4, loss 0.5")
        assert stream.getvalue() == "toy: start\n"  # words alone are no report
        clock.now += LINE_EVERY_SECONDS
        progress.advance(50)
        progress.say("")
        clock.now += LINE_EVERY_SECONDS
        progress.advance(25)
    lines = stream.getvalue().splitlines()
    assert lines[1].startswith("toy: 50%, about ") and lines[1].endswith("; epoch 2/4, loss 0.5")
    assert lines[2].startswith("toy: 75%") and ";" not in lines[2]


def test_a_terminal_shows_them_beside_the_time_left() -> None:
    clock, stream = Clock(), Terminal()
    with Progress("toy", 100, 0, stream, clock) as progress:
        progress.say("epoch 2/4")
        clock.now += 1
        progress.advance(50)
    assert "epoch 2/4" in stream.getvalue() and "left" in stream.getvalue()


def test_words_with_square_brackets_are_not_taken_for_colours() -> None:
    """A cell may be named by a person: their folder, their network."""
    clock, stream = Clock(), Terminal()
    with Progress("toy", 100, 0, stream, clock) as progress:
        progress.say("[red]net[/red] a[/b]")
        clock.now += 1
        progress.advance(50)
    assert "[red]net[/red]" in stream.getvalue()


def test_nobody_needs_to_listen() -> None:
    context = Context()
    context.say("words")
    context.advance(1.0)
