"""How long it will take: what the demo says before it starts, and what a try of a study tells."""

from __future__ import annotations

import pytest
import torch
from toy_study import Toy

from rarefy.studies import listed
from rarefy.sweep import estimate
from rarefy.sweep.estimate import KNOWN, LOOPS, PAGE, Forecast
from rarefy.sweep.grid import grid_of

CPU = torch.device("cpu")


def test_the_work_of_every_headline_study_is_known() -> None:
    headlines = {entry.name for entry in listed().values() if entry.headline}
    assert headlines == KNOWN.keys(), "run the demo, and put what it took into KNOWN"
    assert 3 * len(headlines) + 7 <= 30, "lines of the demo"


@pytest.mark.usefixtures("eager")
def test_a_forecast_follows_the_machine_and_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(estimate.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(estimate, "core_speed", lambda cores: LOOPS / 2)
    work = {"topk-phase": 60 / KNOWN["topk-phase"], "sparse-mnist": 40 / KNOWN["sparse-mnist"]}
    forecast = Forecast(work, CPU)
    assert forecast.left() == f"about {estimate.in_words(2 * (100 + PAGE))}"
    now[0] = 180.0  # three times as slow as known, not twice
    forecast.done("topk-phase")
    assert estimate.FIRST == 60, "as much as was seen"
    assert forecast.left() == f"about {estimate.in_words(2.5 * (40 + PAGE))}"
    assert forecast.took["topk-phase"] == 180
    assert Forecast({"toy": 5.0}, CPU).left() == "", "nobody knows"
    assert Forecast(work, torch.device("cuda")).left() == ""


@pytest.mark.usefixtures("eager")
def test_what_is_done_once_is_not_counted_for_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(estimate.time, "monotonic", lambda: now[0])

    class Slow(Toy):
        def simulate(self, cells, context):  # type: ignore[no-untyped-def]
            now[0] += 100  # images are read
            for _ in range(50):
                context.check_time()
                now[0] += 0.25
                context.advance(len(cells))
            raise AssertionError("nobody stopped it")

    study = Slow.at("paper")
    cells = grid_of(study).cells(torch.arange(4).numpy())
    taken, done = estimate._timed(study, cells, CPU, 1.0)
    assert taken / done == pytest.approx(0.25 / 4)
