"""Paths with spaces, quotes, unicode and a leading dash"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from toy_study import Toy, only

from rarefy.cli import main
from rarefy.tools import forecasting
from rarefy.tools.samples.opening import open_samples

ODD = "-o' \"ünï [b] 名 $x"
PHOTOS, TABLE = f"{ODD} photos", f"{ODD}.csv"
HERE = ("--seeds", "1", "--jobs", "1", "--device", "cpu", "--network")
TINY = (*HERE, "small_trainings:tiny", "--epochs", "1")
TOY = ("run", "toy", "--scale", "tiny", "--out", f"{ODD} s")
CALLS = {
    "run": [*TOY, "--results", f"{ODD} r"],
    "report": ["report", "--out", f"{ODD}.html", "--", f"{ODD} s", f"{ODD} r"],
    "check": ["check", "--", f"{ODD} s", f"{ODD} r"],
    "train": ["train", "--keep", "0.5", *TINY, "--out", f"{ODD} t", "--save", f"{ODD} n"],
    "influence": ["influence", "--csv", "--no-check-labels", "--out", f"{ODD} i"],
    "influence of a table": ["influence", "--label", "kind", "--no-check-labels", "--no-gallery"],
    "clean": ["clean", "--picks", f"{ODD}.json", "--out", f"{ODD} c"],
    "data check": ["data", "check", "--sheet", f"{ODD}.png"],
    "granularity": [
        *("granularity", "--hierarchy", f"{ODD} parents.csv", "--features", "pixels", "--made"),
        *("kmeans-within:2", *TINY, "--out", f"{ODD} g", "--page", f"{ODD} g.html"),
    ],
    "pretrain": [
        *("pretrain", "--method", "simclr", "--protocols", "knn", "--epochs", "1", *HERE, "lenet"),
        *("--out", f"{ODD} pt", "--save", f"{ODD} pn", "--features", f"{ODD}.parquet"),
        *("--save-split", f"{ODD} split.json", "--rho", "2", "--no-control"),
    ],
    "pretrain --split": [
        *("pretrain", "--method", "simclr", "--protocols", "knn", "--epochs", "1", *HERE, "lenet"),
        *("--out", f"{ODD} pt2", "--split", f"{ODD} split.json", "--no-control"),
    ],
    "probe": ["probe", "--protocols", "knn", "--device", "cpu"],
}
"""Every verb that takes a path; a positional one is added, behind ``--``."""
OF_PHOTOS = ("train", "influence", "clean", "data check", "granularity", "pretrain")
OF_PHOTOS = (*OF_PHOTOS, "pretrain --split")


@pytest.fixture
def odd(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Toy)
    monkeypatch.setattr(forecasting, "seconds_for", lambda experiment, device: 36.0)
    random = np.random.default_rng(0)
    for name in ("cat", "dog", "oak"):
        Path(PHOTOS, name).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(0, 255, (8, 8)).astype(np.uint8)
            Image.fromarray(pixels).save(Path(PHOTOS, name, f"{number}.png"))
    numbers = random.normal(size=(40, 2))
    pd.DataFrame(numbers, columns=["x", "y"]).assign(kind=list("ab") * 20).to_csv(
        TABLE, index=False
    )
    Path(f"{ODD} parents.csv").write_text("child,parent\ncat,pet\ndog,pet\noak,tree\n")
    picks = [{"id": each, "decision": "drop"} for each in open_samples(PHOTOS).ids[:3]]
    held = {"format": "rarefy picks 1", "data": PHOTOS, "read": {}, "picks": picks}
    Path(f"{ODD}.json").write_text(json.dumps(held), "utf-8")


@pytest.mark.slow
@pytest.mark.fault(
    when="paths have spaces, quotes, brackets, letters of any script and a leading dash",
    then="every verb takes them, for what it reads and for what it writes; commands that it prints "
    "can be pasted",
    lost="nothing",
    named="a path with spaces, quotes, unicode and a leading dash",
)
@pytest.mark.usefixtures("odd")
def test_every_verb_takes_odd_paths(capsys: pytest.CaptureFixture[str]) -> None:
    pasted: list[str] = []
    for verb, call in CALLS.items():
        words = list(call)
        if verb in OF_PHOTOS:
            words += ["--", PHOTOS]
        elif verb.startswith("influence "):
            words += ["--out", f"{ODD} {verb}", "--", TABLE]
        elif verb == "probe":
            words += ["--", *map(str, sorted(Path(f"{ODD} pn").glob("*.pt")))]
        assert main(words) == 0, (verb, capsys.readouterr().err)
        told = capsys.readouterr().out
        pasted += re.findall(r"(?:next|undo): (rarefy .*)", told)
        pasted += re.findall(r"then (rarefy clean .*) --picks FILE", told)
    verbs = [shlex.split(line)[1] for line in pasted]
    assert {"report", "clean", "train"} <= {*verbs}
    for line in sorted(pasted, key=lambda line: "--undo" in line):  # each is about what is there
        _, verb, *words = shlex.split(line)
        options = {"clean": ["--picks", f"{ODD}.json", "--out", f"{ODD} c2"], "train": [*TINY]}
        if verb == "report":
            words = [word for word in words if word != "--open"] + ["--out", "page.html"]
        if "--undo" in words:
            options.pop("clean")
        assert Path(words[-1 if "--undo" in words else 0]).exists()
        if TABLE in words[0]:  # of no picks
            continue
        assert main([verb, *words, *options.get(verb, [])]) == 0, (line, capsys.readouterr().err)
