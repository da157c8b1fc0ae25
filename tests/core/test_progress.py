"""Progress: the time left is true within a factor of two; a log gets a line a minute."""

from __future__ import annotations

import io

import pytest

from rarefy.core.contracts import Context
from rarefy.core.progress import LINE_EVERY_SECONDS, Progress, spell_seconds


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drive(progress: Progress, clock: Clock, batches: int, warm_up: float) -> list[float]:
    """Batches of 10 seconds and 100 run-steps after a warm-up; the ratio of the time told to the
    time it really took, at each report."""
    end = clock.now + warm_up + 10.0 * batches
    ratios = []
    clock.now += warm_up
    for batch in range(batches):
        for _ in range(10):
            clock.now += 1.0
            progress.advance(10)
            left = progress.seconds_left()
            if left is not None and end - clock.now > 5:
                ratios.append(left / (end - clock.now))
        progress.batch_done(100 * (batch + 1))
    return ratios


@pytest.mark.parametrize("before", [0.0, 5000.0])
@pytest.mark.parametrize("warm_up", [0.0, 300.0])
def test_the_time_left_is_true_within_a_factor_of_two(before: float, warm_up: float) -> None:
    clock = Clock()
    with Progress("toy", before + 1000, before, io.StringIO(), clock) as progress:
        ratios = drive(progress, clock, 10, warm_up)
    # the very first report cannot know how much of the time was warm-up
    assert len(ratios) > 90
    assert all(0.5 < ratio < 2 for ratio in ratios[1:])


def test_a_study_that_reports_nothing_still_has_a_time_left() -> None:
    clock = Clock()
    with Progress("toy", 300, 0, io.StringIO(), clock) as progress:
        clock.now += 10
        progress.batch_done(100)
        assert progress.seconds_left() == pytest.approx(20)


def test_a_finished_batch_never_takes_back_what_other_workers_reported() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress("toy", 200, 0, stream, clock) as progress:
        clock.now += 10
        progress.advance(100)
        progress.advance(60)  # another worker, in the middle of its batch
        progress.batch_done(100)
        assert progress._percent() == "80%"


def test_a_log_gets_at_most_a_line_a_minute() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress("toy", 1000, 0, stream, clock) as progress:
        drive(progress, clock, 100, 0.0)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "toy: start"
    assert lines[-1] == "toy: finished at 100% after 16 min 40 s"
    assert 10 <= len(lines) <= 2 + 1000 / 60
    assert "left" in lines[1] and "\x1b" not in stream.getvalue()


def test_a_stop_is_not_called_finished() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt), Progress("toy", 10, 5, stream):
        raise KeyboardInterrupt
    assert stream.getvalue().splitlines()[0] == "toy: start (50% done before)"
    assert "stopped at 50%" in stream.getvalue()


def test_a_terminal_gets_a_bar() -> None:
    clock, stream = Clock(), Terminal()
    with Progress("toy", 1000, 0, stream, clock) as progress:
        drive(progress, clock, 10, 0.0)
    assert "100%" in stream.getvalue() and "left" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_seconds_are_spelled_for_people(seconds: float, text: str) -> None:
    assert spell_seconds(seconds) == text


# ------------------------------------------------------------------------------------- what is said


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
