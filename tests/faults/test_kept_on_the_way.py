"""What is kept when a command is stopped"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_longtail import task
from torch import Tensor

from rarefy.cli import main
from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.tools import keep_race
from rarefy.tools.clean.cleaning import clean
from rarefy.tools.clean.recording import undo
from rarefy.tools.keep_race import KEEPS, SEEDS, race
from rarefy.tools.longtail import pretraining
from rarefy.tools.longtail.pretraining import pretrain_one
from rarefy.tools.samples.features import embed
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.train_images import TrainImages
from rarefy.train import resumable
from rarefy.train.simclr.method import Method

pytestmark = pytest.mark.usefixtures("here")
asked: list[int] = []
until: list[float] = []


def seen(images: Tensor) -> Tensor:
    """An embedding that takes its time after the first two batches."""
    asked.append(len(images))
    if until and len(asked) > 2:
        until.clear()
        time.sleep(0.6)
    return images.flatten(1).mean(1, keepdim=True) * torch.arange(1, 5)


@pytest.mark.fault(
    when="`--max-seconds` is over while samples are embedded (`influence --embed`)",
    then="exit code 3, and the same command goes on with the next sample",
    lost="the batch under way",
)
def test_an_embedding_is_stopped_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(0).normal(size=(1500, 6))
    table = pd.DataFrame(rows, columns=list("abcdef")).assign(kind=["x", "y"] * 750)
    table.to_csv("t.csv", index=False)
    call = ["influence", "t.csv", "--label", "kind", "--embed", f"{__name__}:seen", "--neighbours"]
    call += ["0", "--no-check-labels", "--no-gallery", "--out", "o"]
    samples = open_samples("t.csv", label="kind")
    whole = embed(samples, seen).features
    asked.clear()
    until.append(1.0)
    with pytest.raises(OutOfTime, match="were embedded; 768 of 1500 samples are kept"):
        embed(samples, seen, folder="kept", deadline=time.monotonic() + 0.5)
    before = sum(asked)
    again = embed(samples, seen, folder="kept")
    # (the first batch is asked again, to see that it is the same model)
    assert sum(asked) - before == 1500 - 768 + 256
    assert np.array_equal(np.asarray(again.features), np.asarray(whole))
    assert main([*call, "--max-seconds", "1e-9"]) == 3
    assert "note: stopped while samples were embedded; 256 of 1500" in capsys.readouterr().err
    assert main(call) == 0 and Path("o/scores.parquet").exists()


@pytest.mark.slow
@pytest.mark.fault(
    when="`--max-seconds` is over while `train --keep auto` looks for the share to keep",
    then="the same command goes on with the race where it was, and chooses what an undisturbed one "
    "does",
    lost="the update under way",
)
def test_a_race_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = TrainImages.at("tiny", network="small_trainings:tiny", epochs=8, samples=120)
    whole = race(small, Context())
    begun: list[int] = []
    new, looks = keep_race.new_training, 0

    def counted(*given: Any) -> Any:
        begun.append(1)
        return new(*given)

    monkeypatch.setattr(keep_race, "new_training", counted)

    def soon(self: Context) -> None:
        nonlocal looks
        looks += 1
        if looks % 40 == 0:
            raise OutOfTime("the time given with --max-seconds is over")

    monkeypatch.setattr(Context, "check_time", soon)
    stops, found = 0, None
    while found is None and stops < 100:
        try:
            found = race(small, Context(scratch=tmp_path / "scratch"))
        except OutOfTime:
            stops += 1
    assert found == whole and stops > 2
    # every training is begun once, and once more after each stop
    assert len(begun) <= len(KEEPS) * SEEDS + stops


@pytest.mark.fault(
    when="Ctrl-C, a kill or `--max-seconds` comes when a training is through and its features are "
    "judged",
    then="the training is kept (if it took more than a second), and judged again",
    lost="the judging",
)
def test_a_training_is_kept_while_it_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable, "WORTH_SECONDS", 0.0)
    way, context = Method.parse("branches:0.5"), Context(scratch=tmp_path)
    whole = pretrain_one(task(), way, 0, 0, Context())
    judged = pretraining._measured
    updates: list[int] = []

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pretraining, "_measured", stopped)
    with pytest.raises(KeyboardInterrupt):
        pretrain_one(task(), way, 0, 0, context)
    monkeypatch.setattr(pretraining, "_measured", judged)
    advance = resumable.Resumable.advance

    def counted(self: Any, batch: Any) -> None:
        updates.append(1)
        advance(self, batch)

    monkeypatch.setattr(resumable.Resumable, "advance", counted)
    again = pretrain_one(task(), way, 0, 0, context)
    assert not updates and not list(tmp_path.glob("*.pt"))
    assert again.history == whole.history
    assert again.quality is not None and whole.quality is not None
    assert repr(again.quality) == repr(whole.quality)


@pytest.mark.fault(
    when="a file of somebody's own lies in the folder `.rarefy` of a cleaned set that is undone",
    then="it is named, and nothing is removed",
    lost="nothing",
)
def test_undoing_looks_at_our_own_folder_too() -> None:
    pd.DataFrame({"kind": list("ab") * 6, "height": np.arange(12.0) ** 2}).to_csv(
        "t.csv", index=False
    )
    ids = open_samples("t.csv", label="kind").ids
    picks = pd.DataFrame({"id": ids[:2], "decision": "drop"})
    found = clean("t.csv", picks, "o", label="kind")
    mine = found.path / ".rarefy" / "notes.txt"
    mine.write_text("mine")
    with pytest.raises(UsageError, match=r"changed, added or gone since: \.rarefy/notes\.txt"):
        undo("o")
    assert mine.read_text() == "mine"
    mine.unlink()
    assert undo("o").files == 2 and not Path("o").exists()
