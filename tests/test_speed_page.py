"""docs/speed.md is made from the committed numbers of the benchmarks."""

from __future__ import annotations

import pytest

from pages import DOCS, goals, speed


def test_it_is_up_to_date() -> None:
    assert (DOCS / "speed.md").read_text("utf-8") == speed.page(), "run: python docs/make.py speed"


def test_a_goal_is_met_by_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"topk-phase": 74.0, "contrast-alignment": 26.0}
    record = goals.record
    seconds = {name: {"warm": [took], "cold": [90.0]} for name, took in measured.items()}
    monkeypatch.setattr(
        goals,
        "record",
        lambda name: {"seconds": seconds} if name == "commands-gpu" else record(name),
    )
    met = {job.split(",")[0]: met for job, *_, met in goals.goals()}
    assert (met["TopK map"], met["Fig. 2 and 3"]) == ("yes", "no")
    assert goals.in_minutes(59.6) == "60 s" and goals.in_minutes(410) == "6 min 50 s"
