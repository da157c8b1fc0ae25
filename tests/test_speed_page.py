"""docs/speed.md is made from the committed numbers of the benchmarks."""

from __future__ import annotations

from pages import DOCS, speed


def test_the_page_is_made_from_what_was_measured() -> None:
    assert (DOCS / "speed.md").read_text("utf-8") == speed.page(), "run: python docs/make.py speed"


def test_a_goal_is_met_or_named_among_the_limits() -> None:
    missed = [job for job, *_, met in speed.goals() if met == "no"]
    assert missed and len(missed) < len(speed.goals())
    assert speed._clock(59.6) == "60 s" and speed._clock(410) == "6 min 50 s"
