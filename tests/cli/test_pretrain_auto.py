"""``rarefy pretrain``: which network is kept, a training past its best, ``--method auto``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_commands import HERE, SMALL

from rarefy import cli
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime
from rarefy.measure.paired_answers import PairedDifference
from rarefy.studies import get_study
from rarefy.sweep.store import open_store
from rarefy.tools import forecasting
from rarefy.tools.longtail import method_race, pretrain_run, watching
from rarefy.tools.longtail.watching import asked_places
from rarefy.tools.saved_networks import load_backbone

Described = dict[str, Any]
Pretrain = Callable[..., Described]
GIVEN = (*SMALL, "--batch", "32", "--protocols", "knn", "--no-control")


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried for a second first, and every epoch is looked at."""
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)
    monkeypatch.setattr(pretrain_run, "LOOK_EVERY", 1)


@pytest.fixture
def falling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours of held-out images are right at the first epoch, and hardly ever after it."""

    def made_up(encoder: Any, now: Any, parts: Any) -> dict[str, list[float]]:
        share = 0.9 if now.epoch == 1 else 0.2
        right = (np.arange(len(asked_places(parts))) % 10 < 10 * share).astype(float)
        apart = [0.5] * len(parts.order)
        found = {"knn": [share], "right": right.tolist(), "separability": apart}
        return {**found, "effective_rank": [3.0]}

    monkeypatch.setattr(watching, "watched_features", made_up)


@pytest.mark.slow
@pytest.mark.usefixtures("falling")
def test_a_training_past_its_best_is_stopped_and_its_best_network_kept(
    pretrain: Pretrain,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    logged: list[str],
) -> None:
    given = (*GIVEN, "--method", "simclr", "--seeds", "2", "--epochs", "5")
    assert cli.main(["pretrain", *given, *HERE, "--save", "nets"]) == 0
    said = capsys.readouterr()
    line = (
        "simclr: kept epoch 1 of 5: held-out neighbours 90.0 %, at the end 20.0 % (2 of 2 stopped "
        "after epoch 3: over-training is certain)"
    )
    assert line in said.out
    assert (
        "\n".join(logged).count(": stopped after epoch 3: held-out kNN accuracy fell for certain")
        == 2
    )
    assert "finished at 100%" in said.err
    for path in (here / "nets").glob("*.pt"):
        assert load_backbone(path)[1]["kept_epoch"] == 1
    found = pretrain(*given)
    (kept,) = found["kept"]
    assert (kept["epochs"], kept["stopped"], kept["of"]) == ([1, 1], [3, 3], 5)
    whole = pretrain(*given, "--no-stop", "--out", "whole")
    assert whole["kept"][0]["stopped"] == [None, None] and whole["kept"][0]["epochs"] == [1, 1]
    assert whole["rows"] == found["rows"]  # the same network is judged
    # a store that was stopped is not gone on with by one that is not
    assert cli.main(["pretrain", *given, *HERE, "--no-stop"]) == 2
    assert "was made with stop=True, not False" in capsys.readouterr().err
    # the page says which, and judges no claim
    store = open_store(Path(found["store"]), get_study)
    results = store.read()
    table = next(one for one in store.study.tables(results) if one.name == "kept")
    assert table.rows[0][2:] == ("SimCLR", "1, 1", "90.00", "20.00", "3, 3")
    assert store.study.claims == () and store.study.verdicts(results, "quick") == []
    training = next(one for one in store.study.picture(results) if one.name == "training")
    assert "the network with the highest kNN accuracy is kept" in training.caption
    assert len(training.panels) == 3


AUTO = (*GIVEN, "--method", "auto", "--seeds", "2")
SENTENCE = " is chosen: on 143 held-out training images simclr "


@pytest.mark.slow
def test_auto_chooses_by_one_training_each_and_trains_the_chosen(
    pretrain: Pretrain, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (*AUTO, "--protocols", "linear")
    assert cli.main(["pretrain", *given, *HERE, "--save", "nets"]) == 0
    said = capsys.readouterr()
    last, before = said.out.splitlines()[-1], said.out.splitlines()[-2]
    assert SENTENCE in before and before in said.err  # at once, and at the end
    chosen = before.partition(" ")[0]
    assert chosen in ("simclr", "branches:0.1") and chosen in last
    race = open_store(here / "runs" / "pretrain-digits-auto-race", get_study).read()
    assert race.algorithm.values.tolist() == ["simclr", "branches:0.1"] and race.sizes["seed"] == 1
    assert [one.name for one in (here / "nets").glob("*seed-1.pt")] == [
        f"digits-lenet-{chosen.replace(':', '-')}-long-tail-rho-8-seed-1.pt"
    ]
    found = pretrain(*given)
    assert "(linear, one whole training each)" in before
    assert found["choice"] == before and found["store"] == "runs/pretrain-digits-auto"
    assert [row["method"] for row in found["rows"]] == [chosen, "pixels"]
    # the first seed of the chosen one is trained as in the race
    main = open_store(here / "runs" / "pretrain-digits-auto", get_study).read()
    alike = [one.accuracy.sel(algorithm=chosen).isel(seed=0).values for one in (race, main)]
    np.testing.assert_array_equal(*alike)


def test_a_winner_is_trained(pretrain: Pretrain, monkeypatch: pytest.MonkeyPatch) -> None:
    def better(*_: Any) -> PairedDifference:
        return PairedDifference(0.5, 0.1, 143, 30)

    monkeypatch.setattr(method_race, "paired_difference", better)
    found = pretrain(*AUTO, "--epochs", "1")
    assert found["choice"].startswith(f"branches:0.1{SENTENCE}")
    assert "a gain of 50.0 points by branches:0.1, more than a standard error (" in found["choice"]
    assert [row["method"] for row in found["rows"]] == ["branches:0.1", "pixels"]


@pytest.mark.slow
def test_out_of_time_in_the_race_it_goes_on_to_the_same_end(
    pretrain: Pretrain, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = pretrain(*AUTO, "--out", "whole")
    asked: list[int] = []
    check = Context.check_time

    def soon(self: Context) -> None:
        asked.append(1)
        if len(asked) > 11:  # in the second training of the race
            raise OutOfTime("the time given with --max-seconds is over")
        check(self)

    limited = [*AUTO, *HERE, "--out", "part", "--max-seconds", "500"]
    with monkeypatch.context() as patch:
        patch.setattr(Context, "check_time", soon)
        assert cli.main(["pretrain", *limited, "--json"]) == 3
    said = capsys.readouterr()
    assert json.loads(said.out)["choice"] == "" and not Path("part").exists()
    assert "1 of 2 cells are stored in part-race" in said.err
    again = pretrain(*AUTO, "--out", "part", "--max-seconds", "500")
    assert again["rows"] == whole["rows"] and again["choice"] == whole["choice"]


def test_a_race_that_nobody_finishes_is_told(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    assert cli.main(["pretrain", *AUTO, *HERE, "--lr", "1e30"]) == 1
    said = capsys.readouterr()
    assert "error: no training came to its end: the loss is no number" in said.err
    assert not (here / "runs" / "pretrain-digits-auto").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--method", "auto,pixels"), "--method='auto,pixels': auto stands alone: it chooses simc"),
        (("--max-seconds", "0"), "--max-seconds=0.0: must be more than 0"),
        (("--jobs", "0"), "--jobs=0: must be at least 1"),
    ],
)
def test_asked_wrongly(
    more: tuple[str, str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pretrain", *AUTO, *HERE, *more]) == 2
    said = capsys.readouterr().err
    assert message in said and len(said.strip().splitlines()) == 1
    assert not (here / "runs").exists()


def test_without_labels_or_in_several_processes_nothing_is_chosen(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "photos").mkdir()
    assert cli.main(["pretrain", "photos", "--unlabelled", "--method", "auto", *HERE]) == 2
    said = capsys.readouterr().err
    assert "--method='auto': chooses by labels, and there are none; name one: simclr" in said
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.main(["pretrain", *AUTO, *HERE]) == 2
    said = capsys.readouterr().err
    assert "--method='auto': under torchrun one method is trained; name it: simclr" in said
